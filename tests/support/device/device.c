/* device.c - one test of an operation, run on every device.
 * Invariant: on a device that works in host memory each operand is a heap block of its own, no byte longer, so that a
 * sanitizer sees what an operation reads or writes beside it. */
#include "tests/support/device/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/support/training/model.h"
#include "tests/support/device/plain.h"

enum { ROUNDS = 6, SLOPES = 64 };

static void remember(void ***items, size_t *count, size_t *capacity, void *block)
{
    if (!block || !MR_GROW(*items, *count, *capacity))
        fail_msg("out of memory");
    (*items)[(*count)++] = block;
}

void *support_zeroed(support_trial *t, size_t bytes)
{
    void *block = calloc(1, bytes ? bytes : 1);
    remember(&t->host, &t->hosts, &t->host_capacity, block);
    return block;
}

size_t support_size_of(support_trial *t, size_t most)
{
    size_t limit = mr_random_below(&t->r, 3) ? most : most < 9 ? most : 9;
    return (size_t)mr_random_between(&t->r, 1, limit);
}

double *support_doubles(support_trial *t, size_t count)
{
    return support_zeroed(t, count * sizeof(double));
}

double *support_draw(support_trial *t, size_t count, double low, double high)
{
    double *x = support_doubles(t, count);
    for (size_t i = 0; i < count; i++)
        x[i] = (double)(float)mr_random_real(&t->r, low, high);
    return x;
}

void *support_give_bytes(support_trial *t, const void *bytes, size_t size)
{
    mr_error err;
    void *to = NULL;
    if (t->iface->host_memory) {
        to = support_zeroed(t, size);
    } else {
        if (t->iface->alloc(t->d, size, "tests", &to, &err) != MR_OK)
            fail_msg("%s", err.text);
        remember(&t->device, &t->devices, &t->device_capacity, to);
    }
    t->iface->upload(t->d, to, bytes, size);
    return to;
}

void *support_give(support_trial *t, const double *x, size_t count)
{
    float *f = malloc((count ? count : 1) * sizeof *f);
    assert_non_null(f);
    for (size_t i = 0; i < count; i++)
        f[i] = (float)x[i];
    void *to = support_give_bytes(t, f, count * sizeof *f);
    free(f);
    return to;
}

void *support_blank(support_trial *t, size_t count)
{
    double *x = support_doubles(t, count);
    for (size_t i = 0; i < count; i++)
        x[i] = NAN;
    return support_give(t, x, count);
}

void support_take_bytes(support_trial *t, void *to, const void *from, size_t size)
{
    mr_error err;
    if (t->iface->wait(t->d, &err) != MR_OK)
        fail_msg("%s", err.text);
    t->iface->download(t->d, to, from, size);
    t->digest = t->digest * 31 + mr_hash64(to, size);
}

double *support_take(support_trial *t, const void *x, size_t count)
{
    float *f = support_zeroed(t, count * sizeof *f);
    double *out = support_doubles(t, count);
    support_take_bytes(t, f, x, count * sizeof *f);
    for (size_t i = 0; i < count; i++)
        out[i] = (double)f[i];
    return out;
}

void support_near(const support_trial *t, const char *what, const double *got, const double *want, size_t count,
                  double tolerance)
{
    double most = 0.25;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(want[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * most))
            fail_msg("%s, %s loops, %u threads, round %u: element %zu of %zu is %.9g instead of %.9g", what, t->loops,
                     t->threads, t->round, i, count, got[i], want[i]);
}

void support_slopes(support_trial *t, const char *what, const double *gradient, double *x, size_t count,
                    double (*loss)(void *ctx), void *ctx, double tolerance)
{
    const double step = 1e-4;
    double got[SLOPES], want[SLOPES];
    size_t n = count < t->slopes ? count : t->slopes;
    for (size_t i = 0; i < n; i++) {
        size_t at = n == count ? i : (size_t)mr_random_below(&t->r, count);
        if (t->threads > 1) /* the bits are compared with those of one thread: run_threads() */
            continue;
        double kept = x[at];
        x[at] = kept + step;
        double above = loss(ctx);
        x[at] = kept - step;
        want[i] = (above - loss(ctx)) / (2 * step);
        x[at] = kept;
        got[i] = gradient[at];
    }
    if (t->threads == 1)
        support_near(t, what, got, want, n, tolerance);
}

