/* vision.c - the vision tower: patches and their positions, then CLIP's blocks.
 * Invariant: the norm comes before each branch, and there is no dropout: a gradient passes by the branch unchanged. */
#include "train/model/bridgetower/pass.h"

void mr_bt_image_embedding_forward(mr_bt *m)
{
    mr_image_forward(&m->t, &m->layout.image, m->pixels, m->pre.total, (mr_dropout){0});
    mr_norm_forward(&m->t, &m->layout.norm_pre, &m->pre, m->tokens[MR_BT_IMAGE], m->pre.total, NULL, (mr_dropout){0});
}

void mr_bt_image_embedding_backward(mr_bt *m)
{
    void *d_total = m->d_spare[MR_BT_IMAGE];
    mr_norm_backward(&m->t, &m->layout.norm_pre, &m->pre, mr_bt_rows(m, MR_BT_IMAGE), m->d_stream[MR_BT_IMAGE], NULL,
                     d_total);
    mr_image_backward(&m->t, &m->layout.image, m->pixels, d_total, (mr_dropout){0});
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

/* After the embedding and after a bridge the stream is there; otherwise it is the sum that the block before left. */
static void norm_stream(mr_bt *m, size_t i)
{
    const mr_bt_kept_block *k = &m->vision[i];
    bool summed = i == 0 || i >= m->split;
    mr_norm_forward(&m->t, &m->layout.vision[i].norm1, &k->norm1, m->tokens[MR_BT_IMAGE],
                    summed ? k->norm1.total : m->t.branch, summed ? NULL : m->vision[i - 1].norm2.total,
                    (mr_dropout){0});
}

/* q, k and v of a row are next to one another. */
static void attend(mr_bt *m, mr_bt_kept_block *k)
{
    size_t one = m->t.config.hidden * mr_type_size(m->t.config.compute);
    mr_attention shape = mr_bt_block_attention(m, m->t.in.count);
    shape.q = k->qkv;
    shape.k = (uint8_t *)k->qkv + one;
    shape.v = (uint8_t *)k->qkv + 2 * one;
    shape.out = k->out;
    shape.saved = k->attention.saved;
    k->attention = shape;
    mr_run_attention(m->t.device, &k->attention);
}

static mr_activate quick_gelu_of(const mr_bt *m)
{
    return (mr_activate){.kind = MR_QUICK_GELU, .rows = mr_bt_rows(m, MR_BT_IMAGE), .sample_rows = 1};
}

/* From norm1.y to norm2.y. */
static void attend_and_norm(mr_bt *m, size_t i)
{
    const mr_bt_block *at = &m->layout.vision[i];
    mr_bt_kept_block *k = &m->vision[i];
    size_t rows = mr_bt_rows(m, MR_BT_IMAGE);
    mr_dense_forward(&m->t, &at->qkv, rows, k->norm1.y, k->qkv, m->t.config.compute);
    attend(m, k);
    mr_dense_forward(&m->t, &at->out, rows, k->out, m->t.branch, m->t.config.compute);
    mr_norm_forward(&m->t, &at->norm2, &k->norm2, m->tokens[MR_BT_IMAGE], m->t.branch, k->norm1.total, (mr_dropout){0});
}

void mr_bt_vision_forward(mr_bt *m, size_t i)
{
    mr_bt_kept_block *k = &m->vision[i];
    const mr_activate quick_gelu = quick_gelu_of(m);
    norm_stream(m, i);
    attend_and_norm(m, i);
    mr_mlp_forward(&m->t, &m->layout.vision[i].mlp, &k->mlp, k->norm2.y, &quick_gelu);
}

/* Fills in again what block i kept, from its norm1.total. */
static void run_again(mr_bt *m, size_t i)
{
    const mr_bt_block *at = &m->layout.vision[i];
    mr_bt_kept_block *k = &m->vision[i];
    const mr_activate quick_gelu = quick_gelu_of(m);
    mr_norm_forward(&m->t, &at->norm1, &k->norm1, m->tokens[MR_BT_IMAGE], k->norm1.total, NULL, (mr_dropout){0});
    attend_and_norm(m, i);
    mr_mlp_widen(&m->t, &at->mlp, &k->mlp, k->norm2.y, &quick_gelu);
}

void mr_bt_vision_backward(mr_bt *m, size_t i)
{
    const mr_transformer *t = &m->t;
    const mr_bt_block *at = &m->layout.vision[i];
    const mr_bt_kept_block *k = &m->vision[i];
    size_t rows = mr_bt_rows(m, MR_BT_IMAGE), one = t->config.hidden * mr_type_size(t->config.compute);
    void *d = m->d_stream[MR_BT_IMAGE];
    uint8_t *d_qkv = t->d_wide;
    const mr_attention_back back = {
        .forward = &k->attention, .d_out = t->branch, .d_q = d_qkv, .d_k = d_qkv + one, .d_v = d_qkv + 2 * one};
    if (m->again[MR_BT_IMAGE] && i + 1 < t->config.layers)
        run_again(m, i);
    mr_mlp_backward(t, &at->mlp, &k->mlp, d, t->branch, false);
    mr_norm_backward(t, &at->norm2, &k->norm2, rows, t->branch, d, d);
    mr_dense_backward(t, &at->out, rows, k->out, d, t->branch, false);
    mr_run_attention_back(t->device, &back);
    mr_dense_backward(t, &at->qkv, rows, k->norm1.y, d_qkv, t->branch, false);
    mr_norm_backward(t, &at->norm1, &k->norm1, rows, t->branch, d, d);
}
