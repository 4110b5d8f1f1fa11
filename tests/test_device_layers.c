/* test_device_layers.c - norms, activations, tokens, patches and losses of every device against the same in double;
 * their ways back against differences.
 * Invariant: where dropout acts, its mask is read off the device's `drop`; test_device_attention.c proves its rules. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_device.h"

/* What dropout multiplies each element by: 0 or 1 / (1 - rate). */
static double *factors(support_trial *t, const mr_dropout *d, size_t rows, size_t width, size_t sample_rows)
{
    double *ones = support_doubles(t, rows * width);
    for (size_t i = 0; i < rows * width; i++)
        ones[i] = 1;
    void *x = support_give(t, ones, rows * width), *y = support_blank(t, rows * width);
    t->card->drop(t->d, MR_F32, rows, width, sample_rows, d, x, y);
    return support_take(t, y, rows * width);
}

/* Off in half of the rounds, and then without keys. */
static mr_dropout draw_dropout(support_trial *t, size_t samples)
{
    if (t->round % 2)
        return (mr_dropout){.rate = 0};
    uint64_t *keys = support_room(t, samples * sizeof *keys);
    mr_random_bytes(&t->r, keys, samples * sizeof *keys);
    return (mr_dropout){.rate = 0.3F, .site = (uint32_t)mr_random_below(&t->r, 99),
                        .keys = support_give_bytes(t, keys, samples * sizeof *keys)};
}

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
    bool add;                       /* the residual */
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
    norm_case c = {.rows = sample_rows * samples, .width = t->round == 0 ? 203 : 1 + support_size_of(t, 90),
                   .eps = 1e-6, .add = t->round % 3 != 1};
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
    if (n->dropout.rate == 0 && !c->add) {      /* then the total is x itself */
        n->total = NULL;
        t->card->norm(t->d, n);
        n->total = (void *)(uintptr_t)n->x;
    } else {
        t->card->norm(t->d, n);
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
    mr_norm n = {.rows = c.rows, .width = c.width, .sample_rows = sample_rows, .eps = (float)c.eps,
                 .dropout = draw_dropout(t, samples)};
    c.eps = (double)n.eps;
    c.factor = factors(t, &n.dropout, c.rows, c.width, sample_rows);
    norm_in_double(&c);
    norm_forward(t, &c, &n);
    double *d_gain = support_draw(t, c.width, -1, 1), *d_bias = support_draw(t, c.width, -1, 1);
    double *around = support_draw(t, count, -1, 1);
    mr_norm_back b = {.rows = c.rows, .width = c.width, .d_y = support_give(t, c.d_y, count), .total = n.total,
                      .gain = n.gain, .mean = n.mean, .rstd = n.rstd, .d_gain = support_give(t, d_gain, c.width),
                      .d_bias = support_give(t, d_bias, c.width)};
    bool goes_around = t->round % 3 != 0;
    b.d_residual = goes_around ? support_give(t, around, count) : NULL;
    b.d_total = t->round % 3 == 1 ? (void *)(uintptr_t)b.d_residual : support_blank(t, count);
    t->card->norm_back(t->d, &b);
    double *d_total = support_take(t, b.d_total, count), *got_gain = support_take(t, b.d_gain, c.width);
    double *got_bias = support_take(t, b.d_bias, c.width);
    for (size_t i = 0; i < count; i++)
        d_total[i] -= goes_around ? around[i] : 0;
    for (size_t i = 0; i < c.width; i++) {
        got_gain[i] -= d_gain[i];
        got_bias[i] -= d_bias[i];
    }
    c.add = true;                   /* differences need a term that reaches the total unmasked; 0 where there is none */
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
    mr_norm n = {.rows = rows, .width = width, .sample_rows = rows, .x = support_give(t, x, count),
                 .residual = support_give(t, r, count), .total = support_blank(t, count)};
    t->card->norm(t->d, &n);
    for (size_t i = 0; i < count; i++) {
        x[i] += r[i];
        same[i] = 3;
    }
    support_near(t, "sum only", support_take(t, n.total, count), x, count, 1e-7);
    double *bias = support_draw(t, width, -1, 1), *want = support_doubles(t, count);
    n = (mr_norm){.rows = rows, .width = width, .x = support_give(t, same, count), .y = support_blank(t, count),
                  .gain = support_give(t, bias, width), .bias = support_give(t, bias, width),
                  .mean = support_blank(t, rows), .rstd = support_blank(t, rows), .eps = 1e-6F};
    t->card->norm(t->d, &n);
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
        x[0] = t->round % 2 ? -300 : 300;       /* far out it is 0, x or 1, and no number has to be feared */
        mr_activate a = {.kind = kind, .rows = rows, .width = width, .sample_rows = sample_rows,
                         .x = support_give(t, x, n), .y = support_blank(t, n), .dropout = draw_dropout(t, samples)};
        double *factor = factors(t, &a.dropout, rows, width, sample_rows), *slope = support_doubles(t, n);
        for (size_t i = 0; i < n; i++) {
            y[i] = activated(kind, x[i]) * factor[i];
            slope[i] = d_y[i] * factor[i] * (activated(kind, x[i] + step) - activated(kind, x[i] - step)) / (2 * step);
        }
        mr_activate back = a, in_place = a;
        back.y = NULL;
        back.d_y = support_give(t, d_y, n);
        back.d_x = t->round % 3 ? support_blank(t, n) : (void *)(uintptr_t)back.d_y;
        t->card->activate(t->d, &a);
        t->card->activate_back(t->d, &back);
        in_place.y = (void *)(uintptr_t)a.x;
        t->card->activate(t->d, &in_place);
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

/* ---- tokens, patches, rows ------------------------------------------------------------------------------------ */

static void tokens(support_trial *t)
{
    size_t b = support_size_of(t, 5), rows = 1 + support_size_of(t, 12);
    size_t width = t->round == 0 ? 1111 : support_size_of(t, 50);
    size_t x_count = b * (rows - 1) * width, y_count = b * rows * width, places = rows * width;
    double *x = support_draw(t, x_count, -1, 1), *first = support_draw(t, width, -1, 1);
    double *position = support_draw(t, places, -1, 1), *d_y = support_draw(t, y_count, -1, 1);
    mr_tokens k = {.batch = b, .rows = rows, .width = width, .x = support_give(t, x, x_count),
                   .first = support_give(t, first, width), .position = support_give(t, position, places),
                   .y = support_blank(t, y_count), .dropout = draw_dropout(t, b)};
    double *factor = factors(t, &k.dropout, b * rows, width, rows), *y = support_doubles(t, y_count);
    double *d_x = support_doubles(t, x_count), *d_first = support_draw(t, width, -1, 1);
    double *d_position = support_draw(t, places, -1, 1);
    mr_tokens back = k;
    back.d_y = support_give(t, d_y, y_count);
    back.d_x = support_blank(t, x_count);
    back.d_first = support_give(t, d_first, width);
    back.d_position = support_give(t, d_position, places);
    t->card->tokens(t->d, &k);
    t->card->tokens_back(t->d, &back);
    for (size_t i = 0; i < y_count; i++) {
        size_t sample = i / places, place = i % places, column = i % width, row = place / width;
        size_t in_x = sample * (rows - 1) * width + place - width;
        y[i] = ((row ? x[in_x] : first[column]) + position[place]) * factor[i];
        *(row ? &d_x[in_x] : &d_first[column]) += d_y[i] * factor[i];
        d_position[place] += d_y[i] * factor[i];
    }
    support_near(t, "tokens", support_take(t, k.y, y_count), y, y_count, 3e-7);
    support_near(t, "tokens d_x", support_take(t, back.d_x, x_count), d_x, x_count, 3e-7);
    support_near(t, "tokens d_first", support_take(t, back.d_first, width), d_first, width, 1e-6);
    support_near(t, "tokens d_position", support_take(t, back.d_position, places), d_position, places, 1e-6);
}

static void tokens_and_their_way_back(void **state)
{
    (void)state;
    support_on_devices(tokens);
}

static void patches(support_trial *t)
{
    size_t batch = support_size_of(t, 4), patch = support_size_of(t, 9), side = patch * support_size_of(t, 5);
    side += (size_t)mr_random_below(&t->r, patch);      /* what is left over is not seen */
    size_t grid = side / patch, width = patch * patch * 3, count = batch * grid * grid * width;
    double *image = support_draw(t, batch * 3 * side * side, -1, 1), *want = support_doubles(t, count);
    for (int first = 0; first < 2; first++) {
        mr_patches p = {.batch = batch, .side = side, .patch = patch, .channel_first = first,
                        .images = support_give(t, image, batch * 3 * side * side), .rows = support_blank(t, count)};
        t->card->patches(t->d, &p);
        for (size_t i = 0; i < count; i++) {
            size_t in = i % width, at = i / width, b = at / (grid * grid), gy = at / grid % grid, gx = at % grid;
            size_t c = first ? in / (patch * patch) : in % 3, pixel = first ? in % (patch * patch) : in / 3;
            size_t y = gy * patch + pixel / patch, x = gx * patch + pixel % patch;
            want[i] = image[((b * 3 + c) * side + y) * side + x];
        }
        support_near(t, "patches", support_take(t, p.rows, count), want, count, 0);
    }
}

static void patches_are_the_pixels(void **state)
{
    (void)state;
    support_on_devices(patches);
}

static void rows(support_trial *t)
{
    size_t n = support_size_of(t, 300), width = support_size_of(t, 200), from = width + mr_random_below(&t->r, 9);
    size_t to = width + mr_random_below(&t->r, 9), from_count = (n - 1) * from + width, to_count = (n - 1) * to + width;
    double *x = support_draw(t, from_count, -1, 1), *y = support_draw(t, to_count, -1, 1);
    mr_rows r = {.rows = n, .width = width, .from_stride = from == width ? 0 : from, .to_stride = to == width ? 0 : to,
                 .from = support_give(t, x, from_count), .to = support_give(t, y, to_count),
                 .accumulate = t->round % 2};
    t->card->rows(t->d, &r);
    for (size_t i = 0; i < n * width; i++) {
        double *place = &y[i / width * to + i % width];
        *place = x[i / width * from + i % width] + (r.accumulate ? *place : 0);
    }
    support_near(t, "rows", support_take(t, r.to, to_count), y, to_count, r.accumulate ? 1e-7 : 0);
}

static void rows_go_where_they_should(void **state)
{
    (void)state;
    support_on_devices(rows);
}

/* ---- cross entropy -------------------------------------------------------------------------------------------- */

typedef struct loss_case {
    size_t rows, classes;
    double *logits, *weights, *losses;
    int32_t *labels, *best;
} loss_case;

static double all_losses(void *ctx)
{
    loss_case *c = ctx;
    double all = 0;
    for (size_t r = 0; r < c->rows; r++) {
        const double *x = c->logits + r * c->classes;
        double sum = 0;
        bool known = c->labels[r] >= 0 && (size_t)c->labels[r] < c->classes;
        c->best[r] = 0;
        for (size_t i = 0; i < c->classes; i++) {
            sum += exp(x[i] - 90);
            c->best[r] = x[i] > x[c->best[r]] ? (int32_t)i : c->best[r];
        }
        c->losses[r] = known ? c->weights[r] * (log(sum) + 90 - x[c->labels[r]]) : 0;
        all += c->losses[r];
    }
    return all;
}

static void cross_entropy(support_trial *t)
{
    loss_case c = {.rows = support_size_of(t, 30), .classes = t->round == 0 ? 1001 : support_size_of(t, 20)};
    size_t n = c.rows * c.classes;
    double top = t->round == 1 ? 90 : 3;        /* e^90 is no float32 */
    c.logits = support_draw(t, n, -3, top);
    c.weights = support_draw(t, c.rows, 0, 2);
    c.losses = support_doubles(t, c.rows);
    c.labels = support_room(t, c.rows * sizeof *c.labels);
    c.best = support_room(t, c.rows * sizeof *c.best);
    int32_t *best = support_room(t, c.rows * sizeof *best);
    for (size_t r = 0; r < c.rows; r++) {
        c.labels[r] = (int32_t)mr_random_below(&t->r, c.classes + 1);   /* one beyond the last now and then */
        if (r % 9 == 8)
            c.labels[r] = -1;
        if (c.classes > 4 && r % 3 == 0)        /* of two equal ones the first is the best */
            c.logits[r * c.classes + 2] = c.logits[r * c.classes + 4] = top;
        if (t->round % 2)
            c.weights[r] = r % 4 ? 1 : 0;
    }
    mr_cross_entropy k = {.rows = c.rows, .classes = c.classes, .logits = support_give(t, c.logits, n),
                          .labels = support_give_bytes(t, c.labels, c.rows * sizeof *c.labels),
                          .weights = support_give(t, c.weights, c.rows), .losses = support_blank(t, c.rows),
                          .d_logits = support_blank(t, n), .best = support_blank(t, c.rows)};
    t->card->cross_entropy(t->d, &k);
    all_losses(&c);
    support_near(t, "losses", support_take(t, k.losses, c.rows), c.losses, c.rows, 1e-6);
    support_take_bytes(t, best, k.best, c.rows * sizeof *best);
    assert_memory_equal(best, c.best, c.rows * sizeof *best);
    support_slopes(t, "d_logits", support_take(t, k.d_logits, n), c.logits, n, all_losses, &c, 1e-5);
    k.d_logits = NULL;                          /* evaluation: nothing but losses, and all count */
    k.best = NULL;
    k.weights = NULL;
    t->card->cross_entropy(t->d, &k);
    for (size_t r = 0; r < c.rows; r++)
        c.weights[r] = 1;
    all_losses(&c);
    support_near(t, "losses of evaluation", support_take(t, k.losses, c.rows), c.losses, c.rows, 1e-6);
}

static void cross_entropy_and_its_way_back(void **state)
{
    (void)state;
    support_on_devices(cross_entropy);
}

static void no_number(support_trial *t)
{
    double logits[6] = {1, NAN, 2, 1, 2, 3};
    int32_t labels[2] = {0, 1};
    mr_cross_entropy k = {.rows = 2, .classes = 3, .logits = support_give(t, logits, 6),
                          .labels = support_give_bytes(t, labels, sizeof labels), .losses = support_blank(t, 2)};
    t->card->cross_entropy(t->d, &k);
    double *got = support_take(t, k.losses, 2);
    assert_true(isnan(got[0]) && isfinite(got[1]));
}

static void a_loss_that_is_no_number_stays_one(void **state)
{
    (void)state;
    support_on_devices(no_number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_and_its_way_back),
        cmocka_unit_test(sums_alone_and_flat_rows),
        cmocka_unit_test(activations_and_their_ways_back),
        cmocka_unit_test(tokens_and_their_way_back),
        cmocka_unit_test(patches_are_the_pixels),
        cmocka_unit_test(rows_go_where_they_should),
        cmocka_unit_test(cross_entropy_and_its_way_back),
        cmocka_unit_test(a_loss_that_is_no_number_stays_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
