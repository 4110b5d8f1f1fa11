/* test_device_layers.c - norms and activations of every device against the same in double, their ways back against
 * differences.
 * Invariant: where dropout acts, its mask is read off the device's `drop`; test_attention.c proves its rules.
 * Covers cpu/kernels.c, cpu/norm.c, launch/rows.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device/device.h"

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---- norm ----------------------------------------------------------------------------------------------------- */

typedef struct norm_case {
    size_t rows, width;
    double *x, *residual, *factor, *gain, *bias, *total, *y, *mean, *rstd, *d_y;
    double eps;
    bool add; /* the residual */
} norm_case;

static void norm_in_double(norm_case *c)
{
    for (size_t r = 0; r < c->rows; r++) {
        double mean = 0, variance = 0, *total = c->total + r * c->width, *y = c->y + r * c->width;
        for (size_t i = 0; i < c->width; i++) {
            size_t k = r * c->width + i;
            total[i] = c->x[k] * c->factor[k] + (c->add ? c->residual[k] : 0);
            mean += total[i] / (double)c->width;
        }
        for (size_t i = 0; i < c->width; i++)
            variance += (total[i] - mean) * (total[i] - mean) / (double)c->width;
        c->mean[r] = mean;
        c->rstd[r] = 1 / sqrt(variance + c->eps);
        for (size_t i = 0; i < c->width; i++)
            y[i] = (total[i] - mean) * c->rstd[r] * c->gain[i] + c->bias[i];
    }
}

/* L = sum y d_y; the residual enters the total as it is, so its gradient is that of the total. */
static double norm_loss(void *ctx)
{
    norm_case *c = ctx;
    norm_in_double(c);
    return dot(c->y, c->d_y, c->rows * c->width);
}

static norm_case draw_norm(support_trial *t, size_t sample_rows, size_t samples)
{
    /* Some of a group's lanes, all once, some twice. */
    const size_t widths[] = {203, 7 + support_size_of(t, 90), 512, 600 + support_size_of(t, 90)};
    norm_case c = {.rows = sample_rows * samples,
                   .width = widths[t->round % MR_COUNT(widths)],
                   .eps = 1e-6,
                   .add = t->round % 3 != 1};
    size_t n = c.rows * c.width;
    c.x = support_draw(t, n, -2, 3);
    c.residual = support_draw(t, n, -1, 1);
    c.d_y = support_draw(t, n, -1, 1);
    c.gain = support_draw(t, c.width, 0.5, 1.5);
    c.bias = support_draw(t, c.width, -1, 1);
    c.total = support_doubles(t, n);
    c.y = support_doubles(t, n);
    c.mean = support_doubles(t, c.rows);
    c.rstd = support_doubles(t, c.rows);
    return c;
}

static void norm_forward(support_trial *t, norm_case *c, mr_norm *n)
{
    size_t count = c->rows * c->width;
    n->x = support_give(t, c->x, count);
    n->residual = c->add ? support_give(t, c->residual, count) : NULL;
    n->total = t->round % 3 == 2 ? (void *)(uintptr_t)n->residual : support_blank(t, count);
    n->y = support_blank(t, count);
    n->mean = support_blank(t, c->rows);
    n->rstd = support_blank(t, c->rows);
    n->gain = support_give(t, c->gain, c->width);
    n->bias = support_give(t, c->bias, c->width);
    if (n->dropout.rate == 0 && !c->add) { /* then the total is x itself */
        n->total = NULL;
        mr_run_norm(t->d, n);
        n->total = (void *)(uintptr_t)n->x;
    } else {
        mr_run_norm(t->d, n);
    }
    support_near(t, "norm total", support_take(t, n->total, count), c->total, count, 3e-7);
    support_near(t, "norm y", support_take(t, n->y, count), c->y, count, 2e-6);
    support_near(t, "norm mean", support_take(t, n->mean, c->rows), c->mean, c->rows, 2e-6);
    support_near(t, "norm rstd", support_take(t, n->rstd, c->rows), c->rstd, c->rows, 2e-6);
}

static void norm(support_trial *t)
{
    size_t samples = support_size_of(t, 5), sample_rows = t->round == 0 ? 71 : support_size_of(t, 9);
    norm_case c = draw_norm(t, sample_rows, samples);
    size_t count = c.rows * c.width;
    mr_norm n = {.rows = c.rows,
                 .width = c.width,
                 .sample_rows = sample_rows,
                 .eps = (float)c.eps,
                 .dropout = support_dropout(t, samples)};
    c.eps = (double)n.eps;
    c.factor = support_mask(t, &n.dropout, c.rows, c.width, sample_rows);
    norm_in_double(&c);
    norm_forward(t, &c, &n);
    double *d_gain = support_draw(t, c.width, -1, 1), *d_bias = support_draw(t, c.width, -1, 1);
    double *around = support_draw(t, count, -1, 1);
    mr_norm_back b = {.rows = c.rows,
                      .width = c.width,
                      .d_y = support_give(t, c.d_y, count),
                      .total = n.total,
                      .gain = n.gain,
                      .mean = n.mean,
                      .rstd = n.rstd,
                      .d_gain = support_give(t, d_gain, c.width),
                      .d_bias = support_give(t, d_bias, c.width)};
    bool goes_around = t->round % 3 != 0;
    b.d_residual = goes_around ? support_give(t, around, count) : NULL;
    b.d_total = t->round % 3 == 1 ? (void *)(uintptr_t)b.d_residual : support_blank(t, count);
    mr_run_norm_back(t->d, &b);
    double *d_total = support_take(t, b.d_total, count), *got_gain = support_take(t, b.d_gain, c.width);
    double *got_bias = support_take(t, b.d_bias, c.width);
    for (size_t i = 0; i < count; i++)
        d_total[i] -= goes_around ? around[i] : 0;
    for (size_t i = 0; i < c.width; i++) {
        got_gain[i] -= d_gain[i];
        got_bias[i] -= d_bias[i];
    }
    c.add = true; /* differences need a term that reaches the total unmasked; 0 where there is none */
    if (!n.residual)
        memset(c.residual, 0, count * sizeof *c.residual);
    support_slopes(t, "norm d_total", d_total, c.residual, count, norm_loss, &c, 2e-5);
    support_slopes(t, "norm d_gain", got_gain, c.gain, c.width, norm_loss, &c, 1e-5);
    support_slopes(t, "norm d_bias", got_bias, c.bias, c.width, norm_loss, &c, 1e-5);
}

