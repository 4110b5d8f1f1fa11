/* test_cuda.c - memory of a CUDA device, its copies, its products and what it refuses, on the device without hardware
 * (support/preload/cuda) or a real one.  Skipped where there is neither.
 * Invariant tested: what a copy reads is what was there when it was called, however late it runs; what is wrong with an
 * operation is reported by wait(), and what is downloaded after it is not taken for numbers.
 * Covers cuda/memory.c, cuda/api.c, cuda/cuda.c, cuda/product.c, cuda/clock.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/term.h"
#include "device/profile/profile.h"
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
    memset(host, 0xff, count * sizeof *host); /* it may be changed now */
    free(host);
    return memory;
}

/* Copies of several times all pinned memory, and of odd lengths. */
static void large_copies_are_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (37 << 20) + 5};
    mr_random r = support_random();
    mr_device *d = support_device(1);
    mr_error err;
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        uint8_t *bytes = malloc(sizes[i]), *changed = malloc(sizes[i]), *back = malloc(sizes[i]);
        void *memory = NULL;
        assert_true(bytes && changed && back);
        mr_random_bytes(&r, bytes, sizes[i]);
        memcpy(changed, bytes, sizes[i]);
        assert_int_equal(d->iface->alloc(d, sizes[i], "tests", &memory, &err), MR_OK);
        d->iface->upload(d, memory, changed, sizes[i]);
        memset(changed, 0, sizes[i]);
        d->iface->download(d, back, memory, sizes[i]);
        assert_memory_equal(back, bytes, sizes[i]);
        d->iface->free(d, memory);
        free(bytes);
        free(changed);
        free(back);
    }
    assert_int_equal(d->iface->wait(d, &err), MR_OK);
    mr_device_close(d);
}

/* Many small uploads into one place, with an operation after each: none overtakes another. */
static void copies_keep_their_order(void **state)
{
    enum { N = 64, TIMES = 50 };
    (void)state;
    mr_device *d = support_device(1);
    mr_error err;
    float *x = give(d, N, 0), *sum = give(d, N, 0), host[N], out[N], want = 0;
    for (int k = 0; k < TIMES; k++) {
        for (size_t i = 0; i < N; i++)
            host[i] = (float)k;
        d->iface->upload(d, x, host, sizeof host);
        mr_run_add(d, &(mr_add){MR_F32, N, sum, x, sum});
        want += (float)k;
    }
    d->iface->download(d, out, sum, sizeof out);
    for (size_t i = 0; i < N; i++)
        assert_true(out[i] == want);
    assert_int_equal(d->iface->wait(d, &err), MR_OK);
    mr_device_close(d);
}

