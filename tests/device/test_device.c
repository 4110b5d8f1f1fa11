/* test_device.c - products, sums and updates of every device against the same in double.
 * Invariant: operands are heap blocks of their own or have untouched margins, so a stray write is seen.
 * Covers cpu/share.c, cpu/cpu.c, cpu/elements.c, cpu/gemm.c, launch/dense.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device/device.h"

/* ---- gemm ----------------------------------------------------------------------------------------------------- */

/* [rows, stride] of which `width` columns are looked at. */
static double at(const double *x, size_t stride, bool transposed, size_t r, size_t c)
{
    return transposed ? x[c * stride + r] : x[r * stride + c];
}

static size_t stored(size_t rows, size_t width, size_t stride)
{
    return (rows - 1) * stride + width;
}

static void one_gemm(support_trial *t, size_t m, size_t n, size_t k, unsigned kind)
{
    mr_gemm g = {.m = m, .n = n, .k = k, .transpose_a = kind & 1, .transpose_b = kind & 2, .accumulate = kind & 4};
    bool wide = kind & 16;
    size_t a_rows = g.transpose_a ? k : m, a_width = g.transpose_a ? m : k;
    size_t b_rows = g.transpose_b ? n : k, b_width = g.transpose_b ? k : n;
    size_t lda = a_width + (wide ? 3 : 0), ldb = b_width + (wide ? 7 : 0), ldc = n + (wide ? 5 : 0);
    size_t a_count = stored(a_rows, a_width, lda), b_count = stored(b_rows, b_width, ldb), c_count = stored(m, n, ldc);
    double *a = support_draw(t, a_count, -1, 1), *b = support_draw(t, b_count, -1, 1);
    double *c = support_draw(t, c_count, -9, 9), *bias = support_draw(t, n, -3, 3);
    g.a = support_give(t, a, a_count);
    g.b = support_give(t, b, b_count);
    g.c = support_give(t, c, c_count);
    g.bias = kind & 8 ? support_give(t, bias, n) : NULL;
    g.lda = wide ? lda : 0;
    g.ldb = wide ? ldb : 0;
    g.ldc = wide ? ldc : 0;
    mr_run_gemm(t->d, &g);
    double *got = support_take(t, g.c, c_count);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = (g.accumulate ? c[i * ldc + j] : 0) + (g.bias ? bias[j] : 0);
            for (size_t l = 0; l < k; l++)
                sum += at(a, lda, g.transpose_a, i, l) * at(b, ldb, g.transpose_b, l, j);
            c[i * ldc + j] = sum;
        }
    }
    support_near(t, "gemm", got, c, c_count, 2e-6); /* the margins too: they are as they were */
}

static void gemm(support_trial *t)
{
    for (unsigned kind = 0; kind < 32; kind++)
        one_gemm(t, support_size_of(t, 40), support_size_of(t, 40), support_size_of(t, 60), kind);
    /* Large enough to be cut: wide, high, deep. */
    unsigned kind = (unsigned)mr_random_below(&t->r, 32);
    if (t->round == 0)
        one_gemm(t, 257, 331, 130, kind);
    if (t->round == 1)
        one_gemm(t, 67, 1201, 129, kind);
    if (t->round == 2)
        one_gemm(t, 701, 33, 301, kind);
}

static void gemm_of_every_kind(void **state)
{
    (void)state;
    support_on_devices(gemm);
}

