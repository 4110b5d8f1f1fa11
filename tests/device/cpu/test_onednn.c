/* test_onednn.c - oneDNN's products beside the same in double: strides, transposed operands, sums, shapes at its limit.
 * Invariant: skipped by name where the processor has no AVX-512 or there is no oneDNN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "tests/support/support.h"

typedef struct matrix {
    float *values;
    size_t stride;
    bool transposed;
} matrix;

static float at(const matrix *x, size_t row, size_t column)
{
    return x->transposed ? x->values[column * x->stride + row] : x->values[row * x->stride + column];
}

static matrix draw(mr_random *r, size_t rows, size_t columns)
{
    matrix x = {.transposed = mr_random_below(r, 2)};
    size_t stored_rows = x.transposed ? columns : rows, width = x.transposed ? rows : columns;
    x.stride = width + mr_random_below(r, 5);
    x.values = calloc(stored_rows * x.stride, sizeof *x.values);
    assert_non_null(x.values);
    for (size_t i = 0; i < stored_rows * x.stride; i++)
        x.values[i] = (float)mr_random_real(r, -1, 1);
    return x;
}

static void compare(const matrix *a, const matrix *b, const matrix *before, const matrix *c, const mr_cpu_product *p)
{
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++) {
            double sum = (double)p->beta * (double)at(before, i, j);
            for (size_t k = 0; k < p->k; k++)
                sum += (double)p->alpha * (double)at(a, i, k) * (double)at(b, k, j);
            if (fabs(sum - (double)at(c, i, j)) > 1e-6 * (double)p->k + 1e-5)
                fail_msg("%zu x %zu x %zu: [%zu, %zu] is %g instead of %g", p->m, p->n, p->k, i, j, (double)at(c, i, j),
                         sum);
        }
}

/* `large`: whether oneDNN has to take it. */
static void multiply(const mr_cpu_onednn *o, mr_random *r, size_t m, size_t n, size_t k, bool large)
{
    matrix a = draw(r, m, k), b = draw(r, k, n), before = draw(r, m, n);
    if (before.transposed) {
        free(before.values);
        before = (matrix){.values = calloc(m * n, sizeof(float)), .stride = n};
    }
    matrix c = {.values = calloc(m * before.stride, sizeof(float)), .stride = before.stride};
    assert_non_null(before.values);
    assert_non_null(c.values);
    memcpy(c.values, before.values, m * before.stride * sizeof(float));
    mr_cpu_product p = {.type = MR_F32,
                        .m = m,
                        .n = n,
                        .k = k,
                        .a = a.values,
                        .b = b.values,
                        .c = c.values,
                        .lda = a.stride,
                        .ldb = b.stride,
                        .ldc = c.stride,
                        .transpose_a = a.transposed,
                        .transpose_b = b.transposed,
                        .alpha = mr_random_below(r, 2) ? 1 : 0.5F,
                        .beta = mr_random_below(r, 2) ? 1 : 0};
    assert_int_equal(mr_cpu_onednn_multiply(o, &p), large);
    if (large)
        compare(&a, &b, &before, &c, &p);
    for (size_t i = 0; i < m; i++)
        for (size_t j = large ? n : 0; j < before.stride; j++) /* between the rows, or all of it: as it was */
            assert_true(c.values[i * c.stride + j] == before.values[i * c.stride + j]);
    free(a.values);
    free(b.values);
    free(before.values);
    free(c.values);
}

static void products_are_right(void **state)
{
    mr_cpu_onednn o;
    mr_random r = support_random();
    (void)state;
    mr_cpu_onednn_open(&o);
    if (!o.gemm_f32) {
        support_cannot("products by oneDNN", "no AVX-512, or no libdnnl");
        skip();
    }
    for (int i = 0; i < 12; i++) {
        size_t m = 1 + mr_random_below(&r, 20) * 7, n = 40 + mr_random_below(&r, 200);
        multiply(&o, &r, m, n, 1000000 / (m * n) + 1 + mr_random_below(&r, 200), true);
    }
    multiply(&o, &r, 101, 100, 100, true);
    multiply(&o, &r, 100, 100, 100, false);
    mr_cpu_onednn_close(&o);
}

static void without_oneDNN_nothing_is_computed(void **state)
{
    mr_cpu_onednn none = {0};
    mr_random r = support_random();
    (void)state;
    multiply(&none, &r, 128, 128, 128, false);
    mr_cpu_onednn_close(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(without_oneDNN_nothing_is_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
