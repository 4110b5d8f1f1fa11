/* block.c - one block of the Vision Transformer, forward and backward.
 * Invariant: the backward pass reads only what the forward pass kept in mr_vit_block. */
#include "train/model/vit/parts.h"

/* ---- forward ---------------------------------------------------------------------------------------------------- */

static void norm_stream(mr_vit *m, size_t i)
{
    mr_vit_block *b = &m->blocks[i];
    mr_norm_forward(&m->t, &m->layout.blocks[i].norm0, &b->norm0, m->tokens, i ? m->t.branch : b->norm0.total,
                    i ? m->blocks[i - 1].norm2.total : NULL, i ? mr_vit_mlp_dropout(m, i - 1) : (mr_dropout){0});
}

static void attend(mr_vit *m, size_t i)
{
    mr_vit_block *b = &m->blocks[i];
    const mr_attention shape = mr_vit_attention(m, i, m->t.in.count);
    if (b->kept < m->tokens) {
        mr_first_rows(&m->t, b->norm0.total, m->tokens, b->first_total, 1, false);
        mr_first_rows(&m->t, b->norm0.y, m->tokens, b->first_y, 1, false);
    }
    b->attended.x = b->first_y;
    b->attended.from = b->norm0.y;
    mr_attended_forward(&m->t, &m->layout.blocks[i].attention, &b->attended, &shape);
}

static mr_activate gelu_of(const mr_vit *m, size_t i)
{
    size_t kept = m->blocks[i].kept;
    return (mr_activate){
        .kind = MR_GELU, .rows = m->t.in.count * kept, .sample_rows = kept, .dropout = mr_vit_gelu_dropout(m, i)};
}

static void norm_attended(mr_vit *m, size_t i)
{
    const mr_vit_block *b = &m->blocks[i];
    mr_norm_forward(&m->t, &m->layout.blocks[i].norm2, &b->norm2, b->kept, m->t.branch, b->first_total,
                    (mr_dropout){0});
}

void mr_vit_block_forward(mr_vit *m, size_t i)
{
    mr_vit_block *b = &m->blocks[i];
    const mr_activate gelu = gelu_of(m, i);
    norm_stream(m, i);
    attend(m, i);
    norm_attended(m, i);
    mr_mlp_forward(&m->t, &m->layout.blocks[i].mlp, &b->mlp, b->norm2.y, &gelu);
}

void mr_vit_block_again(mr_vit *m, size_t i)
{
    mr_vit_block *b = &m->blocks[i];
    const mr_vit_block_at *at = &m->layout.blocks[i];
    const mr_activate gelu = gelu_of(m, i);
    mr_norm_forward(&m->t, &at->norm0, &b->norm0, m->tokens, b->norm0.total, NULL, (mr_dropout){0});
    attend(m, i);
    norm_attended(m, i);
    mr_mlp_widen(&m->t, &at->mlp, &b->mlp, b->norm2.y, &gelu);
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

/* d [few, hidden] is the gradient of the block's output, and becomes that of norm2.total. */
static void mlp_backward(mr_vit *m, size_t i, void *d)
{
    const mr_vit_block *b = &m->blocks[i];
    const mr_vit_block_at *at = &m->layout.blocks[i];
    const void *d_branch = mr_branch_gradient(&m->t, b->kept, mr_vit_mlp_dropout(m, i), d);
    mr_mlp_backward(&m->t, &at->mlp, &b->mlp, d_branch, m->t.branch, false);
    mr_norm_backward(&m->t, &at->norm2, &b->norm2, m->t.in.count * b->kept, m->t.branch, d, d);
}

/* d [few, hidden] is the gradient of norm2.total; d_stream becomes that of norm0.total. */
static void attend_backward(mr_vit *m, size_t i, void *d)
{
    const mr_transformer *t = &m->t;
    mr_vit_block *b = &m->blocks[i];
    const mr_vit_block_at *at = &m->layout.blocks[i];
    size_t rows = t->in.count * m->tokens, few = t->in.count * b->kept;
    size_t one = t->batch * m->tokens * t->config.hidden * mr_type_size(t->config.compute);
    uint8_t *d_q = t->d_wide, *d_k = d_q + one, *d_v = d_k + one;
    const mr_attention_back back = {
        .forward = &b->attended.attention, .d_out = t->branch, .d_q = d_q, .d_k = d_k, .d_v = d_v};
    mr_dense_backward(t, &at->attention.out, few, b->attended.out, d, t->branch, false);
    mr_run_attention_back(t->device, &back);
    mr_dense_backward(t, &at->attention.key, rows, b->norm0.y, d_k, t->branch, false);
    mr_dense_backward(t, &at->attention.value, rows, b->norm0.y, d_v, t->branch, true);
    if (b->kept == m->tokens) {
        mr_dense_backward(t, &at->attention.query, rows, b->norm0.y, d_q, t->branch, true);
        mr_norm_backward(t, &at->norm0, &b->norm0, rows, t->branch, d, m->d_stream);
        return;
    }
    /* Queries and the residual have gradients of first tokens only.  d_k is free by now. */
    mr_dense_backward(t, &at->attention.query, few, b->first_y, d_q, d_k, false);
    mr_first_rows(t, d_k, 1, t->branch, m->tokens, true);
    mr_norm_backward(t, &at->norm0, &b->norm0, rows, t->branch, NULL, m->d_stream);
    mr_first_rows(t, d, 1, m->d_stream, m->tokens, true);
}

void mr_vit_block_backward(mr_vit *m, size_t i, mr_gradients_ready ready, void *ctx)
{
    void *d = m->blocks[i].kept < m->tokens ? m->d_few : m->d_stream;
    mlp_backward(m, i, d);
    if (ready)
        ready(ctx, m->layout.blocks[i].norm2.gain);
    attend_backward(m, i, d);
    if (ready)
        ready(ctx, m->layout.blocks[i].first);
}
