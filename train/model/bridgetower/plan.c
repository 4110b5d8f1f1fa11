/* plan.c - where BridgeTower's activations are: one piece of memory, planned once.
 * Invariant: the same walk counts the bytes and hands out the pointers, so the two cannot differ.
 *
 *      training   | text 0 | text 1 | ... | vision 0 | ... | bridges, cross layers 0 | ... | heads | gradients |
 *      else       | one layer's memory    | one block's    | one pair's of each            | heads |
 *
 * A frozen tower shares its memory in training, too, except what the bridges read; with recompute all do, except the
 * inputs of layers and blocks.  Bridges keep theirs, as cross layers begin from it. */
#include <stdlib.h>

#include "base/scope.h"
#include "train/model/bridgetower/pass.h"

/* ---- attention ------------------------------------------------------------------------------------------------ */

mr_attention mr_bt_layer_attention(const mr_bt *m, size_t count, unsigned side, unsigned from, bool first_only)
{
    return mr_attention_shape(&m->t, count, m->t.config.heads, first_only ? 1 : m->tokens[side], m->tokens[from]);
}

mr_attention mr_bt_block_attention(const mr_bt *m, size_t count)
{
    size_t tokens = m->tokens[MR_BT_IMAGE];
    mr_attention a = mr_attention_shape(&m->t, count, m->t.config.hidden / MR_BT_HEAD, tokens, tokens);
    a.q_stride = a.k_stride = a.v_stride = 3 * (size_t)m->t.config.hidden;
    return a;
}

static mr_status plan_one(mr_device *d, const mr_attention *a, size_t *most, mr_error *err)
{
    size_t bytes = 0;
    MR_TRY(d->iface->plan_attention(d, a, &bytes, err));
    *most = bytes > *most ? bytes : *most;
    return MR_OK;
}

/* Plans every shape: a shorter text may need more inside the device than a longer one. */
mr_status mr_bt_plan_attention(mr_bt *m, mr_error *err)
{
    const mr_model_config *c = &m->t.config;
    mr_attention block = mr_bt_block_attention(m, m->t.batch);
    MR_TRY(plan_one(m->t.device, &block, &m->saved.vision, err));
    for (unsigned kind = 0; kind < (c->every_token ? 4 : 8); kind++) {
        unsigned side = kind & 1, from = kind >> 1 & 1, few = kind >> 2;
        bool texts = side == MR_BT_TEXT || from == MR_BT_TEXT;
        for (uint32_t length = texts ? 1 : c->text; length <= c->text; length++) {
            m->tokens[MR_BT_TEXT] = length;
            mr_attention a = mr_bt_layer_attention(m, m->t.batch, side, from, few);
            MR_TRY(plan_one(m->t.device, &a, &m->saved.cross[side][from][few], err));
        }
    }
    return MR_OK;
}

/* ---- parts ---------------------------------------------------------------------------------------------------- */

static void plan_attended(const mr_bt *m, mr_memory_plan *p, mr_bt_attended *k, const mr_bt_kept_layer *layer,
                          unsigned from)
{
    const mr_attention shape = mr_bt_layer_attention(m, m->t.batch, layer->side, from, layer->first_only);
    mr_attended_plan(&m->t, p, &k->attended, &shape, m->saved.cross[layer->side][from][layer->first_only]);
    mr_normed_plan(&m->t, p, &k->norm, m->t.batch * shape.queries, false, false);
}

/* A layer writes norm.y last, when its x is no longer read, which may be the same memory. */
static void plan_layer(const mr_bt *m, mr_memory_plan *p, mr_bt_kept_layer *k, bool crosses, bool keeps, bool has_y)
{
    size_t size = mr_type_size(m->t.config.compute), rows = m->t.batch * (k->first_only ? 1 : m->tokens[k->side]);
    k->first = k->first_only ? mr_memory_take(p, rows, m->t.config.hidden, size) : NULL;
    plan_attended(m, p, &k->self, k, k->side);
    if (crosses)
        plan_attended(m, p, &k->cross, k, !k->side);
    mr_mlp_plan(&m->t, p, &k->mlp, rows, m->t.config.mlp, keeps);
    mr_normed_plan(&m->t, p, &k->norm, rows, false, has_y);
}

/* norm1.total is written, for the next block, while norm2.total is read: they are apart. */
static void plan_block(const mr_bt *m, mr_memory_plan *p, mr_bt_kept_block *k)
{
    size_t size = mr_type_size(m->t.config.compute), rows = m->t.batch * m->tokens[MR_BT_IMAGE];
    size_t hidden = m->t.config.hidden;
    bool has_input = m->again[MR_BT_IMAGE];
    *k = (mr_bt_kept_block){.attention = mr_bt_block_attention(m, m->t.batch), .norm1.total = k->norm1.total};
    mr_normed_plan(&m->t, p, &k->norm1, rows, has_input, false);
    k->qkv = mr_memory_take(p, rows, 3 * hidden, size);
    k->out = mr_memory_take(p, rows, hidden, size);
    k->attention.saved = mr_memory_take(p, m->saved.vision, 1, 1);
    mr_normed_plan(&m->t, p, &k->norm2, rows, false, false);
    mr_mlp_plan(&m->t, p, &k->mlp, rows, 4 * hidden, m->keeps[MR_BT_IMAGE] || has_input);
}

