/* head.c - from the streams' first tokens to unit vectors and losses.
 * Invariant: the losses' gradients with respect to the outputs of the heads are known when the losses are; the backward
 * pass begins with them.
 *
 *      cross text, cross image ─> poolers ─> tanh ─> side by side ─> head of both ──┐
 *      last layer of text ───────────────────────────────> head of text ────────────┼─> contrast
 *      last bridge of images, before its norm ───────────> head of images ──────────┘             */
#include "train/model/bridgetower/pass.h"

enum { BOTH = 2 }; /* the head for both; the others are named by their side */

static mr_activate tanh_of(const mr_bt *m)
{
    return (mr_activate){.type = m->t.config.compute,
                         .kind = MR_TANH,
                         .rows = m->t.in.count,
                         .width = 2 * (size_t)m->t.config.hidden,
                         .sample_rows = 1,
                         .x = m->pooler};
}

/* Each pooler fills its half of the rows. */
static void pool(mr_bt *m)
{
    const mr_model_config *c = &m->t.config;
    mr_activate a = tanh_of(m);
    a.y = m->pooled;
    for (unsigned side = 0; side < 2; side++) {
        const mr_bt_kept_layer *last = &m->cross[side][c->cross_layers - 1];
        const mr_dense *l = &m->layout.pooler[side];
        const mr_gemm g = {.a_type = c->compute,
                           .b_type = MR_F32,
                           .c_type = c->compute,
                           .m = m->t.in.count,
                           .n = c->hidden,
                           .k = c->hidden,
                           .a = m->first[side],
                           .b = m->t.values + l->kernel,
                           .transpose_b = l->out_first,
                           .ldc = 2 * (size_t)c->hidden,
                           .bias = m->t.values + l->bias,
                           .c = (uint8_t *)m->pooler + side * c->hidden * mr_type_size(c->compute)};
        mr_first_rows(&m->t, last->norm.y, last->self.attended.attention.queries, m->first[side], 1, false);
        mr_run_gemm(m->t.device, &g);
    }
    mr_run_activate(m->t.device, &a);
}

/* The number of ranks is known from the first pass with peers on: then memory for them is planned, once.  A rank
 * without that memory takes part in the sums that the others wait for; its results mean nothing. */
static mr_peers *peers_of(mr_bt *m)
{
    mr_peers *p = m->t.in.peers;
    mr_contrast *wide = NULL;
    mr_error err;
    if (!p || p->world <= m->world)
        return p;
    mr_status status =
        mr_contrast_open(m->t.device, m->t.batch, m->t.config.embed, p->world, m->t.training, &wide, &err);
    if (status) {
        mr_peers_idle(p, m->t.in.training);
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
    const mr_model_config *c = &m->t.config;
    size_t count = m->t.in.count;
    mr_contrast_input in = {.count = count,
                            .training = m->t.in.training,
                            .log_scale = m->t.values + m->layout.logit_scale,
                            .weights = m->t.in.weights,
                            .groups = m->t.in.groups,
                            .peers = peers_of(m),
                            .d_log_scale = m->d_scale,
                            .type = c->compute};
    mr_contrast_output out;
    pool(m);
    mr_first_rows(&m->t, m->text[c->layers - 1].norm.y, m->tokens[MR_BT_TEXT], m->head_x[MR_BT_TEXT], 1, false);
    for (int i = 0; i < 3; i++) {
        mr_dense_forward(&m->t, &m->layout.head[i], count, i == BOTH ? m->pooled : m->head_x[i], m->head_y[i], MR_F32);
        in.x[i] = m->head_y[i];
        in.d_x[i] = m->d_head_y[i];
    }
    if (m->t.in.training)
        m->t.device->iface->zero(m->t.device, m->d_scale, sizeof *m->d_scale);
    mr_contrast_run(m->contrast, &in, &out);
    m->out = (mr_model_output){.losses = out.losses,
                               .embeddings = {out.embeddings[0], out.embeddings[1], out.embeddings[2]}};
}

/* ---- backward ------------------------------------------------------------------------------------------------- */

/* From first tokens to all rows; those of the others are 0. */
static void spread(mr_bt *m, unsigned side, const void *d_first, void *d)
{
    const mr_model_config *c = &m->t.config;
    m->t.device->iface->zero(m->t.device, d, mr_bt_rows(m, side) * c->hidden * mr_type_size(c->compute));
    if (d_first)
        mr_first_rows(&m->t, d_first, 1, d, m->tokens[side], false);
}

static void pool_backward(mr_bt *m, unsigned side)
{
    const mr_model_config *c = &m->t.config;
    bool first_only = m->cross[side][c->cross_layers - 1].first_only;
    const mr_rows half = {.type = c->compute,
                          .rows = m->t.in.count,
                          .width = c->hidden,
                          .from = (uint8_t *)m->d_pooled + side * c->hidden * mr_type_size(c->compute),
                          .from_stride = 2 * (size_t)c->hidden,
                          .to = m->d_few[0]};
    mr_run_rows(m->t.device, &half);
    mr_dense_backward(&m->t, &m->layout.pooler[side], m->t.in.count, m->first[side], m->d_few[0],
                      first_only ? m->d_cross[side] : m->d_few[1], false);
    if (!first_only)
        spread(m, side, m->d_few[1], m->d_cross[side]);
}

void mr_bt_head_backward(mr_bt *m)
{
    size_t count = m->t.in.count;
    mr_activate a = tanh_of(m);
    a.d_y = a.d_x = m->d_pooled;
    float *d_scale = m->t.gradients + m->layout.logit_scale;
    mr_run_add(m->t.device, &(mr_add){MR_F32, 1, d_scale, m->d_scale, d_scale});
    mr_dense_backward(&m->t, &m->layout.head[BOTH], count, m->pooled, m->d_head_y[BOTH], m->d_pooled, false);
    mr_run_activate_back(m->t.device, &a);
    for (unsigned side = 0; side < 2; side++) {
        bool continues = side == MR_BT_IMAGE || m->learns[side]; /* that of images goes through the last bridge first */
        pool_backward(m, side);
        mr_dense_backward(&m->t, &m->layout.head[side], count, m->head_x[side], m->d_head_y[side],
                          continues ? m->d_head_x[side] : NULL, false);
        if (m->learns[side])
            spread(m, side, side == MR_BT_TEXT ? m->d_head_x[side] : NULL, m->d_stream[side]);
    }
}
