/* test_shape.c - the shape of BridgeTower: ranges of options, costs, start values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/model/bridgetower/parts.h"
#include "tests/support/sources/pairs.h"

/* ---- options ---------------------------------------------------------------------------------------------------- */

static void check_names_the_option(void **state)
{
    const mr_model_config good = support_pairs_shape();
    struct {
        mr_model_config c;
        const char *word;
    } bad[] = {{good, "--image-size 0"},
               {good, "--patch 0"},
               {good, "--hidden 0"},
               {good, "--layers 129"},
               {good, "--cross-layers 4: give a number from 1 to 3"},
               {good, "--heads 0"},
               {good, "--mlp 0"},
               {good, "--embed 0"},
               {good, "vocab_size 3"},
               {good, "max_position_embeddings 3"},
               {good, "--max-text 23: give a number from 2 to 22"},
               {good, "--max-text 1"},
               {good, "--image-size 27 is not a multiple of --patch 8; the nearest is 24"},
               {good, "--image-size 7"},
               {good, "--hidden 100 is not a multiple of 64"},
               {good, "nearest is 64"},
               {good, "--heads 3 do not divide --hidden 64 evenly; the nearest is 2"},
               {good, "nearest is 64"},
               {good, "--dropout 1"},
               {good, "attention_dropout"},
               {good, "norm_eps"},
               {good, "logit_scale"},
               {good, "--cross-layers 0"},
               {good, "norm_eps"},
               {good, "max_position_embeddings 1"}};
    mr_error err;
    (void)state;
    bad[0].c.image = 0, bad[1].c.patch = 0, bad[2].c.hidden = 0, bad[3].c.layers = 129, bad[4].c.cross_layers = 4;
    bad[5].c.heads = 0, bad[6].c.mlp = 0, bad[7].c.embed = 0, bad[8].c.vocab = 3, bad[9].c.positions = 3;
    bad[10].c.text = 23, bad[11].c.text = 1, bad[12].c.image = 27, bad[13].c.image = 7, bad[14].c.hidden = 100;
    bad[15].c.hidden = 1, bad[16].c.heads = 3, bad[17].c.heads = 99, bad[18].c.dropout = 1;
    bad[19].c.attention_dropout = NAN, bad[20].c.norm_eps = 0, bad[21].c.logit_scale = INFINITY;
    bad[22].c.cross_layers = 0, bad[23].c.norm_eps = NAN, bad[24].c.positions = 1;
    assert_int_equal(mr_bt_check(&good, &err), MR_OK);
    for (size_t i = 0; i < MR_COUNT(bad); i++) {
        mr_params p = {0};
        assert_int_equal(mr_bt_check(&bad[i].c, &err), MR_MISUSE);
        if (!strstr(err.text, bad[i].word))
            fail_msg("'%s' is not in: %s", bad[i].word, err.text);
        assert_int_equal(mr_bt_params(&bad[i].c, &p, &err), MR_MISUSE);
        assert_true(!p.items && !p.count);
    }
}

/* The most layers that are taken are listed in the blink of an eye, and widths beyond memory are refused. */
static void extremes_work(void **state)
{
    mr_model_config c = support_pairs_shape();
    mr_error err;
    (void)state;
    c.layers = c.cross_layers = 128;
    mr_params p = support_pairs_params(&c);
    assert_int_equal(p.count, 32 + 128 * (16 + 12 + 52) + 127 * 4);
    mr_params_release(&p);
    c.cross_layers = 1;
    p = support_pairs_params(&c);
    mr_params_release(&p);
    c.hidden = 1 << 20, c.heads = 1, c.mlp = 1 << 20, c.vocab = 1 << 24, c.layers = 128;
    mr_status status = mr_bt_params(&c, &p, &err); /* 2^59 elements, if the machine can name so many */
    assert_true(status == MR_OK || status == MR_MISUSE);
    mr_params_release(&p);
}

/* ---- costs ------------------------------------------------------------------------------------------------------ */

/* Measured with torch.utils.flop_counter on the reference: GFLOP a sample of the large model. */
static void costs_are_the_measured(void **state)
{
    static const struct {
        uint32_t text;
        const char *forward, *training;
    } known[] = {{128, "496.464", "1488.860"}, {64, "441", "1323"}, {40, "421", "1262"}, {32, "414", "1241"}};
    mr_model_config c = mr_bt_presets[0];
    mr_model_costs costs;
    (void)state;
    for (size_t i = 0; i < MR_COUNT(known); i++) {
        char text[32];
        int digits = i ? 0 : 3;
        c.text = known[i].text;
        mr_bt_costs(&c, 4, true, &costs);
        snprintf(text, sizeof text, "%.*f", digits, costs.forward_flops / 1e9);
        assert_string_equal(text, known[i].forward);
        snprintf(text, sizeof text, "%.*f", digits, costs.training_flops / 1e9);
        assert_string_equal(text, known[i].training);
        assert_int_equal(costs.parameters, 865563137);
        assert_int_equal(costs.activation_bytes, mr_bt_activation_bytes(&c, 4, true));
    }
    c = support_pairs_shape();
    for (c.cross_layers = 1; c.cross_layers <= 3; c.cross_layers++) {
        mr_params p = support_pairs_params(&c);
        mr_bt_costs(&c, 1, false, &costs);
        assert_int_equal(costs.parameters, p.elements);
        mr_params_release(&p);
    }
}

