/* shape.c - BridgeTower as numbers: the ranges of its options, its parameters and start values.
 * Invariant: names and shapes are those of transformers' BridgeTowerForContrastiveLearning (4.55), without
 * text_model.pooler, which no output needs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "train/model/bridgetower/parts.h"

#define TEXT_MODEL   "bridgetower.text_model."
#define VISION_MODEL "bridgetower.vision_model.visual."

enum { MAX_SIDE = 1 << 14, MAX_WIDTH = 1 << 20, MAX_LAYERS = 128, MAX_WORDS = 1 << 24 };

static const char *const sides[] = {"text", "image"};

/* ---- options ---------------------------------------------------------------------------------------------------- */

static mr_status check_rates(const mr_model_config *c, mr_error *err)
{
    MR_TRY(mr_rate_check("--dropout", c->dropout, err));
    MR_TRY(mr_rate_check("attention_dropout", c->attention_dropout, err));
    if (!(c->norm_eps > 0 && c->norm_eps <= 1))
        return mr_fail(err, MR_MISUSE, "norm_eps %g: give a number above 0, up to 1", c->norm_eps);
    if (!(fabs(c->logit_scale) <= 20))
        return mr_fail(err, MR_MISUSE, "logit_scale %g: give a number from -20 to 20", c->logit_scale);
    return MR_OK;
}

/* The nearest number of heads that divides `hidden`, the smaller of two. */
static uint32_t nearest_heads(uint32_t hidden, uint32_t heads)
{
    if (heads > hidden)
        return hidden;
    for (uint32_t by = 1; by < heads; by++) {
        if (hidden % (heads - by) == 0)
            return heads - by;
        if (hidden % (heads + by) == 0)
            return heads + by;
    }
    return 1;
}

