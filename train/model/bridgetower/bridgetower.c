/* bridgetower.c - BridgeTower on a device: from images and texts to losses, and the gradients back.
 * Invariant: a pass enqueues the same operations for the same shapes; what it needs was planned when the model was
 * opened (with peers: in the first pass that meets them). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "train/model/bridgetower/pass.h"

static void close_model(mr_model *model)
{
    mr_bt *m = (mr_bt *)model;
    if (!m)
        return;
    mr_contrast_close(m->contrast);
    mr_transformer_close(&m->t);
    mr_bt_layout_release(&m->layout);
    mr_bt_unmake(m);
    free(m);
}

static void discard(mr_bt **m)
{
    if (*m)
        close_model(&(*m)->t.base);
}

static mr_status open_model(const mr_model_config *c, const mr_params *p, mr_device *d, size_t batch, bool training,
                            mr_model **out, mr_error *err)
{
    MR_TRY(mr_model_fits(c, d, batch, err));
    MR_AUTO(mr_params_release) mr_params own = {0};
    MR_AUTO(discard) mr_bt *m = mr_alloc(1, sizeof *m);
    if (!m || !mr_bt_make(m, c, batch, training))
        return mr_fail_memory(err, "opening a model");
    m->t.base.iface = &mr_model_bridgetower;
    m->t.device = d;
    MR_TRY(mr_bt_lay_out(c, &own, &m->layout, err));
    MR_TRY(mr_bt_plan_attention(m, err));
    MR_TRY(mr_transformer_open(&m->t, &own, p, mr_bt_plan, err));
    MR_TRY(mr_contrast_open(d, batch, c->embed, 1, training, &m->contrast, err));
    *out = &m->t.base;
    m = NULL;
    return MR_OK;
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

/* A bridge follows right after its layer: what a block adds to its stream is summed there. */
static void forward(mr_model *model, const float *values, const mr_model_input *in, mr_model_output *out)
{
    mr_bt *m = (mr_bt *)model;
    const mr_model_config *c = &m->t.config;
    assert(in->count && in->count <= m->t.batch && in->length && in->length <= c->text);
    mr_transformer_begin(&m->t, values, in);
    m->tokens[MR_BT_TEXT] = in->length;
    mr_bt_text_embedding_forward(m);
    for (size_t i = 0; i < m->split; i++)
        mr_bt_text_forward(m, i);
    mr_bt_bridge_forward(m, MR_BT_TEXT, 0);
    mr_bt_image_embedding_forward(m);
    for (size_t i = 0; i < m->split; i++)
        mr_bt_vision_forward(m, i);
    mr_bt_bridge_forward(m, MR_BT_IMAGE, 0);
    mr_bt_cross_forward(m, 0);
    for (size_t j = 1; j < c->cross_layers; j++) {
        mr_bt_text_forward(m, m->split - 1 + j);
        mr_bt_bridge_forward(m, MR_BT_TEXT, j);
        mr_bt_vision_forward(m, m->split - 1 + j);
        mr_bt_bridge_forward(m, MR_BT_IMAGE, j);
        mr_bt_cross_forward(m, j);
    }
    mr_bt_head_forward(m);
    *out = m->out;
}

/* ---- backward ------------------------------------------------------------------------------------------------- */

typedef struct listener {
    mr_gradients_ready ready;
    void *ctx;
} listener;

static void report(const listener *l, uint64_t from)
{
    if (l->ready)
        l->ready(l->ctx, from);
}

/* The towers below the bridges; frozen parameters are reported ready, too. */
static void towers_backward(mr_bt *m, const listener *l)
{
    bool images = m->learns[MR_BT_IMAGE], text = m->learns[MR_BT_TEXT];
    for (size_t i = m->split; i-- > 0;) {
        if (images)
            mr_bt_vision_backward(m, i);
        report(l, m->layout.vision[i].first);
    }
    if (images)
        mr_bt_image_embedding_backward(m);
    report(l, m->layout.image.cls);
    for (size_t i = m->split; i-- > 0;) {
        if (text)
            mr_bt_text_backward(m, i);
        report(l, m->layout.text[i].first);
    }
    if (text)
        mr_bt_text_embedding_backward(m);
    report(l, 0);
}

