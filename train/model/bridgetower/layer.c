/* layer.c - RoBERTa's layer, forward and backward: for the text, and with a second attention for the cross layers.
 * Invariant: the norm comes after the sum, so a gradient goes through it first and then both ways; the two buffers of a
 * side change places at each norm.
 *
 *      backward:   d of y ─> norm ─> d of total ──┬────────────────────> d of x
 *                                                 └─> branch ─> added ───┘           */
#include "train/model/bridgetower/pass.h"

/* ---- forward ---------------------------------------------------------------------------------------------------- */

static mr_dropout dropout_at(const mr_bt *m, uint32_t site)
{
    return mr_dropout_at(&m->t, m->t.config.dropout, site);
}

/* `site`: the one of the probabilities; the next one is that of the output. */
static void attend(mr_bt *m, const mr_bt_attention *at, mr_bt_attended *k, const mr_bt_kept_layer *layer, unsigned from,
                   uint32_t site)
{
    mr_attention shape = mr_bt_layer_attention(m, m->t.in.count, layer->side, from, layer->first_only);
    shape.key_mask = from == MR_BT_TEXT ? m->t.in.seen : NULL;
    shape.dropout = mr_dropout_at(&m->t, m->t.config.attention_dropout, site);
    mr_attended_forward(&m->t, &at->attention, &k->attended, &shape);
    mr_norm_forward(&m->t, &at->norm, &k->norm, shape.queries, m->t.branch, k->attended.x, dropout_at(m, site + 1));
}

static void mlp_forward(mr_bt *m, const mr_bt_layer *at, mr_bt_kept_layer *k, const void *x)
{
    size_t sample = k->self.attended.attention.queries;
    const mr_activate gelu = {.kind = MR_GELU, .rows = m->t.in.count * sample, .sample_rows = sample};
    mr_mlp_forward(&m->t, &at->mlp, &k->mlp, x, &gelu);
    mr_norm_forward(&m->t, &at->norm, &k->norm, sample, m->t.branch, x, dropout_at(m, k->site + MR_BT_SITE_MLP));
}

void mr_bt_layer_forward(mr_bt *m, const mr_bt_layer *at, mr_bt_kept_layer *k, const void *x, const void *other)
{
    k->self.attended.x = k->self.attended.from = x;
    if (k->first_only) {
        mr_first_rows(&m->t, x, m->tokens[k->side], k->first, 1, false);
        k->self.attended.x = k->first;
    }
    attend(m, &at->self, &k->self, k, k->side, k->site + MR_BT_SITE_SELF);
    if (other) {
        k->cross.attended.x = k->self.norm.y;
        k->cross.attended.from = other;
        attend(m, &at->cross, &k->cross, k, !k->side, k->site + MR_BT_SITE_CROSS);
    }
    mlp_forward(m, at, k, other ? k->cross.norm.y : k->self.norm.y);
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

static void mlp_backward(mr_bt *m, const mr_bt_layer *at, const mr_bt_kept_layer *k, void **d)
{
    size_t sample = k->self.attended.attention.queries;
    mr_norm_backward(&m->t, &at->norm, &k->norm, m->t.in.count * sample, *d, NULL, m->d_spare[k->side]);
    mr_bt_swap(d, &m->d_spare[k->side]);
    const void *d_branch = mr_branch_gradient(&m->t, sample, dropout_at(m, k->site + MR_BT_SITE_MLP), *d);
    mr_mlp_backward(&m->t, &at->mlp, &k->mlp, d_branch, *d, true);
}

/* d_from gets the gradient of the rows of keys and values, added if `from_more`; NULL: they are those of the
 * queries. */
static void attend_backward(mr_bt *m, const mr_bt_attention *at, const mr_bt_attended *k, uint32_t site, void **spare,
                            const mr_bt_layer_gradients *g)
{
    const mr_transformer *t = &m->t;
    const mr_attended *a = &k->attended;
    const mr_attention *shape = &a->attention;
    size_t asking = t->in.count * shape->queries, answering = t->in.count * shape->keys;
    size_t most = t->config.text > m->tokens[MR_BT_IMAGE] ? t->config.text : m->tokens[MR_BT_IMAGE];
    size_t one = t->batch * most * t->config.hidden * mr_type_size(t->config.compute);
    uint8_t *d_out = t->d_wide, *d_q = d_out + one, *d_k = d_q + one, *d_v = d_k + one;
    const mr_attention_back back = {.forward = shape, .d_out = d_out, .d_q = d_q, .d_k = d_k, .d_v = d_v};
    mr_norm_backward(t, &at->norm, &k->norm, asking, *g->d, NULL, *spare);
    mr_bt_swap(g->d, spare);
    const void *d_branch = mr_branch_gradient(t, shape->queries, dropout_at(m, site + 1), *g->d);
    mr_dense_backward(t, &at->attention.out, asking, a->out, d_branch, d_out, false);
    mr_run_attention_back(t->device, &back);
    void *d_from = g->d_from ? g->d_from : *g->d;
    mr_dense_backward(t, &at->attention.query, asking, a->x, d_q, *g->d, true);
    mr_dense_backward(t, &at->attention.key, answering, a->from, d_k, d_from, g->d_from ? g->from_more : true);
    mr_dense_backward(t, &at->attention.value, answering, a->from, d_v, d_from, true);
}

void mr_bt_layer_backward(mr_bt *m, const mr_bt_layer *at, const mr_bt_kept_layer *k, const mr_bt_layer_gradients *self,
                          const mr_bt_layer_gradients *cross)
{
    mlp_backward(m, at, k, self->d);
    if (cross)
        attend_backward(m, &at->cross, &k->cross, k->site + MR_BT_SITE_CROSS, &m->d_spare[k->side], cross);
    attend_backward(m, &at->self, &k->self, k->site + MR_BT_SITE_SELF, &m->d_spare[k->side], self);
}
