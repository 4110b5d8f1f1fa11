/* plan.c - where the activations of a Vision Transformer stand: one piece of memory, planned once.
 * Invariant: the same walk counts the bytes and hands out the pointers, so the two cannot differ.
 *
 *      training   | pixels | block 0 | block 1 | ... | last | ways back, shared by all blocks |
 *      else       | pixels | one block's memory, used by all | last |
 */
#include "vit/parts.h"

mr_attention mr_vit_attention(const mr_vit *m, size_t i, size_t count)
{
    const mr_model_config *c = &m->config;
    size_t head_dim = c->hidden / c->heads;
    bool first_only = !c->every_token && i + 1 == c->layers;
    return (mr_attention){.type = c->compute,
                          .batch = count,
                          .heads = c->heads,
                          .head_dim = head_dim,
                          .queries = first_only ? 1 : m->tokens,
                          .keys = m->tokens,
                          .scale = (float)(1 / __builtin_sqrt((double)head_dim))};
}

static void plan_block(mr_vit *m, mr_memory_plan *p, size_t i, size_t saved)
{
    const mr_model_config *c = &m->config;
    mr_vit_block *b = &m->blocks[i];
    size_t size = mr_type_size(c->compute), rows = m->batch * m->tokens;
    *b = (mr_vit_block){.attention = mr_vit_attention(m, i, m->batch)};
    b->kept = b->attention.queries;
    size_t few = m->batch * b->kept;
    b->total_a = mr_memory_take(p, rows, c->hidden, size);
    b->y_a = mr_memory_take(p, rows, c->hidden, size);
    b->mean_a = mr_memory_take(p, rows, 1, sizeof(float));
    b->rstd_a = mr_memory_take(p, rows, 1, sizeof(float));
    b->seen_total = b->kept < m->tokens ? mr_memory_take(p, few, c->hidden, size) : b->total_a;
    b->seen_y = b->kept < m->tokens ? mr_memory_take(p, few, c->hidden, size) : b->y_a;
    b->q = mr_memory_take(p, few, c->hidden, size);
    b->k = mr_memory_take(p, rows, c->hidden, size);
    b->v = mr_memory_take(p, rows, c->hidden, size);
    b->attended = mr_memory_take(p, few, c->hidden, size);
    b->total_b = mr_memory_take(p, few, c->hidden, size);
    b->y_b = mr_memory_take(p, few, c->hidden, size);
    b->wide = mr_memory_take(p, few, c->mlp, size);
    b->active = m->training ? mr_memory_take(p, few, c->mlp, size) : b->wide;
    b->mean_b = mr_memory_take(p, few, 1, sizeof(float));
    b->rstd_b = mr_memory_take(p, few, 1, sizeof(float));
    b->attention.saved = mr_memory_take(p, saved, 1, 1);
    b->attention.q = b->q;
    b->attention.k = b->k;
    b->attention.v = b->v;
    b->attention.out = b->attended;
}

/* Without a way back every block may overwrite the one before: that one's total_b is read only while the four that
 * stand first in a block are written, and these have the same place in every block. */
static void plan_blocks(mr_vit *m, mr_memory_plan *p, size_t saved_all, size_t saved_first)
{
    size_t start = p->used, end = start;
    for (size_t i = 0; i < m->config.layers; i++) {
        bool first_only = mr_vit_attention(m, i, m->batch).queries < m->tokens;
        if (!m->training)
            p->used = start;
        plan_block(m, p, i, first_only ? saved_first : saved_all);
        end = p->used > end ? p->used : end;
    }
    p->used = end;
}

bool mr_vit_plan(mr_vit *m, size_t saved_all, size_t saved_first)
{
    const mr_model_config *c = &m->config;
    mr_memory_plan p = {.base = m->memory};
    m->grid = c->image / c->patch;
    m->tokens = 1 + m->grid * m->grid;
    size_t size = mr_type_size(c->compute), rows, last;
    if (__builtin_mul_overflow(m->batch, m->tokens, &rows))
        return false;
    last = c->every_token ? rows : m->batch;
    size_t wide = c->mlp > 3 * (size_t)c->hidden ? c->mlp : 3 * (size_t)c->hidden;
    m->pixels = mr_memory_take(&p, rows - m->batch, (size_t)c->patch * c->patch * 3, size);
    plan_blocks(m, &p, saved_all, saved_first);
    m->branch = mr_memory_take(&p, rows, c->hidden, size);
    m->last_total = mr_memory_take(&p, last, c->hidden, size);
    m->cls_total = mr_memory_take(&p, m->batch, c->hidden, size);
    m->encoded = mr_memory_take(&p, m->batch, c->hidden, size);
    m->mean = mr_memory_take(&p, m->batch, 1, sizeof(float));
    m->rstd = mr_memory_take(&p, m->batch, 1, sizeof(float));
    m->logits = mr_memory_take(&p, m->batch, c->classes, sizeof(float));
    m->losses = mr_memory_take(&p, m->batch, 1, sizeof(float));
    m->best = mr_memory_take(&p, m->batch, 1, sizeof(int32_t));
    if (m->training) {
        m->d_logits = mr_memory_take(&p, m->batch, c->classes, size);
        m->d_stream = mr_memory_take(&p, rows, c->hidden, size);
        m->d_few = mr_memory_take(&p, m->batch, c->hidden, size);
        m->d_wide = mr_memory_take(&p, rows, wide, size);
    }
    m->bytes = p.used;
    return !p.overflow;
}