/* From slabs, which are filled again as soon as an upload returns, of sizes that grow and shrink. */
static void slabs_are_uploaded_in_order(void **state)
{
    enum { MOST = 3 << 20, TIMES = 9 };
    (void)state;
    mr_device *d = support_device(1);
    mr_error err;
    float *x = give(d, MOST, 0), *sum = give(d, MOST, 0), *want = calloc(MOST, sizeof *want), *out = malloc(MOST * 4);
    const mr_allocator *a = d->iface->slabs(d);
    float *slab = a->alloc(a->ctx, MOST * sizeof *slab);
    assert_true(slab && want && out);
    for (size_t k = 0; k < TIMES; k++) {
        size_t count = MOST - (k * 5 % 4) * 300000, from = k % 3;
        for (size_t i = 0; i < MOST; i++)
            slab[i] = (float)(i % 1000 + k);
        for (size_t i = 0; i < count - from; i++)
            want[i] += slab[i + from];
        d->iface->upload(d, x, slab + from, (count - from) * sizeof *slab);
        mr_run_add(d, &(mr_add){MR_F32, count - from, sum, x, sum});
    }
    memset(slab, 0, MOST * sizeof *slab);
    d->iface->download(d, out, sum, MOST * sizeof *out);
    if (d->iface->wait(d, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(out, want, MOST * sizeof *out);
    a->free(a->ctx, slab, MOST * sizeof *slab);
    free(want);
    free(out);
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

static void too_wide(mr_device *d, float *x)
{
    mr_run_rows(d, &(mr_rows){.type = MR_F32, .rows = 1, .width = (size_t)65536 * 64, .from = x, .to = x});
}

static void what_is_wrong_is_reported(void **state)
{
    (void)state;
    expect_wrong("add: argument 3 is not memory of the device", add_of_host_memory);
    expect_wrong("upload: not memory of the device", upload_past_the_end);
    expect_wrong("add: argument 1 is not aligned", crooked_pointer);
    expect_wrong("rows: exceeds the limits of one launch", too_wide);
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
    mr_device_close(d);
}

/* More rows than CUDA has in its second dimension. */
static void many_rows_are_fine(void **state)
{
    enum { ROWS = 70001 };
    (void)state;
    mr_device *d = support_device(1);
    mr_error err;
    float *x = give(d, ROWS, 2), *y = give(d, 2 * ROWS, 3), *out = malloc(2 * ROWS * sizeof *out);
    assert_non_null(out);
    mr_run_rows(d, &(mr_rows){.type = MR_F32, .rows = ROWS, .width = 1, .to_stride = 2, .from = x, .to = y});
    d->iface->download(d, out, y, 2 * ROWS * sizeof *out);
    assert_int_equal(d->iface->wait(d, &err), MR_OK);
    for (size_t i = 0; i < 2 * ROWS; i++)
        assert_true(out[i] == (i % 2 ? 3.0F : 2.0F));
    free(out);
    mr_device_close(d);
}

/* Operands that begin in the middle of a tensor, as a slice does, and whose rows have odd lengths. */
static void products_of_slices(void **state)
{
    enum { M = 5, N = 7, K = 9, ROOM = 100 };
    (void)state;
    mr_device *d = support_device(1);
    mr_error err;
    float out[ROOM];
    for (size_t at = 0; at < 5; at++) {
        float *a = give(d, ROOM, 2), *b = give(d, ROOM, 3), *c = give(d, ROOM, 1);
        mr_run_gemm(d, &(mr_gemm){.m = M, .n = N, .k = K, .a = a + at, .b = b + 2 * at, .c = c + 3 * at});
        d->iface->download(d, out, c, sizeof out);
        if (d->iface->wait(d, &err) != MR_OK)
            fail_msg("%s", err.text);
        for (size_t i = 0; i < ROOM; i++)
            assert_true(out[i] == (i >= 3 * at && i < 3 * at + (size_t)M * N ? 54.0F : 1.0F));
    }
    mr_device_close(d);
}

/* More operations than it keeps stamps for, none of which is waited for. */
static void a_profile_counts_what_is_queued(void **state)
{
    enum { N = 100, CALLS = 5000 };
    (void)state;
    const double since = mr_seconds();
    mr_device *d = support_device(1);
    mr_profile *profile = NULL;
    mr_error err;
    float *x = give(d, N, 1), sum[N];
    assert_int_equal(mr_profile_open(d, &profile, &err), MR_OK);
    mr_profile_count(profile, true);
    for (int i = 0; i < CALLS; i++)
        mr_run_add(d, &(mr_add){MR_F32, N, x, x, x});
    d->iface->zero(d, x, N / 2 * sizeof *x);
    d->iface->download(d, sum, x, sizeof sum);
    mr_profile_count(profile, false);
    const mr_family_sums *elements = mr_profile_sums(profile, MR_FAMILY_elements);
    const mr_family_sums *copies = mr_profile_sums(profile, MR_FAMILY_copies);
    assert_int_equal(elements->calls, CALLS);
    assert_int_equal(copies->calls, 2);
    assert_true(elements->seconds > 0 && copies->seconds > 0);
    assert_true(elements->seconds + copies->seconds < mr_seconds() - since);
    assert_true(sum[0] == 0 && isinf(sum[N - 1]));
    d->iface->free(d, x);
    mr_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_copies_are_whole),      cmocka_unit_test(copies_keep_their_order),
        cmocka_unit_test(what_is_wrong_is_reported),   cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(many_rows_are_fine),          cmocka_unit_test(products_of_slices),
        cmocka_unit_test(slabs_are_uploaded_in_order), cmocka_unit_test(a_profile_counts_what_is_queued),
    };
    setenv("MILLRACE_TEST_DEVICE", "cuda", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