/* OpenBLAS called by many threads at once, again and again. */
static void many_threads_at_once(void **state)
{
    enum { M = 512, N = 384, K = 100, TIMES = 60 };
    mr_random r = support_random();
    mr_error err;
    float *a = malloc(M * K * sizeof *a), *b = malloc(K * N * sizeof *b), *c[2] = {NULL, NULL};
    (void)state;
    assert_true(a && b);
    for (size_t i = 0; i < M * K; i++)
        a[i] = (float)mr_random_real(&r, -1, 1);
    for (size_t i = 0; i < K * N; i++)
        b[i] = (float)mr_random_real(&r, -1, 1);
    for (unsigned i = 0; i < 2; i++) {
        mr_device_options options = {.threads = i ? 8 : 1};
        mr_device *d = NULL;
        c[i] = calloc(M * N, sizeof *c[i]);
        assert_non_null(c[i]);
        assert_int_equal(mr_device_open("cpu", &options, &d, &err), MR_OK);
        mr_gemm g = {.m = M, .n = N, .k = K, .a = a, .b = b, .c = c[i]};
        for (int k = 0; k < (i ? TIMES : 1); k++) {
            memset(c[i], 0xff, M * N * sizeof *c[i]);
            mr_run_gemm(d, &g);
            assert_memory_equal(c[i], c[0], M * N * sizeof *c[i]);
        }
        mr_device_close(d);
    }
    free(a);
    free(b);
    free(c[0]);
    free(c[1]);
}

/* k = 0 is the sum of nothing; m = 0 or n = 0 touches nothing. */
static void empty(support_trial *t)
{
    double none[6] = {0}, bias[3] = {1, 2, 3}, want[6] = {1, 2, 3, 1, 2, 3}, bad[6] = {7, 7, 7, 7, 7, 7};
    mr_gemm g = {.m = 2,
                 .n = 3,
                 .k = 0,
                 .a = support_give(t, none, 1),
                 .b = support_give(t, none, 1),
                 .c = support_give(t, bad, 6),
                 .bias = support_give(t, bias, 3)};
    mr_run_gemm(t->d, &g);
    support_near(t, "gemm of nothing", support_take(t, g.c, 6), want, 6, 0);
    g.bias = NULL;
    mr_run_gemm(t->d, &g);
    support_near(t, "gemm of nothing", support_take(t, g.c, 6), none, 6, 0);
    g = (mr_gemm){.m = 0, .n = 3, .k = 2, .a = g.a, .b = g.b, .c = g.c};
    mr_run_gemm(t->d, &g);
    mr_run_sum_rows(t->d, &(mr_sum_rows){MR_F32, 0, 6, g.a, g.c});
    mr_run_add(t->d, &(mr_add){MR_F32, 0, g.a, g.a, g.c});
    support_near(t, "operations on nothing", support_take(t, g.c, 6), none, 6, 0);
    assert_true(mr_squares_of(t->d, 0, g.a) == 0);
}

static void nothing_is_fine(void **state)
{
    (void)state;
    support_on_devices(empty);
}

/* ---- sums ----------------------------------------------------------------------------------------------------- */

static void sums(support_trial *t)
{
    size_t rows = t->round == 0 ? 701 : support_size_of(t, 90), width = t->round == 0 ? 211 : support_size_of(t, 300);
    size_t count = rows * width;
    double *x = support_draw(t, count, -1, 3), *y = support_draw(t, count, -1, 1);
    double *want = support_draw(t, width, -1, 1);
    void *dx = support_give(t, x, count), *dy = support_give(t, y, count), *to = support_give(t, want, width);
    mr_run_sum_rows(t->d, &(mr_sum_rows){MR_F32, rows, width, dx, to});
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        want[i % width] += x[i];
        squares += x[i] * x[i];
        y[i] += x[i];
    }
    support_near(t, "sum_rows", support_take(t, to, width), want, width, 1e-6);
    double got = mr_squares_of(t->d, count, dx);
    support_near(t, "sum_squares", &got, &squares, 1, 2e-12);
    void *sum = t->round % 2 ? dy : support_blank(t, count);
    mr_run_add(t->d, &(mr_add){MR_F32, count, dx, dy, sum});
    support_near(t, "add", support_take(t, sum, count), y, count, 1e-7);
}

static void sums_are_right(void **state)
{
    (void)state;
    support_on_devices(sums);
}

