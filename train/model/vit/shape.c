/* shape.c - the Vision Transformer as numbers: its options, parameters, costs and start values.
 * Invariant: names and shapes are those of Google's .npz files (vit_jax), in the order of the forward pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "train/model/vit/parts.h"

enum {
    MAX_SIDE = 1 << 14,
    MAX_WIDTH = 1 << 20,
    MAX_LAYERS = 1024, /* each has 16 parameters, each of them twice with AdamW, and an .npz at most 65,536 arrays */
    MAX_CLASSES = 1 << 24,
};

mr_status mr_vit_check(const mr_model_config *c, mr_error *err)
{
    const mr_range ranges[] = {{"--image-size", c->image, 1, MAX_SIDE}, {"--patch", c->patch, 1, MAX_SIDE},
                               {"--hidden", c->hidden, 1, MAX_WIDTH},   {"--layers", c->layers, 1, MAX_LAYERS},
                               {"--heads", c->heads, 1, MAX_WIDTH},     {"--mlp", c->mlp, 1, MAX_WIDTH},
                               {"classes:", c->classes, 1, MAX_CLASSES}};
    MR_TRY(mr_range_check(ranges, MR_COUNT(ranges), err));
    if (c->patch > c->image)
        return mr_fail(err, MR_MISUSE, "--image-size %u: smaller than one patch; the minimum is %u", c->image,
                       c->patch);
    if (c->hidden % c->heads)
        return mr_fail(err, MR_MISUSE, "--hidden %u is not a multiple of --heads %u; the nearest is %u", c->hidden,
                       c->heads, mr_nearest_multiple(c->hidden, c->heads));
    return mr_rate_check("--dropout", c->dropout, err);
}

/* ---- parameters ----------------------------------------------------------------------------------------------- */

static const mr_param_style style = {.gain = "/scale", .kernel = "/kernel", .bias = "/bias"};

static uint64_t add(mr_adder *a, const char *prefix, const char *name, unsigned dims, const uint64_t *shape)
{
    return mr_adder_add(a, prefix, name, true, dims, shape);
}

/* Query, key and value: [hidden, heads, head_dim], which is [hidden, hidden] in memory. */
static mr_dense add_projection(mr_adder *a, const char *prefix, const char *name, const mr_model_config *c)
{
    char full[MR_PARAM_NAME];
    const uint64_t shape[] = {c->hidden, c->heads, c->hidden / c->heads};
    snprintf(full, sizeof full, "%sMultiHeadDotProductAttention_1/%s", prefix, name);
    uint64_t kernel = add(a, full, "/kernel", 3, shape), bias = add(a, full, "/bias", 2, shape + 1);
    return (mr_dense){.kernel = kernel, .bias = bias, .in = c->hidden, .out = c->hidden};
}

/* [heads, head_dim, hidden], which is [hidden, hidden] in memory. */
static mr_dense add_output(mr_adder *a, const char *prefix, const mr_model_config *c)
{
    char full[MR_PARAM_NAME];
    const uint64_t shape[] = {c->heads, c->hidden / c->heads, c->hidden};
    snprintf(full, sizeof full, "%sMultiHeadDotProductAttention_1/out", prefix);
    uint64_t kernel = add(a, full, "/kernel", 3, shape), bias = add(a, full, "/bias", 1, shape + 2);
    return (mr_dense){.kernel = kernel, .bias = bias, .in = c->hidden, .out = c->hidden};
}

static void add_block(mr_adder *a, const mr_model_config *c, uint32_t i, mr_vit_block_at *out)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "Transformer/encoderblock_%u/", i);
    out->norm0 = mr_adder_norm(a, prefix, "LayerNorm_0", c->hidden);
    out->first = out->norm0.gain;
    out->attention.query = add_projection(a, prefix, "query", c);
    out->attention.key = add_projection(a, prefix, "key", c);
    out->attention.value = add_projection(a, prefix, "value", c);
    out->attention.out = add_output(a, prefix, c);
    out->norm2 = mr_adder_norm(a, prefix, "LayerNorm_2", c->hidden);
    out->mlp.wide = mr_adder_dense(a, prefix, "MlpBlock_3/Dense_0", c->hidden, c->mlp);
    out->mlp.narrow = mr_adder_dense(a, prefix, "MlpBlock_3/Dense_1", c->mlp, c->hidden);
}

static void add_image(mr_adder *a, const mr_model_config *c, mr_image_at *out)
{
    uint64_t grid = c->image / c->patch, side = c->patch;
    out->cls = add(a, "", "cls", 3, (const uint64_t[]){1, 1, c->hidden});
    out->patches = (mr_dense){.in = side * side * 3, .out = c->hidden};
    out->patches.kernel = add(a, "embedding", "/kernel", 4, (const uint64_t[]){side, side, 3, c->hidden});
    out->patches.bias = add(a, "embedding", "/bias", 1, (const uint64_t[]){c->hidden});
    out->position =
        add(a, "", "Transformer/posembed_input/pos_embedding", 3, (const uint64_t[]){1, 1 + grid * grid, c->hidden});
}

