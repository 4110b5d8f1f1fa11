/* bridgetower.c - BridgeTower on a device: from pictures and words to losses, and the gradients back.
 * Invariant: a pass enqueues the same operations for the same shapes; what it needs was planned when the model was
 * opened (with peers: in the first pass that meets them). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bridgetower/pass.h"

static void close_model(mr_model *model)
{
    mr_bt *m = (mr_bt *)model;
    if (!m)
        return;
    mr_contrast_close(m->contrast);
    if (m->memory)
        m->device->card->free(m->device, m->memory);
    mr_bt_layout_release(&m->layout);
    mr_bt_unmake(m);
    free(m);
}

static mr_status plan_memory(mr_bt *m, mr_error *err)
{
    mr_bt_saved saved;
    mr_status status = mr_bt_plan_attention(m, m->device, &saved, err);
    if (status)
        return status;
    if (!mr_bt_plan(m, &saved))
        return mr_fail(err, MR_MISUSE, "--batch %zu: no memory holds its activations; take a smaller one", m->batch);
    status = m->device->card->alloc(m->device, m->bytes, &m->memory, err);
    if (!status)
        mr_bt_plan(m, &saved);
    return status;
}

static mr_status open_model(const mr_model_config *c, const mr_params *p, mr_device *d, size_t batch, bool training,
                            mr_model **out, mr_error *err)
{
    mr_params params = {0};
    mr_status status = mr_model_fits(c, d, batch, err);
    if (status)
        return status;
    mr_bt *m = mr_alloc(1, sizeof *m);
    if (!m)
        return mr_fail_memory(err, "opening a model");
    status = mr_bt_make(m, c, batch, training) ? MR_OK : mr_fail_memory(err, "opening a model");
    m->base.card = &mr_model_bridgetower;
    m->device = d;
    if (!status)
        status = mr_bt_lay_out(c, &params, &m->layout, err);
    if (!status && params.total != p->total)
        status = mr_fail(err, MR_MISUSE, "%s: these parameters belong to a model of another shape", c->name);
    mr_params_release(&params);
    if (!status)
        status = plan_memory(m, err);
    if (!status)
        status = mr_contrast_open(d, batch, c->embed, 1, training, &m->contrast, err);
    if (status)
        close_model(&m->base);
    else
        *out = &m->base;
    return status;
}

/* ---- there ---------------------------------------------------------------------------------------------------- */

/* A bridge follows right behind its layer: what a block adds to its stream is summed up there. */
static void forward(mr_model *model, const float *values, const mr_model_input *in, mr_model_output *out)
{
    mr_bt *m = (mr_bt *)model;
    const mr_model_config *c = &m->config;
    assert(in->count && in->count <= m->batch && in->length && in->length <= c->text);
    m->in = *in;
    m->in.training = in->training && m->training;
    m->tokens[MR_BT_TEXT] = in->length;
    m->values = values;
    mr_bt_words_forward(m);
    for (size_t i = 0; i < m->split; i++)
        mr_bt_text_forward(m, i);
    mr_bt_bridge_forward(m, MR_BT_TEXT, 0);
    mr_bt_pictures_forward(m);
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

/* ---- and back ------------------------------------------------------------------------------------------------- */

typedef struct listener {
    mr_gradients_ready ready;
    void *ctx;
} listener;

static void tell(const listener *l, uint64_t from)
{
    if (l->ready)
        l->ready(l->ctx, from);
}

/* The towers below the bridges; what is frozen is ready all the same. */
static void towers_back(mr_bt *m, const listener *l)
{
    bool images = m->learns[MR_BT_IMAGE], text = m->learns[MR_BT_TEXT];
    for (size_t i = m->split; i-- > 0;) {
        if (images)
            mr_bt_vision_back(m, i);
        tell(l, m->layout.vision[i].first);
    }
    if (images)
        mr_bt_pictures_back(m);
    tell(l, m->layout.cls);
    for (size_t i = m->split; i-- > 0;) {
        if (text)
            mr_bt_text_back(m, i);
        tell(l, m->layout.text[i].first);
    }
    if (text)
        mr_bt_words_back(m);
    tell(l, 0);
}

static void backward(mr_model *model, const float *values, float *gradients, mr_gradients_ready ready, void *ctx)
{
    mr_bt *m = (mr_bt *)model;
    const listener l = {ready, ctx};
    if (!m->in.training)
        return;
    m->values = values;
    m->gradients = gradients;
    mr_bt_head_back(m);
    tell(&l, m->layout.pooler[MR_BT_TEXT].kernel);
    for (size_t j = m->config.cross_layers; j-- > 0;) {
        mr_bt_cross_back(m, j);
        mr_bt_bridge_back(m, MR_BT_TEXT, j);
        mr_bt_bridge_back(m, MR_BT_IMAGE, j);
        if (j > 0 && m->learns[MR_BT_TEXT])
            mr_bt_text_back(m, m->split - 1 + j);
        if (j > 0 && m->learns[MR_BT_IMAGE])
            mr_bt_vision_back(m, m->split - 1 + j);
        tell(&l, j > 0 ? m->layout.text[m->split - 1 + j].first : m->layout.norm_post.weight);
    }
    towers_back(m, &l);
}

/* ---- tests ---------------------------------------------------------------------------------------------------- */

static const void *look_stream(const mr_bt *m, unsigned side, size_t i)
{
    const mr_model_config *c = &m->config;
    if (i > c->layers || !m->keeps[side])
        return NULL;
    if (side == MR_BT_TEXT)
        return i ? m->text[i - 1].norm.y : m->words.y;
    return i < c->layers ? m->vision[i].norm1.total : m->last_total;
}

static const void *look_cross(const mr_bt *m, unsigned side, size_t j)
{
    bool kept = j < m->config.cross_layers && m->keeps_cross && !m->cross[side][j].first_only;
    return kept ? m->cross[side][j].norm.y : NULL;
}

/* The number behind `prefix`; SIZE_MAX: the name is another. */
static size_t number_behind(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    char *behind;
    if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9')
        return SIZE_MAX;
    unsigned long long number = strtoull(name + n, &behind, 10);
    return *behind || number >= SIZE_MAX ? SIZE_MAX : (size_t)number;
}

static const void *look(const mr_model *model, const char *name, size_t *count)
{
    static const char *const streams[] = {"text_", "image_"}, *const crosses[] = {"cross_text_", "cross_image_"};
    static const char *const embeds[] = {"text_embeds", "image_embeds", "cross_embeds"};
    const mr_bt *m = (const mr_bt *)model;
    for (size_t i = 0; i < MR_COUNT(embeds) && m->config.compute == MR_F32; i++) {
        if (strcmp(name, embeds[i]) == 0) {
            *count = m->in.count * m->config.embed;
            return m->out.embeddings[i];
        }
    }
    for (unsigned side = 0; side < 2; side++) {
        size_t stream = number_behind(name, streams[side]), cross = number_behind(name, crosses[side]);
        *count = mr_bt_rows(m, side) * m->config.hidden;
        if (stream != SIZE_MAX)
            return look_stream(m, side, stream);
        if (cross != SIZE_MAX)
            return look_cross(m, side, cross);
    }
    return NULL;
}

const mr_model_card mr_model_bridgetower = {
    .name = "bridgetower",
    .what = "BridgeTower: pictures and captions to vectors that meet",
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