/* A run notices gradients that are not numbers by this. */
static void wrong_squares(support_trial *t)
{
    const double bad[] = {NAN, INFINITY, -INFINITY, 3e38};
    size_t count = 1 + (size_t)mr_random_below(&t->r, 200000);
    for (size_t i = 0; i < 3; i++) {
        double *x = support_draw(t, count, -1, 1);
        x[mr_random_below(&t->r, count)] = bad[i];
        assert_false(isfinite(mr_squares_of(t->d, count, support_give(t, x, count))));
    }
    double *x = support_doubles(t, count);
    for (size_t i = 0; i < count; i++)
        x[i] = bad[3];
    double got = mr_squares_of(t->d, count, support_give(t, x, count)), huge = (double)(float)bad[3];
    double want = huge * huge * (double)count; /* beyond float32, not beyond double */
    support_near(t, "sum_squares", &got, &want, 1, 1e-12);
}

static void squares_show_what_is_no_number(void **state)
{
    (void)state;
    support_on_devices(wrong_squares);
}

/* ---- updates -------------------------------------------------------------------------------------------------- */

typedef struct tensors {
    double *w, *g, *m, *v;
    size_t count;
    mr_update u;
} tensors;

static tensors draw_tensors(support_trial *t)
{
    size_t n = t->round == 0 ? 100003 : support_size_of(t, 3000);
    tensors x = {.count = n,
                 .w = support_draw(t, n, -1, 1),
                 .g = support_draw(t, n, -5, 5),
                 .m = support_draw(t, n, -1, 1),
                 .v = support_draw(t, n, 0, 1)};
    x.u = (mr_update){.count = n,
                      .w = support_give(t, x.w, n),
                      .g = support_give(t, x.g, n),
                      .m = support_give(t, x.m, n),
                      .v = support_give(t, x.v, n),
                      .g_scale = mr_random_real(&t->r, 0.01, 2),
                      .lr = mr_random_real(&t->r, 0, 0.1),
                      .decay = t->round % 2 ? 0.02 : 0,
                      .momentum = t->round % 3 ? 0.9 : 0,
                      .beta1 = 0.9,
                      .beta2 = 0.999,
                      .eps = 1e-8};
    uint64_t k = 1 + mr_random_below(&t->r, 100);
    x.u.correction1 = 1 - pow(x.u.beta1, (double)k);
    x.u.correction2 = 1 - pow(x.u.beta2, (double)k);
    return x;
}

static void updates(support_trial *t)
{
    tensors a = draw_tensors(t), s = draw_tensors(t);
    mr_run_sgd(t->d, &s.u);
    mr_run_adamw(t->d, &a.u);
    for (size_t i = 0; i < s.count; i++) {
        s.m[i] = s.u.momentum * s.m[i] + s.g[i] * s.u.g_scale + s.u.decay * s.w[i];
        s.w[i] -= s.u.lr * s.m[i];
    }
    for (size_t i = 0; i < a.count; i++) {
        double g = a.g[i] * a.u.g_scale;
        a.w[i] -= a.u.lr * a.u.decay * a.w[i];
        a.m[i] = a.u.beta1 * a.m[i] + (1 - a.u.beta1) * g;
        a.v[i] = a.u.beta2 * a.v[i] + (1 - a.u.beta2) * g * g;
        a.w[i] -= a.u.lr * (a.m[i] / a.u.correction1) / (sqrt(a.v[i] / a.u.correction2) + a.u.eps);
    }
    support_near(t, "sgd m", support_take(t, s.u.m, s.count), s.m, s.count, 5e-7);
    support_near(t, "sgd w", support_take(t, s.u.w, s.count), s.w, s.count, 5e-7);
    support_near(t, "adamw m", support_take(t, a.u.m, a.count), a.m, a.count, 5e-7);
    support_near(t, "adamw v", support_take(t, a.u.v, a.count), a.v, a.count, 5e-7);
    support_near(t, "adamw w", support_take(t, a.u.w, a.count), a.w, a.count, 2e-6);
}

static void updates_are_right(void **state)
{
    (void)state;
    support_on_devices(updates);
}

