/* cross.c - the bridges from the towers to the cross layers, and these.
 * Invariant: both cross layers of a j read the same two bridges; transforms, side types and norm_post are shared by all
 * bridges, so their gradients are complete only after bridge 0's backward pass.
 *
 *      d of cross text j ──> layer ──> d of bridge (text)     <── keys and values ──┐
 *                              └─ keys and values ─> d_other (images)               │
 *      d of cross image j ─> layer ──> d of bridge (images)  , + d_other            │
 *                              └────────────────────────────────────────────────────┘  */
#include "train/model/bridgetower/pass.h"

/* ---- forward ---------------------------------------------------------------------------------------------------- */

/* The stream as the transform reads it; that of images is summed here, also for the next block. */
static const void *stream_of(mr_bt *m, unsigned side, size_t j)
{
    size_t i = m->split - 1 + j;
    if (side == MR_BT_TEXT)
        return m->text[i].norm.y;
    const mr_normed *post = &m->bridge[side][j].post;
    mr_norm_forward(&m->t, &m->layout.norm_post, post, m->tokens[side], m->t.branch, m->vision[i].norm2.total,
                    (mr_dropout){0});
    return post->y;
}

void mr_bt_bridge_forward(mr_bt *m, unsigned side, size_t j)
{
    const mr_model_config *c = &m->t.config;
    mr_bt_bridge *b = &m->bridge[side][j];
    size_t rows = mr_bt_rows(m, side);
    void *to = j ? m->t.branch : b->norm.total;
    b->x = stream_of(m, side, j);
    const mr_lookup type = {.type = c->compute,
                            .rows = rows,
                            .width = c->hidden,
                            .entries = 1,
                            .y = to,
                            .table = m->t.values + m->layout.side_type + side * c->hidden,
                            .accumulate = true};
    mr_dense_forward(&m->t, &m->layout.transform[side], rows, b->x, to, c->compute);
    mr_run_lookup(m->t.device, &type);
    if (side == MR_BT_IMAGE && j + 1 == c->cross_layers)
        mr_first_rows(&m->t, to, m->tokens[side], m->head_x[MR_BT_IMAGE], 1, false);
    mr_norm_forward(&m->t, j ? &m->layout.link[side][j - 1] : &m->layout.cross_norm[side], &b->norm, m->tokens[side],
                    to, j ? m->cross[side][j - 1].norm.y : NULL, (mr_dropout){0});
}

void mr_bt_cross_forward(mr_bt *m, size_t j)
{
    const void *text = m->bridge[MR_BT_TEXT][j].norm.y, *image = m->bridge[MR_BT_IMAGE][j].norm.y;
    mr_bt_layer_forward(m, &m->layout.cross[MR_BT_TEXT][j], &m->cross[MR_BT_TEXT][j], text, image);
    mr_bt_layer_forward(m, &m->layout.cross[MR_BT_IMAGE][j], &m->cross[MR_BT_IMAGE][j], image, text);
}

/* ---- backward ------------------------------------------------------------------------------------------------- */

/* Completes d_cross[side]: d_other of images holds what the text's layer gave. */
static void join(mr_bt *m, const mr_bt_kept_layer *k)
{
    unsigned side = k->side;
    if (k->first_only) { /* d_other holds all rows, d_cross those of first tokens */
        mr_first_rows(&m->t, m->d_cross[side], 1, m->d_other[side], m->tokens[side], true);
        mr_bt_swap(&m->d_cross[side], &m->d_other[side]);
    } else if (side == MR_BT_IMAGE) {
        mr_run_add(m->t.device, &(mr_add){m->t.config.compute, mr_bt_rows(m, side) * m->t.config.hidden,
                                          m->d_cross[side], m->d_other[side], m->d_cross[side]});
    }
}

void mr_bt_cross_backward(mr_bt *m, size_t j)
{
    void **d_cross = m->d_cross, **d_other = m->d_other;
    if (!m->keeps_cross && j + 1 < m->t.config.cross_layers)
        mr_bt_cross_forward(m, j);
    for (unsigned side = 0; side < 2; side++) {
        const mr_bt_kept_layer *k = &m->cross[side][j];
        const mr_bt_layer_gradients self = {
            .d = &d_cross[side], .d_from = k->first_only ? d_other[side] : NULL, .from_more = side == MR_BT_IMAGE};
        const mr_bt_layer_gradients cross = {.d = &d_cross[side],
                                             .d_from = side == MR_BT_TEXT ? d_other[MR_BT_IMAGE] : d_cross[MR_BT_TEXT],
                                             .from_more = side == MR_BT_IMAGE};
        mr_bt_layer_backward(m, &m->layout.cross[side][j], k, &self, &cross);
        join(m, k);
    }
}

/* The head of images reads first tokens between the last transform and the sum with the cross stream: its gradient is
 * the transform's alone. */
static const void *with_head(mr_bt *m, const void *d)
{
    size_t tokens = m->tokens[MR_BT_IMAGE];
    const mr_rows all = {.type = m->t.config.compute,
                         .rows = mr_bt_rows(m, MR_BT_IMAGE),
                         .width = m->t.config.hidden,
                         .from = d,
                         .to = m->d_other[MR_BT_IMAGE]};
    mr_run_rows(m->t.device, &all);
    mr_first_rows(&m->t, m->d_head_x[MR_BT_IMAGE], 1, m->d_other[MR_BT_IMAGE], tokens, true);
    return m->d_other[MR_BT_IMAGE];
}

void mr_bt_bridge_backward(mr_bt *m, unsigned side, size_t j)
{
    const mr_model_config *c = &m->t.config;
    const mr_bt_bridge *b = &m->bridge[side][j];
    size_t rows = mr_bt_rows(m, side);
    void *d_stream = m->d_stream[side];
    mr_norm_backward(&m->t, j ? &m->layout.link[side][j - 1] : &m->layout.cross_norm[side], &b->norm, rows,
                     m->d_cross[side], NULL, m->d_spare[side]);
    mr_bt_swap(&m->d_cross[side], &m->d_spare[side]);
    const void *d = m->d_cross[side];
    if (side == MR_BT_IMAGE && j + 1 == c->cross_layers)
        d = with_head(m, d);
    mr_run_sum_rows(m->t.device, &(mr_sum_rows){c->compute, rows, c->hidden, d,
                                                m->t.gradients + m->layout.side_type + side * c->hidden});
    if (side == MR_BT_TEXT || !m->learns[side]) {
        mr_dense_backward(&m->t, &m->layout.transform[side], rows, b->x, d, m->learns[side] ? d_stream : NULL, true);
        return;
    }
    mr_dense_backward(&m->t, &m->layout.transform[side], rows, b->x, d, m->t.branch, false);
    mr_norm_backward(&m->t, &m->layout.norm_post, &b->post, rows, m->t.branch, d_stream, d_stream);
}
