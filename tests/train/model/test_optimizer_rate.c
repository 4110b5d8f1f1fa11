/* test_optimizer_rate.c - learning rates by update: those of the reference schedules, and closed forms.
 * Invariant tested: update k uses the rate that the reference trainers use for it, to the last digits. */
#include "base/json/json.h"
#include "train/model/optimizer.h"
#include "tests/support/support.h"
#include "tests/support/training/npz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

static void assert_rel(double got, double expected, double tolerance, const char *what, uint64_t update)
{
    if (!(fabs(got - expected) <= tolerance * fabs(expected)))
        fail_msg("%s, update %llu: %.17g, expected %.17g", what, (ull)update, got, expected);
}

static void check_list(const json_t *list, const char *rates, const char *name)
{
    size_t i, k;
    json_t *one, *update;
    assert_true(json_array_size(list) > 0);
    json_array_foreach(list, i, one)
    {
        const char *kind = json_string_value(json_object_get(one, "kind"));
        const json_t *expected = json_object_get(one, rates);
        mr_schedule_lr s = {.base = json_number_value(json_object_get(one, "base_lr")),
                            .warmup = (uint64_t)json_integer_value(json_object_get(one, "warmup")),
                            .steps = (uint64_t)json_integer_value(json_object_get(one, "total")),
                            .decay = kind && strcmp(kind, "cosine") == 0 ? MR_DECAY_COSINE : MR_DECAY_LINEAR};
        assert_true(json_array_size(expected) > 0);
        json_array_foreach(json_object_get(one, "update"), k, update)
        {
            uint64_t number = (uint64_t)json_integer_value(update);
            assert_rel(mr_lr_at(&s, number), json_number_value(json_array_get(expected, k)), 1e-12, name, number);
        }
    }
}

static void test_rates_of_sources(void **state)
{
    (void)state;
    char *path = support_parity("schedules.json");
    if (!path) {
        print_message("no parity folder: learning rates of the sources not compared\n");
        skip();
    }
    size_t len;
    char *text = (char *)support_read(path, &len);
    json_t *doc = NULL;
    mr_error err;
    assert_int_equal(mr_json_parse(text, len, path, &doc, &err), MR_OK);
    check_list(json_object_get(doc, "vit"), "lr_used_habana", "vit");
    check_list(json_object_get(doc, "hf_linear"), "lr_used", "hf_linear");
    json_decref(doc);
    free(text);
    free(path);
}

static void test_rates_closed_form(void **state)
{
    (void)state;
    mr_schedule_lr s = {.base = 0.06, .warmup = 10, .steps = 110, .decay = MR_DECAY_COSINE};
    for (uint64_t k = 1; k <= 11; k++)
        assert_rel(mr_lr_at(&s, k), 0.06 * (double)(k - 1) / 10, 1e-15, "warm-up", k);
    /* 0.5 (1 + cos x) = cos^2(x / 2), another way to the same number. */
    for (uint64_t k = 12; k <= 110; k++) {
        double half = cos((double)(k - 11) / 100 * acos(-1) / 2);
        assert_rel(mr_lr_at(&s, k), 0.06 * half * half, 1e-11, "cosine", k);
    }
    assert_true(mr_lr_at(&s, 110) > 0);
    for (uint64_t k = 111; k < 400; k++) /* does not rise again */
        assert_true(mr_lr_at(&s, k) == 0);

    s.decay = MR_DECAY_LINEAR;
    for (uint64_t k = 11; k <= 110; k++)
        assert_rel(mr_lr_at(&s, k), 0.06 * (double)(111 - k) / 100, 1e-15, "linear", k);
    assert_true(mr_lr_at(&s, 111) == 0 && mr_lr_at(&s, UINT64_MAX) == 0);

    s.decay = MR_DECAY_NONE;
    assert_rel(mr_lr_at(&s, 6), 0.03, 1e-15, "none, warm-up", 6);
    assert_true(mr_lr_at(&s, 11) == 0.06 && mr_lr_at(&s, 1000000) == 0.06);

    mr_schedule_lr at_once = {.base = 1, .warmup = 0, .steps = 1, .decay = MR_DECAY_COSINE};
    assert_true(mr_lr_at(&at_once, 1) == 1);
    mr_schedule_lr all_warmup = {.base = 1, .warmup = 4, .steps = 4, .decay = MR_DECAY_LINEAR};
    assert_true(mr_lr_at(&all_warmup, 4) == 0.75 && mr_lr_at(&all_warmup, 5) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_of_sources),
        cmocka_unit_test(test_rates_closed_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
