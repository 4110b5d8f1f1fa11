/* test_ema.c - `train --ema`: a mean of the weights beside them.
 * Invariant tested: the weights learn as without it; the mean is that of the formula, on any device and number of
 * ranks, and across a resume; it is what is evaluated and kept. Covers checkpoint/arrays.c, checkpoint/share.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "train/files/npz.h"
#include "tests/support/training/train.h"

enum { STEPS = 4, MOST = 200000 };

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 60);
    train_expect(0, dir, 0, "--steps", "4", "--batch", "4", "--eval-every", "1", "--keep", "0", "--output", "plain",
                 (char *)NULL);
    train_expect(0, dir, 0, "--steps", "4", "--batch", "4", "--eval-every", "1", "--keep", "0", "--output", "mean",
                 "--ema", "0.75", (char *)NULL);
    *state = dir;
    return 0;
}

/* All arrays of a file whose names begin with `prefix`, one after another; heap. */
static float *read_arrays(const char *dir, const char *run, unsigned step, const char *file, const char *prefix,
                          size_t *count)
{
    char *path = support_path("%s/%s/step-%08u/%s", dir, run, step, file);
    float *out = calloc(MOST, sizeof *out);
    mr_npz_reader *npz = NULL;
    const mr_npz_array *a;
    mr_error err;
    *count = 0;
    assert_non_null(out);
    if (mr_npz_open(path, &npz, &err) != MR_OK)
        fail_msg("%s", err.text);
    while (mr_npz_next(npz, &a, &err) == MR_OK) {
        bool counts = strncmp(a->name, prefix, strlen(prefix)) == 0;
        assert_true(*count + a->count <= MOST);
        assert_int_equal(mr_npz_take(npz, out + *count, (size_t)a->count * sizeof *out, &err), MR_OK);
        *count += counts ? (size_t)a->count : 0;
    }
    mr_npz_reader_free(npz);
    free(path);
    assert_true(*count > 1000);
    return out;
}

static void the_mean_is_that_of_the_formula(void **state)
{
    size_t count, again;
    float *mean = NULL;
    for (unsigned step = 1; step <= STEPS; step++) {
        float *plain = read_arrays(*state, "plain", step, "weights.npz", "", &count);
        float *weights = read_arrays(*state, "mean", step, "optimizer.npz", "weights/", &again);
        assert_int_equal(count, again);
        for (size_t i = 0; i < count; i++)
            assert_true(plain[i] == weights[i]);
        float *kept = read_arrays(*state, "mean", step, "weights.npz", "", &count);
        for (size_t i = 0; mean && i < count; i++)
            assert_true(fabs(0.75 * (double)mean[i] + 0.25 * (double)weights[i] - (double)kept[i]) < 1e-6);
        free(mean);
        mean = kept;
        free(plain);
        free(weights);
    }
    free(mean);
}

static void expect_same(const char *dir, const char *run, double most)
{
    char *a = support_path("%s/mean/step-00000004/weights.npz", dir);
    char *b = support_path("%s/%s/step-00000004/weights.npz", dir, run);
    if (most > 0)
        assert_true(train_weights_distance(a, b) < most);
    else
        support_assert_same_file(a, b);
    free(a);
    free(b);
}

static void ranks_devices_and_resumes_change_nothing(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "4", "--batch", "4", "--ema", "0.75", "--output", "isolated", "--device",
                 "isolated", (char *)NULL);
    expect_same(dir, "isolated", 0);
    train_expect(0, dir, 2, "--steps", "4", "--batch", "2", "--ema", "0.75", "--output", "two", (char *)NULL);
    expect_same(dir, "two", 1e-5);
    for (unsigned ranks = 0; ranks <= 2; ranks += 2) {
        char *run = support_path("half-%u", ranks);
        train_expect(0, dir, ranks, "--steps", "4", "--batch", ranks ? "2" : "4", "--ema", "0.75", "--output", run,
                     "--stop-after", "2", (char *)NULL);
        support_result r = train_command(0, dir, ranks, "train", "data", "--resume", "--output", run, (char *)NULL);
        support_result_free(&r);
        expect_same(dir, run, ranks ? 1e-5 : 0);
        free(run);
    }
}

static void the_mean_is_what_is_evaluated(void **state)
{
    const char *dir = *state;
    json_t *found[2];
    for (int i = 0; i < 2; i++) {
        char *path = support_path("%s/%s/train_results.json", dir, i ? "mean" : "plain");
        found[i] = json_load_file(path, 0, NULL);
        free(path);
    }
    double plain = json_real_value(json_object_get(found[0], "eval_loss"));
    double mean = json_real_value(json_object_get(found[1], "eval_loss"));
    assert_true(plain > 0 && plain != mean);
    support_result r = train_command(0, dir, 0, "eval", "data", "mean", "--json", (char *)NULL);
    json_t *doc = json_loads(r.out, 0, NULL);
    assert_true(fabs(json_real_value(json_object_get(doc, "loss")) - mean) < 1e-9);
    json_decref(doc);
    json_decref(found[0]);
    json_decref(found[1]);
    support_result_free(&r);
    r = train_run(dir, 0, "--steps", "1", "--ema", "1", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "--ema 1: must be at least 0 and below 1"));
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_that_of_the_formula),
        cmocka_unit_test(ranks_devices_and_resumes_change_nothing),
        cmocka_unit_test(the_mean_is_what_is_evaluated),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