mr_status mr_bt_check(const mr_model_config *c, mr_error *err)
{
    const mr_range ranges[] = {
        {"--image-size", c->image, 1, MAX_SIDE},
        {"--patch", c->patch, 1, MAX_SIDE},
        {"--hidden", c->hidden, 1, MAX_WIDTH},
        {"--layers", c->layers, 1, MAX_LAYERS},
        {"--cross-layers", c->cross_layers, 1, c->layers},
        {"--heads", c->heads, 1, MAX_WIDTH},
        {"--mlp", c->mlp, 1, MAX_WIDTH},
        {"--embed", c->embed, 1, MAX_WIDTH},
        {"vocab_size", c->vocab, MR_BT_FIRST + 2, MAX_WORDS},
        {"max_position_embeddings", c->positions, MR_BT_FIRST + 2, MAX_WIDTH},
        {"--max-text", c->text, 2, c->positions - MR_BT_FIRST}, /* <s> and </s> at least */
    };
    MR_TRY(mr_range_check(ranges, MR_COUNT(ranges), err));
    if (c->image % c->patch)
        return mr_fail(err, MR_MISUSE, "--image-size %u is not a multiple of --patch %u; the nearest is %u", c->image,
                       c->patch, mr_nearest_multiple(c->image, c->patch));
    if (c->hidden % MR_BT_HEAD)
        return mr_fail(err, MR_MISUSE,
                       "--hidden %u is not a multiple of %d, the width of a head of the vision tower; the "
                       "nearest is %u",
                       c->hidden, MR_BT_HEAD, mr_nearest_multiple(c->hidden, MR_BT_HEAD));
    if (c->hidden % c->heads)
        return mr_fail(err, MR_MISUSE, "--heads %u do not divide --hidden %u evenly; the nearest is %u", c->heads,
                       c->hidden, nearest_heads(c->hidden, c->heads));
    return check_rates(c, err);
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

/* There is no weight decay of biases and norms, as in transformers' trainer. */
static const mr_param_style style = {
    .gain = ".weight", .kernel = ".weight", .bias = ".bias", .out_first = true, .spares_vectors = true};

typedef struct laying {
    mr_adder adder;
    uint64_t hidden, mlp;
} laying;

static uint64_t add(laying *l, const char *prefix, const char *name, unsigned dims, uint64_t s0, uint64_t s1)
{
    return mr_adder_add(&l->adder, prefix, name, true, dims, (const uint64_t[]){s0, s1});
}

static mr_norm_at add_norm(laying *l, const char *prefix, const char *name)
{
    return mr_adder_norm(&l->adder, prefix, name, l->hidden);
}

static mr_dense add_dense(laying *l, const char *prefix, const char *name, uint64_t in, uint64_t out)
{
    return mr_adder_dense(&l->adder, prefix, name, in, out);
}

static mr_bt_attention add_attention(laying *l, const char *prefix, const char *name)
{
    char full[MR_PARAM_NAME];
    mr_bt_attention a;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    a.attention.query = add_dense(l, full, ".self.query", l->hidden, l->hidden);
    a.attention.key = add_dense(l, full, ".self.key", l->hidden, l->hidden);
    a.attention.value = add_dense(l, full, ".self.value", l->hidden, l->hidden);
    a.attention.out = add_dense(l, full, ".output.dense", l->hidden, l->hidden);
    a.norm = add_norm(l, full, ".output.LayerNorm");
    return a;
}

static void add_layer(laying *l, const char *prefix, bool crosses, mr_bt_layer *out)
{
    out->self = add_attention(l, prefix, "attention");
    out->first = out->self.attention.query.kernel;
    if (crosses)
        out->cross = add_attention(l, prefix, "crossattention");
    out->mlp.wide = add_dense(l, prefix, "intermediate.dense", l->hidden, l->mlp);
    out->mlp.narrow = add_dense(l, prefix, "output.dense", l->mlp, l->hidden);
    out->norm = add_norm(l, prefix, "output.LayerNorm");
}

static void add_words(laying *l, const mr_model_config *c, mr_bt_layout *out)
{
    const char *prefix = TEXT_MODEL "embeddings.";
    l->adder.frozen = c->frozen & MR_FROZEN_TEXT;
    out->words = add(l, prefix, "word_embeddings.weight", 2, c->vocab, l->hidden);
    out->positions = add(l, prefix, "position_embeddings.weight", 2, c->positions, l->hidden);
    out->word_type = add(l, prefix, "token_type_embeddings.weight", 2, 1, l->hidden);
    out->word_norm = add_norm(l, prefix, "LayerNorm");
}

static void add_text(laying *l, const mr_model_config *c, uint32_t i, mr_bt_layout *out)
{
    char prefix[96];
    l->adder.frozen = c->frozen & MR_FROZEN_TEXT;
    snprintf(prefix, sizeof prefix, TEXT_MODEL "encoder.layer.%u.", i);
    add_layer(l, prefix, false, &out->text[i]);
}

static void add_image(laying *l, const mr_model_config *c, mr_bt_layout *out)
{
    const char *prefix = VISION_MODEL "embeddings.";
    uint64_t grid = c->image / c->patch;
    l->adder.frozen = c->frozen & MR_FROZEN_IMAGES;
    out->image = (mr_image_at){.channel_first = true};
    out->image.cls = add(l, prefix, "class_embedding", 1, l->hidden, 0);
    out->image.patches =
        (mr_dense){.bias = MR_NO_BIAS, .in = (size_t)3 * c->patch * c->patch, .out = c->hidden, .out_first = true};
    out->image.patches.kernel = mr_adder_add(&l->adder, prefix, "patch_embedding.weight", true, 4,
                                             (const uint64_t[]){l->hidden, 3, c->patch, c->patch});
    out->image.position = add(l, prefix, "position_embedding.weight", 2, 1 + grid * grid, l->hidden);
    out->norm_pre = add_norm(l, VISION_MODEL, "ln_pre");
}

static void add_vision(laying *l, const mr_model_config *c, uint32_t i, mr_bt_layout *out)
{
    char prefix[96];
    mr_bt_block *b = &out->vision[i];
    l->adder.frozen = c->frozen & MR_FROZEN_IMAGES;
    snprintf(prefix, sizeof prefix, VISION_MODEL "transformer.resblocks.%u.", i);
    b->norm1 = add_norm(l, prefix, "ln_1");
    b->first = b->norm1.gain;
    b->qkv = (mr_dense){.in = l->hidden, .out = 3 * l->hidden, .out_first = true};
    b->qkv.kernel = add(l, prefix, "attn.in_proj_weight", 2, 3 * l->hidden, l->hidden);
    b->qkv.bias = mr_adder_add(&l->adder, prefix, "attn.in_proj_bias", false, 1, &(const uint64_t){3 * l->hidden});
    b->out = add_dense(l, prefix, "attn.out_proj", l->hidden, l->hidden);
    b->norm2 = add_norm(l, prefix, "ln_2");
    b->mlp.wide = add_dense(l, prefix, "mlp.c_fc", l->hidden, 4 * l->hidden);
    b->mlp.narrow = add_dense(l, prefix, "mlp.c_proj", 4 * l->hidden, l->hidden);
}

/* ln_post is the vision tower's, though the bridge is where it is used first. */
static void add_bridge(laying *l, const mr_model_config *c, mr_bt_layout *out)
{
    l->adder.frozen = c->frozen & MR_FROZEN_IMAGES;
    out->norm_post = add_norm(l, VISION_MODEL, "ln_post");
    l->adder.frozen = false;
    out->transform[MR_BT_TEXT] = add_dense(l, "bridgetower.", "cross_modal_text_transform", l->hidden, l->hidden);
    out->transform[MR_BT_IMAGE] = add_dense(l, "bridgetower.", "cross_modal_image_transform", l->hidden, l->hidden);
    out->side_type = add(l, "bridgetower.", "token_type_embeddings.weight", 2, 2, l->hidden);
    out->cross_norm[MR_BT_TEXT] = add_norm(l, "bridgetower.", "cross_modal_text_layernorm");
    out->cross_norm[MR_BT_IMAGE] = add_norm(l, "bridgetower.", "cross_modal_image_layernorm");
}

/* Cross layers i of both sides, after their links (the first has none). */
static void add_cross(laying *l, uint32_t i, mr_bt_layout *out)
{
    char prefix[96];
    l->adder.frozen = false;
    for (size_t side = 0; i && side < 2; side++) {
        snprintf(prefix, sizeof prefix, "bridgetower.cross_modal_%s_link_tower.%u.", sides[side], i - 1);
        out->link[side][i - 1] = add_norm(l, prefix, "LayerNorm");
    }
    for (size_t side = 0; side < 2; side++) {
        snprintf(prefix, sizeof prefix, "bridgetower.cross_modal_%s_layers.%u.", sides[side], i);
        add_layer(l, prefix, true, &out->cross[side][i]);
    }
}

static void add_heads(laying *l, const mr_model_config *c, mr_bt_layout *out)
{
    out->pooler[MR_BT_TEXT] = add_dense(l, "bridgetower.", "cross_modal_text_pooler.dense", l->hidden, l->hidden);
    out->pooler[MR_BT_IMAGE] = add_dense(l, "bridgetower.", "cross_modal_image_pooler.dense", l->hidden, l->hidden);
    out->head[0] = add_dense(l, "", "itc_text_head.fc", l->hidden, c->embed);
    out->head[1] = add_dense(l, "", "itc_image_head.fc", l->hidden, c->embed);
    out->head[2] = add_dense(l, "", "itc_cross_modal_head.fc", 2 * l->hidden, c->embed);
    out->logit_scale = add(l, "", "logit_scale", 0, 0, 0);
}

static bool alloc_layout(const mr_model_config *c, mr_bt_layout *out)
{
    *out = (mr_bt_layout){.text = mr_alloc(c->layers, sizeof *out->text),
                          .vision = mr_alloc(c->layers, sizeof *out->vision)};
    bool good = out->text && out->vision;
    for (size_t side = 0; side < 2; side++) {
        out->cross[side] = mr_alloc(c->cross_layers, sizeof **out->cross);
        out->link[side] = mr_alloc(c->cross_layers, sizeof **out->link);
        good = good && out->cross[side] && out->link[side];
    }
    return good;
}

mr_status mr_bt_lay_out(const mr_model_config *c, mr_params *p, mr_bt_layout *out, mr_error *err)
{
    laying l = {.adder = {.params = p, .style = &style, .err = err}, .hidden = c->hidden, .mlp = c->mlp};
    uint32_t split = c->layers - c->cross_layers + 1;
    if (!alloc_layout(c, out))
        return mr_fail_memory(err, "listing a model's parameters");
    add_words(&l, c, out);
    for (uint32_t i = 0; i < split; i++)
        add_text(&l, c, i, out);
    add_image(&l, c, out);
    for (uint32_t i = 0; i < split; i++)
        add_vision(&l, c, i, out);
    add_bridge(&l, c, out);
    add_cross(&l, 0, out);
    for (uint32_t i = 1; i < c->cross_layers; i++) {
        add_text(&l, c, split - 1 + i, out);
        add_vision(&l, c, split - 1 + i, out);
        add_cross(&l, i, out);
    }
    add_heads(&l, c, out);
    return l.adder.status;
}

void mr_bt_layout_release(mr_bt_layout *l)
{
    free(l->text);
    free(l->vision);
    for (size_t side = 0; side < 2; side++) {
        free(l->cross[side]);
        free(l->link[side]);
    }
    *l = (mr_bt_layout){0};
}

mr_status mr_bt_params(const mr_model_config *c, mr_params *out, mr_error *err)
{
    MR_AUTO(mr_params_release) mr_params made = {0};
    MR_AUTO(mr_bt_layout_release) mr_bt_layout layout = {0};
    MR_TRY(mr_bt_check(c, err));
    MR_TRY(mr_bt_lay_out(c, &made, &layout, err));
    *out = made;
    made = (mr_params){0};
    return MR_OK;
}

/* ---- start values ----------------------------------------------------------------------------------------------- */

/* Kernels are [out, in]; queries, keys and values of the vision tower are three of them. */
static double kernel_deviation(const mr_param *item)
{
    uint64_t out = item->shape[0], in = item->count / out;
    return mr_glorot(in, mr_param_ends(item->name, "in_proj_weight") ? out / 3 : out);
}

/* Tables of positions, words and sides; the vision tower's first token. */
static bool is_table(const char *name)
{
    return mr_param_ends(name, "_embeddings.weight") || mr_param_ends(name, "position_embedding.weight") ||
           mr_param_ends(name, "class_embedding");
}

static void start_one(const mr_model_config *c, const mr_param *item, mr_random *r, float *values)
{
    const char *name = item->name;
    if (strcmp(name, "logit_scale") == 0)
        *values = (float)c->logit_scale;
    else if (is_table(name))
        mr_fill_normal(r, 0.02, values, item->count);
    else if (item->dims > 1)
        mr_fill_normal(r, kernel_deviation(item), values, item->count);
    else if (mr_param_ends(name, ".weight"))
        for (uint64_t k = 0; k < item->count; k++)
            values[k] = 1;
    /* Padding's rows are never trained. */
    if (mr_param_ends(name, "word_embeddings.weight") || mr_param_ends(name, "position_embeddings.weight"))
        memset(values + MR_BT_PAD * c->hidden, 0, c->hidden * sizeof *values);
}

/* Glorot's rule suits any width; transformers uses a deviation of 0.05 except for the vision tower's kernels. */
void mr_bt_start(const mr_model_config *c, const mr_params *p, uint64_t seed, float *values)
{
    memset(values, 0, p->total * sizeof *values);
    for (size_t i = 0; i < p->count; i++) {
        mr_random r;
        mr_random_stream(&r, seed, i);
        start_one(c, &p->items[i], &r, values + p->items[i].offset);
    }
}
