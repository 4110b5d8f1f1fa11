/* block.c - one block of the Vision Transformer, there and back.
 * Invariant: the way back reads only what the way there kept in mr_vit_block; nothing is computed twice but the masks
 * of dropout, which are hashes. */
#include "vit/parts.h"

static const float EPS = 1e-6F; /* of every norm: 1e-5 moves the logits by 1e-4 */

mr_dropout mr_vit_dropout(const mr_vit *m, uint32_t site)
{
    float rate = m->in.training ? (float)m->config.dropout : 0;
    return (mr_dropout){.rate = rate, .site = site, .keys = m->in.keys};
}

mr_norm mr_vit_norm_of(const mr_vit *m, const float *values, const mr_vit_norm *at, size_t rows)
{
    return (mr_norm){.type = m->config.compute,
                     .rows = rows,
                     .width = m->config.hidden,
                     .sample_rows = 1,
                     .gain = values + at->scale,
                     .bias = values + at->bias,
                     .eps = EPS};
}

void mr_vit_dense_forward(mr_vit *m, const float *values, const mr_vit_dense *l, size_t rows, const void *x, void *y,
                          mr_type y_type)
{
    const mr_gemm g = {.a_type = m->config.compute,
                       .b_type = MR_F32,
                       .c_type = y_type,
                       .m = rows,
                       .n = l->out,
                       .k = l->in,
                       .a = x,
                       .b = values + l->kernel,
                       .c = y,
                       .bias = values + l->bias};
    m->device->card->gemm(m->device, &g);
}

void mr_vit_dense_back(mr_vit *m, const float *values, float *gradients, const mr_vit_dense *l, size_t rows,
                       const void *x, const void *d_y, void *d_x, bool accumulate)
{
    const mr_device_card *card = m->device->card;
    mr_type type = m->config.compute;
    const mr_gemm kernel = {.a_type = type,
                            .b_type = type,
                            .c_type = MR_F32,
                            .m = l->in,
                            .n = l->out,
                            .k = rows,
                            .a = x,
                            .transpose_a = true,
                            .b = d_y,
                            .c = gradients + l->kernel,
                            .accumulate = true};
    const mr_gemm input = {.a_type = type,
                           .b_type = MR_F32,
                           .c_type = type,
                           .m = rows,
                           .n = l->in,
                           .k = l->out,
                           .a = d_y,
                           .b = values + l->kernel,
                           .transpose_b = true,
                           .c = d_x,
                           .accumulate = accumulate};
    card->gemm(m->device, &kernel);
    card->sum_rows(m->device, type, rows, l->out, d_y, gradients + l->bias);
    if (d_x)
        card->gemm(m->device, &input);
}

/* The first token's row of each sample, [count, hidden], out of [count * tokens, hidden]; or back, added. */
static void first_tokens(mr_vit *m, const void *from, size_t from_rows, void *to, size_t to_rows, bool accumulate)
{
    const mr_rows r = {.type = m->config.compute,
                       .rows = m->in.count,
                       .width = m->config.hidden,
                       .from_stride = from_rows * m->config.hidden,
                       .to_stride = to_rows * m->config.hidden,
                       .from = from,
                       .to = to,
                       .accumulate = accumulate};
    m->device->card->rows(m->device, &r);
}

/* ---- there ---------------------------------------------------------------------------------------------------- */

static void norm_stream(mr_vit *m, const float *values, size_t i)
{
    mr_vit_block *b = &m->blocks[i];
    size_t rows = m->in.count * m->tokens;
    mr_norm n = mr_vit_norm_of(m, values, &m->layout.blocks[i].norm0, rows);
    n.sample_rows = m->tokens;
    n.x = i ? m->branch : b->total_a;
    n.residual = i ? m->blocks[i - 1].total_b : NULL;
    n.total = i ? b->total_a : NULL;
    n.dropout = i ? mr_vit_dropout(m, mr_vit_site_dense1(i - 1)) : (mr_dropout){0};
    n.y = b->y_a;
    n.mean = b->mean_a;
    n.rstd = b->rstd_a;
    m->device->card->norm(m->device, &n);
}

static void attend(mr_vit *m, const float *values, size_t i)
{
    mr_vit_block *b = &m->blocks[i];
    const mr_vit_places *at = &m->layout.blocks[i];
    size_t count = m->in.count, rows = count * m->tokens, few = count * b->kept;
    mr_type type = m->config.compute;
    if (b->kept < m->tokens) {
        first_tokens(m, b->total_a, m->tokens, b->seen_total, 1, false);
        first_tokens(m, b->y_a, m->tokens, b->seen_y, 1, false);
    }
    mr_vit_dense_forward(m, values, &at->query, few, b->seen_y, b->q, type);
    mr_vit_dense_forward(m, values, &at->key, rows, b->y_a, b->k, type);
    mr_vit_dense_forward(m, values, &at->value, rows, b->y_a, b->v, type);
    b->attention.batch = count;
    m->device->card->attention(m->device, &b->attention);
    mr_vit_dense_forward(m, values, &at->out, few, b->attended, m->branch, type);
}

static mr_activate gelu(const mr_vit *m, size_t i)
{
    const mr_vit_block *b = &m->blocks[i];
    return (mr_activate){.type = m->config.compute,
                         .kind = MR_GELU,
                         .rows = m->in.count * b->kept,
                         .width = m->config.mlp,
                         .sample_rows = b->kept,
                         .x = b->wide,
                         .dropout = mr_vit_dropout(m, mr_vit_site_gelu(i))};
}

