/* test_bridgetower_params.c - BridgeTower's parameters: names, shapes, order, offsets, weight decay. */
#include <stdlib.h>
#include <string.h>

#include "train/model/bridgetower/parts.h"
#include "tests/support/training/npz.h"
#include "tests/support/sources/pairs.h"

/* ---- parameters ------------------------------------------------------------------------------------------------- */

static void large_is_the_hubs(void **state)
{
    mr_params p = support_pairs_params(&mr_bt_presets[0]);
    size_t longest = 0;
    (void)state;
    /* 866,612,737 in 1,038 of transformers' model, whose text_model.pooler is a dense layer of 1024 x 1024. */
    assert_int_equal(p.elements, 865563137);
    assert_int_equal(p.elements + 1024 * 1024 + 1024, 866612737);
    assert_int_equal(p.count, 1036);
    for (size_t i = 0; i < p.count; i++)
        longest = strlen(p.items[i].name) > longest ? strlen(p.items[i].name) : longest;
    assert_int_equal(longest, strlen("bridgetower.cross_modal_image_layers.0.crossattention.output.LayerNorm.weight"));
    mr_params_release(&p);
}

/* One line "name<TAB>1024x4096<TAB>4194304" of the list. */
static void check_line(const mr_params *p, char *line, size_t *met)
{
    char *shape = strchr(line, '\t'), *number, text[64] = "";
    assert_non_null(shape);
    *shape++ = '\0';
    number = strchr(shape, '\t');
    assert_non_null(number);
    *number++ = '\0';
    if (strcmp(line, "name") == 0 || strncmp(line, "bridgetower.text_model.pooler.", 30) == 0)
        return;
    const mr_param *item = mr_params_find(p, line);
    if (!item)
        fail_msg("there is no parameter %s", line);
    for (unsigned i = 0; i < item->dims; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%llu", i ? "x" : "",
                 (unsigned long long)item->shape[i]);
    assert_string_equal(shape, item->dims ? text : "scalar");
    assert_int_equal(item->count, strtoull(number, NULL, 10));
    ++*met;
}

static void names_are_the_hubs(void **state)
{
    char *path = support_parity("../reference/bridgetower_large_params.tsv");
    (void)state;
    if (!path) {
        print_message("skipped: no reference/bridgetower_large_params.tsv beside the parity folder\n");
        skip();
    }
    mr_params p = support_pairs_params(&mr_bt_presets[0]);
    char *text = (char *)support_read(path, NULL), *rest = text, *line;
    size_t met = 0;
    while ((line = strsep(&rest, "\n")))
        if (*line)
            check_line(&p, line, &met);
    assert_int_equal(met, p.count);
    mr_params_release(&p);
    free(text);
    free(path);
}

/* The parameters of each part in their order, "weight [a, b]" without the part's own name; support_pairs_shape() has H
 * 64, M 48. */
#define NORM(name)           name ".weight [64]", name ".bias [64]"
#define DENSE(name, out, in) name ".weight [" out ", " in "]", name ".bias [" out "]"
#define ATTENTION(name)                                                                                                \
    DENSE(name ".self.query", "64", "64"), DENSE(name ".self.key", "64", "64"), DENSE(name ".self.value", "64", "64"), \
        DENSE(name ".output.dense", "64", "64"), NORM(name ".output.LayerNorm")
#define FEED DENSE("intermediate.dense", "48", "64"), DENSE("output.dense", "64", "48"), NORM("output.LayerNorm")

static const char *const words[] = {"word_embeddings.weight [97, 64]", "position_embeddings.weight [24, 64]",
                                    "token_type_embeddings.weight [1, 64]", NORM("LayerNorm"), NULL};
static const char *const text_layer[] = {ATTENTION("attention"), FEED, NULL};
static const char *const cross_layer[] = {ATTENTION("attention"), ATTENTION("crossattention"), FEED, NULL};
static const char *const pixels[] = {"class_embedding [64]", "patch_embedding.weight [64, 3, 8, 8]",
                                     "position_embedding.weight [5, 64]", NULL};
static const char *const block[] = {
    NORM("ln_1"), "attn.in_proj_weight [192, 64]", "attn.in_proj_bias [192]",        DENSE("attn.out_proj", "64", "64"),
    NORM("ln_2"), DENSE("mlp.c_fc", "256", "64"),  DENSE("mlp.c_proj", "64", "256"), NULL};
static const char *const pre[] = {NORM("ln_pre"), NULL}, *const post[] = {NORM("ln_post"), NULL};
static const char *const link_tower[] = {NORM("LayerNorm"), NULL};
static const char *const bridge[] = {DENSE("text_transform", "64", "64"), DENSE("image_transform", "64", "64"), NULL};
static const char *const types[] = {"token_type_embeddings.weight [2, 64]", NULL};
static const char *const norms[] = {NORM("text_layernorm"), NORM("image_layernorm"), NULL};
static const char *const poolers[] = {DENSE("text_pooler.dense", "64", "64"), DENSE("image_pooler.dense", "64", "64"),
                                      NULL};