/* ---- towers --------------------------------------------------------------------------------------------------- */

/* Parts that do not keep their memory all begin where the first of them did. */
typedef struct part {
    size_t start, end;
} part;

static void end_part(mr_memory_plan *p, part *at, bool keeps)
{
    at->end = p->used > at->end ? p->used : at->end;
    p->used = keeps ? p->used : at->start;
}

/* The output of a layer of text outlives its memory: a transform learns from it, or the next layer runs again. */
static bool reads_text(const mr_bt *m, size_t i)
{
    return m->t.training && !m->keeps[MR_BT_TEXT] && (m->again[MR_BT_TEXT] || i + 1 >= m->split);
}

static void plan_text(mr_bt *m, mr_memory_plan *p)
{
    const mr_model_config *c = &m->t.config;
    size_t rows = m->t.batch * m->tokens[MR_BT_TEXT];
    bool keeps = m->keeps[MR_BT_TEXT];
    mr_normed_plan(&m->t, p, &m->words, rows, false, false);
    for (size_t i = 0; i < c->layers; i++) {
        bool read = reads_text(m, i);
        m->text[i] = (mr_bt_kept_layer){.side = MR_BT_TEXT, .site = 1 + MR_BT_SITES * (uint32_t)i};
        m->text[i].norm.y = read ? mr_memory_take(p, rows, c->hidden, mr_type_size(c->compute)) : NULL;
    }
    part at = {.start = p->used};
    for (size_t i = 0; i < c->layers; i++) {
        plan_layer(m, p, &m->text[i], false, keeps || m->again[MR_BT_TEXT], reads_text(m, i));
        end_part(p, &at, keeps);
    }
    p->used = at.end;
}

static void plan_vision(mr_bt *m, mr_memory_plan *p)
{
    const mr_model_config *c = &m->t.config;
    size_t size = mr_type_size(c->compute), rows = m->t.batch * m->tokens[MR_BT_IMAGE];
    m->pixels = mr_memory_take(p, rows - m->t.batch, (size_t)3 * c->patch * c->patch, size);
    mr_normed_plan(&m->t, p, &m->pre, rows, false, true);
    m->last_total = mr_memory_take(p, rows, c->hidden, size);
    for (size_t i = 0; i < c->layers && m->again[MR_BT_IMAGE]; i++)
        m->vision[i].norm1.total = mr_memory_take(p, rows, c->hidden, size);
    part at = {.start = p->used};
    for (size_t i = 0; i < c->layers; i++) {
        plan_block(m, p, &m->vision[i]);
        end_part(p, &at, m->keeps[MR_BT_IMAGE]);
    }
    m->pre.y = m->vision[0].norm1.total;
    p->used = at.end;
}

static void plan_bridge(mr_bt *m, mr_memory_plan *p, unsigned side, size_t j)
{
    mr_bt_bridge *b = &m->bridge[side][j];
    size_t rows = m->t.batch * m->tokens[side], next = m->split + j;
    *b = (mr_bt_bridge){0};
    if (side == MR_BT_IMAGE) {
        b->post.total = next < m->t.config.layers ? m->vision[next].norm1.total : m->last_total;
        mr_normed_plan(&m->t, p, &b->post, rows, true, false);
    }
    mr_normed_plan(&m->t, p, &b->norm, rows, false, false);
}

/* Bridges come first: they are written while the cross layers before them are read. */
static void plan_cross(mr_bt *m, mr_memory_plan *p)
{
    const mr_model_config *c = &m->t.config;
    bool again = m->t.training && !m->keeps_cross;
    for (size_t j = 0; j < c->cross_layers && again; j++) {
        plan_bridge(m, p, MR_BT_TEXT, j);
        plan_bridge(m, p, MR_BT_IMAGE, j);
    }
    part at = {.start = p->used};
    for (size_t j = 0; j < c->cross_layers; j++) {
        if (!again) {
            plan_bridge(m, p, MR_BT_TEXT, j);
            plan_bridge(m, p, MR_BT_IMAGE, j);
        }
        for (unsigned side = 0; side < 2; side++) {
            uint32_t number = c->layers + side * c->cross_layers + (uint32_t)j;
            m->cross[side][j] = (mr_bt_kept_layer){.side = side,
                                                   .site = 1 + MR_BT_SITES * number,
                                                   .first_only = !c->every_token && j + 1 == c->cross_layers};
            plan_layer(m, p, &m->cross[side][j], true, m->keeps_cross || again, false);
        }
        end_part(p, &at, m->keeps_cross);
    }
    p->used = at.end;
}

/* ---- the rest ------------------------------------------------------------------------------------------------- */

