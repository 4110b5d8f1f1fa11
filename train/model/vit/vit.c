/* vit.c - the Vision Transformer on a device: from images to losses, and the gradients back.
 * Invariant: a pass allocates nothing, and enqueues the same operations for the same shapes. */
#include <stdlib.h>
#include <string.h>

#include "vit/parts.h"

static void close_model(mr_model *model)
{
    mr_vit *m = (mr_vit *)model;
    if (!m)
        return;
    if (m->memory)
        m->device->card->free(m->device, m->memory);
    mr_vit_layout_release(&m->layout);
    free(m->blocks);
    free(m);
}

/* Attention comes in two shapes: with all queries (not there if the only layer looks at first tokens), and with one. */
static mr_status plan_memory(mr_vit *m, mr_error *err)
{
    const mr_device_card *card = m->device->card;
    size_t saved_all = 0, saved_first = 0;
    mr_vit_plan(m, 0, 0); /* for the shapes */
    for (size_t i = 0; i < m->config.layers; i++) {
        mr_attention a = mr_vit_attention(m, i, m->batch);
        size_t *saved = a.queries < m->tokens ? &saved_first : &saved_all;
        mr_status status = *saved ? MR_OK : card->plan_attention(m->device, &a, saved, err);
        if (status)
            return status;
    }
    if (!mr_vit_plan(m, saved_all, saved_first))
        return mr_fail(err, MR_MISUSE, "--batch %zu: no memory holds its activations; take a smaller one", m->batch);
    mr_status status = card->alloc(m->device, m->bytes, &m->memory, err);
    if (!status)
        mr_vit_plan(m, saved_all, saved_first);
    return status;
}

static mr_status open_model(const mr_model_config *c, const mr_params *p, mr_device *d, size_t batch, bool training,
                            mr_model **out, mr_error *err)
{
    mr_params params = {0};
    mr_status status = mr_model_fits(c, d, batch, err);
    if (status)
        return status;
    mr_vit *m = mr_alloc(1, sizeof *m);
    if (!m)
        return mr_fail_memory(err, "opening a model");
    m->base.card = &mr_model_vit;
    m->config = *c;
    m->device = d;
    m->batch = batch;
    m->training = training;
    m->blocks = mr_alloc(c->layers, sizeof *m->blocks);
    status = m->blocks ? mr_vit_lay_out(c, &params, &m->layout, err) : mr_fail_memory(err, "opening a model");
    if (!status && params.total != p->total)
        status = mr_fail(err, MR_MISUSE, "%s: these parameters belong to a model of another shape", c->name);
    mr_params_release(&params);
    if (!status)
        status = plan_memory(m, err);
    if (status)
        close_model(&m->base);
    else
        *out = &m->base;
    return status;
}

/* ---- there ---------------------------------------------------------------------------------------------------- */

static void embed(mr_vit *m, const float *values)
{
    const mr_device_card *card = m->device->card;
    const mr_model_config *c = &m->config;
    size_t count = m->in.count;
    const mr_patches patches = {.type = c->compute,
                                .batch = count,
                                .side = c->image,
                                .patch = c->patch,
                                .images = m->in.images,
                                .rows = m->pixels};
    const mr_tokens tokens = {.type = c->compute,
                              .batch = count,
                              .rows = m->tokens,
                              .width = c->hidden,
                              .x = m->branch,
                              .first = values + m->layout.cls,
                              .position = values + m->layout.position,
                              .y = m->blocks[0].total_a,
                              .dropout = mr_vit_dropout(m, mr_vit_site_embed())};
    card->patches(m->device, &patches);
    mr_vit_dense_forward(m, values, &m->layout.embedding, count * (m->tokens - 1), m->pixels, m->branch, c->compute);
    card->tokens(m->device, &tokens);
}

/* The last block's output, then its first tokens through the last norm and the head. */
static void classify(mr_vit *m, const float *values)
{
    const mr_device_card *card = m->device->card;
    const mr_model_config *c = &m->config;
    const mr_vit_block *b = &m->blocks[c->layers - 1];
    const mr_norm sum = {.type = c->compute,
                         .rows = m->in.count * b->kept,
                         .width = c->hidden,
                         .sample_rows = b->kept,
                         .x = m->branch,
                         .residual = b->total_b,
                         .total = m->last_total,
                         .dropout = mr_vit_dropout(m, mr_vit_site_dense1(c->layers - 1))};
    const mr_rows first = {.type = c->compute,
                           .rows = m->in.count,
                           .width = c->hidden,
                           .from_stride = b->kept * c->hidden,
                           .from = m->last_total,
                           .to = m->cls_total};
    mr_norm norm = mr_vit_norm_of(m, values, &m->layout.norm, m->in.count);
    norm.x = m->cls_total;
    norm.y = m->encoded;
    norm.mean = m->mean;
    norm.rstd = m->rstd;
    card->norm(m->device, &sum);
    card->rows(m->device, &first);
    card->norm(m->device, &norm);
    mr_vit_dense_forward(m, values, &m->layout.head, m->in.count, m->encoded, m->logits, MR_F32);
}

