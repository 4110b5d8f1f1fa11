/* test_model.c - the tables of models: names, parameters, costs, options, start values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/training/npz.h"
#include "train/model/vit/vit.h"

static mr_model_config preset(const char *word, uint32_t image, uint32_t classes)
{
    mr_model_config c = {.classes = classes, .dropout = 0.1};
    mr_error err;
    if (mr_model_find(word, &c, &err))
        fail_msg("%s", err.text);
    c.image = image ? image : c.image;
    return c;
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

static void params_are_in_order(void **state)
{
    const uint64_t shape[] = {3, 5}, zero[] = {3, 0}, huge[] = {UINT64_MAX / 2, 4}, big[] = {UINT64_MAX / 8};
    char name[200] = "", text[64], tiny[8];
    mr_params p = {0};
    uint64_t offset = 1;
    mr_error err;
    (void)state;
    assert_int_equal(mr_params_add(&p, "a", 2, shape, true, &offset, &err), MR_OK);
    assert_int_equal(offset, 0);
    assert_int_equal(mr_params_add(&p, "b", 1, shape, false, &offset, &err), MR_OK);
    assert_int_equal(offset, 16);
    assert_int_equal(mr_params_add(&p, "c", 0, NULL, false, NULL, &err), MR_OK);
    assert_true(p.total == 48 && p.elements == 15 + 3 + 1 && p.count == 3);
    assert_true(mr_params_find(&p, "a")->decays && !mr_params_find(&p, "b")->decays);
    assert_null(mr_params_find(&p, "d"));
    assert_int_equal(mr_params_add(&p, "b", 1, shape, true, &offset, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "'b'"));
    assert_int_equal(mr_params_add(&p, "z", 2, zero, true, &offset, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "[3, 0]"));
    assert_int_equal(mr_params_add(&p, "z", 2, huge, true, &offset, &err), MR_MISUSE);
    assert_int_equal(mr_params_add(&p, "z", 1, big, true, &offset, &err), MR_MISUSE);
    assert_int_equal(mr_params_add(&p, "z", MR_PARAM_DIMS + 1, shape, true, &offset, &err), MR_MISUSE);
    memset(name, 'n', MR_PARAM_NAME);
    assert_int_equal(mr_params_add(&p, name, 1, shape, true, &offset, &err), MR_MISUSE);
    assert_true(p.count == 3 && p.total == 48 && offset == 16);
    mr_params_release(&p);
    mr_params_release(&p);
    mr_shape_text(2, shape, text, sizeof text);
    assert_string_equal(text, "[3, 5]");
    mr_shape_text(0, NULL, text, sizeof text);
    assert_string_equal(text, "[]");
    mr_shape_text(1, huge, tiny, sizeof tiny);
    assert_int_equal(strlen(tiny), 7);
}

/* The largest number of blocks: each name is found, and a checkpoint's .npz holds two of each. */
static void many_params_are_found(void **state)
{
    enum { ARRAYS = 65536 };
    mr_model_config c = {.iface = &mr_model_vit,
                         .name = "vit",
                         .image = 8,
                         .patch = 8,
                         .hidden = 1,
                         .layers = 1024,
                         .heads = 1,
                         .mlp = 1,
                         .classes = 1};
    mr_params p = {0};
    mr_error err;
    (void)state;
    assert_int_equal(c.iface->params(&c, &p, &err), MR_OK);
    assert_in_range(p.count, 1024 * 16, ARRAYS / 2);
    for (size_t i = 0; i < p.count; i++)
        assert_ptr_equal(mr_params_find(&p, p.items[i].name), &p.items[i]);
    assert_null(mr_params_find(&p, ""));
    mr_params_release(&p);
    c.layers++;
    assert_int_equal(c.iface->check(&c, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "--layers 1025: give a number from 1 to 1024"));
}