static void think(mr_vit *m, const float *values, size_t i)
{
    mr_vit_block *b = &m->blocks[i];
    const mr_vit_places *at = &m->layout.blocks[i];
    size_t few = m->in.count * b->kept;
    mr_norm n = mr_vit_norm_of(m, values, &at->norm2, few);
    n.x = m->branch;
    n.residual = b->seen_total;
    n.total = b->total_b;
    n.y = b->y_b;
    n.mean = b->mean_b;
    n.rstd = b->rstd_b;
    m->device->card->norm(m->device, &n);
    mr_vit_dense_forward(m, values, &at->dense0, few, b->y_b, b->wide, m->config.compute);
    mr_activate a = gelu(m, i);
    a.y = b->active;
    m->device->card->activate(m->device, &a);
    mr_vit_dense_forward(m, values, &at->dense1, few, b->active, m->branch, m->config.compute);
}

void mr_vit_block_forward(mr_vit *m, const float *values, size_t i)
{
    norm_stream(m, values, i);
    attend(m, values, i);
    think(m, values, i);
}

/* ---- and back ------------------------------------------------------------------------------------------------- */

static void norm_back(mr_vit *m, const float *values, float *gradients, const mr_vit_norm *at, size_t rows,
                      const void *total, const float *mean, const float *rstd, const void *d_residual, void *d_total)
{
    const mr_norm_back n = {.type = m->config.compute,
                            .rows = rows,
                            .width = m->config.hidden,
                            .d_y = m->branch,
                            .total = total,
                            .gain = values + at->scale,
                            .mean = mean,
                            .rstd = rstd,
                            .d_residual = d_residual,
                            .d_total = d_total,
                            .d_gain = gradients + at->scale,
                            .d_bias = gradients + at->bias};
    m->device->card->norm_back(m->device, &n);
}

/* d [few, hidden] is the gradient of the block's output, and becomes that of total_b. */
static void think_back(mr_vit *m, const float *values, float *gradients, size_t i, void *d)
{
    const mr_device_card *card = m->device->card;
    const mr_vit_block *b = &m->blocks[i];
    const mr_vit_places *at = &m->layout.blocks[i];
    size_t few = m->in.count * b->kept;
    mr_dropout dropout = mr_vit_dropout(m, mr_vit_site_dense1(i));
    const void *d_branch = d;
    if (dropout.rate > 0) {
        card->drop(m->device, m->config.compute, few, m->config.hidden, b->kept, &dropout, d, m->branch);
        d_branch = m->branch;
    }
    mr_vit_dense_back(m, values, gradients, &at->dense1, few, b->active, d_branch, m->d_wide, false);
    mr_activate a = gelu(m, i);
    a.d_y = a.d_x = m->d_wide;
    card->activate_back(m->device, &a);
    mr_vit_dense_back(m, values, gradients, &at->dense0, few, b->y_b, m->d_wide, m->branch, false);
    norm_back(m, values, gradients, &at->norm2, few, b->total_b, b->mean_b, b->rstd_b, d, d);
}

/* d [few, hidden] is the gradient of total_b; d_stream becomes that of total_a. */
static void attend_back(mr_vit *m, const float *values, float *gradients, size_t i, void *d)
{
    mr_vit_block *b = &m->blocks[i];
    const mr_vit_places *at = &m->layout.blocks[i];
    size_t rows = m->in.count * m->tokens, few = m->in.count * b->kept;
    size_t one = m->batch * m->tokens * m->config.hidden * mr_type_size(m->config.compute);
    uint8_t *d_q = m->d_wide, *d_k = d_q + one, *d_v = d_k + one;
    const mr_attention_back back = {.forward = &b->attention, .d_out = m->branch, .d_q = d_q, .d_k = d_k, .d_v = d_v};
    mr_vit_dense_back(m, values, gradients, &at->out, few, b->attended, d, m->branch, false);
    m->device->card->attention_back(m->device, &back);
    mr_vit_dense_back(m, values, gradients, &at->key, rows, b->y_a, d_k, m->branch, false);
    mr_vit_dense_back(m, values, gradients, &at->value, rows, b->y_a, d_v, m->branch, true);
    if (b->kept == m->tokens) {
        mr_vit_dense_back(m, values, gradients, &at->query, rows, b->y_a, d_q, m->branch, true);
        norm_back(m, values, gradients, &at->norm0, rows, b->total_a, b->mean_a, b->rstd_a, d, m->d_stream);
        return;
    }
    /* The way through q, and the one around the block, are those of first tokens alone.  d_k is free by now. */
    mr_vit_dense_back(m, values, gradients, &at->query, few, b->seen_y, d_q, d_k, false);
    first_tokens(m, d_k, 1, m->branch, m->tokens, true);
    norm_back(m, values, gradients, &at->norm0, rows, b->total_a, b->mean_a, b->rstd_a, NULL, m->d_stream);
    first_tokens(m, d, 1, m->d_stream, m->tokens, true);
}

void mr_vit_block_back(mr_vit *m, const float *values, float *gradients, size_t i)
{
    void *d = m->blocks[i].kept < m->tokens ? m->d_few : m->d_stream;
    think_back(m, values, gradients, i, d);
    attend_back(m, values, gradients, i, d);
}