static const char *const heads[] = {DENSE("text_head.fc", "20", "64"), DENSE("image_head.fc", "20", "64"),
                                    DENSE("cross_modal_head.fc", "20", "128"), NULL};
static const char *const scale[] = {"logit_scale []", NULL};

#define T "bridgetower.text_model."
#define V "bridgetower.vision_model.visual."
#define X "bridgetower.cross_modal_"

static const struct part {
    const char *prefix;
    const char *const *rows;
} parts[] = {
    {T "embeddings.", words},
    {T "encoder.layer.0.", text_layer},
    {T "encoder.layer.1.", text_layer},
    {V "embeddings.", pixels},
    {V, pre},
    {V "transformer.resblocks.0.", block},
    {V "transformer.resblocks.1.", block},
    {V, post},
    {X, bridge},
    {"bridgetower.", types},
    {X, norms},
    {X "text_layers.0.", cross_layer},
    {X "image_layers.0.", cross_layer},
    {T "encoder.layer.2.", text_layer},
    {V "transformer.resblocks.2.", block},
    {X "text_link_tower.0.", link_tower},
    {X "image_link_tower.0.", link_tower},
    {X "text_layers.1.", cross_layer},
    {X "image_layers.1.", cross_layer},
    {X, poolers},
    {"itc_", heads},
    {"", scale},
};

static void parameters_are_in_order(void **state)
{
    mr_model_config c = support_pairs_shape();
    mr_params p = support_pairs_params(&c);
    size_t i = 0;
    uint64_t offset = 0;
    (void)state;
    for (const struct part *part = parts; part < parts + MR_COUNT(parts); part++)
        for (const char *const *row = part->rows; *row; row++, i++) {
            char want[200], have[200], shape[64];
            assert_true(i < p.count);
            mr_shape_text(p.items[i].dims, p.items[i].shape, shape, sizeof shape);
            snprintf(want, sizeof want, "%s%s", part->prefix, *row);
            snprintf(have, sizeof have, "%s %s", p.items[i].name, shape);
            assert_string_equal(have, want);
            assert_true(p.items[i].offset >= offset && p.items[i].offset % 16 == 0);
            offset = p.items[i].offset + p.items[i].count;
        }
    assert_int_equal(i, p.count);
    mr_params_release(&p);
}

static void at(const mr_params *p, uint64_t offset, const char *name)
{
    const mr_param *item = mr_params_find(p, name);
    if (!item || item->offset != offset)
        fail_msg("%s is not at %llu", name, (unsigned long long)offset);
}

static void dense_at(const mr_params *p, const mr_dense *d, const char *prefix, const char *name)
{
    char *weight = support_path("%s%s.weight", prefix, name), *bias = support_path("%s%s.bias", prefix, name);
    at(p, d->kernel, weight);
    at(p, d->bias, bias);
    const mr_param *item = mr_params_find(p, weight);
    assert_true(item->shape[0] == d->out && item->shape[1] == d->in);
    free(weight);
    free(bias);
}

static void norm_at(const mr_params *p, const mr_norm_at *n, const char *prefix, const char *name)
{
    char *weight = support_path("%s%s.weight", prefix, name), *bias = support_path("%s%s.bias", prefix, name);
    at(p, n->gain, weight);
    at(p, n->bias, bias);
    free(weight);
    free(bias);
}

static void layer_at(const mr_params *p, const mr_bt_layer *l, bool crosses, const char *prefix, uint32_t i)
{
    char *full = support_path("%s%u.", prefix, i);
    const mr_bt_attention *attentions[] = {&l->self, &l->cross};
    assert_int_equal(l->first, l->self.attention.query.kernel);
    for (size_t k = 0; k < 1 + (size_t)crosses; k++) {
        const char *word = k ? "crossattention" : "attention";
        char *name = support_path("%s%s", full, word);
        dense_at(p, &attentions[k]->attention.query, name, ".self.query");
        dense_at(p, &attentions[k]->attention.key, name, ".self.key");
        dense_at(p, &attentions[k]->attention.value, name, ".self.value");
        dense_at(p, &attentions[k]->attention.out, name, ".output.dense");
        norm_at(p, &attentions[k]->norm, name, ".output.LayerNorm");
        free(name);
    }
    dense_at(p, &l->mlp.wide, full, "intermediate.dense");
    dense_at(p, &l->mlp.narrow, full, "output.dense");
    norm_at(p, &l->norm, full, "output.LayerNorm");
    free(full);
}

