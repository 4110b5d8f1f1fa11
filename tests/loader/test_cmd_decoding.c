/* test_cmd_decoding.c - `millrace replay --decode-on device` prints the digests of the host.
 * Invariant tested: for every transform, with damaged samples and ranks, a device's float32 is the host's to the bit.
 * Covers loader/cmd_decoding.c, bench/bench_device.c, images/images.c.  The device is MILLRACE_TEST_DEVICE, usually
 * `isolated`. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/shards/loader.h"
#include "tests/support/training/model.h"
#include "tests/support/support.h"

static const char *device;

static int set_up(void **state)
{
    static const int broken[] = {7, 22, -1};
    char *dir = support_tmpdir();
    make_pictures(dir, 40, 13, broken);
    support_expect(0, "seek", "-q", "--every=2", dir, (char *)NULL);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

/* Compares a replay on the device, and on the CPU by the device's kernels, with the host's. */
static void expect_same(const char *dir, const char *augment, const char *orientation, const char *ranks,
                        const char *policy)
{
    const char *const places[][2] = {{"cpu", "host"}, {device, "device"}, {"cpu", "device"}};
    support_result want = {.out = NULL};
    for (size_t i = 0; i < MR_COUNT(places); i++) {
        support_result r =
            support_millrace("replay", dir, "--global-batch", "8", "--size", "30", "--augment", augment,
                             "--orientation", orientation, "--ranks", ranks, "--on-bad", policy, "--list", "--tail",
                             "pad", "--device", places[i][0], "--decode-on", places[i][1], (char *)NULL);
        support_assert_status(&r, 0);
        if (i == 0) {
            want = r;
            continue;
        }
        assert_string_equal(want.out, r.out);
        assert_string_equal(want.err, r.err);
        support_result_free(&r);
    }
    support_result_free(&want);
}

static void digests_are_those_of_the_host(void **state)
{
    expect_same(*state, "train", "apply", "1", "replace");
    expect_same(*state, "eval", "ignore", "2", "mask");
    expect_same(*state, "center", "apply", "4", "replace");
}

static void other_forms_are_refused(void **state)
{
    static const char *const wrong[] = {"--decode-on=device", "--device=isolated", "--device=none"};
    static const char *const says[] = {
        "--decode-on device: devices decode to float32 only; add --size or --deliver f32",
        "--device: devices decode to float32 only; add --size or --deliver f32", "--device"};
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        support_result r = support_millrace("replay", *state, "--global-batch", "8", wrong[i], (char *)NULL);
        support_assert_status(&r, 2);
        assert_non_null(strstr(r.err, says[i]));
        support_result_free(&r);
    }
    support_result r =
        support_millrace("replay", *state, "--global-batch", "8", "--size", "8", "--device", "none", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "unknown device 'none'"));
    support_result_free(&r);
}

static void a_benchmark_counts_pictures(void **state)
{
    support_result r =
        support_millrace("bench", *state, "--stage", "decode", "--seconds", "0.05", "--threads", "1", "--size", "16",
                         "--device", device, "--decode-on", "device", "--json", (char *)NULL);
    support_assert_status(&r, 1); /* it ends at the damaged samples */
    assert_non_null(strstr(r.err, "sample"));
    support_result_free(&r);
    char *whole = support_path("%s/whole", (const char *)*state);
    assert_int_equal(mkdir(whole, 0777), 0);
    make_pictures(whole, 40, 13, NULL);
    support_expect(0, "seek", "-q", whole, (char *)NULL);
    r = support_millrace("bench", whole, "--stage", "decode", "--seconds", "0.05", "--threads", "1", "--size", "16",
                         "--device", device, "--decode-on", "device", "--json", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL), *on = json_object_get(doc, "on_device");
    assert_true(json_integer_value(json_object_get(on, "decoded_on_device")) > 0);
    assert_true(json_integer_value(json_object_get(on, "decoded_on_host")) > 0);
    assert_int_equal(json_integer_value(json_object_get(on, "flagged_by_device")), 0);
    assert_true(json_real_value(json_object_get(on, "describe_us")) > 0);
    const json_t *work = json_object_get(on, "work");
    double parts = json_real_value(json_object_get(work, "batch_parts"));
    double longest = json_real_value(json_object_get(work, "batch_longest_symbols"));
    double symbols = json_real_value(json_object_get(work, "batch_symbols"));
    assert_true(json_real_value(json_object_get(work, "values")) == 3 * 16 * 16);
    assert_true(parts >= 1 && longest > 0 && symbols >= longest &&
                json_real_value(json_object_get(work, "warp_ratio")) >= 1);
    assert_true(json_real_value(json_object_get(work, "moved_bytes")) > 4 * 3 * 16 * 16);
    json_decref(doc);
    support_result_free(&r);
    r = support_millrace("bench", whole, "--stage", "read", "--device", "isolated", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "--device: devices decode to float32 only; use --stage decode or input"));
    support_result_free(&r);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_host),
        cmocka_unit_test(other_forms_are_refused),
        cmocka_unit_test(a_benchmark_counts_pictures),
    };
    device = getenv("MILLRACE_TEST_DEVICE");
    if (device)
        mr_device_close(support_device(1)); /* where there is none, the test ends here */
    else
        device = "isolated";
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