static void backward(mr_model *model, const float *values, float *gradients, mr_gradients_ready ready, void *ctx)
{
    mr_bt *m = (mr_bt *)model;
    const listener l = {ready, ctx};
    if (!m->t.in.training)
        return;
    m->t.values = values;
    m->t.gradients = gradients;
    mr_bt_head_backward(m);
    report(&l, m->layout.pooler[MR_BT_TEXT].kernel);
    for (size_t j = m->t.config.cross_layers; j-- > 0;) {
        mr_bt_cross_backward(m, j);
        mr_bt_bridge_backward(m, MR_BT_TEXT, j);
        mr_bt_bridge_backward(m, MR_BT_IMAGE, j);
        if (j > 0 && m->learns[MR_BT_TEXT])
            mr_bt_text_backward(m, m->split - 1 + j);
        if (j > 0 && m->learns[MR_BT_IMAGE])
            mr_bt_vision_backward(m, m->split - 1 + j);
        report(&l, j > 0 ? m->layout.text[m->split - 1 + j].first : m->layout.norm_post.gain);
    }
    towers_backward(m, &l);
}

/* ---- tests ---------------------------------------------------------------------------------------------------- */

static const void *look_stream(const mr_bt *m, unsigned side, size_t i)
{
    const mr_model_config *c = &m->t.config;
    if (i > c->layers || !m->keeps[side])
        return NULL;
    if (side == MR_BT_TEXT)
        return i ? m->text[i - 1].norm.y : m->words.y;
    return i < c->layers ? m->vision[i].norm1.total : m->last_total;
}

static const void *look_cross(const mr_bt *m, unsigned side, size_t j)
{
    bool kept = j < m->t.config.cross_layers && m->keeps_cross && !m->cross[side][j].first_only;
    return kept ? m->cross[side][j].norm.y : NULL;
}

/* The number after `prefix`; SIZE_MAX: it is another name. */
static size_t number_after(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    char *end;
    if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9')
        return SIZE_MAX;
    unsigned long long number = strtoull(name + n, &end, 10);
    return *end || number >= SIZE_MAX ? SIZE_MAX : (size_t)number;
}

static const void *look(const mr_model *model, const char *name, size_t *count)
{
    static const char *const streams[] = {"text_", "image_"}, *const crosses[] = {"cross_text_", "cross_image_"};
    static const char *const embeds[] = {"text_embeds", "image_embeds", "cross_embeds"};
    const mr_bt *m = (const mr_bt *)model;
    for (size_t i = 0; i < MR_COUNT(embeds) && m->t.config.compute == MR_F32; i++) {
        if (strcmp(name, embeds[i]) == 0) {
            *count = m->t.in.count * m->t.config.embed;
            return m->out.embeddings[i];
        }
    }
    for (unsigned side = 0; side < 2; side++) {
        size_t stream = number_after(name, streams[side]), cross = number_after(name, crosses[side]);
        *count = mr_bt_rows(m, side) * m->t.config.hidden;
        if (stream != SIZE_MAX)
            return look_stream(m, side, stream);
        if (cross != SIZE_MAX)
            return look_cross(m, side, cross);
    }
    return NULL;
}

const mr_model_iface mr_model_bridgetower = {
    .name = "bridgetower",
    .what = "BridgeTower: images and captions in one embedding space",
    .text = true,
    .presets = mr_bt_presets,
    .configure = mr_bt_configure,
    .describe = mr_bt_describe,
    .check = mr_bt_check,
    .params = mr_bt_params,
    .costs = mr_bt_costs,
    .start = mr_bt_start,
    .load = mr_bt_load,
    .open = open_model,
    .close = close_model,
    .forward = forward,
    .backward = backward,
    .look = look,
};