static void block_at(const mr_params *p, const mr_bt_block *b, uint32_t i)
{
    char *prefix = support_path(V "transformer.resblocks.%u.", i);
    char *kernel = support_path("%sattn.in_proj_weight", prefix), *bias = support_path("%sattn.in_proj_bias", prefix);
    assert_int_equal(b->first, b->norm1.gain);
    norm_at(p, &b->norm1, prefix, "ln_1");
    norm_at(p, &b->norm2, prefix, "ln_2");
    at(p, b->qkv.kernel, kernel);
    at(p, b->qkv.bias, bias);
    assert_true(b->qkv.in == 64 && b->qkv.out == 192);
    dense_at(p, &b->out, prefix, "attn.out_proj");
    dense_at(p, &b->mlp.wide, prefix, "mlp.c_fc");
    dense_at(p, &b->mlp.narrow, prefix, "mlp.c_proj");
    free(kernel);
    free(bias);
    free(prefix);
}

static void layout_leads_to_them(void **state)
{
    mr_model_config c = support_pairs_shape();
    mr_params p = {0};
    mr_bt_layout l = {0};
    mr_error err;
    (void)state;
    assert_int_equal(mr_bt_lay_out(&c, &p, &l, &err), MR_OK);
    at(&p, l.words, T "embeddings.word_embeddings.weight");
    at(&p, l.positions, T "embeddings.position_embeddings.weight");
    at(&p, l.word_type, T "embeddings.token_type_embeddings.weight");
    norm_at(&p, &l.word_norm, T, "embeddings.LayerNorm");
    at(&p, l.image.cls, V "embeddings.class_embedding");
    at(&p, l.image.patches.kernel, V "embeddings.patch_embedding.weight");
    at(&p, l.image.position, V "embeddings.position_embedding.weight");
    norm_at(&p, &l.norm_pre, V, "ln_pre");
    norm_at(&p, &l.norm_post, V, "ln_post");
    for (uint32_t i = 0; i < c.layers; i++) {
        layer_at(&p, &l.text[i], false, T "encoder.layer.", i);
        block_at(&p, &l.vision[i], i);
    }
    at(&p, l.side_type, "bridgetower.token_type_embeddings.weight");
    for (size_t side = 0; side < 2; side++) {
        char *prefix = support_path(X "%s_", side == MR_BT_TEXT ? "text" : "image");
        char *layers = support_path("%slayers.", prefix), *links = support_path("%slink_tower.0.", prefix);
        dense_at(&p, &l.transform[side], prefix, "transform");
        dense_at(&p, &l.pooler[side], prefix, "pooler.dense");
        norm_at(&p, &l.cross_norm[side], prefix, "layernorm");
        norm_at(&p, &l.link[side][0], links, "LayerNorm");
        for (uint32_t i = 0; i < c.cross_layers; i++)
            layer_at(&p, &l.cross[side][i], true, layers, i);
        free(prefix);
        free(layers);
        free(links);
    }
    dense_at(&p, &l.head[0], "itc_text_head.", "fc");
    dense_at(&p, &l.head[1], "itc_image_head.", "fc");
    dense_at(&p, &l.head[2], "itc_cross_modal_head.", "fc");
    at(&p, l.logit_scale, "logit_scale");
    mr_bt_layout_release(&l);
    mr_bt_layout_release(&l);
    mr_params_release(&p);
}

/* transformers' rule: neither biases nor norms; and nothing that is frozen. */
static void decay_spares_biases_and_norms(void **state)
{
    mr_model_config c = support_pairs_shape();
    (void)state;
    for (unsigned frozen = 0; frozen < 4; frozen++) {
        c.frozen = frozen;
        mr_params p = support_pairs_params(&c);
        size_t decaying = 0;
        for (size_t i = 0; i < p.count; i++) {
            const char *name = p.items[i].name;
            bool norm = strstr(name, "LayerNorm") || strstr(name, "layernorm") || strstr(name, ".ln_");
            bool still = (strncmp(name, T, strlen(T)) == 0 && frozen & MR_FROZEN_TEXT) ||
                         (strncmp(name, V, strlen(V)) == 0 && frozen & MR_FROZEN_IMAGES);
            if (p.items[i].decays != !(norm || still || strstr(name, "bias")))
                fail_msg("%s with %u frozen: %d", name, frozen, p.items[i].decays);
            decaying += p.items[i].decays;
        }
        /* Towers of 3 + 6 * 3 and 3 + 4 * 3, 4 cross layers of 10, transforms and poolers, types, heads, scale. */
        assert_int_equal(decaying, (frozen & 2 ? 0 : 21) + (frozen & 1 ? 0 : 15) + 40 + 4 + 1 + 3 + 1);
        mr_params_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_is_the_hubs),
        cmocka_unit_test(names_are_the_hubs),
        cmocka_unit_test(parameters_are_in_order),
        cmocka_unit_test(layout_leads_to_them),
        cmocka_unit_test(decay_spares_biases_and_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
