/* test_isolated.c - the device whose memory only its operations can touch.
 * Invariant tested: a host that uses device memory ends at once, and an operation that is given memory of the host is
 * reported by wait(). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/isolated.h"
#include "tests/support/device/plain.h"
#include "tests/support/support.h"

static mr_device *open_isolated(void)
{
    const mr_device_options options = {.threads = 1};
    mr_device *d;
    mr_error err;
    if (support_open("isolated", &options, &d, &err) != MR_OK)
        fail_msg("%s", err.text);
    return d;
}

static float *give(mr_device *d, size_t count, float value)
{
    mr_error err;
    float *host = mr_alloc(count, sizeof *host);
    void *memory;
    assert_int_equal(d->iface->alloc(d, count * sizeof *host, "tests", &memory, &err), MR_OK);
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    d->iface->upload(d, memory, host, count * sizeof *host);
    free(host);
    return memory;
}

static void test_what_goes_in_comes_out(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 1023, 1024, 5000};
    mr_device *d = open_isolated();
    mr_error err;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        float *x = give(d, counts[i], 1.5F), out[2] = {0};
        mr_run_add(d, &(mr_add){MR_F32, counts[i], x, x, x});
        d->iface->download(d, out, x + counts[i] - 1, sizeof *out);
        assert_true(out[0] == 3.0F);
        d->iface->zero(d, x, sizeof *x);
        d->iface->download(d, out, x, sizeof *out);
        assert_true(out[0] == 0.0F);
        d->iface->free(d, x);
    }
    assert_int_equal(d->iface->wait(d, &err), MR_OK);
    d->iface->free(d, NULL);
    mr_device_close(d);
}

/* The signal that ends a child that runs `touch`. */
static int signal_of(void (*touch)(volatile float *x), float *x)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would report it and exit */
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

static void test_the_host_cannot_touch_it(void **state)
{
    (void)state;
    mr_device *d = open_isolated();
    float *x = give(d, 100, 1);
    assert_int_equal(signal_of(read_it, x), SIGSEGV);
    assert_int_equal(signal_of(write_it, x), SIGSEGV);
    mr_device_close(d);
}

static void test_memory_of_the_host_is_reported(void **state)
{
    (void)state;
    mr_device *d = open_isolated();
    float *x = give(d, 4, 1), host[4] = {0};
    mr_error err;
    mr_run_add(d, &(mr_add){MR_F32, 4, x, host, x});
    assert_int_equal(d->iface->wait(d, &err), MR_SYSTEM);
    assert_string_equal(err.text, "isolated: add: argument 2 is not memory of the device");
    mr_device_close(d);
}

static void test_too_much_is_refused(void **state)
{
    (void)state;
    mr_device *d = open_isolated();
    mr_error err;
    void *memory = NULL;
    assert_int_equal(d->iface->alloc(d, SIZE_MAX / 2, "parameters", &memory, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, "isolated: no memory for"));
    mr_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_goes_in_comes_out),
        cmocka_unit_test(test_the_host_cannot_touch_it),
        cmocka_unit_test(test_memory_of_the_host_is_reported),
        cmocka_unit_test(test_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
