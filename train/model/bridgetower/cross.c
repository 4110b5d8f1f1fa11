/* cross.c - the bridges from the towers to the cross layers, and these.
 * Invariant: both cross layers of a j read the same two bridges; transforms, side types and norm_post are those of all
 * bridges, so their gradients are whole only after bridge 0's way back.
 *
 *      d of cross text j ──> layer ──> d of bridge (text)     <── keys and values ──┐
 *                              └─ keys and values ─> d_other (pictures)             │
 *      d of cross image j ─> layer ──> d of bridge (pictures), + d_other            │
 *                              └────────────────────────────────────────────────────┘  */
#include "bridgetower/pass.h"

/* ---- there ---------------------------------------------------------------------------------------------------- */

/* The stream as the transform reads it; of pictures it is summed up here, for the next block, too. */
static const void *stream_of(mr_bt *m, unsigned side, size_t j)
{
    size_t i = m->split - 1 + j;
    if (side == MR_BT_TEXT)
        return m->text[i].norm.y;
    const mr_bt_normed *post = &m->bridge[side][j].post;
    mr_bt_norm_forward(m, &m->layout.norm_post, post, mr_bt_rows(m, side), m->branch, m->vision[i].norm2.total, 1,
                       (mr_dropout){0});
    return post->y;
}

void mr_bt_bridge_forward(mr_bt *m, unsigned side, size_t j)
{
    const mr_model_config *c = &m->config;
    mr_bt_bridge *b = &m->bridge[side][j];
    size_t rows = mr_bt_rows(m, side);
    void *to = j ? m->branch : b->norm.total;
    b->x = stream_of(m, side, j);
    const mr_lookup type = {.type = c->compute,
                            .rows = rows,
                            .width = c->hidden,
                            .entries = 1,
                            .y = to,
                            .table = m->values + m->layout.side_type + side * c->hidden,
                            .accumulate = true};
    mr_bt_dense_forward(m, &m->layout.transform[side], rows, b->x, to, c->compute);
    m->device->card->lookup(m->device, &type);
    if (side == MR_BT_IMAGE && j + 1 == c->cross_layers)
        mr_bt_first_rows(m, to, m->tokens[side], m->head_x[MR_BT_IMAGE], 1, false);
    mr_bt_norm_forward(m, j ? &m->layout.link[side][j - 1] : &m->layout.cross_norm[side], &b->norm, rows, to,
                       j ? m->cross[side][j - 1].norm.y : NULL, 1, (mr_dropout){0});
}

void mr_bt_cross_forward(mr_bt *m, size_t j)
{
    const void *text = m->bridge[MR_BT_TEXT][j].norm.y, *image = m->bridge[MR_BT_IMAGE][j].norm.y;
    mr_bt_layer_forward(m, &m->layout.cross[MR_BT_TEXT][j], &m->cross[MR_BT_TEXT][j], text, image);
    mr_bt_layer_forward(m, &m->layout.cross[MR_BT_IMAGE][j], &m->cross[MR_BT_IMAGE][j], image, text);
}

/* ---- and back ------------------------------------------------------------------------------------------------- */

/* d_other of pictures holds what the text's layer gave; with it d_cross[side] is whole. */
static void join(mr_bt *m, const mr_bt_kept_layer *k)
{
    unsigned side = k->side;
    if (k->first_only) { /* d_other holds all rows, d_cross those of first tokens */
        mr_bt_first_rows(m, m->d_cross[side], 1, m->d_other[side], m->tokens[side], true);
        mr_bt_swap(&m->d_cross[side], &m->d_other[side]);
    } else if (side == MR_BT_IMAGE) {
        m->device->card->add(m->device, m->config.compute, mr_bt_rows(m, side) * m->config.hidden, m->d_cross[side],
                             m->d_other[side], m->d_cross[side]);
    }
}

void mr_bt_cross_back(mr_bt *m, size_t j)
{
    const mr_bt_kept_layer *text = &m->cross[MR_BT_TEXT][j], *image = &m->cross[MR_BT_IMAGE][j];
    const mr_bt_layer_way of_text = {
        .d = &m->d_cross[MR_BT_TEXT], .d_x = m->d_other[MR_BT_TEXT], .d_other = m->d_other[MR_BT_IMAGE]};
    mr_bt_layer_back(m, &m->layout.cross[MR_BT_TEXT][j], text, &of_text);
    join(m, text);
    const mr_bt_layer_way of_image = {.d = &m->d_cross[MR_BT_IMAGE],
                                      .d_x = m->d_other[MR_BT_IMAGE],
                                      .x_more = true,
                                      .d_other = m->d_cross[MR_BT_TEXT],
                                      .other_more = true};
    mr_bt_layer_back(m, &m->layout.cross[MR_BT_IMAGE][j], image, &of_image);
    join(m, image);
}

/* The head of pictures reads first tokens between the last transform and the sum with the cross stream: its gradient is
 * the transform's alone. */
static const void *with_head(mr_bt *m, const void *d)
{
    size_t tokens = m->tokens[MR_BT_IMAGE];
    const mr_rows all = {.type = m->config.compute,
                         .rows = mr_bt_rows(m, MR_BT_IMAGE),
                         .width = m->config.hidden,
                         .from = d,
                         .to = m->d_other[MR_BT_IMAGE]};
    m->device->card->rows(m->device, &all);
    mr_bt_first_rows(m, m->d_head_x[MR_BT_IMAGE], 1, m->d_other[MR_BT_IMAGE], tokens, true);
    return m->d_other[MR_BT_IMAGE];
}

void mr_bt_bridge_back(mr_bt *m, unsigned side, size_t j)
{
    const mr_device_card *card = m->device->card;
    const mr_model_config *c = &m->config;
    const mr_bt_bridge *b = &m->bridge[side][j];
    size_t rows = mr_bt_rows(m, side);
    void *d_stream = m->d_stream[side];
    mr_bt_norm_back(m, j ? &m->layout.link[side][j - 1] : &m->layout.cross_norm[side], &b->norm, rows, m->d_cross[side],
                    NULL, m->d_spare[side]);
    mr_bt_swap(&m->d_cross[side], &m->d_spare[side]);
    const void *d = m->d_cross[side];
    if (side == MR_BT_IMAGE && j + 1 == c->cross_layers)
        d = with_head(m, d);
    card->sum_rows(m->device, c->compute, rows, c->hidden, d, m->gradients + m->layout.side_type + side * c->hidden);
    if (side == MR_BT_TEXT || !m->learns[side]) {
        mr_bt_dense_back(m, &m->layout.transform[side], rows, b->x, d, m->learns[side] ? d_stream : NULL, true);
        return;
    }
    mr_bt_dense_back(m, &m->layout.transform[side], rows, b->x, d, m->branch, false);
    mr_bt_norm_back(m, &m->layout.norm_post, &b->post, rows, m->branch, d_stream, d_stream);
}
