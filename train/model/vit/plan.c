/* plan.c - where the activations of a Vision Transformer are: one piece of memory, planned once.
 * Invariant: the same walk counts the bytes and hands out the pointers, so the two cannot differ.
 *
 *      training   | pixels | block 0 | block 1 | ... | last | gradients, shared by all blocks |
 *      recompute  | pixels | norm0.total of every block | one block's memory, used by all | last | gradients |
 *      else       | pixels | one block's memory, used by all | last |
 *
 * Blocks that do not learn share one block's memory in training, too. */
#include "train/model/vit/parts.h"

mr_attention mr_vit_attention(const mr_vit *m, size_t i, size_t count)
{
    const mr_model_config *c = &m->t.config;
    bool first_only = !c->every_token && i + 1 == c->layers;
    return mr_attention_shape(&m->t, count, c->heads, first_only ? 1 : m->tokens, m->tokens);
}

/* has_input: norm0.total is elsewhere, and set. */
static void plan_block(mr_vit *m, mr_memory_plan *p, size_t i, bool has_input)
{
    const mr_model_config *c = &m->t.config;
    const mr_attention shape = mr_vit_attention(m, i, m->t.batch);
    mr_vit_block *b = &m->blocks[i];
    *b = (mr_vit_block){.kept = shape.queries, .norm0.total = b->norm0.total};
    bool all = b->kept == m->tokens;
    size_t size = mr_type_size(c->compute), few = m->t.batch * b->kept;
    mr_normed_plan(&m->t, p, &b->norm0, m->t.batch * m->tokens, has_input, false);
    b->first_total = all ? b->norm0.total : mr_memory_take(p, few, c->hidden, size);
    b->first_y = all ? b->norm0.y : mr_memory_take(p, few, c->hidden, size);
    mr_attended_plan(&m->t, p, &b->attended, &shape, all ? m->saved_all : m->saved_first);
    mr_normed_plan(&m->t, p, &b->norm2, few, false, false);
    mr_mlp_plan(&m->t, p, &b->mlp, few, c->mlp, m->t.training);
}

/* Blocks whose memory is shared overwrite the one before: its norm2.total is read only while norm0 is written, which is
 * first in a block and so has the same place in every block. */
static void plan_blocks(mr_vit *m, mr_memory_plan *p)
{
    const mr_model_config *c = &m->t.config;
    bool inputs = m->t.training && c->recompute, shared = !m->t.training || inputs;
    size_t rows = m->t.batch * m->tokens;
    for (size_t i = 0; i < c->layers && inputs; i++)
        m->blocks[i].norm0.total = mr_memory_take(p, rows, c->hidden, mr_type_size(c->compute));
    size_t start = p->used, end = start;
    for (size_t i = 0; i < c->layers; i++) {
        p->used = shared || i < c->frozen_layers ? start : end;
        plan_block(m, p, i, inputs);
        end = p->used > end ? p->used : end;
    }
    p->used = end;
}

bool mr_vit_plan(mr_transformer *t)
{
    mr_vit *m = (mr_vit *)t;
    const mr_model_config *c = &t->config;
    mr_memory_plan p = {.base = t->memory};
    size_t grid = c->image / c->patch, size = mr_type_size(c->compute), rows;
    size_t wide = c->mlp > 3 * (size_t)c->hidden ? c->mlp : 3 * (size_t)c->hidden;
    m->tokens = 1 + grid * grid;
    if (__builtin_mul_overflow(t->batch, m->tokens, &rows))
        return false;
    m->pixels = mr_memory_take(&p, rows - t->batch, (size_t)c->patch * c->patch * 3, size);
    plan_blocks(m, &p);
    t->branch = mr_memory_take(&p, rows, c->hidden, size);
    m->last_total = mr_memory_take(&p, c->every_token ? rows : t->batch, c->hidden, size);
    mr_normed_plan(t, &p, &m->encoded, t->batch, false, false);
    m->logits = mr_memory_take(&p, t->batch, c->classes, sizeof(float));
    m->losses = mr_memory_take(&p, t->batch, 1, sizeof(float));
    m->best = mr_memory_take(&p, t->batch, 1, sizeof(int32_t));
    if (t->training) {
        m->d_logits = mr_memory_take(&p, t->batch, c->classes, size);
        m->d_other = mr_memory_take(&p, t->batch, c->classes, size);
        m->d_stream = mr_memory_take(&p, rows, c->hidden, size);
        m->d_few = mr_memory_take(&p, t->batch, c->hidden, size);
        t->d_wide = mr_memory_take(&p, rows, wide, size);
    }
    t->bytes = p.used;
    return !p.overflow;
}