mr_status mr_vit_lay_out(const mr_model_config *c, mr_params *p, mr_vit_layout *out, mr_error *err)
{
    mr_adder a = {.params = p, .style = &style, .err = err};
    *out = (mr_vit_layout){.blocks = mr_alloc(c->layers, sizeof *out->blocks)};
    if (!out->blocks)
        return mr_fail_memory(err, "listing a model's parameters");
    a.frozen = c->frozen_layers > 0;
    add_image(&a, c, &out->image);
    for (uint32_t i = 0; i < c->layers && a.status == MR_OK; i++) {
        a.frozen = i < c->frozen_layers;
        add_block(&a, c, i, &out->blocks[i]);
    }
    a.frozen = c->frozen_layers > c->layers;
    out->norm = mr_adder_norm(&a, "", "Transformer/encoder_norm", c->hidden);
    a.frozen = false;
    out->head = mr_adder_dense(&a, "", "head", c->hidden, c->classes);
    return a.status;
}

void mr_vit_layout_release(mr_vit_layout *l)
{
    free(l->blocks);
    *l = (mr_vit_layout){0};
}

mr_status mr_vit_params(const mr_model_config *c, mr_params *out, mr_error *err)
{
    MR_AUTO(mr_params_release) mr_params made = {0};
    MR_AUTO(mr_vit_layout_release) mr_vit_layout layout = {0};
    MR_TRY(mr_vit_check(c, err));
    MR_TRY(mr_vit_lay_out(c, &made, &layout, err));
    *out = made;
    made = (mr_params){0};
    return MR_OK;
}

/* ---- costs ---------------------------------------------------------------------------------------------------- */

/* Counted as if every token went through every layer, so that rates compare with published ones; the last block, which
 * sees first tokens only, does up to 7 % less. */
void mr_vit_costs(const mr_model_config *c, size_t batch, bool training, mr_model_costs *out)
{
    uint32_t side = c->image / c->patch;
    double grid = side, tokens = 1 + grid * grid, hidden = c->hidden, mlp = c->mlp;
    double patches = 2 * grid * grid * c->patch * c->patch * 3 * hidden;
    double block = 8 * tokens * hidden * hidden + 4 * tokens * tokens * hidden + 4 * tokens * hidden * mlp;
    mr_vit_block *blocks = mr_alloc(c->layers, sizeof *blocks);
    mr_vit m = {.blocks = blocks};
    mr_transformer_init(&m.t, c, batch, training);
    out->forward_flops = patches + c->layers * block + 2 * hidden * c->classes;
    double frozen = c->frozen_layers < c->layers ? c->frozen_layers : c->layers;
    out->training_flops = 3 * out->forward_flops - patches; /* pixels need no gradient */
    out->training_flops -= 2 * frozen * block + (frozen > 0 ? patches : 0);
    out->parameters = (uint64_t)(hidden + patches / (2 * grid * grid) + hidden + tokens * hidden +
                                 c->layers * (4 * hidden * hidden + 9 * hidden + 2 * hidden * mlp + mlp) + 2 * hidden +
                                 hidden * c->classes + c->classes);
    out->activation_bytes = blocks && mr_vit_plan(&m.t) ? m.t.bytes : UINT64_MAX;
    free(blocks);
}

/* ---- start values --------------------------------------------------------------------------------------------- */

/* By Glorot's rule, as Google's trainer starts its kernels.  Inputs are all dimensions but the last; for query, key and
 * value only the first one. */
static double kernel_deviation(const mr_param *item)
{
    bool leads = mr_param_ends(item->name, "query/kernel") || mr_param_ends(item->name, "key/kernel") ||
                 mr_param_ends(item->name, "value/kernel");
    uint64_t in = leads ? item->shape[0] : item->count / item->shape[item->dims - 1], out = item->count / in;
    return mr_glorot(in, out);
}

void mr_vit_start(const mr_model_config *c, const mr_params *p, uint64_t seed, float *values)
{
    (void)c;
    memset(values, 0, p->total * sizeof *values);
    for (size_t i = 0; i < p->count; i++) {
        const mr_param *item = &p->items[i];
        mr_random r;
        mr_random_stream(&r, seed, i);
        if (mr_param_ends(item->name, "/scale"))
            for (uint64_t k = 0; k < item->count; k++)
                values[item->offset + k] = 1;
        else if (strncmp(item->name, "head/", 5) != 0 && mr_param_ends(item->name, "/kernel"))
            mr_fill_normal(&r, kernel_deviation(item), values + item->offset, item->count);
        else if (mr_param_ends(item->name, "/pos_embedding"))
            mr_fill_normal(&r, 0.02, values + item->offset, item->count);
    }
}