static void plan_heads(mr_bt *m, mr_memory_plan *p)
{
    const mr_model_config *c = &m->t.config;
    size_t size = mr_type_size(c->compute);
    for (unsigned side = 0; side < 2; side++) {
        m->first[side] = mr_memory_take(p, m->t.batch, c->hidden, size);
        m->head_x[side] = mr_memory_take(p, m->t.batch, c->hidden, size);
    }
    m->pooler = mr_memory_take(p, m->t.batch, 2 * (size_t)c->hidden, size);
    m->pooled = mr_memory_take(p, m->t.batch, 2 * (size_t)c->hidden, size);
    for (unsigned i = 0; i < 3; i++)
        m->head_y[i] = mr_memory_take(p, m->t.batch, c->embed, sizeof(float));
}

static void plan_backward(mr_bt *m, mr_memory_plan *p, size_t most)
{
    const mr_model_config *c = &m->t.config;
    size_t size = mr_type_size(c->compute), wide = 4 * (size_t)c->hidden;
    m->t.d_wide = mr_memory_take(p, most, c->mlp > wide ? c->mlp : wide, size);
    for (unsigned side = 0; side < 2; side++) {
        size_t rows = m->t.batch * m->tokens[side];
        m->d_stream[side] = m->learns[side] ? mr_memory_take(p, rows, c->hidden, size) : NULL;
        m->d_cross[side] = mr_memory_take(p, rows, c->hidden, size);
        m->d_spare[side] = mr_memory_take(p, rows, c->hidden, size);
        m->d_other[side] = mr_memory_take(p, rows, c->hidden, size);
        m->d_head_x[side] = mr_memory_take(p, m->t.batch, c->hidden, size);
        m->d_few[side] = mr_memory_take(p, m->t.batch, c->hidden, size);
    }
    m->d_pooled = mr_memory_take(p, m->t.batch, 2 * (size_t)c->hidden, size);
    for (unsigned i = 0; i < 3; i++)
        m->d_head_y[i] = mr_memory_take(p, m->t.batch, c->embed, size);
    m->d_scale = mr_memory_take(p, 1, 1, sizeof(float));
}

bool mr_bt_plan(mr_transformer *t)
{
    mr_bt *m = (mr_bt *)t;
    const mr_model_config *c = &t->config;
    mr_memory_plan p = {.base = t->memory};
    size_t most = c->text > m->tokens[MR_BT_IMAGE] ? c->text : m->tokens[MR_BT_IMAGE];
    m->tokens[MR_BT_TEXT] = c->text;
    if (__builtin_mul_overflow(m->t.batch, most, &most))
        return false;
    plan_text(m, &p);
    plan_vision(m, &p);
    plan_cross(m, &p);
    plan_heads(m, &p);
    m->t.branch = mr_memory_take(&p, most, c->hidden, mr_type_size(c->compute));
    if (m->t.training)
        plan_backward(m, &p, most);
    t->bytes = p.used;
    return !p.overflow;
}

bool mr_bt_make(mr_bt *m, const mr_model_config *c, size_t batch, bool training)
{
    const unsigned frozen[2] = {MR_FROZEN_TEXT, MR_FROZEN_IMAGES};
    *m = (mr_bt){.split = c->layers - c->cross_layers + 1, .world = 1};
    mr_transformer_init(&m->t, c, batch, training);
    m->t.eps = (float)c->norm_eps;
    size_t grid = c->image / c->patch;
    m->tokens[MR_BT_TEXT] = c->text;
    m->tokens[MR_BT_IMAGE] = 1 + grid * grid;
    m->keeps_cross = (training && !c->recompute) || c->every_token;
    m->text = mr_alloc(c->layers, sizeof *m->text);
    m->vision = mr_alloc(c->layers, sizeof *m->vision);
    bool made = m->text && m->vision;
    for (unsigned side = 0; side < 2; side++) {
        m->learns[side] = training && !(c->frozen & frozen[side]);
        m->again[side] = m->learns[side] && c->recompute && !c->every_token;
        m->keeps[side] = (m->learns[side] && !m->again[side]) || c->every_token;
        m->bridge[side] = mr_alloc(c->cross_layers, sizeof *m->bridge[side]);
        m->cross[side] = mr_alloc(c->cross_layers, sizeof *m->cross[side]);
        made = made && m->bridge[side] && m->cross[side];
    }
    return made;
}

void mr_bt_unmake(mr_bt *m)
{
    free(m->text);
    free(m->vision);
    for (unsigned side = 0; side < 2; side++) {
        free(m->bridge[side]);
        free(m->cross[side]);
    }
}

uint64_t mr_bt_activation_bytes(const mr_model_config *c, size_t batch, bool training)
{
    mr_bt m;
    uint64_t bytes = mr_contrast_bytes(batch, c->embed, 1, training);
    bool planned = mr_bt_make(&m, c, batch, training) && mr_bt_plan(&m.t);
    mr_bt_unmake(&m);
    return !planned || __builtin_add_overflow(bytes, m.t.bytes, &bytes) ? UINT64_MAX : bytes;
}