/* SPEED.md and VIT.md: parameters without the head, GFLOP a sample forward and training with 10 classes. */
static void costs_are_the_published(void **state)
{
    static const struct {
        const char *word;
        uint32_t image;
        const char *forward, *training;
        uint64_t backbone;
    } known[] = {
        {"ViT-B_16", 160, "17.65", "52.83", 0},          {"ViT-B_16", 224, "35.13", "105.15", 85798656},
        {"ViT-B_16", 384, "110.97", "332.22", 0},        {"ViT-B_32", 160, "4.56", "13.56", 0},
        {"ViT-B_32", 224, "8.82", "26.22", 87455232},    {"ViT-L_16", 160, "62.2", "186.3", 0},
        {"ViT-L_16", 224, "123.1", "369.0", 303301632},  {"ViT-L_32", 160, "15.9", "47.6", 0},
        {"ViT-L_32", 224, "30.8", "92.0", 305510400},    {"ViT-H_14", 160, "156.1", "468.2", 0},
        {"ViT-H_14", 224, "334.6", "1003.4", 630764800},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(known); i++) {
        mr_model_config c = preset(known[i].word, known[i].image, 10);
        mr_model_costs costs, eval;
        mr_params p = {0};
        mr_error err;
        char text[32];
        const char *forward = known[i].forward, *training = known[i].training;
        c.iface->costs(&c, 8, true, &costs);
        c.iface->costs(&c, 8, false, &eval);
        snprintf(text, sizeof text, "%.*f", (int)strlen(strchr(forward, '.')) - 1, costs.forward_flops / 1e9);
        assert_string_equal(text, forward);
        snprintf(text, sizeof text, "%.*f", (int)strlen(strchr(training, '.')) - 1, costs.training_flops / 1e9);
        assert_string_equal(text, training);
        assert_int_equal(c.iface->params(&c, &p, &err), MR_OK);
        assert_int_equal(costs.parameters, p.elements);
        if (known[i].backbone)
            assert_int_equal(p.elements - (c.hidden + 1) * 10, known[i].backbone);
        assert_true(eval.activation_bytes * 4 < costs.activation_bytes);
        mr_params_release(&p);
    }
    mr_model_config c = preset("ViT-B_16", 160, 10);
    mr_model_costs costs;
    c.iface->costs(&c, 1, true, &costs);
    assert_true(fabs(costs.training_flops / 1e9 - 52.8345) < 5e-5);
    c = preset("ViT-B_16", 224, 10);
    c.iface->costs(&c, 1, true, &costs);
    assert_true(fabs(costs.training_flops / 1e9 - 105.1472) < 5e-5);
}

/* One line "key<TAB>768x12x64": the file of imagenet21k has each parameter of ours, with its shape. */
static void check_key(const mr_params *p, char *line, size_t *met)
{
    char *tab = strchr(line, '\t'), shape[128] = "";
    assert_non_null(tab);
    *tab = '\0';
    if (strncmp(line, "pre_logits/", 11) == 0)
        return;
    const mr_param *item = mr_params_find(p, line);
    if (!item)
        fail_msg("there is no parameter %s", line);
    for (unsigned i = 0; i < item->dims; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%llu", i ? "x" : "",
                 (unsigned long long)item->shape[i]);
    assert_string_equal(tab + 1, shape);
    ++*met;
}

static void keys_are_googles(void **state)
{
    size_t files = 0;
    (void)state;
    for (const mr_model_config *m = mr_model_vit.presets; m->name[0]; m++) {
        char *sub = support_path("../reference/npz_keys_%s.tsv", m->name), *path = support_parity(sub);
        free(sub);
        if (!path)
            continue;
        mr_model_config c = preset(m->name, 0, 21843);
        mr_params p = {0};
        mr_error err;
        char *text = (char *)support_read(path, NULL), *at = text, *line;
        size_t met = 0;
        assert_int_equal(c.iface->params(&c, &p, &err), MR_OK);
        while ((line = strsep(&at, "\n")))
            if (*line)
                check_key(&p, line, &met);
        assert_int_equal(met, p.count);
        mr_params_release(&p);
        free(text);
        free(path);
        files++;
    }
    if (!files) {
        print_message("skipped: no reference/npz_keys_*.tsv beside the parity folder (MILLRACE_PARITY)\n");
        skip();
    }
}