/* ---- dropout -------------------------------------------------------------------------------------------------- */

double *support_mask(support_trial *t, const mr_dropout *d, size_t rows, size_t width, size_t sample_rows)
{
    double *ones = support_doubles(t, rows * width);
    for (size_t i = 0; i < rows * width; i++)
        ones[i] = 1;
    void *x = support_give(t, ones, rows * width), *y = support_blank(t, rows * width);
    mr_run_drop(t->d, &(mr_drop){MR_F32, rows, width, sample_rows, *d, x, y});
    return support_take(t, y, rows * width);
}

mr_dropout support_dropout(support_trial *t, size_t samples)
{
    if (t->round % 2)
        return (mr_dropout){.rate = 0};
    uint64_t *keys = support_zeroed(t, samples * sizeof *keys);
    mr_random_bytes(&t->r, keys, samples * sizeof *keys);
    return (mr_dropout){.rate = 0.3F,
                        .site = (uint32_t)mr_random_below(&t->r, 99),
                        .keys = support_give_bytes(t, keys, samples * sizeof *keys)};
}

/* ---- runs ----------------------------------------------------------------------------------------------------- */

static bool run(const char *word, const char *loops, unsigned threads, void (*op)(support_trial *), uint64_t *digest)
{
    support_trial t = {.loops = loops, .threads = threads, .r = support_random()};
    mr_device_options options = {.threads = threads};
    mr_error err;
    mr_status status = support_open(word, &options, &t.d, &err);
    if (status == MR_MISUSE || status == MR_SYSTEM) {
        if (threads == 1)
            print_message("skipped: %s\n", err.text);
        return false;
    }
    assert_int_equal(status, MR_OK);
    t.iface = t.d->iface;
    unsigned rounds = strcmp(word, "plain") == 0 ? ROUNDS / 2 : ROUNDS; /* its lanes take turns: that takes time */
    for (t.round = 0; t.round < rounds; t.round++) {
        t.slopes = SLOPES;
        op(&t);
    }
    for (size_t i = 0; i < t.hosts; i++)
        free(t.host[i]);
    for (size_t i = 0; i < t.devices; i++)
        t.iface->free(t.d, t.device[i]);
    free(t.host);
    free(t.device);
    mr_device_close(t.d);
    *digest = t.digest;
    return true;
}

/* Devices that take no threads are asked twice. */
static void run_threads(const char *word, const char *loops, void (*op)(support_trial *))
{
    uint64_t first = 0, digest = 0;
    bool twice = strcmp(word, "opencl") == 0 || strcmp(word, "cuda") == 0 || strcmp(word, "plain") == 0;
    unsigned last = twice ? 2 : 3;
    if (!run(word, loops, 1, op, &first))
        return;
    for (unsigned threads = 2; threads <= last; threads++) {
        assert_true(run(word, loops, threads, op, &digest));
        if (digest != first)
            fail_msg("%s, %s loops: other bits with %u threads or on another run", word, loops, threads);
    }
}

void support_on_devices(void (*op)(support_trial *t))
{
    static const char *const loops[] = {"plain", "avx2", "avx512"};
    const char *only = getenv("MILLRACE_TEST_DEVICE");
    if (only && *only) {
        mr_device_close(support_device(1)); /* where it is missing, the test ends here */
        run_threads(only, "own", op);
        return;
    }
    for (size_t k = 0; k < MR_COUNT(loops); k++) {
        setenv("MILLRACE_CPU", loops[k], 1);
        run_threads("cpu", loops[k], op);
    }
    unsetenv("MILLRACE_CPU");
    run_threads("isolated", "own", op);
}
