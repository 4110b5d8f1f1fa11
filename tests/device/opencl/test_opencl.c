/* test_opencl.c - the memory of an OpenCL device, and what it refuses.  Skipped where there is none.
 * Invariant tested: the host cannot touch memory of the device; what is wrong with an operation is reported by wait(),
 * and what is downloaded after it is not taken for numbers.
 * Covers opencl/memory.c, opencl/copies.c, opencl/api.c, launch/call.c. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "tests/support/training/model.h"

static float *give(mr_device *d, size_t count, float value)
{
    mr_error err;
    float *host = mr_alloc(count, sizeof *host);
    void *memory;
    if (d->iface->alloc(d, count * sizeof *host, "tests", &memory, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    d->iface->upload(d, memory, host, count * sizeof *host);
    free(host);
    return memory;
}

/* The signal that ends a child that runs `touch`. */
static int signal_of(void (*touch)(volatile float *x), float *x)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        touch(x);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void read_it(volatile float *x)
{
    (void)x[0];
}

static void write_it(volatile float *x)
{
    x[0] = 1;
}

static void the_host_cannot_touch_it(void **state)
{
    (void)state;
    mr_device *d = support_device(1);
    float *x = give(d, 2000, 1);
    assert_int_equal(signal_of(read_it, x), SIGSEGV);
    assert_int_equal(signal_of(write_it, x + 1999), SIGSEGV);
    mr_device_close(d);
}

/* A pointer into a tensor is as good as its start, and others beside it are not touched. */
static void pointers_are_reckoned_with(void **state)
{
    (void)state;
    enum { N = 5000, AT = 1237, COUNT = 301 };
    mr_device *d = support_device(1);
    float *x = give(d, N, 1), *others[8], out[N];
    for (size_t i = 0; i < MR_COUNT(others); i++)
        others[i] = give(d, 1 + i * 700, 3);
    d->iface->free(d, others[3]);
    mr_run_add(d, &(mr_add){MR_F32, COUNT, x + AT, others[7] + 1, x + AT});
    d->iface->zero(d, (char *)(x + 10) + 1, 3); /* bytes, not elements */
    d->iface->download(d, out, x, sizeof out);
    for (size_t i = 0; i < N; i++)
        assert_true(i == 10 || out[i] == (i >= AT && i < AT + COUNT ? 4.0F : 1.0F));
    assert_true(out[10] == 0.0F);
    d->iface->download(d, out, x + N - 1, sizeof *out);
    assert_true(out[0] == 1.0F);
    mr_error err;
    assert_int_equal(d->iface->wait(d, &err), MR_OK);
    mr_device_close(d);
}

/* Memory that was freed is given again, as zeros, and no tensor reaches into another. */
static void memory_is_given_again(void **state)
{
    enum { ROOM = 24, ROUNDS = 300, MOST = 40000 };
    static float seen[MOST];
    struct {
        float *at;
        size_t count;
    } held[ROOM] = {{0}};
    (void)state;
    mr_random rnd = support_random();
    mr_device *d = support_device(1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t i = mr_random_below(&rnd, ROOM);
        float value = (float)(i + 1);
        if (held[i].at) {
            d->iface->download(d, seen, held[i].at, held[i].count * sizeof *seen);
            for (size_t k = 0; k < held[i].count; k++)
                assert_true(seen[k] == value);
            d->iface->free(d, held[i].at);
            held[i].at = NULL;
            continue;
        }
        mr_error err;
        void *memory;
        held[i].count = 1 + mr_random_below(&rnd, mr_random_below(&rnd, 8) ? 2000 : MOST);
        assert_int_equal(d->iface->alloc(d, held[i].count * sizeof *seen, "tests", &memory, &err), MR_OK);
        held[i].at = memory;
        d->iface->download(d, seen, memory, held[i].count * sizeof *seen);
        for (size_t k = 0; k < held[i].count; k++) {
            assert_true(seen[k] == 0);
            seen[k] = value;
        }
        d->iface->upload(d, memory, seen, held[i].count * sizeof *seen);
    }
    mr_device_close(d);
}

static void expect_wrong(const char *text, void (*wrong)(mr_device *d, float *x))
{
    mr_device *d = support_device(1);
    float *x = give(d, 4, 1), out[4] = {5, 5, 5, 5};
    mr_error err;
    wrong(d, x);
    mr_run_add(d, &(mr_add){MR_F32, 4, x, x, x}); /* does nothing any more */
    d->iface->download(d, out, x, sizeof out);
    assert_int_equal(d->iface->wait(d, &err), MR_SYSTEM);
    if (!strstr(err.text, text))
        fail_msg("'%s' instead of '%s'", err.text, text);
    for (size_t i = 0; i < MR_COUNT(out); i++)
        assert_true(isnan(out[i]));
    assert_false(isfinite(mr_squares_of(d, 4, x)));
    mr_device_close(d);
}

static void add_of_host_memory(mr_device *d, float *x)
{
    float host[4] = {0};
    mr_run_add(d, &(mr_add){MR_F32, 4, x, host, x});
}

static void upload_past_the_end(mr_device *d, float *x)
{
    static const char bytes[10000];
    d->iface->upload(d, x, bytes, sizeof bytes);
}

static void crooked_pointer(mr_device *d, float *x)
{
    mr_run_add(d, &(mr_add){MR_F32, 2, (char *)x + 2, x, x});
}

static void what_is_wrong_is_reported(void **state)
{
    (void)state;
    expect_wrong("add: argument 3 is not memory of the device", add_of_host_memory);
    expect_wrong("upload: not memory of the device", upload_past_the_end);
    expect_wrong("add: argument 1 is not aligned", crooked_pointer);
}

static void too_much_is_refused(void **state)
{
    (void)state;
    mr_device *d = support_device(1);
    mr_error err;
    void *memory = NULL;
    assert_int_equal(d->iface->alloc(d, SIZE_MAX / 2, "parameters", &memory, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, "9223372036854775807 bytes of parameters"));
    assert_non_null(strstr(err.text, "smaller batch or model"));
    assert_null(memory);
    size_t bytes;
    const mr_attention wide = {.batch = 1, .heads = 1, .head_dim = 257, .queries = 1, .keys = 1};
    assert_int_equal(d->iface->plan_attention(d, &wide, &bytes, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "heads of 257"));
    mr_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_cannot_touch_it),   cmocka_unit_test(memory_is_given_again),
        cmocka_unit_test(pointers_are_reckoned_with), cmocka_unit_test(what_is_wrong_is_reported),
        cmocka_unit_test(too_much_is_refused),
    };
    setenv("MILLRACE_TEST_DEVICE", "opencl", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