static void norm_and_its_way_back(void **state)
{
    (void)state;
    support_on_devices(norm);
}

/* A sum without a norm, and rows that hold one value only. */
static void plain_sum(support_trial *t)
{
    size_t rows = support_size_of(t, 9), width = support_size_of(t, 40), count = rows * width;
    double *x = support_draw(t, count, -1, 1), *r = support_draw(t, count, -1, 1), *same = support_doubles(t, count);
    mr_norm n = {.rows = rows,
                 .width = width,
                 .sample_rows = rows,
                 .x = support_give(t, x, count),
                 .residual = support_give(t, r, count),
                 .total = support_blank(t, count)};
    mr_run_norm(t->d, &n);
    for (size_t i = 0; i < count; i++) {
        x[i] += r[i];
        same[i] = 3;
    }
    support_near(t, "sum only", support_take(t, n.total, count), x, count, 1e-7);
    double *bias = support_draw(t, width, -1, 1), *want = support_doubles(t, count);
    n = (mr_norm){.rows = rows,
                  .width = width,
                  .x = support_give(t, same, count),
                  .y = support_blank(t, count),
                  .gain = support_give(t, bias, width),
                  .bias = support_give(t, bias, width),
                  .mean = support_blank(t, rows),
                  .rstd = support_blank(t, rows),
                  .eps = 1e-6F};
    mr_run_norm(t->d, &n);
    for (size_t i = 0; i < count; i++)
        want[i] = bias[i % width];
    support_near(t, "norm of equal values", support_take(t, n.y, count), want, count, 1e-5);
}

static void sums_alone_and_flat_rows(void **state)
{
    (void)state;
    support_on_devices(plain_sum);
}

/* ---- activations ---------------------------------------------------------------------------------------------- */

static double activated(mr_activation kind, double x)
{
    if (kind == MR_GELU)
        return 0.5 * x * erfc(-x / sqrt(2));
    return kind == MR_TANH ? tanh(x) : x / (1 + exp(-1.702 * x));
}

static void activation(support_trial *t)
{
    size_t samples = support_size_of(t, 4), sample_rows = support_size_of(t, 7);
    size_t rows = samples * sample_rows, width = t->round == 0 ? 2003 : support_size_of(t, 200), n = rows * width;
    const double step = 1e-4;
    for (mr_activation kind = MR_GELU; kind <= MR_TANH; kind++) {
        double *x = support_draw(t, n, -6, 6), *d_y = support_draw(t, n, -1, 1), *y = support_doubles(t, n);
        x[0] = t->round % 2 ? -300 : 300; /* far out it is 0, x or 1, and no number has to be feared */
        mr_activate a = {.kind = kind,
                         .rows = rows,
                         .width = width,
                         .sample_rows = sample_rows,
                         .x = support_give(t, x, n),
                         .y = support_blank(t, n),
                         .dropout = support_dropout(t, samples)};
        double *factor = support_mask(t, &a.dropout, rows, width, sample_rows), *slope = support_doubles(t, n);
        for (size_t i = 0; i < n; i++) {
            y[i] = activated(kind, x[i]) * factor[i];
            slope[i] = d_y[i] * factor[i] * (activated(kind, x[i] + step) - activated(kind, x[i] - step)) / (2 * step);
        }
        mr_activate back = a, in_place = a;
        back.y = NULL;
        back.d_y = support_give(t, d_y, n);
        back.d_x = t->round % 3 ? support_blank(t, n) : (void *)(uintptr_t)back.d_y;
        mr_run_activate(t->d, &a);
        mr_run_activate_back(t->d, &back);
        in_place.y = (void *)(uintptr_t)a.x;
        mr_run_activate(t->d, &in_place);
        support_near(t, "activate", support_take(t, a.y, n), y, n, 1e-6);
        support_near(t, "activate in place", support_take(t, in_place.y, n), y, n, 1e-6);
        support_near(t, "activate_back", support_take(t, back.d_x, n), slope, n, 2e-6);
    }
}

static void activations_and_their_ways_back(void **state)
{
    (void)state;
    support_on_devices(activation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_and_its_way_back),
        cmocka_unit_test(sums_alone_and_flat_rows),
        cmocka_unit_test(activations_and_their_ways_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
