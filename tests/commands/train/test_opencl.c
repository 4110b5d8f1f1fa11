/* test_opencl.c - runs on an OpenCL device.
 * Invariant tested: a run learns as on the CPU, up to rounding; the same run gives the same bits; checkpoints move both
 * ways; ranks share a device.  Skipped where there is none.
 * Covers opencl/opencl.c, opencl/program.c, launch/cache.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/training/model.h"
#include "tests/support/training/train.h"

static const double rounding = 2e-4; /* of weights of order 1 after the updates of these runs */

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_pairs(dir);
    TRAIN_PATH(labels, dir, "labels");
    train_make_dataset(labels, 40);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

static void expect_same(const char *dir, const char *a, const char *b, const char *file)
{
    char *one = support_path("%s/%s/%s", dir, a, file), *other = support_path("%s/%s/%s", dir, b, file);
    support_assert_same_file(one, other);
    free(one);
    free(other);
}

static void expect_near(const char *dir, const char *a, const char *b, const char *file)
{
    char *one = support_path("%s/%s/%s", dir, a, file), *other = support_path("%s/%s/%s", dir, b, file);
    double distance =
        strstr(file, "safetensors") ? train_tensors_distance(one, other, "", NULL) : train_weights_distance(one, other);
    if (!(distance < rounding))
        fail_msg("%s: %s and %s are %g apart", file, a, b, distance);
    free(one);
    free(other);
}

static void labels_as_on_the_cpu(void **state)
{
    TRAIN_PATH(dir, *state, "labels");
    TRAIN_PATH(log, dir, "cpu.log");
    TRAIN_PATH(other, dir, "opencl.log");
    static const char *const runs[][2] = {{"cpu", "cpu"}, {"opencl", "opencl"}, {"again", "opencl:0"}};
    for (size_t i = 0; i < MR_COUNT(runs); i++) {
        char *log_file = support_path("%s.log", runs[i][0]);
        train_expect(0, dir, 0, "--steps", "30", "--output", runs[i][0], "--device", runs[i][1], "--dropout", "0.1",
                     "--grad-accum", "2", "--log", log_file, (char *)NULL);
        free(log_file);
    }
    expect_same(dir, "opencl", "again", "step-00000030/weights.npz");
    expect_same(dir, "opencl", "again", "step-00000030/optimizer.npz");
    expect_near(dir, "cpu", "opencl", "step-00000030/weights.npz");
    assert_true(train_log_distance(log, other, "loss") < 1e-4);
}

/* Sums in another order round to other numbers of bf16 here and there. */
static void bf16_learns_as_on_the_cpu(void **state)
{
    TRAIN_PATH(dir, *state, "labels");
    static const char *const runs[][2] = {{"cpu-16", "cpu"}, {"opencl-16", "opencl"}, {"again-16", "opencl"}};
    for (size_t i = 0; i < MR_COUNT(runs); i++) {
        char *log_file = support_path("%s.log", runs[i][0]);
        train_expect(0, dir, 0, "--steps", "10", "--output", runs[i][0], "--device", runs[i][1], "--precision", "bf16",
                     "--log", log_file, (char *)NULL);
        free(log_file);
    }
    TRAIN_PATH(log, dir, "cpu-16.log");
    TRAIN_PATH(other, dir, "opencl-16.log");
    expect_same(dir, "opencl-16", "again-16", "step-00000010/weights.npz");
    assert_true(train_log_distance(log, other, "loss") < 0.02);
}

static void pairs_as_on_the_cpu(void **state)
{
    const char *dir = *state;
    train_pairs_expect(0, dir, 0, "--steps", "6", "--output", "c", (char *)NULL);
    train_pairs_expect(0, dir, 0, "--steps", "6", "--output", "o", "--device", "opencl", (char *)NULL);
    expect_near(dir, "c", "o", "step-00000006/model.safetensors");
}

