/* vision.c - the tower of pictures: patches and their places, then CLIP's blocks.
 * Invariant: the norm stands before each branch, and nothing is dropped: a gradient goes round the branch as it is. */
#include "bridgetower/pass.h"

/* ---- patches -------------------------------------------------------------------------------------------------- */

static mr_tokens tokens_of(const mr_bt *m)
{
    return (mr_tokens){
        .type = m->config.compute, .batch = m->in.count, .rows = m->tokens[MR_BT_IMAGE], .width = m->config.hidden};
}

void mr_bt_pictures_forward(mr_bt *m)
{
    const mr_device_card *card = m->device->card;
    const mr_model_config *c = &m->config;
    const mr_patches patches = {.type = c->compute,
                                .batch = m->in.count,
                                .side = c->image,
                                .patch = c->patch,
                                .channel_first = true,
                                .images = m->in.images,
                                .rows = m->pixels};
    const mr_gemm embed = {.a_type = c->compute,
                           .b_type = MR_F32,
                           .c_type = c->compute,
                           .m = m->in.count * m->grid * m->grid,
                           .n = c->hidden,
                           .k = (size_t)3 * c->patch * c->patch,
                           .a = m->pixels,
                           .b = m->values + m->layout.patches,
                           .transpose_b = true,
                           .c = m->branch};
    mr_tokens tokens = tokens_of(m);
    tokens.x = m->branch;
    tokens.first = m->values + m->layout.cls;
    tokens.position = m->values + m->layout.places;
    tokens.y = m->pre.total;
    card->patches(m->device, &patches);
    card->gemm(m->device, &embed);
    card->tokens(m->device, &tokens);
    mr_bt_norm_forward(m, &m->layout.norm_pre, &m->pre, mr_bt_rows(m, MR_BT_IMAGE), m->pre.total, NULL, 1,
                       (mr_dropout){0});
}

/* The pixels' own gradient is nobody's business. */
void mr_bt_pictures_back(mr_bt *m)
{
    const mr_model_config *c = &m->config;
    void *d_total = m->d_spare[MR_BT_IMAGE];
    mr_tokens tokens = tokens_of(m);
    tokens.d_y = d_total;
    tokens.d_x = m->branch;
    tokens.d_first = m->gradients + m->layout.cls;
    tokens.d_position = m->gradients + m->layout.places;
    mr_bt_norm_back(m, &m->layout.norm_pre, &m->pre, mr_bt_rows(m, MR_BT_IMAGE), m->d_stream[MR_BT_IMAGE], NULL,
                    d_total);
    m->device->card->tokens_back(m->device, &tokens);
    mr_bt_kernel_back(m, m->layout.patches, c->hidden, (size_t)3 * c->patch * c->patch, m->in.count * m->grid * m->grid,
                      m->pixels, m->branch);
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

static mr_activate quick_gelu(const mr_bt *m, const mr_bt_kept_block *k, size_t rows, size_t width)
{
    return (mr_activate){
        .type = m->config.compute, .kind = MR_QUICK_GELU, .rows = rows, .width = width, .sample_rows = 1, .x = k->wide};
}

/* Behind the embedding, and behind a bridge, the stream is there; else it is the sum of what the block before left. */
static void norm_stream(mr_bt *m, size_t i)
{
    const mr_bt_kept_block *k = &m->vision[i];
    bool there = i == 0 || i >= m->split;
    mr_bt_norm_forward(m, &m->layout.vision[i].norm1, &k->norm1, mr_bt_rows(m, MR_BT_IMAGE),
                       there ? k->norm1.total : m->branch, there ? NULL : m->vision[i - 1].norm2.total, 1,
                       (mr_dropout){0});
}

/* q, k and v of a row stand side by side. */
static void attend(mr_bt *m, mr_bt_kept_block *k)
{
    size_t one = m->config.hidden * mr_type_size(m->config.compute);
    mr_attention shape = mr_bt_block_attention(m, m->in.count);
    shape.q = k->qkv;
    shape.k = (uint8_t *)k->qkv + one;
    shape.v = (uint8_t *)k->qkv + 2 * one;
    shape.out = k->out;
    shape.saved = k->attention.saved;
    k->attention = shape;
    m->device->card->attention(m->device, &k->attention);
}

void mr_bt_vision_forward(mr_bt *m, size_t i)
{
    const mr_bt_block *at = &m->layout.vision[i];
    mr_bt_kept_block *k = &m->vision[i];
    mr_type type = m->config.compute;
    size_t rows = mr_bt_rows(m, MR_BT_IMAGE);
    mr_activate a = quick_gelu(m, k, rows, at->wide.out);
    a.y = k->active;
    norm_stream(m, i);
    mr_bt_dense_forward(m, &at->qkv, rows, k->norm1.y, k->qkv, type);
    attend(m, k);
    mr_bt_dense_forward(m, &at->out, rows, k->out, m->branch, type);
    mr_bt_norm_forward(m, &at->norm2, &k->norm2, rows, m->branch, k->norm1.total, 1, (mr_dropout){0});
    mr_bt_dense_forward(m, &at->wide, rows, k->norm2.y, k->wide, type);
    m->device->card->activate(m->device, &a);
    mr_bt_dense_forward(m, &at->narrow, rows, k->active, m->branch, type);
}

void mr_bt_vision_back(mr_bt *m, size_t i)
{
    const mr_device_card *card = m->device->card;
    const mr_bt_block *at = &m->layout.vision[i];
    const mr_bt_kept_block *k = &m->vision[i];
    size_t rows = mr_bt_rows(m, MR_BT_IMAGE), one = m->config.hidden * mr_type_size(m->config.compute);
    void *d = m->d_stream[MR_BT_IMAGE];
    uint8_t *d_qkv = m->d_wide;
    const mr_attention_back back = {
        .forward = &k->attention, .d_out = m->branch, .d_q = d_qkv, .d_k = d_qkv + one, .d_v = d_qkv + 2 * one};
    mr_activate a = quick_gelu(m, k, rows, at->wide.out);
    a.d_y = a.d_x = m->d_wide;
    mr_bt_dense_back(m, &at->narrow, rows, k->active, d, m->d_wide, false);
    card->activate_back(m->device, &a);
    mr_bt_dense_back(m, &at->wide, rows, k->norm2.y, m->d_wide, m->branch, false);
    mr_bt_norm_back(m, &at->norm2, &k->norm2, rows, m->branch, d, d);
    mr_bt_dense_back(m, &at->out, rows, k->out, d, m->branch, false);
    card->attention_back(m->device, &back);
    mr_bt_dense_back(m, &at->qkv, rows, k->norm1.y, m->d_wide, m->branch, false);
    mr_bt_norm_back(m, &at->norm1, &k->norm1, rows, m->branch, d, d);
}
