/* test_profile.c - `train --profile` through the program.
 * Invariant tested: what is measured is learned the same, and the parts add up to the time of the updates.
 * Covers run/trainer_profile.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 120);
    *state = dir;
    return 0;
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void parts_add_up(void **state)
{
    static const char *const rows[] = {"  matrix products", "  attention", "  waiting for data", "  the rest",
                                       "\nLimits: "};
    const char *dir = *state;
    IN(results, "measured/train_results.json");
    IN(a, "measured/step-00000004/weights.npz");
    IN(b, "plain/step-00000004/weights.npz");
    support_result r =
        train_run(dir, 2, "--steps", "4", "--eval-every", "2", "--profile", "--output", "measured", (char *)NULL);
    support_assert_status(&r, 0);
    for (size_t i = 0; i < MR_COUNT(rows); i++)
        assert_non_null(strstr(r.out, rows[i]));
    support_result_free(&r);
    train_expect(0, dir, 2, "--steps", "4", "--eval-every", "2", "--output", "plain", (char *)NULL);
    support_assert_same_file(a, b);
    json_t *doc = json_load_file(results, 0, NULL), *profile = json_object_get(doc, "profile");
    double sum =
        number(profile, "wait_seconds") + number(profile, "exchange_seconds") + number(profile, "rest_seconds");
    size_t i;
    json_t *family;
    json_array_foreach(json_object_get(profile, "families"), i, family) sum += number(family, "seconds");
    assert_true(i >= 7);
    assert_true(number(profile, "seconds") > 0 && number(profile, "limit_flops_per_second") > 0);
    assert_true(fabs(sum - number(profile, "seconds")) <= 0.05 * sum);
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
