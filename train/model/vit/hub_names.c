/* hub_names.c - one table of names, and how layouts differ.
 * Invariant: every parameter that shape.c lists has a row.
 * Sources: transformers 4.55.4, models/vit/modeling_vit.py; timm 1.0, models/vision_transformer.py. */
#include "train/model/vit/hub_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

/* part: which part of timm's tensor with query, key and value; -1: all of it. */
static const struct row {
    const char *ours, *theirs[2]; /* names in transformers, and in timm */
    int part;
} outside[] =
    {
        {"cls", {"embeddings.cls_token", "cls_token"}, -1},
        {"embedding/kernel", {"embeddings.patch_embeddings.projection.weight", "patch_embed.proj.weight"}, -1},
        {"embedding/bias", {"embeddings.patch_embeddings.projection.bias", "patch_embed.proj.bias"}, -1},
        {"Transformer/posembed_input/pos_embedding", {"embeddings.position_embeddings", "pos_embed"}, -1},
        {"Transformer/encoder_norm/scale", {"layernorm.weight", "norm.weight"}, -1},
        {"Transformer/encoder_norm/bias", {"layernorm.bias", "norm.bias"}, -1},
        {"head/kernel", {"classifier.weight", "head.weight"}, -1},
        {"head/bias", {"classifier.bias", "head.bias"}, -1},
},
  within[] = {
      {"LayerNorm_0/scale", {"layernorm_before.weight", "norm1.weight"}, -1},
      {"LayerNorm_0/bias", {"layernorm_before.bias", "norm1.bias"}, -1},
      {"LayerNorm_2/scale", {"layernorm_after.weight", "norm2.weight"}, -1},
      {"LayerNorm_2/bias", {"layernorm_after.bias", "norm2.bias"}, -1},
      {"MultiHeadDotProductAttention_1/query/kernel", {"attention.attention.query.weight", "attn.qkv.weight"}, 0},
      {"MultiHeadDotProductAttention_1/query/bias", {"attention.attention.query.bias", "attn.qkv.bias"}, 0},
      {"MultiHeadDotProductAttention_1/key/kernel", {"attention.attention.key.weight", "attn.qkv.weight"}, 1},
      {"MultiHeadDotProductAttention_1/key/bias", {"attention.attention.key.bias", "attn.qkv.bias"}, 1},
      {"MultiHeadDotProductAttention_1/value/kernel", {"attention.attention.value.weight", "attn.qkv.weight"}, 2},
      {"MultiHeadDotProductAttention_1/value/bias", {"attention.attention.value.bias", "attn.qkv.bias"}, 2},
      {"MultiHeadDotProductAttention_1/out/kernel", {"attention.output.dense.weight", "attn.proj.weight"}, -1},
      {"MultiHeadDotProductAttention_1/out/bias", {"attention.output.dense.bias", "attn.proj.bias"}, -1},
      {"MlpBlock_3/Dense_0/kernel", {"intermediate.dense.weight", "mlp.fc1.weight"}, -1},
      {"MlpBlock_3/Dense_0/bias", {"intermediate.dense.bias", "mlp.fc1.bias"}, -1},
      {"MlpBlock_3/Dense_1/kernel", {"output.dense.weight", "mlp.fc2.weight"}, -1},
      {"MlpBlock_3/Dense_1/bias", {"output.dense.bias", "mlp.fc2.bias"}, -1},
};
static const char *const block_prefix[MR_VIT_DIALECTS] = {"vit.encoder.layer.%u.%s", "encoder.layer.%u.%s",
                                                          "blocks.%u.%s"};

static const char BLOCK[] = "Transformer/encoderblock_";

static const struct row *find_row(const struct row *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].ours, name) == 0)
            return &rows[i];
    return NULL;
}

void mr_vit_theirs(mr_vit_dialect d, const mr_param *p, mr_vit_tensor *out)
{
    const struct row *row;
    if (strncmp(p->name, BLOCK, sizeof BLOCK - 1) == 0) {
        char *rest;
        unsigned block = (unsigned)strtoul(p->name + sizeof BLOCK - 1, &rest, 10);
        row = find_row(within, MR_COUNT(within), rest + 1);
        snprintf(out->name, sizeof out->name, block_prefix[d], block, row ? row->theirs[d == MR_VIT_TIMM] : "?");
    } else {
        row = find_row(outside, MR_COUNT(outside), p->name);
        bool prefixed = d == MR_VIT_TRANSFORMERS && strncmp(p->name, "head/", 5) != 0;
        snprintf(out->name, sizeof out->name, "%s%s", prefixed ? "vit." : "",
                 row ? row->theirs[d == MR_VIT_TIMM] : "?");
    }
    bool parted = d == MR_VIT_TIMM && row && row->part >= 0;
    out->parts = parted ? 3 : 1;
    out->part = parted ? (unsigned)row->part : 0;
}

unsigned mr_vit_tensor_shape(const mr_param *p, unsigned parts, uint64_t shape[4])
{
    uint64_t out = p->shape[p->dims - 1];
    bool kernel = strstr(p->name, "/kernel") != NULL;
    if (strcmp(p->name, "embedding/kernel") == 0) {
        const uint64_t theirs_[] = {p->shape[3], p->shape[2], p->shape[0], p->shape[1]};
        memcpy(shape, theirs_, sizeof theirs_);
        return 4;
    }
    if (kernel) { /* [in, out], where one of them may be [heads, size of a head] */
        uint64_t in = p->shape[0];
        if (p->dims == 3 && strstr(p->name, "/out/"))
            in *= p->shape[1];
        shape[0] = p->count / in * parts;
        shape[1] = in;
        return 2;
    }
    if (p->dims == 3) { /* cls, positions */
        memcpy(shape, p->shape, 3 * sizeof *shape);
        return 3;
    }
    shape[0] = (p->dims == 2 ? p->count : out) * parts;
    return 1;
}

void mr_vit_transpose(const float *from, float *to, uint64_t rows, uint64_t columns)
{
    enum { TILE = 32 };
    for (uint64_t r = 0; r < rows; r += TILE)
        for (uint64_t c = 0; c < columns; c += TILE)
            for (uint64_t y = r; y < r + TILE && y < rows; y++)
                for (uint64_t x = c; x < c + TILE && x < columns; x++)
                    to[y * columns + x] = from[x * rows + y];
}

/* Patches: theirs [out, colour, y, x] is [out, colours * pixels], ours [pixels, colours, out]. */
static void exchange_pixels(const float *from, float *to, uint64_t colours, uint64_t pixels, uint64_t width,
                            bool to_ours)
{
    for (uint64_t o = 0; o < width; o++)
        for (uint64_t c = 0; c < colours; c++)
            for (uint64_t i = 0; i < pixels; i++) {
                uint64_t in_theirs = (o * colours + c) * pixels + i, in_ours = (i * colours + c) * width + o;
                if (to_ours)
                    to[in_ours] = from[in_theirs];
                else
                    to[in_theirs] = from[in_ours];
            }
}

void mr_vit_convert(const mr_param *p, const float *from, float *to, bool to_ours)
{
    uint64_t shape[4];
    unsigned dims = mr_vit_tensor_shape(p, 1, shape);
    if (dims == 4)
        exchange_pixels(from, to, shape[1], shape[2] * shape[3], shape[0], to_ours);
    else if (dims == 2 && to_ours)
        mr_vit_transpose(from, to, shape[1], shape[0]);
    else if (dims == 2)
        mr_vit_transpose(from, to, shape[0], shape[1]);
    else
        memcpy(to, from, p->count * sizeof *to);
}
