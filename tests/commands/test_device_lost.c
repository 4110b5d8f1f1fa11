/* test_device_lost.c - what the program does around an OpenCL device: listing, choice by rank, and a device that runs
 * out of memory or is lost.  The device is support/preload/opencl.c, which computes nothing; no driver is needed.
 * Invariant tested: a device that is lost ends all ranks with exit status 3 and one sentence, and the last checkpoint
 * is whole. Covers opencl/opencl.c, opencl/memory.c. */
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "support/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir(), *library = support_path("%s", MILLRACE_TEST_OPENCL);
    TRAIN_PATH(cache, dir, "cache");
    train_make_dataset(dir, 30);
    setenv("LD_LIBRARY_PATH", dirname(library), 1);
    setenv("XDG_CACHE_HOME", cache, 1);
    free(library);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

static void all_devices_are_listed(void **state)
{
    (void)state;
    support_result r = support_millrace("devices", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "opencl    Fake GPU, 1.0 GiB, 3 units, OpenCL 1.2, driver 7.5"));
    assert_non_null(strstr(r.out, "opencl:1  Fake GPU"));
    assert_null(strstr(r.out, "opencl:2"));
    support_result_free(&r);
    setenv("MILLRACE_FAKE_DEVICES", "0", 1);
    r = support_millrace("devices", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "no OpenCL device is here"));
    support_result_free(&r);
    unsetenv("MILLRACE_FAKE_DEVICES");
}

static void expect_failure(const char *dir, unsigned ranks, const char *device, const char *output, const char *text)
{
    support_result r = train_run(dir, ranks, "--steps", "9", "--checkpoint-every", "2", "--eval-every", "0", "--device",
                                 device, "--output", output, (char *)NULL);
    support_assert_status(&r, 3);
    if (!strstr(r.err, text))
        fail_msg("'%s' instead of '%s'", r.err, text);
    assert_int_equal(support_occurrences(r.err, "millrace: "), 1);
    support_result_free(&r);
}

static void too_little_memory_is_named(void **state)
{
    setenv("MILLRACE_FAKE_MEMORY", "5000000", 1);
    expect_failure(*state, 0, "opencl", "small", "opencl: no memory on Fake GPU for ");
    setenv("MILLRACE_FAKE_MEMORY", "1000", 1);
    expect_failure(*state, 0, "opencl", "small", "use a smaller batch or model");
    unsetenv("MILLRACE_FAKE_MEMORY");
}

/* The run goes on from its newest checkpoint, once the device is back. */
static void expect_resumed(const char *dir, const char *output)
{
    char *last = support_path("%s/%s/step-00000009", dir, output);
    train_expect(0, dir, 0, "--steps", "9", "--resume", "--device", "opencl", "--output", output, (char *)NULL);
    assert_true(support_exists(last));
    free(last);
}

static void a_lost_device_ends_the_run(void **state)
{
    const char *dir = *state;
    TRAIN_PATH(second, dir, "one/step-00000002");
    train_expect(0, dir, 0, "--steps", "2", "--device", "opencl:1", (char *)NULL);
    expect_resumed(dir, "whole");
    setenv("MILLRACE_FAKE_LAUNCHES", "400", 1);
    expect_failure(dir, 0, "opencl", "one", "opencl: Fake GPU: ");
    assert_true(support_exists(second));
    unsetenv("MILLRACE_FAKE_LAUNCHES");
    expect_resumed(dir, "one");
    setenv("MILLRACE_FAKE_LAUNCHES", "0", 1);
    expect_failure(dir, 0, "opencl", "none", "opencl: Fake GPU: ");
    unsetenv("MILLRACE_FAKE_LAUNCHES");
}

static void a_lost_device_ends_all_ranks(void **state)
{
    const char *dir = *state;
    setenv("MILLRACE_FAKE_LAUNCHES", "400", 1);
    support_result r = train_run(dir, 2, "--steps", "30", "--checkpoint-every", "2", "--eval-every", "0", "--device",
                                 "opencl", "--output", "two", (char *)NULL);
    unsetenv("MILLRACE_FAKE_LAUNCHES");
    support_assert_status(&r, 3);
    assert_non_null(strstr(r.err, "opencl: Fake GPU: "));
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_devices_are_listed),
        cmocka_unit_test(too_little_memory_is_named),
        cmocka_unit_test(a_lost_device_ends_the_run),
        cmocka_unit_test(a_lost_device_ends_all_ranks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