/* Tiny and zero gradients, as of parameters that hardly matter, must never make a weight that is not a number. */
static void tiny_updates(support_trial *t)
{
    static const double sizes[] = {0, 1e-45, 1e-40, 1e-38, 1e-30, 1e-22, 1e-19, 1e-12};
    const size_t n = 64;
    double *g = support_doubles(t, n), *zero = support_doubles(t, n), *w = support_draw(t, n, -1, 1);
    for (size_t i = 0; i < n; i++)
        g[i] = (i & 1 ? -1 : 1) * sizes[i / 2 % 8];
    mr_update u = {.count = n,
                   .w = support_give(t, w, n),
                   .g = support_give(t, g, n),
                   .m = support_give(t, zero, n),
                   .v = support_give(t, zero, n),
                   .g_scale = 1,
                   .lr = 1e-3,
                   .beta1 = 0.9,
                   .beta2 = 0.999,
                   .eps = 1e-8,
                   .correction1 = 0.1,
                   .correction2 = 0.001};
    mr_run_adamw(t->d, &u);
    double *got = support_take(t, u.w, n);
    for (size_t i = 0; i < n; i++)
        w[i] -= u.lr * g[i] / (fabs(g[i]) + u.eps);
    support_near(t, "adamw w", got, w, n, 2e-6);
}

static void tiny_gradients_are_harmless(void **state)
{
    (void)state;
    support_on_devices(tiny_updates);
}

/* ---- memory and opening --------------------------------------------------------------------------------------- */

static void memory(support_trial *t)
{
    size_t sizes[] = {0, 1, 63, 4096, 1 << 20, 5 << 20};
    mr_error err;
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        void *p = NULL;
        assert_int_equal(t->iface->alloc(t->d, sizes[i], "tests", &p, &err), MR_OK);
        assert_int_equal((uintptr_t)p % 64, 0);
        uint8_t *bytes = support_zeroed(t, sizes[i]), *back = support_zeroed(t, sizes[i]);
        support_take_bytes(t, back, p, sizes[i]);
        assert_memory_equal(back, bytes, sizes[i]); /* zeros */
        mr_random_bytes(&t->r, bytes, sizes[i]);
        t->iface->upload(t->d, p, bytes, sizes[i]);
        support_take_bytes(t, back, p, sizes[i]);
        assert_memory_equal(back, bytes, sizes[i]);
        t->iface->zero(t->d, p, sizes[i]);
        memset(bytes, 0, sizes[i]);
        support_take_bytes(t, back, p, sizes[i]);
        assert_memory_equal(back, bytes, sizes[i]);
        if (i % 2)
            t->iface->free(t->d, p); /* the others go with the device */
    }
    t->iface->free(t->d, NULL);
    void *p = NULL;
    assert_int_equal(t->iface->alloc(t->d, SIZE_MAX / 2, "parameters", &p, &err), MR_SYSTEM);
    assert_null(p);
    assert_non_null(t->iface->describe(t->d));
}

static void memory_is_zeroed_and_kept(void **state)
{
    (void)state;
    support_on_devices(memory);
}

static void what_is_missing_is_reported(void **state)
{
    mr_error err;
    mr_device *d = NULL;
    mr_device_options options = {.index = 1};
    (void)state;
    assert_int_equal(mr_device_open("cpi", &options, &d, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "'cpu'"));
    assert_int_equal(mr_device_open("cpu", &options, &d, &err), MR_MISUSE);
    options.index = 0;
    setenv("MILLRACE_CPU", "avx1024", 1);
    assert_int_equal(mr_device_open("cpu", &options, &d, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "avx1024"));
    unsetenv("MILLRACE_CPU");
    assert_null(d);
    mr_device_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_of_every_kind),
        cmocka_unit_test(many_threads_at_once),
        cmocka_unit_test(nothing_is_fine),
        cmocka_unit_test(sums_are_right),
        cmocka_unit_test(squares_show_what_is_no_number),
        cmocka_unit_test(updates_are_right),
        cmocka_unit_test(tiny_gradients_are_harmless),
        cmocka_unit_test(memory_is_zeroed_and_kept),
        cmocka_unit_test(what_is_missing_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
