/* test_cmd_decoding.c - `millrace replay --decode-on device` prints the digests of the host.
 * Invariant tested: for every transform, with damaged samples and ranks, a device's float32 is the host's to the bit.
 * Covers loader/cmd_decoding.c, images/images.c.  The device is MILLRACE_TEST_DEVICE, usually `apart`. */
#include <stdlib.h>
#include <string.h>

#include "support/loader.h"
#include "support/model.h"
#include "support/support.h"

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
    static const char *const wrong[] = {"--decode-on=device", "--device=apart", "--device=none"};
    static const char *const says[] = {"--decode-on device: devices decode to float32; add --deliver f32",
                                       "--device: devices decode to float32; add --deliver f32", "--device"};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_host),
        cmocka_unit_test(other_forms_are_refused),
    };
    device = getenv("MILLRACE_TEST_DEVICE");
    if (device)
        mr_device_close(support_device(1)); /* where there is none, the test ends here */
    else
        device = "apart";
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