static void forward(mr_model *model, const float *values, const mr_model_input *in, mr_model_output *out)
{
    mr_vit *m = (mr_vit *)model;
    m->in = *in;
    m->in.training = in->training && m->training;
    embed(m, values);
    for (size_t i = 0; i < m->config.layers; i++)
        mr_vit_block_forward(m, values, i);
    classify(m, values);
    const mr_cross_entropy loss = {.type = m->config.compute,
                                   .rows = in->count,
                                   .classes = m->config.classes,
                                   .logits = m->logits,
                                   .labels = in->labels,
                                   .weights = in->weights,
                                   .losses = m->losses,
                                   .d_logits = m->in.training ? m->d_logits : NULL,
                                   .best = m->best};
    m->device->card->cross_entropy(m->device, &loss);
    *out = (mr_model_output){.losses = m->losses, .logits = m->logits, .best = m->best};
}

/* ---- and back ------------------------------------------------------------------------------------------------- */

static void classify_back(mr_vit *m, const float *values, float *gradients)
{
    const mr_device_card *card = m->device->card;
    const mr_model_config *c = &m->config;
    size_t count = m->in.count, kept = m->blocks[c->layers - 1].kept;
    const mr_norm_back norm = {.type = c->compute,
                               .rows = count,
                               .width = c->hidden,
                               .d_y = m->branch,
                               .total = m->cls_total,
                               .gain = values + m->layout.norm.scale,
                               .mean = m->mean,
                               .rstd = m->rstd,
                               .d_total = m->d_few,
                               .d_gain = gradients + m->layout.norm.scale,
                               .d_bias = gradients + m->layout.norm.bias};
    const mr_rows first = {.type = c->compute,
                           .rows = count,
                           .width = c->hidden,
                           .to_stride = m->tokens * c->hidden,
                           .from = m->d_few,
                           .to = m->d_stream};
    mr_vit_dense_back(m, values, gradients, &m->layout.head, count, m->encoded, m->d_logits, m->branch, false);
    card->norm_back(m->device, &norm);
    if (kept < m->tokens)
        return;
    card->zero(m->device, m->d_stream, count * m->tokens * c->hidden * mr_type_size(c->compute));
    card->rows(m->device, &first);
}

/* The pixels' own gradient is nobody's business. */
static void embed_back(mr_vit *m, const float *values, float *gradients)
{
    const mr_model_config *c = &m->config;
    const mr_tokens tokens = {.type = c->compute,
                              .batch = m->in.count,
                              .rows = m->tokens,
                              .width = c->hidden,
                              .d_y = m->d_stream,
                              .d_x = m->branch,
                              .d_first = gradients + m->layout.cls,
                              .d_position = gradients + m->layout.position,
                              .dropout = mr_vit_dropout(m, mr_vit_site_embed())};
    m->device->card->tokens_back(m->device, &tokens);
    mr_vit_dense_back(m, values, gradients, &m->layout.embedding, m->in.count * (m->tokens - 1), m->pixels, m->branch,
                      NULL, false);
}

static void backward(mr_model *model, const float *values, float *gradients, mr_gradients_ready ready, void *ctx)
{
    mr_vit *m = (mr_vit *)model;
    if (!m->in.training)
        return;
    classify_back(m, values, gradients);
    if (ready)
        ready(ctx, m->layout.norm.scale);
    for (size_t i = m->config.layers; i-- > 0;) {
        mr_vit_block_back(m, values, gradients, i);
        if (ready)
            ready(ctx, m->layout.blocks[i].first);
    }
    embed_back(m, values, gradients);
    if (ready)
        ready(ctx, 0);
}

/* ---- the card ------------------------------------------------------------------------------------------------- */

static const void *look(const mr_model *model, const char *name, size_t *count)
{
    const mr_vit *m = (const mr_vit *)model;
    const mr_model_config *c = &m->config;
    char *behind;
    *count = m->in.count * c->hidden;
    if (strcmp(name, "encoded_cls") == 0)
        return m->encoded;
    *count *= m->tokens;
    if (!m->training)
        return NULL;
    if (strcmp(name, "embed") == 0)
        return m->blocks[0].total_a;
    if (strncmp(name, "block_", 6) != 0)
        return NULL;
    unsigned long block = strtoul(name + 6, &behind, 10);
    if (behind == name + 6 || *behind || block >= c->layers)
        return NULL;
    if (block + 1 < c->layers)
        return m->blocks[block + 1].total_a;
    return c->every_token ? m->last_total : NULL;
}

static const mr_model_config presets[] = {
#define X(word, patch_, hidden_, layers_, heads_, mlp_)                                                                \
    {.card = &mr_model_vit,                                                                                            \
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

const mr_model_card mr_model_vit = {
    .name = "vit",
    .what = "Vision Transformer: images to classes",
    .presets = presets,
    .check = mr_vit_check,
    .params = mr_vit_params,
    .costs = mr_vit_costs,
    .start = mr_vit_start,
    .load = mr_vit_load,
    .open = open_model,
    .close = close_model,
    .forward = forward,
    .backward = backward,
    .look = look,
};