/* SPEED: vision 286.7, text 78.9 GFLOP forward; a frozen tower is spared twice that, and the way to its end. */
static void frozen_towers_cost_less(void **state)
{
    mr_model_config c = mr_bt_presets[0];
    mr_model_costs all, words_only, pictures_only, neither;
    (void)state;
    mr_bt_costs(&c, 1, true, &all);
    c.frozen = MR_FROZEN_IMAGES;
    mr_bt_costs(&c, 1, true, &words_only);
    c.frozen = MR_FROZEN_TEXT;
    mr_bt_costs(&c, 1, true, &pictures_only);
    c.frozen = MR_FROZEN_TEXT | MR_FROZEN_IMAGES;
    mr_bt_costs(&c, 1, true, &neither);
    assert_true(words_only.forward_flops == all.forward_flops && neither.forward_flops == all.forward_flops);
    const double transforms[2] = {6 * 2 * 128 * 1024.0 * 1024, 7 * 2 * 442 * 1024.0 * 1024}, patches = 0.531e9;
    assert_true(fabs(all.training_flops - words_only.training_flops - 2 * 286.7e9 - transforms[1] + patches) < 0.2e9);
    assert_true(fabs(all.training_flops - pictures_only.training_flops - 2 * 78.9e9 - transforms[0]) < 0.2e9);
    assert_true(fabs(all.training_flops - neither.training_flops -
                     (all.training_flops - words_only.training_flops + all.training_flops -
                      pictures_only.training_flops)) < 1e3);
}

/* ---- start values ----------------------------------------------------------------------------------------------- */

/* sqrt(2 / (in + out)) of a kernel, 0.02 of a table; 0: nothing is drawn. */
static double start_deviation(const mr_param *p)
{
    if (strstr(p->name, "bias") || strcmp(p->name, "logit_scale") == 0)
        return 0;
    if (strstr(p->name, "patch_embedding"))
        return sqrt(2.0 / (64 + 192));
    if (strstr(p->name, "embedding"))
        return 0.02;
    return sqrt(2.0 / (strstr(p->name, "in_proj") ? 128.0 : (double)(p->shape[0] + p->shape[1])));
}

/* Rows that are drawn: padding's of words and positions are zero. */
static const float *drawn(const mr_param *p, const float *values, uint64_t *count)
{
    bool padded = strstr(p->name, "word_embeddings") || strstr(p->name, "position_embeddings");
    for (uint64_t k = 64; padded && k < 128; k++)
        assert_true(values[p->offset + k] == 0);
    *count = p->count - (padded ? 128 : 0);
    return values + p->offset + (padded ? 128 : 0);
}

static void starts_as_it_says(void **state)
{
    mr_model_config c = support_pairs_shape();
    mr_params p = support_pairs_params(&c);
    float *a = mr_alloc(p.total, sizeof *a), *b = mr_alloc(p.total, sizeof *b);
    uint64_t end = 0;
    (void)state;
    assert_true(a && b);
    memset(a, 0xFF, p.total * sizeof *a);
    mr_bt_start(&c, &p, 5, a);
    mr_bt_start(&c, &p, 5, b);
    assert_memory_equal(a, b, p.total * sizeof *a);
    mr_bt_start(&c, &p, 6, b);
    for (size_t i = 0; i < p.count; i++) {
        const mr_param *item = &p.items[i];
        uint64_t count;
        const float *v = drawn(item, a, &count);
        double sum = 0, squares = 0, most = 0, n = (double)count;
        for (; end < item->offset; end++)
            assert_true(a[end] == 0);
        end += item->count;
        for (uint64_t k = 0; k < count; k++) {
            sum += v[k];
            squares += (double)v[k] * v[k];
            most = fmax(most, fabs((double)v[k]));
        }
        if (item->dims == 1 && strstr(item->name, ".weight")) {
            assert_true(sum == n && squares == n);
            continue;
        }
        if (strcmp(item->name, "logit_scale") == 0) {
            assert_true(*v == 2.6592F);
            continue;
        }
        /* A normal distribution that is cut at two deviations keeps 0.8796 of its own. */
        double deviation = start_deviation(item);
        if (most > 2.000001 * deviation || fabs(sqrt(squares / n) - 0.8796 * deviation) > deviation * 3 / sqrt(n) ||
            fabs(sum / n) > 5 * deviation / sqrt(n))
            fail_msg("%s: deviation %g, largest %g, mean %g", item->name, sqrt(squares / n), most, sum / n);
        assert_true(deviation == 0 || memcmp(v, b + (v - a), count * sizeof *v) != 0);
    }
    free(a);
    free(b);
    mr_params_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_names_the_option), cmocka_unit_test(extremes_work),
        cmocka_unit_test(costs_are_the_measured), cmocka_unit_test(frozen_towers_cost_less),
        cmocka_unit_test(starts_as_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
