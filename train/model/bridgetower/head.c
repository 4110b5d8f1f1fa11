/* head.c - from the streams' first tokens to unit vectors and losses.
 * Invariant: the losses' gradients with respect to what the heads give are known when the losses are; the way back
 * begins with them.
 *
 *      cross text, cross image ─> poolers ─> tanh ─> side by side ─> head of both ──┐
 *      last layer of text ───────────────────────────────> head of text ────────────┼─> contrast
 *      last bridge of pictures, before its norm ─────────> head of pictures ────────┘             */
#include "bridgetower/pass.h"

enum { BOTH = 2 }; /* of the heads; the others go by their side */

static mr_activate tanh_of(const mr_bt *m)
{
    return (mr_activate){.type = m->config.compute,
                         .kind = MR_TANH,
                         .rows = m->in.count,
                         .width = 2 * (size_t)m->config.hidden,
                         .sample_rows = 1,
                         .x = m->pooler};
}

/* Each pooler fills its half of the rows. */
static void pool(mr_bt *m)
{
    const mr_model_config *c = &m->config;
    mr_activate a = tanh_of(m);
    a.y = m->pooled;
    for (unsigned side = 0; side < 2; side++) {
        const mr_bt_kept_layer *last = &m->cross[side][c->cross_layers - 1];
        const mr_bt_dense *l = &m->layout.pooler[side];
        const mr_gemm g = {.a_type = c->compute,
                           .b_type = MR_F32,
                           .c_type = c->compute,
                           .m = m->in.count,
                           .n = c->hidden,
                           .k = c->hidden,
                           .a = m->first[side],
                           .b = m->values + l->kernel,
                           .transpose_b = true,
                           .ldc = 2 * (size_t)c->hidden,
                           .bias = m->values + l->bias,
                           .c = (uint8_t *)m->pooler + side * c->hidden * mr_type_size(c->compute)};
        mr_bt_first_rows(m, last->norm.y, last->self.attention.queries, m->first[side], 1, false);
        m->device->card->gemm(m->device, &g);
    }
    m->device->card->activate(m->device, &a);
}

/* How many ranks there are is known from the first pass with peers on: then their places are planned, once.  A rank
 * without memory for them takes part in the sums that the others wait for, and computes what is of no meaning. */
static mr_peers *meet(mr_bt *m)
{
    mr_peers *p = m->in.peers;
    mr_contrast *wide = NULL;
    mr_error err;
    if (!p || p->world <= m->world)
        return p;
    mr_status status = mr_contrast_open(m->device, m->batch, m->config.embed, p->world, m->training, &wide, &err);
    if (status) {
        mr_peers_idle(p, m->in.training);
        p->why = p->status ? p->why : err;
        p->status = p->status ? p->status : status;
        return NULL;
    }
    mr_contrast_close(m->contrast);
    m->contrast = wide;
    m->world = p->world;
    return p;
}

void mr_bt_head_forward(mr_bt *m)
{
    const mr_model_config *c = &m->config;
    size_t count = m->in.count;
    mr_contrast_input in = {.count = count,
                            .training = m->in.training,
                            .log_scale = m->values + m->layout.logit_scale,
                            .weights = m->in.weights,
                            .groups = m->in.groups,
                            .peers = meet(m),
                            .d_log_scale = m->d_scale,
                            .type = c->compute};
    mr_contrast_output out;
    pool(m);
    mr_bt_first_rows(m, m->text[c->layers - 1].norm.y, m->tokens[MR_BT_TEXT], m->head_x[MR_BT_TEXT], 1, false);
    for (int i = 0; i < 3; i++) {
        mr_bt_dense_forward(m, &m->layout.head[i], count, i == BOTH ? m->pooled : m->head_x[i], m->head_y[i], MR_F32);
        in.x[i] = m->head_y[i];
        in.d_x[i] = m->d_head_y[i];
    }
    if (m->in.training)
        m->device->card->zero(m->device, m->d_scale, sizeof *m->d_scale);
    mr_contrast_run(m->contrast, &in, &out);
    m->out = (mr_model_output){.losses = out.losses,
                               .embeddings = {out.embeddings[0], out.embeddings[1], out.embeddings[2]}};
}

/* ---- and back ------------------------------------------------------------------------------------------------- */

/* Of first tokens to where all rows stand; those of the others are 0. */
static void spread(mr_bt *m, unsigned side, const void *d_first, void *d)
{
    const mr_model_config *c = &m->config;
    m->device->card->zero(m->device, d, mr_bt_rows(m, side) * c->hidden * mr_type_size(c->compute));
    if (d_first)
        mr_bt_first_rows(m, d_first, 1, d, m->tokens[side], false);
}

static void pool_back(mr_bt *m, unsigned side)
{
    const mr_model_config *c = &m->config;
    bool first_only = m->cross[side][c->cross_layers - 1].first_only;
    const mr_rows half = {.type = c->compute,
                          .rows = m->in.count,
                          .width = c->hidden,
                          .from = (uint8_t *)m->d_pooled + side * c->hidden * mr_type_size(c->compute),
                          .from_stride = 2 * (size_t)c->hidden,
                          .to = m->d_few[0]};
    m->device->card->rows(m->device, &half);
    mr_bt_dense_back(m, &m->layout.pooler[side], m->in.count, m->first[side], m->d_few[0],
                     first_only ? m->d_cross[side] : m->d_few[1], false);
    if (!first_only)
        spread(m, side, m->d_few[1], m->d_cross[side]);
}

void mr_bt_head_back(mr_bt *m)
{
    const mr_device_card *card = m->device->card;
    size_t count = m->in.count;
    mr_activate a = tanh_of(m);
    a.d_y = a.d_x = m->d_pooled;
    float *d_scale = m->gradients + m->layout.logit_scale;
    card->add(m->device, MR_F32, 1, d_scale, m->d_scale, d_scale);
    mr_bt_dense_back(m, &m->layout.head[BOTH], count, m->pooled, m->d_head_y[BOTH], m->d_pooled, false);
    card->activate_back(m->device, &a);
    for (unsigned side = 0; side < 2; side++) {
        bool goes_on = side == MR_BT_IMAGE || m->learns[side]; /* that of pictures meets the last bridge first */
        pool_back(m, side);
        mr_bt_dense_back(m, &m->layout.head[side], count, m->head_x[side], m->d_head_y[side],
                         goes_on ? m->d_head_x[side] : NULL, false);
        if (m->learns[side])
            spread(m, side, side == MR_BT_TEXT ? m->d_head_x[side] : NULL, m->d_stream[side]);
    }
}
