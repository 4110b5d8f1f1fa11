/* test_device_lost.c - what the program does around an OpenCL device: listing, choice by rank, waiting, and a device
 * that runs out of memory or is lost.  The device is support/preload/opencl.c, which computes nothing; no driver is
 * needed. Invariant tested: a device that is lost ends all ranks with exit status 3 and one sentence, and the last
 * checkpoint is whole; an update waits for the device only when all of its passes are queued. Covers opencl/opencl.c,
 * opencl/memory.c, opencl/copies.c, run/losses.c. */
#include <dirent.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/training/train.h"

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
    assert_non_null(strstr(r.out, " Fake GPU, 1.0 GiB, 3 units, OpenCL 1.2, driver 7.5\n  opencl:1  yes "));
    assert_null(strstr(r.out, "opencl:2"));
    support_result_free(&r);
    setenv("MILLRACE_FAKE_DEVICES", "0", 1);
    r = support_millrace("devices", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "no OpenCL device found"));
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
    setenv("MILLRACE_FAKE_MEMORY", "4300000", 1);
    expect_failure(*state, 0, "opencl", "small",
                   " bytes of activations, with 4194304 of 4300000 in use: partial sums 4194304 (");
    setenv("MILLRACE_FAKE_MEMORY", "1000", 1);
    expect_failure(*state, 0, "opencl", "small", "use a smaller batch or model");
    unsetenv("MILLRACE_FAKE_MEMORY");
    setenv("MILLRACE_FAKE_BUFFER", "1000000", 1);
    expect_failure(*state, 0, "opencl", "small", "opencl: no memory on Fake GPU for 4194304 bytes of partial sums, ");
    unsetenv("MILLRACE_FAKE_BUFFER");
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

typedef struct calls {
    size_t buffers, waits;
    size_t most; /* kernels that are queued one after another without a wait between them */
} calls;

static void count_calls(const char *text, calls *c)
{
    size_t kernels = 0;
    for (; *text; text++) {
        c->buffers += *text == 'b';
        kernels += *text == 'k';
        c->most = kernels > c->most ? kernels : c->most;
        if (strchr("WREF", *text)) {
            c->waits++;
            kernels = 0;
        }
    }
}

/* What the processes of a run asked of the device. */
static calls calls_of_run(const char *dir, unsigned ranks, const char *steps, const char *accum)
{
    TRAIN_PATH(folder, dir, "calls");
    calls c = {0};
    assert_int_equal(mkdir(folder, 0700), 0);
    setenv("MILLRACE_FAKE_CALLS", folder, 1);
    train_expect(0, dir, ranks, "--steps", steps, "--batch", "2", "--grad-accum", accum, "--exchange", "buckets",
                 "--device", "opencl", "--decode-on", "host", (char *)NULL);
    unsetenv("MILLRACE_FAKE_CALLS");
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    for (struct dirent *e; (e = readdir(listing));) {
        char *path = support_path("%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') {
            uint8_t *text = support_read(path, NULL);
            count_calls((const char *)text, &c);
            free(text);
            assert_int_equal(unlink(path), 0);
        }
        free(path);
    }
    closedir(listing);
    assert_int_equal(rmdir(folder), 0);
    return c;
}

/* However many micro-steps it has: for the losses, for failures, for the norm of the gradients.  With several ranks the
 * gradients are copied too. */
static void an_update_waits_when_all_is_queued(void **state)
{
    enum { FEW = 2, MANY = 5, ALONE = 3, COPIED = 1 };
    for (unsigned ranks = 0; ranks <= 2; ranks += 2) {
        calls one = calls_of_run(*state, ranks, "2", "1"), ones = calls_of_run(*state, ranks, "5", "1"),
              three = calls_of_run(*state, ranks, "2", "3"), threes = calls_of_run(*state, ranks, "5", "3");
        size_t each = ranks ? ranks * (ALONE + COPIED) : ALONE;
        assert_int_equal(ones.waits - one.waits, (MANY - FEW) * each);
        assert_int_equal(threes.waits - three.waits, (MANY - FEW) * each);
        assert_true(three.most > 2 * one.most);
    }
}

/* Tensors share buffers. */
static void memory_is_a_few_buffers(void **state)
{
    calls c = calls_of_run(*state, 0, "2", "1");
    assert_in_range(c.buffers, 1, 3);
}

/* The run goes on from its newest checkpoint, once the device is back. */
static void expect_resumed(const char *dir, unsigned ranks, const char *output)
{
    char *last = support_path("%s/%s/step-00000009", dir, output);
    train_expect(0, dir, ranks, "--steps", "9", "--resume", "--device", "opencl", "--output", output, (char *)NULL);
    assert_true(support_exists(last));
    free(last);
}

static void a_lost_device_ends_the_run(void **state)
{
    const char *dir = *state;
    TRAIN_PATH(second, dir, "one/step-00000002");
    train_expect(0, dir, 0, "--steps", "2", "--device", "opencl:1", (char *)NULL);
    expect_resumed(dir, 0, "whole");
    setenv("MILLRACE_FAKE_LAUNCHES", "400", 1);
    expect_failure(dir, 0, "opencl", "one", "opencl: Fake GPU: ");
    assert_true(support_exists(second));
    unsetenv("MILLRACE_FAKE_LAUNCHES");
    expect_resumed(dir, 0, "one");
    setenv("MILLRACE_FAKE_LAUNCHES", "0", 1);
    expect_failure(dir, 0, "opencl", "none", "opencl: Fake GPU: ");
    unsetenv("MILLRACE_FAKE_LAUNCHES");
}

static void a_lost_device_ends_all_ranks(void **state)
{
    const char *dir = *state;
    static const char *const losers[] = {"1", NULL}; /* both */
    setenv("MILLRACE_FAKE_LAUNCHES", "400", 1);
    for (size_t i = 0; i < sizeof losers / sizeof *losers; i++) {
        char *output = support_path("lost-%zu", i), *second = support_path("%s/%s/step-00000002", dir, output);
        if (losers[i])
            setenv("MILLRACE_FAKE_RANK", losers[i], 1);
        else
            unsetenv("MILLRACE_FAKE_RANK");
        expect_failure(dir, 2, "opencl", output, "opencl: Fake GPU: ");
        assert_true(support_exists(second));
        setenv("MILLRACE_FAKE_RANK", "9", 1);
        expect_resumed(dir, 2, output);
        free(output);
        free(second);
    }
    unsetenv("MILLRACE_FAKE_RANK");
    unsetenv("MILLRACE_FAKE_LAUNCHES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_devices_are_listed),
        cmocka_unit_test(too_little_memory_is_named),
        cmocka_unit_test(an_update_waits_when_all_is_queued),
        cmocka_unit_test(memory_is_a_few_buffers),
        cmocka_unit_test(a_lost_device_ends_the_run),
        cmocka_unit_test(a_lost_device_ends_all_ranks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
