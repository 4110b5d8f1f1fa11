/* test_config.c - the hub's config.json: what is read, what is written, what is refused and how it is named. */
#include <stdlib.h>
#include <string.h>

#include "train/model/bridgetower/parts.h"
#include "base/json/json.h"
#include "tests/support/training/npz.h"

/* As the hub has it for bridgetower-large-itm-mlm-itc, in the order of its members. */
static const char HUB[] =
    "{\"contrastive_hidden_size\": 512, \"share_cross_modal_transformer_layers\": true, \"drop_rate\": 0.1,"
    " \"head_hidden_scale\": 2, \"hidden_act\": \"gelu\", \"hidden_size\": 1024, \"initializer_factor\": 1,"
    " \"is_encoder_decoder\": false, \"layer_norm_eps\": 1e-05, \"share_link_tower_layers\": false,"
    " \"link_tower_type\": \"add\", \"logit_scale_init_value\": 2.6592, \"num_attention_heads\": 16,"
    " \"num_hidden_layers\": 6, \"tie_word_embeddings\": false, \"text_config_dict\": null,"
    " \"init_layernorm_from_vision_encoder\": false,"
    " \"text_config\": {\"architectures\": [\"BridgeTowerTextModel\"], \"vocab_size\": 50265, \"hidden_size\": 1024,"
    " \"num_hidden_layers\": 24, \"num_attention_heads\": 16, \"intermediate_size\": 4096, \"hidden_act\": \"gelu\","
    " \"hidden_dropout_prob\": 0.1, \"attention_probs_dropout_prob\": 0.1, \"max_position_embeddings\": 514,"
    " \"type_vocab_size\": 1, \"initializer_factor\": 1, \"initializer_range\": 0.02, \"layer_norm_eps\": 1e-05,"
    " \"pad_token_id\": 1, \"bos_token_id\": 0, \"eos_token_id\": 2, \"position_embedding_type\": \"absolute\","
    " \"use_cache\": true, \"classifier_dropout\": null}, \"vision_config_dict\": null,"
    " \"vision_config\": {\"architectures\": [\"BridgeTowerVisionModel\"], \"hidden_size\": 1024,"
    " \"num_hidden_layers\": 24, \"patch_size\": 14, \"image_size\": 294, \"initializer_factor\": 1,"
    " \"stop_gradient\": false, \"share_layernorm\": true, \"remove_last_layer\": false, \"num_channels\": 3,"
    " \"layer_norm_eps\": 1e-05}, \"model_type\": \"bridgetower\"}\n";

/* As a run on it saves it: what is usual is left out. */
static const char SPARSE[] =
    "{\"architectures\": [\"BridgeTowerForContrastiveLearning\"], \"contrastive_hidden_size\": 512,"
    " \"hidden_size\": 1024, \"logit_scale_init_value\": 2.6592, \"model_type\": \"bridgetower\","
    " \"num_attention_heads\": 16, \"text_config\": {\"hidden_size\": 1024, \"intermediate_size\": 4096,"
    " \"model_type\": \"bridgetower_text_model\", \"num_attention_heads\": 16, \"num_hidden_layers\": 24},"
    " \"torch_dtype\": \"float32\", \"vision_config\": {\"hidden_size\": 1024, \"image_size\": 294,"
    " \"model_type\": \"bridgetower_vision_model\", \"num_hidden_layers\": 24, \"patch_size\": 14}}";

static mr_model_config small(void)
{
    return (mr_model_config){.name = "bridgetower",
                             .image = 32,
                             .patch = 8,
                             .hidden = 128,
                             .layers = 3,
                             .heads = 4,
                             .mlp = 48,
                             .dropout = 0.25,
                             .cross_layers = 2,
                             .vocab = 97,
                             .positions = 24,
                             .embed = 20,
                             .text = 22,
                             .attention_dropout = 0.05,
                             .norm_eps = 1e-5,
                             .logit_scale = 2.6592};
}

static void assert_same(const mr_model_config *a, const mr_model_config *b)
{
    assert_string_equal(a->name, b->name);
    assert_true(a->image == b->image && a->patch == b->patch && a->hidden == b->hidden && a->layers == b->layers);
    assert_true(a->heads == b->heads && a->mlp == b->mlp && a->classes == b->classes && a->dropout == b->dropout);
    assert_true(a->compute == b->compute && a->every_token == b->every_token && a->cross_layers == b->cross_layers);
    assert_true(a->vocab == b->vocab && a->positions == b->positions && a->embed == b->embed && a->text == b->text);
    assert_true(a->attention_dropout == b->attention_dropout && a->norm_eps == b->norm_eps);
    assert_true(a->logit_scale == b->logit_scale && a->frozen == b->frozen && a->iface == b->iface);
}

