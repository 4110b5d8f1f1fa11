/* layer.c - RoBERTa's layer, there and back: of the text, and with a second attention of the cross layers.
 * Invariant: the norm stands behind the sum, so a gradient goes through it first and then both ways; the two buffers
 * of a side change places at each norm.
 *
 *      way back:   d of y ─> norm ─> d of total ──┬────────────────────> d of x
 *                                                 └─> branch ─> added ───┘           */
#include "bridgetower/pass.h"

/* ---- there ---------------------------------------------------------------------------------------------------- */

/* `site`: of the probabilities; the next one is that of the output. */
static void attend(mr_bt *m, const mr_bt_attention *at, mr_bt_attended *k, const mr_bt_kept_layer *layer, unsigned from,
                   uint32_t site)
{
    const mr_model_config *c = &m->config;
    mr_attention shape = mr_bt_layer_attention(m, m->in.count, layer->side, from, layer->first_only);
    size_t asking = m->in.count * shape.queries, answering = m->in.count * shape.keys;
    shape.q = k->q;
    shape.k = k->k;
    shape.v = k->v;
    shape.out = k->out;
    shape.saved = k->attention.saved;
    shape.key_mask = from == MR_BT_TEXT ? m->in.seen : NULL;
    shape.dropout = mr_bt_dropout(m, c->attention_dropout, site);
    k->attention = shape;
    mr_bt_dense_forward(m, &at->query, asking, k->x, k->q, c->compute);
    mr_bt_dense_forward(m, &at->key, answering, k->from, k->k, c->compute);
    mr_bt_dense_forward(m, &at->value, answering, k->from, k->v, c->compute);
    m->device->card->attention(m->device, &k->attention);
    mr_bt_dense_forward(m, &at->out, asking, k->out, m->branch, c->compute);
    mr_bt_norm_forward(m, &at->norm, &k->norm, asking, m->branch, k->x, shape.queries,
                       mr_bt_dropout(m, c->dropout, site + 1));
}

static const mr_bt_normed *before_mlp(const mr_bt_kept_layer *k)
{
    return k->cross.q ? &k->cross.norm : &k->self.norm;
}

static mr_activate gelu(const mr_bt *m, const mr_bt_kept_layer *k, size_t rows, size_t width)
{
    return (mr_activate){
        .type = m->config.compute, .kind = MR_GELU, .rows = rows, .width = width, .sample_rows = 1, .x = k->wide};
}

static void think(mr_bt *m, const mr_bt_layer *at, const mr_bt_kept_layer *k)
{
    const mr_model_config *c = &m->config;
    size_t sample = k->self.attention.queries, rows = m->in.count * sample;
    const void *x = before_mlp(k)->y;
    mr_activate a = gelu(m, k, rows, at->wide.out);
    a.y = k->active;
    mr_bt_dense_forward(m, &at->wide, rows, x, k->wide, c->compute);
    m->device->card->activate(m->device, &a);
    mr_bt_dense_forward(m, &at->narrow, rows, k->active, m->branch, c->compute);
    mr_bt_norm_forward(m, &at->norm, &k->norm, rows, m->branch, x, sample,
                       mr_bt_dropout(m, c->dropout, k->site + MR_BT_SITE_MLP));
}

void mr_bt_layer_forward(mr_bt *m, const mr_bt_layer *at, mr_bt_kept_layer *k, const void *x, const void *other)
{
    k->self.x = k->self.from = x;
    if (k->first_only) {
        mr_bt_first_rows(m, x, m->tokens[k->side], k->first, 1, false);
        k->self.x = k->first;
    }
    attend(m, &at->self, &k->self, k, k->side, k->site + MR_BT_SITE_SELF);
    if (other) {
        k->cross.x = k->self.norm.y;
        k->cross.from = other;
        attend(m, &at->cross, &k->cross, k, !k->side, k->site + MR_BT_SITE_CROSS);
    }
    think(m, at, k);
}

/* ---- and back ------------------------------------------------------------------------------------------------- */

/* The gradient d of a sum, as its branch gets it. */
static const void *of_branch(mr_bt *m, size_t rows, size_t sample_rows, uint32_t site, const void *d)
{
    mr_dropout dropout = mr_bt_dropout(m, m->config.dropout, site);
    if (!(dropout.rate > 0))
        return d;
    m->device->card->drop(m->device, m->config.compute, rows, m->config.hidden, sample_rows, &dropout, d, m->branch);
    return m->branch;
}

static void think_back(mr_bt *m, const mr_bt_layer *at, const mr_bt_kept_layer *k, void **d)
{
    size_t sample = k->self.attention.queries, rows = m->in.count * sample;
    mr_bt_norm_back(m, &at->norm, &k->norm, rows, *d, NULL, m->d_spare[k->side]);
    mr_bt_swap(d, &m->d_spare[k->side]);
    const void *d_branch = of_branch(m, rows, sample, k->site + MR_BT_SITE_MLP, *d);
    mr_bt_dense_back(m, &at->narrow, rows, k->active, d_branch, m->d_wide, false);
    mr_activate a = gelu(m, k, rows, at->wide.out);
    a.d_y = a.d_x = m->d_wide;
    m->device->card->activate_back(m->device, &a);
    mr_bt_dense_back(m, &at->wide, rows, before_mlp(k)->y, m->d_wide, *d, true);
}

/* d_from gets the gradient of the rows that answered; NULL: they are those that asked. */
static void attend_back(mr_bt *m, const mr_bt_attention *at, const mr_bt_attended *k, unsigned side, uint32_t site,
                        void **d, void *d_from, bool from_more)
{
    const mr_attention *shape = &k->attention;
    size_t asking = m->in.count * shape->queries, answering = m->in.count * shape->keys;
    size_t most = m->config.text > m->tokens[MR_BT_IMAGE] ? m->config.text : m->tokens[MR_BT_IMAGE];
    size_t one = m->batch * most * m->config.hidden * mr_type_size(m->config.compute);
    uint8_t *d_out = m->d_wide, *d_q = d_out + one, *d_k = d_q + one, *d_v = d_k + one;
    const mr_attention_back back = {.forward = shape, .d_out = d_out, .d_q = d_q, .d_k = d_k, .d_v = d_v};
    mr_bt_norm_back(m, &at->norm, &k->norm, asking, *d, NULL, m->d_spare[side]);
    mr_bt_swap(d, &m->d_spare[side]);
    mr_bt_dense_back(m, &at->out, asking, k->out, of_branch(m, asking, shape->queries, site + 1, *d), d_out, false);
    m->device->card->attention_back(m->device, &back);
    mr_bt_dense_back(m, &at->query, asking, k->x, d_q, *d, true);
    mr_bt_dense_back(m, &at->key, answering, k->from, d_k, d_from ? d_from : *d, d_from ? from_more : true);
    mr_bt_dense_back(m, &at->value, answering, k->from, d_v, d_from ? d_from : *d, true);
}

void mr_bt_layer_back(mr_bt *m, const mr_bt_layer *at, const mr_bt_kept_layer *k, const mr_bt_layer_way *way)
{
    think_back(m, at, k, way->d);
    if (k->cross.q)
        attend_back(m, &at->cross, &k->cross, k->side, k->site + MR_BT_SITE_CROSS, way->d, way->d_other,
                    way->other_more);
    attend_back(m, &at->self, &k->self, k->side, k->site + MR_BT_SITE_SELF, way->d, k->first_only ? way->d_x : NULL,
                way->x_more);
}