/* The same known without any file: the first and the last keys, and one of each kind in between. */
static void keys_of_a_block(void **state)
{
    static const struct {
        const char *name, *shape;
    } keys[] = {
        {"cls", "[1, 1, 24]"},
        {"embedding/kernel", "[4, 4, 3, 24]"},
        {"embedding/bias", "[24]"},
        {"Transformer/posembed_input/pos_embedding", "[1, 10, 24]"},
        {"Transformer/encoderblock_0/LayerNorm_0/scale", "[24]"},
        {"Transformer/encoderblock_0/LayerNorm_0/bias", "[24]"},
        {"Transformer/encoderblock_0/MultiHeadDotProductAttention_1/query/kernel", "[24, 3, 8]"},
        {"Transformer/encoderblock_0/MultiHeadDotProductAttention_1/query/bias", "[3, 8]"},
        {"Transformer/encoderblock_0/MultiHeadDotProductAttention_1/key/kernel", "[24, 3, 8]"},
        {"Transformer/encoderblock_0/MultiHeadDotProductAttention_1/key/bias", "[3, 8]"},
        {"Transformer/encoderblock_0/MultiHeadDotProductAttention_1/value/kernel", "[24, 3, 8]"},
        {"Transformer/encoderblock_0/MultiHeadDotProductAttention_1/value/bias", "[3, 8]"},
        {"Transformer/encoderblock_0/MultiHeadDotProductAttention_1/out/kernel", "[3, 8, 24]"},
        {"Transformer/encoderblock_0/MultiHeadDotProductAttention_1/out/bias", "[24]"},
        {"Transformer/encoderblock_0/LayerNorm_2/scale", "[24]"},
        {"Transformer/encoderblock_0/LayerNorm_2/bias", "[24]"},
        {"Transformer/encoderblock_0/MlpBlock_3/Dense_0/kernel", "[24, 40]"},
        {"Transformer/encoderblock_0/MlpBlock_3/Dense_0/bias", "[40]"},
        {"Transformer/encoderblock_0/MlpBlock_3/Dense_1/kernel", "[40, 24]"},
        {"Transformer/encoderblock_0/MlpBlock_3/Dense_1/bias", "[24]"},
        {"Transformer/encoder_norm/scale", "[24]"},
        {"Transformer/encoder_norm/bias", "[24]"},
        {"head/kernel", "[24, 5]"},
        {"head/bias", "[5]"},
    };
    const mr_model_config c = {.iface = &mr_model_vit,
                               .name = "vit",
                               .image = 14,
                               .patch = 4,
                               .hidden = 24,
                               .layers = 1,
                               .heads = 3,
                               .mlp = 40,
                               .classes = 5};
    mr_params p = {0};
    mr_error err;
    (void)state;
    assert_int_equal(c.iface->params(&c, &p, &err), MR_OK);
    assert_int_equal(p.count, MR_COUNT(keys));
    for (size_t i = 0; i < p.count; i++) {
        char text[64];
        mr_shape_text(p.items[i].dims, p.items[i].shape, text, sizeof text);
        assert_string_equal(p.items[i].name, keys[i].name);
        assert_string_equal(text, keys[i].shape);
        assert_true(p.items[i].decays && p.items[i].offset % 16 == 0);
    }
    mr_params_release(&p);
}

/* ---- names and options ------------------------------------------------------------------------------------------ */

static void models_are_found(void **state)
{
    mr_model_config c = {.classes = 3, .dropout = 0.5, .image = 17};
    mr_error err;
    (void)state;
    assert_int_equal(mr_model_find("ViT-H_14", &c, &err), MR_OK);
    assert_true(c.iface == &mr_model_vit && c.image == 224 && c.patch == 14 && c.hidden == 1280 && c.layers == 32 &&
                c.heads == 16 && c.mlp == 5120 && c.classes == 3 && c.dropout == 0.5);
    assert_string_equal(c.name, "ViT-H_14");
    assert_int_equal(mr_model_find("vit", &c, &err), MR_OK);
    assert_true(c.iface == &mr_model_vit && c.image == 0 && c.hidden == 0 && c.classes == 3);
    assert_int_equal(mr_model_find("ViT-B16", &c, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "did you mean 'ViT-B_16'"));
    assert_int_equal(mr_model_find("vitt", &c, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "did you mean 'vit'"));
    assert_int_equal(mr_model_find("something else entirely", &c, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "'something else entirely'"));
}