static mr_status configure(const char *dir, const void *bytes, size_t len, mr_model_config *c, mr_error *err)
{
    char *path = support_path("%s/config.json", dir);
    support_write(path, bytes, len);
    *err = (mr_error){0};
    mr_status status = mr_bt_configure(path, c, err);
    if (status && !strstr(err->text, path))
        fail_msg("the file is not named: %s", err->text);
    free(path);
    return status;
}

static mr_model_config configured(const char *dir, const char *text)
{
    mr_model_config c = {0};
    mr_error err;
    if (configure(dir, text, strlen(text), &c, &err))
        fail_msg("%s", err.text);
    return c;
}

/* ---- what is loaded --------------------------------------------------------------------------------------------- */

static void takes_the_hubs(void **state)
{
    mr_model_config whole = configured(*state, HUB), sparse = configured(*state, SPARSE);
    assert_string_equal(mr_bt_presets[0].name, "bridgetower-large");
    assert_same(&whole, &mr_bt_presets[0]);
    assert_same(&sparse, &mr_bt_presets[0]);
    assert_true(whole.image == 294 && whole.text == 128 && whole.cross_layers == 6 && whole.embed == 512);
    for (const mr_model_config *p = mr_bt_presets; p->name[0]; p++)
        assert_int_equal(mr_bt_check(p, NULL), MR_OK);
}

/* Absent members, and sections that are null, mean transformers' own values. */
static void fills_in_what_is_usual(void **state)
{
    const char *texts[] = {"{\"contrastive_hidden_size\":300,\"logit_scale_init_value\":3}",
                           "{\"contrastive_hidden_size\":300,\"logit_scale_init_value\":3.0,\"text_config\":null,"
                           "\"vision_config\":null,\"anything\":[[{}]]}"};
    const mr_model_config want = {.name = "bridgetower",
                                  .image = 288,
                                  .patch = 16,
                                  .hidden = 768,
                                  .layers = 12,
                                  .heads = 12,
                                  .mlp = 3072,
                                  .dropout = 0.1,
                                  .cross_layers = 6,
                                  .vocab = 50265,
                                  .positions = 514,
                                  .embed = 300,
                                  .text = 128,
                                  .attention_dropout = 0.1,
                                  .norm_eps = 1e-5,
                                  .logit_scale = 3};
    for (size_t i = 0; i < MR_COUNT(texts); i++) {
        mr_model_config c = configured(*state, texts[i]);
        assert_same(&c, &want);
    }
}

static void takes_the_fixture(void **state)
{
    char *path = support_parity("bt_a.json");
    if (!path) {
        print_message("skipped: no bt_a.json in the parity folder (MILLRACE_PARITY)\n");
        skip();
    }
    json_t *facts = json_load_file(path, 0, NULL);
    assert_non_null(facts);
    char *text = json_dumps(json_object_get(facts, "hf_config"), 0);
    assert_non_null(text);
    mr_model_config c = configured(*state, text);
    const mr_model_config want = {.name = "bridgetower",
                                  .image = 32,
                                  .patch = 8,
                                  .hidden = 64,
                                  .layers = 2,
                                  .heads = 4,
                                  .mlp = 48,
                                  .cross_layers = 2,
                                  .vocab = 97,
                                  .positions = 24,
                                  .embed = 24,
                                  .text = 22,
                                  .norm_eps = 1e-5,
                                  .logit_scale = 2.6592};
    assert_same(&c, &want);
    free(text);
    json_decref(facts);
    free(path);
}

/* ---- what is written -------------------------------------------------------------------------------------------- */

static void comes_back(const char *dir, const mr_model_config *c)
{
    mr_model_config back = *c;
    mr_buf text = {0};
    mr_error err;
    if (mr_bt_describe(c, &text, &err))
        fail_msg("%s", err.text);
    memset(&back.image, 0xFF, offsetof(mr_model_config, classes) - offsetof(mr_model_config, image));
    memset(&back.cross_layers, 0xFF, offsetof(mr_model_config, frozen) - offsetof(mr_model_config, cross_layers));
    back.dropout = 0.77;
    memset(back.name, 'x', sizeof back.name);
    if (configure(dir, text.data, text.len, &back, &err))
        fail_msg("%s", err.text);
    assert_same(&back, c);
    mr_buf_free(&text);
}