static void two_ranks_share_a_device(void **state)
{
    const char *dir = *state;
    TRAIN_PATH(labels, dir, "labels");
    train_expect(0, labels, 2, "--steps", "4", "--output", "two-c", "--exchange", "buckets", (char *)NULL);
    train_expect(0, labels, 2, "--steps", "4", "--output", "two-o", "--exchange", "buckets", "--device", "opencl",
                 (char *)NULL);
    expect_near(labels, "two-c", "two-o", "step-00000004/weights.npz");
    train_pairs_expect(0, dir, 2, "--steps", "3", "--output", "two-c", "--gather-negatives", (char *)NULL);
    train_pairs_expect(0, dir, 2, "--steps", "3", "--output", "two-o", "--gather-negatives", "--device", "opencl",
                       (char *)NULL);
    expect_near(dir, "two-c", "two-o", "step-00000003/model.safetensors");
}

static void checkpoints_move_between_devices(void **state)
{
    static const char *const from[] = {"cpu", "opencl"}, *const to[] = {"opencl", "cpu"};
    TRAIN_PATH(dir, *state, "labels");
    train_expect(0, dir, 0, "--steps", "6", "--output", "whole", (char *)NULL);
    for (size_t i = 0; i < 2; i++) {
        char *output = support_path("moved-%s", from[i]);
        train_expect(0, dir, 0, "--steps", "6", "--stop-after", "3", "--output", output, "--device", from[i],
                     (char *)NULL);
        support_result r =
            train_command(0, dir, 0, "train", "data", "--resume", "--output", output, "--device", to[i], (char *)NULL);
        support_result_free(&r);
        expect_near(dir, "whole", output, "step-00000006/weights.npz");
        free(output);
    }
}

static void a_device_that_is_not_there_is_named(void **state)
{
    TRAIN_PATH(dir, *state, "labels");
    support_result r = train_run(dir, 0, "--steps", "1", "--device", "opencl:99", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "there is no opencl:99"));
    support_result_free(&r);
    r = train_run(dir, 0, "--steps", "1", "--device", "opencl:x", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "'x' is not a number"));
    support_result_free(&r);
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1); /* the loader of Debian finds no driver then */
    r = train_run(dir, 0, "--steps", "1", "--device", "opencl", (char *)NULL);
    support_assert_status(&r, 3);
    assert_non_null(strstr(r.err, "no OpenCL device found"));
    support_result_free(&r);
    unsetenv("OCL_ICD_VENDORS");
}

/* Damage to the cached kernels is noticed, and a folder that cannot be written does not fail the run. */
static void a_damaged_cache_is_rebuilt(void **state)
{
    const char *dir = *state;
    TRAIN_PATH(labels, dir, "labels");
    TRAIN_PATH(cache, dir, "cache");
    TRAIN_PATH(folder, dir, "cache/millrace/opencl");
    char *before = getenv("XDG_CACHE_HOME"), *kept = before ? support_path("%s", before) : NULL;
    setenv("XDG_CACHE_HOME", cache, 1);
    for (int i = 0; i < 3; i++) {
        train_expect(0, labels, 0, "--steps", "1", "--device", "opencl", (char *)NULL);
        char *name = support_list(folder);
        name[strcspn(name, "\n")] = '\0';
        char *path = support_path("%s/%s", folder, name);
        uint64_t size = support_size(path);
        assert_true(size > 1000); /* whole again, whatever was there */
        if (i == 0)
            support_write(path, "no program", 10);
        else
            assert_int_equal(truncate(path, (off_t)(size / 2)), 0);
        free(name);
        free(path);
    }
    setenv("XDG_CACHE_HOME", "/proc", 1);
    train_expect(0, labels, 0, "--steps", "1", "--device", "opencl", (char *)NULL);
    if (kept)
        setenv("XDG_CACHE_HOME", kept, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_as_on_the_cpu),
        cmocka_unit_test(bf16_learns_as_on_the_cpu),
        cmocka_unit_test(pairs_as_on_the_cpu),
        cmocka_unit_test(two_ranks_share_a_device),
        cmocka_unit_test(checkpoints_move_between_devices),
        cmocka_unit_test(a_device_that_is_not_there_is_named),
        cmocka_unit_test(a_damaged_cache_is_rebuilt),
    };
    setenv("MILLRACE_TEST_DEVICE", "opencl", 1);
    mr_device_close(support_device(1)); /* where there is none, the test ends here */
    unsetenv("MILLRACE_TEST_DEVICE");
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