static void check_names_the_option(void **state)
{
    const mr_model_config good = {.iface = &mr_model_vit,
                                  .name = "vit",
                                  .image = 30,
                                  .patch = 8,
                                  .hidden = 24,
                                  .layers = 2,
                                  .heads = 4,
                                  .mlp = 48,
                                  .classes = 2};
    struct {
        mr_model_config c;
        const char *word;
    } bad[] = {{good, "--image-size 0"}, {good, "--patch 0"},           {good, "--hidden 0"},
               {good, "--layers 0"},     {good, "--heads 0"},           {good, "--mlp 0"},
               {good, "classes"},        {good, "the minimum is 8"},    {good, "nearest is 24"},
               {good, "nearest is 28"},  {good, "--dropout 1"},         {good, "--dropout"},
               {good, "--dropout"},      {good, "--hidden 4000000000"}, {good, "nearest is 4"}};
    mr_error err;
    (void)state;
    bad[0].c.image = 0, bad[1].c.patch = 0, bad[2].c.hidden = 0, bad[3].c.layers = 0, bad[4].c.heads = 0;
    bad[5].c.mlp = 0, bad[6].c.classes = 0, bad[7].c.image = 7, bad[8].c.hidden = 25, bad[9].c.hidden = 27;
    bad[10].c.dropout = 1, bad[11].c.dropout = NAN, bad[12].c.dropout = -0.1, bad[13].c.hidden = 4000000000;
    bad[14].c.hidden = 1;
    assert_int_equal(good.iface->check(&good, &err), MR_OK);
    for (size_t i = 0; i < MR_COUNT(bad); i++) {
        mr_params p = {0};
        assert_int_equal(good.iface->check(&bad[i].c, &err), MR_MISUSE);
        if (!strstr(err.text, bad[i].word))
            fail_msg("'%s' is not in: %s", bad[i].word, err.text);
        assert_int_equal(good.iface->params(&bad[i].c, &p, &err), MR_MISUSE);
        assert_true(!p.items && !p.count);
    }
}

/* ---- start values ----------------------------------------------------------------------------------------------- */

/* sqrt(2 / (in + out)) of a kernel; positions: 0.02; 0: nothing is drawn. */
static double start_deviation(const char *name)
{
    if (strncmp(name, "head/", 5) == 0)
        return 0;
    if (strstr(name, "pos_embedding"))
        return 0.02;
    if (!strstr(name, "/kernel"))
        return 0;
    return sqrt(2.0 / (strstr(name, "embedding") ? 192 + 64 : strstr(name, "Dense_") ? 64 + 256 : 64 + 64));
}

static void starts_as_it_says(void **state)
{
    mr_model_config c = {.iface = &mr_model_vit,
                         .name = "vit",
                         .image = 32,
                         .patch = 8,
                         .hidden = 64,
                         .layers = 2,
                         .heads = 4,
                         .mlp = 256,
                         .classes = 7};
    mr_params p = {0};
    mr_error err;
    (void)state;
    assert_int_equal(c.iface->params(&c, &p, &err), MR_OK);
    float *a = mr_alloc(p.total, sizeof *a), *b = mr_alloc(p.total, sizeof *b);
    assert_true(a && b);
    memset(a, 0xFF, p.total * sizeof *a);
    c.iface->start(&c, &p, 5, a);
    c.iface->start(&c, &p, 5, b);
    assert_memory_equal(a, b, p.total * sizeof *a);
    c.iface->start(&c, &p, 6, b);
    for (size_t i = 0; i < p.count; i++) {
        const mr_param *item = &p.items[i];
        const float *v = a + item->offset;
        double sum = 0, squares = 0, most = 0, n = (double)item->count, deviation = start_deviation(item->name);
        for (uint64_t k = 0; k < item->count; k++) {
            sum += v[k];
            squares += (double)v[k] * v[k];
            most = fmax(most, fabs((double)v[k]));
        }
        if (strstr(item->name, "/scale")) {
            assert_true(sum == n && squares == n);
            continue;
        }
        /* A normal distribution that is cut at two deviations keeps 0.8796 of its own. */
        if (most > 2.000001 * deviation || fabs(sqrt(squares / n) - 0.8796 * deviation) > deviation * 3 / sqrt(n) ||
            fabs(sum / n) > 5 * deviation / sqrt(n))
            fail_msg("%s: deviation %g, largest %g, mean %g", item->name, sqrt(squares / n), most, sum / n);
        assert_true(deviation == 0 || memcmp(v, b + item->offset, item->count * sizeof *v) != 0);
    }
    free(a);
    free(b);
    mr_params_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(params_are_in_order), cmocka_unit_test(costs_are_the_published),
        cmocka_unit_test(keys_are_googles),    cmocka_unit_test(keys_of_a_block),
        cmocka_unit_test(models_are_found),    cmocka_unit_test(check_names_the_option),
        cmocka_unit_test(starts_as_it_says),   cmocka_unit_test(many_params_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