static void describes_what_it_takes(void **state)
{
    mr_model_config c = mr_bt_presets[0], s = small();
    mr_random r = support_random();
    comes_back(*state, &c);
    c.classes = 7, c.compute = MR_BF16, c.frozen = MR_FROZEN_TEXT, c.every_token = true; /* not the file's */
    comes_back(*state, &c);
    comes_back(*state, &s);
    s.dropout = 0.123456789012;
    comes_back(*state, &s);
    for (int i = 0; i < 200; i++) {
        s.heads = 1U << mr_random_below(&r, 4);
        s.hidden = 64 * (uint32_t)mr_random_between(&r, 1, 40);
        s.layers = (uint32_t)mr_random_between(&r, 1, 128);
        s.cross_layers = (uint32_t)mr_random_between(&r, 1, s.layers);
        s.mlp = (uint32_t)mr_random_between(&r, 1, 9999);
        s.patch = (uint32_t)mr_random_between(&r, 1, 99);
        s.image = s.patch * (uint32_t)mr_random_between(&r, 1, 99);
        s.vocab = (uint32_t)mr_random_between(&r, 4, 1 << 24);
        s.positions = (uint32_t)mr_random_between(&r, 4, 1000);
        s.text = s.positions < 130 ? s.positions - 2 : 128;
        s.embed = (uint32_t)mr_random_between(&r, 1, 4096);
        s.dropout = mr_random_unit(&r);
        s.attention_dropout = mr_random_unit(&r);
        s.norm_eps = 1e-9 + mr_random_unit(&r) / 2;
        s.logit_scale = mr_random_real(&r, -20, 20);
        comes_back(*state, &s);
    }
    s.hidden = 65;
    mr_buf text = {0};
    mr_error err;
    assert_int_equal(mr_bt_describe(&s, &text, &err), MR_MISUSE);
    assert_int_equal(text.len, 0);
}

