/* vit.c - the Vision Transformer on a device: from images to losses, and the gradients back.
 * Invariant: a pass allocates nothing, and enqueues the same operations for the same shapes. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "train/model/vit/hub.h"
#include "train/model/vit/parts.h"

static void close_model(mr_model *model)
{
    mr_vit *m = (mr_vit *)model;
    if (!m)
        return;
    mr_transformer_close(&m->t);
    mr_vit_layout_release(&m->layout);
    free(m->blocks);
    free(m);
}

static void discard(mr_vit **m)
{
    if (*m)
        close_model(&(*m)->t.base);
}

/* Attention has two shapes: with all queries (unless the only layer sees first tokens), and with one. */
static mr_status plan_attention(mr_vit *m, mr_error *err)
{
    mr_device *d = m->t.device;
    mr_vit_plan(&m->t); /* for the shapes */
    for (size_t i = 0; i < m->t.config.layers; i++) {
        mr_attention a = mr_vit_attention(m, i, m->t.batch);
        size_t *saved = a.queries < m->tokens ? &m->saved_first : &m->saved_all;
        if (*saved == 0)
            MR_TRY(d->iface->plan_attention(d, &a, saved, err));
    }
    return MR_OK;
}

static mr_status open_model(const mr_model_config *c, const mr_params *p, mr_device *d, size_t batch, bool training,
                            mr_model **out, mr_error *err)
{
    MR_TRY(mr_model_fits(c, d, batch, err));
    MR_AUTO(mr_params_release) mr_params own = {0};
    MR_AUTO(discard) mr_vit *m = mr_alloc(1, sizeof *m);
    if (!m)
        return mr_fail_memory(err, "opening a model");
    mr_transformer_init(&m->t, c, batch, training);
    m->t.base.iface = &mr_model_vit;
    m->t.device = d;
    m->t.eps = (float)(m->t.config.norm_eps > 0 ? m->t.config.norm_eps : MR_VIT_EPS);
    m->blocks = mr_alloc(c->layers, sizeof *m->blocks);
    if (!m->blocks)
        return mr_fail_memory(err, "opening a model");
    MR_TRY(mr_vit_lay_out(c, &own, &m->layout, err));
    MR_TRY(plan_attention(m, err));
    MR_TRY(mr_transformer_open(&m->t, &own, p, mr_vit_plan, err));
    *out = &m->t.base;
    m = NULL;
    return MR_OK;
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

/* The last block's output, then its first tokens through the last norm and the head. */
static void classify(mr_vit *m)
{
    const mr_model_config *c = &m->t.config;
    const mr_vit_block *b = &m->blocks[c->layers - 1];
    const mr_norm sum = {.type = c->compute,
                         .rows = m->t.in.count * b->kept,
                         .width = c->hidden,
                         .sample_rows = b->kept,
                         .x = m->t.branch,
                         .residual = b->norm2.total,
                         .total = m->last_total,
                         .dropout = mr_vit_mlp_dropout(m, c->layers - 1)};
    mr_run_norm(m->t.device, &sum);
    mr_first_rows(&m->t, m->last_total, b->kept, m->encoded.total, 1, false);
    mr_norm_forward(&m->t, &m->layout.norm, &m->encoded, 1, m->encoded.total, NULL, (mr_dropout){0});
    mr_dense_forward(&m->t, &m->layout.head, m->t.in.count, m->encoded.y, m->logits, MR_F32);
}

static mr_dropout embedding_dropout(const mr_vit *m)
{
    return mr_dropout_at(&m->t, m->t.config.dropout, 0);
}

/* Adds what the other labels of mixed images cost: the loss is linear in the labels. */
static void add_other_loss(mr_vit *m, const mr_cross_entropy *one, const mr_model_input *in)
{
    mr_cross_entropy other = *one;
    other.labels = in->other_labels;
    other.weights = in->other_weights;
    other.add_losses = true;
    other.best = NULL;
    other.d_logits = one->d_logits ? m->d_other : NULL;
    mr_run_cross_entropy(m->t.device, &other);
    const mr_add sum = {
        .type = one->type, .count = one->rows * one->classes, .a = m->d_logits, .b = m->d_other, .sum = m->d_logits};
    if (one->d_logits)
        mr_run_add(m->t.device, &sum);
}

static void take_loss(mr_vit *m, const mr_model_input *in)
{
    const mr_model_config *c = &m->t.config;
    void *d_logits = m->t.in.training ? m->d_logits : NULL;
    const mr_sigmoid_loss several = {.type = c->compute,
                                     .rows = in->count,
                                     .classes = c->classes,
                                     .logits = m->logits,
                                     .targets = in->targets,
                                     .positive = in->positive,
                                     .weights = in->weights,
                                     .losses = m->losses,
                                     .d_logits = d_logits,
                                     .best = m->best};
    const mr_cross_entropy one = {.type = c->compute,
                                  .rows = in->count,
                                  .classes = c->classes,
                                  .logits = m->logits,
                                  .labels = in->labels,
                                  .weights = in->weights,
                                  .losses = m->losses,
                                  .d_logits = d_logits,
                                  .best = m->best,
                                  .smoothing = in->smoothing};
    if (in->targets)
        mr_run_sigmoid_loss(m->t.device, &several);
    else
        mr_run_cross_entropy(m->t.device, &one);
    if (in->other_labels && !in->targets)
        add_other_loss(m, &one, in);
}

static void forward(mr_model *model, const float *values, const mr_model_input *in, mr_model_output *out)
{
    mr_vit *m = (mr_vit *)model;
    const mr_model_config *c = &m->t.config;
    mr_transformer_begin(&m->t, values, in);
    mr_image_forward(&m->t, &m->layout.image, m->pixels, m->blocks[0].norm0.total, embedding_dropout(m));
    for (size_t i = 0; i < c->layers; i++)
        mr_vit_block_forward(m, i);
    classify(m);
    take_loss(m, in);
    *out = (mr_model_output){.losses = m->losses, .logits = m->logits, .best = m->best};
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

static void classify_backward(mr_vit *m)
{
    const mr_model_config *c = &m->t.config;
    size_t count = m->t.in.count, kept = m->blocks[c->layers - 1].kept;
    bool alone = c->frozen_layers > c->layers;
    mr_dense_backward(&m->t, &m->layout.head, count, m->encoded.y, m->d_logits, alone ? NULL : m->t.branch, false);
    if (alone)
        return;
    mr_norm_backward(&m->t, &m->layout.norm, &m->encoded, count, m->t.branch, NULL, m->d_few);
    if (kept < m->tokens)
        return;
    m->t.device->iface->zero(m->t.device, m->d_stream, count * m->tokens * c->hidden * mr_type_size(c->compute));
    mr_first_rows(&m->t, m->d_few, 1, m->d_stream, m->tokens, false);
}

static void backward(mr_model *model, const float *values, float *gradients, mr_gradients_ready ready, void *ctx)
{
    mr_vit *m = (mr_vit *)model;
    if (!m->t.in.training)
        return;
    m->t.values = values;
    m->t.gradients = gradients;
    classify_backward(m);
    if (ready)
        ready(ctx, m->layout.norm.gain);
    for (size_t i = m->t.config.layers; i-- > m->t.config.frozen_layers;) {
        if (m->t.config.recompute && i + 1 < m->t.config.layers)
            mr_vit_block_again(m, i);
        mr_vit_block_backward(m, i, ready, ctx);
    }
    if (!m->t.config.frozen_layers)
        mr_image_backward(&m->t, &m->layout.image, m->pixels, m->d_stream, embedding_dropout(m));
    if (ready)
        ready(ctx, 0);
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

static const void *look(const mr_model *model, const char *name, size_t *count)
{
    const mr_vit *m = (const mr_vit *)model;
    const mr_model_config *c = &m->t.config;
    char *end;
    *count = m->t.in.count * c->hidden;
    if (strcmp(name, "encoded_cls") == 0)
        return m->encoded.y;
    *count *= m->tokens;
    if (!m->t.training)
        return NULL;
    if (strcmp(name, "embed") == 0)
        return m->blocks[0].norm0.total;
    if (strncmp(name, "block_", 6) != 0)
        return NULL;
    unsigned long block = strtoul(name + 6, &end, 10);
    if (end == name + 6 || *end || block >= c->layers)
        return NULL;
    if (block + 1 < c->layers)
        return m->blocks[block + 1].norm0.total;
    return c->every_token ? m->last_total : NULL;
}

static const mr_model_config presets[] = {
#define X(word, patch_, hidden_, layers_, heads_, mlp_)                                                                \
    {.iface = &mr_model_vit,                                                                                           \
     .name = word,                                                                                                     \
     .image = 224,                                                                                                     \
     .patch = patch_,                                                                                                  \
     .hidden = hidden_,                                                                                                \
     .layers = layers_,                                                                                                \
     .heads = heads_,                                                                                                  \
     .mlp = mlp_},
    MR_VIT_SHAPES(X)
#undef X
        {0},
};

const mr_model_iface mr_model_vit = {
    .name = "vit",
    .what = "Vision Transformer: images to classes",
    .presets = presets,
    .check = mr_vit_check,
    .params = mr_vit_params,
    .costs = mr_vit_costs,
    .start = mr_vit_start,
    .load = mr_vit_load,
    .hub = &mr_vit_hub,
    .open = open_model,
    .close = close_model,
    .forward = forward,
    .backward = backward,
    .look = look,
};