/* What transformers needs to find the class and to build it. */
static void describes_for_transformers(void **state)
{
    mr_model_config s = small();
    mr_buf text = {0};
    (void)state;
    assert_int_equal(mr_bt_describe(&s, &text, NULL), MR_OK);
    json_t *doc = json_loadb((char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(doc);
    const json_t *words = json_object_get(doc, "text_config"), *pixels = json_object_get(doc, "vision_config");
    assert_string_equal(json_string_value(json_array_get(json_object_get(doc, "architectures"), 0)),
                        "BridgeTowerForContrastiveLearning");
    assert_string_equal(json_string_value(json_object_get(doc, "model_type")), "bridgetower");
    assert_string_equal(json_string_value(json_object_get(words, "model_type")), "bridgetower_text_model");
    assert_string_equal(json_string_value(json_object_get(pixels, "model_type")), "bridgetower_vision_model");
    assert_int_equal(json_integer_value(json_object_get(doc, "num_hidden_layers")), s.cross_layers);
    assert_int_equal(json_integer_value(json_object_get(words, "num_hidden_layers")), s.layers);
    assert_int_equal(json_integer_value(json_object_get(words, "pad_token_id")), 1);
    assert_true(json_is_true(json_object_get(pixels, "share_layernorm")));
    json_decref(doc);
    mr_buf_free(&text);
}

/* ---- what is refused -------------------------------------------------------------------------------------------- */

/* A good file with one member of `section` (NULL: top level) set to `value`; NULL: taken away. */
static char *changed(const char *section, const char *key, const char *value)
{
    mr_model_config s = small();
    mr_buf text = {0};
    assert_int_equal(mr_bt_describe(&s, &text, NULL), MR_OK);
    json_t *doc = json_loadb((char *)text.data, text.len, 0, NULL), *at = doc;
    if (section)
        at = json_object_get(doc, section);
    if (value)
        json_object_set_new(at, key, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(at, key);
    char *out = json_dumps(doc, 0);
    assert_non_null(out);
    json_decref(doc);
    mr_buf_free(&text);
    return out;
}

static const struct refusal {
    const char *section, *key, *value, *words[3];
} refusals[] = {
    {NULL, "link_tower_type", "\"scaled_add\"", {"link_tower_type", "\"scaled_add\"", "\"add\""}},
    {NULL, "model_type", "\"clip\"", {"model_type", "\"clip\"", "\"bridgetower\""}},
    {NULL, "hidden_act", "\"relu\"", {" hidden_act", "\"relu\"", "\"gelu\""}},
    {NULL, "share_link_tower_layers", "true", {"share_link_tower_layers is true", "only false is supported"}},
    {NULL, "share_cross_modal_transformer_layers", "false", {"share_cross_modal_transformer_layers is false"}},
    {NULL, "init_layernorm_from_vision_encoder", "true", {"init_layernorm_from_vision_encoder is true"}},
    {NULL, "contrastive_hidden_size", NULL, {"contrastive_hidden_size", "a task other than"}},
    {NULL, "contrastive_hidden_size", "0", {"contrastive_hidden_size", "at least 1"}},
    {NULL, "logit_scale_init_value", NULL, {"logit_scale_init_value", "a task other than"}},
    {NULL, "logit_scale_init_value", "\"2\"", {"logit_scale_init_value is not a number"}},
    {NULL, "logit_scale_init_value", "99", {"logit_scale 99", "from -20 to 20"}},
    {NULL, "hidden_size", "64", {"hidden_size is 64, 128 in text_config and 128"}},
    {NULL, "hidden_size", NULL, {"hidden_size is 768, 128"}},
    {NULL, "num_hidden_layers", "4", {"--cross-layers 4", "1 to 3"}},
    {NULL, "layer_norm_eps", "1e-6", {"layer_norm_eps is 1e-06, 1e-05 in text_config"}},
    {NULL, "text_config", "[]", {"text_config is not an object"}},
    {NULL, "vision_config", "7", {"vision_config is not an object"}},
    {"text_config", "hidden_act", "\"gelu_new\"", {"text_config.hidden_act is \"gelu_new\""}},
    {"text_config", "hidden_act", "\"\\u001b[2J\\r\\n\"", {"text_config.hidden_act is \"\\u001B[2J\\r\\n\""}},
    {"text_config", "hidden_act", "[1,2]", {"text_config.hidden_act is a list"}},
    {"text_config", "hidden_act", "{}", {"text_config.hidden_act is an object"}},
    {"text_config",
     "position_embedding_type",
     "\"relative_key\"",
     {"position_embedding_type", "only \"absolute\" is supported"}},
    {"text_config", "type_vocab_size", "2", {"type_vocab_size is 2"}},
    {"text_config", "pad_token_id", "0", {"pad_token_id is 0; only 1 is supported"}},
    {"text_config", "pad_token_id", "null", {"pad_token_id is null"}},
    {"text_config", "bos_token_id", "1", {"bos_token_id is 1; only 0 is supported"}},
    {"text_config", "eos_token_id", "[2]", {"eos_token_id is a list; only 2 is supported"}},
    {"text_config", "is_decoder", "true", {"is_decoder is true"}},
    {"text_config", "hidden_size", "64", {"64 in text_config and 128 in vision_config"}},
    {"text_config", "hidden_size", "128.0", {"text_config.hidden_size is not an integer"}},
    {"text_config", "hidden_size", "-128", {"text_config.hidden_size is not an integer"}},
    {"text_config", "vocab_size", "4294967296", {"text_config.vocab_size"}},
    {"text_config", "vocab_size", "4294967295", {"vocab_size 4294967295"}},
    {"text_config", "vocab_size", "true", {"text_config.vocab_size"}},
    {"text_config", "num_attention_heads", "5", {"--heads 5", "nearest is 4"}},
    {"text_config", "num_attention_heads", "200", {"--heads 200", "nearest is 128"}},
    {"text_config", "num_hidden_layers", "4", {"4 in text_config and 3 in vision_config"}},
    {"text_config", "max_position_embeddings", "3", {"max_position_embeddings 3", "from 4 to"}},
    {"text_config", "max_position_embeddings", "1", {"max_position_embeddings 1"}},
    {"text_config", "hidden_dropout_prob", "1", {"--dropout 1"}},
    {"text_config", "attention_probs_dropout_prob", "-0.5", {"attention_dropout -0.5"}},
    {"text_config", "layer_norm_eps", "null", {"text_config.layer_norm_eps is not a number"}},
    {"vision_config", "hidden_size", "64", {"and 64 in vision_config"}},
    {"vision_config", "num_channels", "4", {"num_channels is 4"}},
    {"vision_config", "share_layernorm", "false", {"vision_config.share_layernorm is false"}},
    {"vision_config", "remove_last_layer", "true", {"vision_config.remove_last_layer is true"}},
    {"vision_config", "image_size", "30", {"--image-size 30", "--patch 8", "nearest is 32"}},
    {"vision_config", "image_size", "[32,32]", {"vision_config.image_size"}},
    {"vision_config", "patch_size", "7", {"--image-size 32", "nearest is 35"}},
};

static void refuses_by_name(void **state)
{
    for (const struct refusal *f = refusals; f < refusals + MR_COUNT(refusals); f++) {
        const mr_model_config before = small();
        mr_model_config c = before;
        mr_error err;
        char *text = changed(f->section, f->key, f->value);
        if (configure(*state, text, strlen(text), &c, &err) != MR_BAD_DATA)
            fail_msg("%s %s is taken", f->key, f->value ? f->value : "absent");
        for (size_t i = 0; i < MR_COUNT(f->words) && f->words[i]; i++)
            if (!strstr(err.text, f->words[i]))
                fail_msg("no '%s' in: %s", f->words[i], err.text);
        assert_same(&c, &before);
        free(text);
    }
}

/* Members on which nothing depends here. */
static void passes_over_what_does_not_matter(void **state)
{
    static const struct {
        const char *section, *key, *value;
    } members[] = {
        {NULL, "num_attention_heads", "3"},
        {NULL, "drop_rate", "0.9"},
        {NULL, "architectures", "null"},
        {NULL, "tie_word_embeddings", "true"},
        {NULL, "initializer_factor", "7"},
        {NULL, "model_type", NULL},
        {"vision_config", "stop_gradient", "true"},
        {"text_config", "use_cache", "false"},
    };
    const mr_model_config want = small();
    for (size_t i = 0; i < MR_COUNT(members); i++) {
        char *text = changed(members[i].section, members[i].key, members[i].value);
        mr_model_config c = configured(*state, text);
        assert_same(&c, &want);
        free(text);
    }
}

static void refuses_odd_documents(void **state)
{
    char *deep = malloc(4001), *lists = malloc((1 << 20) + 2), *dir = support_path("%s/folder", (char *)*state);
    const char *texts[] = {"",
                           "[]",
                           "7",
                           "\"x\"",
                           "null",
                           "{",
                           "{}",
                           "{\"a\":1,\"a\":2}",
                           "{\"hidden_size\":NaN}",
                           deep,
                           "{\"contrastive_hidden_size\":9,\"logit_scale_init_value\":1e999}",
                           "{\"contrastive_hidden_size\":99999999999999999999,\"logit_scale_init_value\":1}",
                           "{\"contrastive_hidden_size\":9,\"logit_scale_init_value\":1}{}",
                           "\xEF\xBB\xBF{}",
                           "{\"model_type\":\"\xFF\"}"};
    mr_model_config c = small();
    mr_error err;
    assert_true(deep && lists);
    memset(deep, '[', 4000);
    deep[4000] = '\0';
    for (size_t i = 0; i < MR_COUNT(texts); i++)
        if (configure(*state, texts[i], strlen(texts[i]), &c, &err) != MR_BAD_DATA)
            fail_msg("taken: %.40s", texts[i]);
    memset(lists, '[', (1 << 20) + 2);
    assert_int_equal(configure(*state, lists, 1 << 20, &c, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "memory"));
    memset(lists, ' ', (1 << 20) + 2);
    memcpy(lists, HUB, sizeof HUB - 1);
    assert_int_equal(configure(*state, lists, (1 << 20) + 1, &c, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "limit"));
    assert_int_equal(configure(*state, lists, 1 << 20, &c, &err), MR_OK);
    support_write_text(dir, "");
    assert_int_equal(mr_bt_configure(*state, &c, &err), MR_BAD_DATA); /* a folder */
    free(dir);
    dir = support_path("%s/none", (char *)*state);
    assert_int_equal(mr_bt_configure(dir, &c, &err), MR_SYSTEM);
    free(dir);
    free(deep);
    free(lists);
}

/* Whatever is cut off or changed, it ends with a sentence or with a model that makes sense. */
static void survives_damage(void **state)
{
    mr_random r = support_random();
    size_t len = sizeof HUB - 2; /* without the newline */
    mr_error err;
    for (size_t i = 0; i < len; i++) {
        mr_model_config c = {0};
        assert_int_equal(configure(*state, HUB, i, &c, &err), MR_BAD_DATA);
    }
    for (int i = 0; i < 3000; i++) {
        mr_model_config c = {0};
        char bad[sizeof HUB];
        memcpy(bad, HUB, sizeof HUB);
        for (uint64_t k = mr_random_between(&r, 1, 3); k; k--)
            bad[mr_random_below(&r, len)] = (char)mr_random_u64(&r);
        mr_status status = configure(*state, bad, len, &c, &err);
        assert_true(status == MR_BAD_DATA || (status == MR_OK && mr_bt_check(&c, NULL) == MR_OK));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(takes_the_hubs),
        IN_TMPDIR(fills_in_what_is_usual),
        IN_TMPDIR(takes_the_fixture),
        IN_TMPDIR(describes_what_it_takes),
        IN_TMPDIR(describes_for_transformers),
        IN_TMPDIR(refuses_by_name),
        IN_TMPDIR(passes_over_what_does_not_matter),
        IN_TMPDIR(refuses_odd_documents),
        IN_TMPDIR(survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
