/* test_device_ends.c - what stands at both ends of a model, on every device against the same in double: patches,
 * tokens, picked rows, cross entropy.
 * Invariant: where dropout acts, its mask is read off the device's `drop`; test_attention.c proves its rules.
 * Covers cpu/loss.c, cpu/tokens.c, launch/tokens.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device/device.h"

/* ---- tokens, patches, rows ------------------------------------------------------------------------------------ */

static void tokens(support_trial *t)
{
    size_t b = support_size_of(t, 5), rows = 1 + support_size_of(t, 12);
    size_t width = t->round == 0 ? 1111 : support_size_of(t, 50);
    size_t x_count = b * (rows - 1) * width, y_count = b * rows * width, places = rows * width;
    double *x = support_draw(t, x_count, -1, 1), *first = support_draw(t, width, -1, 1);
    double *position = support_draw(t, places, -1, 1), *d_y = support_draw(t, y_count, -1, 1);
    mr_tokens k = {.batch = b,
                   .rows = rows,
                   .width = width,
                   .x = support_give(t, x, x_count),
                   .first = support_give(t, first, width),
                   .position = support_give(t, position, places),
                   .y = support_blank(t, y_count),
                   .dropout = support_dropout(t, b)};
    double *factor = support_mask(t, &k.dropout, b * rows, width, rows), *y = support_doubles(t, y_count);
    double *d_x = support_doubles(t, x_count), *d_first = support_draw(t, width, -1, 1);
    double *d_position = support_draw(t, places, -1, 1);
    mr_tokens back = k;
    back.d_y = support_give(t, d_y, y_count);
    back.d_x = support_blank(t, x_count);
    back.d_first = support_give(t, d_first, width);
    back.d_position = support_give(t, d_position, places);
    mr_run_tokens(t->d, &k);
    mr_run_tokens_back(t->d, &back);
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
    side += (size_t)mr_random_below(&t->r, patch); /* what is left over is not seen */
    size_t grid = side / patch, width = patch * patch * 3, count = batch * grid * grid * width;
    double *image = support_draw(t, batch * 3 * side * side, -1, 1), *want = support_doubles(t, count);
    for (int first = 0; first < 2; first++) {
        mr_patches p = {.batch = batch,
                        .side = side,
                        .patch = patch,
                        .channel_first = first,
                        .images = support_give(t, image, batch * 3 * side * side),
                        .rows = support_blank(t, count)};
        mr_run_patches(t->d, &p);
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

static void rows_of_a_table(support_trial *t)
{
    size_t n = support_size_of(t, 300), width = support_size_of(t, 200), from = width + mr_random_below(&t->r, 9);
    size_t to = width + mr_random_below(&t->r, 9), from_count = (n - 1) * from + width, to_count = (n - 1) * to + width;
    double *x = support_draw(t, from_count, -1, 1), *y = support_draw(t, to_count, -1, 1);
    mr_rows r = {.rows = n,
                 .width = width,
                 .from_stride = from == width ? 0 : from,
                 .to_stride = to == width ? 0 : to,
                 .from = support_give(t, x, from_count),
                 .to = support_give(t, y, to_count),
                 .accumulate = t->round % 2};
    mr_run_rows(t->d, &r);
    for (size_t i = 0; i < n * width; i++) {
        double *place = &y[i / width * to + i % width];
        *place = x[i / width * from + i % width] + (r.accumulate ? *place : 0);
    }
    support_near(t, "rows", support_take(t, r.to, to_count), y, to_count, r.accumulate ? 1e-7 : 0);
}

static void rows_go_where_they_should(void **state)
{
    (void)state;
    support_on_devices(rows_of_a_table);
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
    double top = t->round == 1 ? 90 : 3; /* e^90 exceeds float32 */
    c.logits = support_draw(t, n, -3, top);
    c.weights = support_draw(t, c.rows, 0, 2);
    c.losses = support_doubles(t, c.rows);
    c.labels = support_zeroed(t, c.rows * sizeof *c.labels);
    c.best = support_zeroed(t, c.rows * sizeof *c.best);
    int32_t *best = support_zeroed(t, c.rows * sizeof *best);
    for (size_t r = 0; r < c.rows; r++) {
        c.labels[r] = (int32_t)mr_random_below(&t->r, c.classes + 1); /* one beyond the last now and then */
        if (r % 9 == 8)
            c.labels[r] = -1;
        if (c.classes > 4 && r % 3 == 0) /* of two equal ones the first is the best */
            c.logits[r * c.classes + 2] = c.logits[r * c.classes + 4] = top;
        if (t->round % 2)
            c.weights[r] = r % 4 ? 1 : 0;
    }
    mr_cross_entropy k = {.rows = c.rows,
                          .classes = c.classes,
                          .logits = support_give(t, c.logits, n),
                          .labels = support_give_bytes(t, c.labels, c.rows * sizeof *c.labels),
                          .weights = support_give(t, c.weights, c.rows),
                          .losses = support_blank(t, c.rows),
                          .d_logits = support_blank(t, n),
                          .best = support_blank(t, c.rows)};
    mr_run_cross_entropy(t->d, &k);
    all_losses(&c);
    support_near(t, "losses", support_take(t, k.losses, c.rows), c.losses, c.rows, 1e-6);
    support_take_bytes(t, best, k.best, c.rows * sizeof *best);
    assert_memory_equal(best, c.best, c.rows * sizeof *best);
    support_slopes(t, "d_logits", support_take(t, k.d_logits, n), c.logits, n, all_losses, &c, 1e-5);
    k.d_logits = NULL; /* evaluation: nothing but losses, and all count */
    k.best = NULL;
    k.weights = NULL;
    mr_run_cross_entropy(t->d, &k);
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

/* One label, spread: against the sum that the definition gives. */
typedef struct smooth_case {
    size_t rows, classes;
    double *logits, smoothing;
    int32_t *labels;
} smooth_case;

static double smooth_losses(void *ctx)
{
    const smooth_case *c = ctx;
    double all = 0;
    for (size_t r = 0; r < c->rows; r++) {
        const double *x = c->logits + r * c->classes;
        double sum = 0, even = c->smoothing / (double)c->classes;
        for (size_t i = 0; i < c->classes; i++)
            sum += exp(x[i]);
        double log_sum = log(sum);
        for (size_t i = 0; i < c->classes; i++)
            all -= (even + ((int32_t)i == c->labels[r] ? 1 - c->smoothing : 0)) * (x[i] - log_sum);
    }
    return all;
}

static void smoothing(support_trial *t)
{
    smooth_case c = {.rows = support_size_of(t, 20), .classes = support_size_of(t, 300), .smoothing = 0.1};
    t->slopes = 16;
    size_t n = c.rows * c.classes;
    double sum = 0;
    c.logits = support_draw(t, n, -3, 3);
    c.labels = support_zeroed(t, c.rows * sizeof *c.labels);
    for (size_t r = 0; r < c.rows; r++)
        c.labels[r] = (int32_t)mr_random_below(&t->r, c.classes);
    mr_cross_entropy k = {.rows = c.rows,
                          .classes = c.classes,
                          .logits = support_give(t, c.logits, n),
                          .labels = support_give_bytes(t, c.labels, c.rows * sizeof *c.labels),
                          .losses = support_blank(t, c.rows),
                          .d_logits = support_blank(t, n),
                          .smoothing = 0.1F};
    mr_run_cross_entropy(t->d, &k);
    double *losses = support_take(t, k.losses, c.rows);
    for (size_t r = 0; r < c.rows; r++)
        sum += losses[r];
    assert_true(fabs(sum - smooth_losses(&c)) < 1e-5 * (1 + fabs(sum)));
    support_slopes(t, "d_logits", support_take(t, k.d_logits, n), c.logits, n, smooth_losses, &c, 1e-5);
}

static void labels_can_be_smoothed(void **state)
{
    (void)state;
    support_on_devices(smoothing);
}

typedef struct sigmoid_case {
    size_t rows, classes;
    double *logits, *targets, *positive, *weights, *losses;
    int32_t *best;
} sigmoid_case;

static double sigmoid_losses(void *ctx)
{
    const sigmoid_case *c = ctx;
    double all = 0;
    for (size_t r = 0; r < c->rows; r++) {
        const double *x = c->logits + r * c->classes, *t = c->targets + r * c->classes;
        c->losses[r] = 0;
        c->best[r] = 0;
        for (size_t i = 0; i < c->classes; i++) {
            /* -p t log(sigmoid) - (1 - t) log(1 - sigmoid), without an overflow at -90 */
            double log_of = x[i] < 0 ? x[i] - log1p(exp(x[i])) : -log1p(exp(-x[i])), log_not = log_of - x[i];
            c->losses[r] -= c->positive[i] * t[i] * log_of + (1 - t[i]) * log_not;
            c->best[r] = x[i] > x[c->best[r]] ? (int32_t)i : c->best[r];
        }
        c->losses[r] *= c->weights[r] / (double)c->classes;
        all += c->losses[r];
    }
    return all;
}

static void sigmoid_loss(support_trial *t)
{
    sigmoid_case c = {.rows = support_size_of(t, 30), .classes = t->round == 0 ? 1001 : support_size_of(t, 20)};
    t->slopes = 16;
    size_t n = c.rows * c.classes;
    double top = t->round == 1 ? 95 : 4; /* e^95 exceeds float32 */
    c.logits = support_draw(t, n, -top, top);
    c.targets = support_draw(t, n, 0, 1);
    c.positive = support_draw(t, c.classes, 0.5, 3);
    c.weights = support_draw(t, c.rows, 0, 2);
    c.losses = support_doubles(t, c.rows);
    c.best = support_zeroed(t, c.rows * sizeof *c.best);
    int32_t *best = support_zeroed(t, c.rows * sizeof *best);
    for (size_t i = 0; i < n && t->round % 2; i++)
        c.targets[i] = c.targets[i] > 0.7;
    c.weights[0] = 0;
    mr_sigmoid_loss k = {.rows = c.rows,
                         .classes = c.classes,
                         .logits = support_give(t, c.logits, n),
                         .targets = support_give(t, c.targets, n),
                         .positive = support_give(t, c.positive, c.classes),
                         .weights = support_give(t, c.weights, c.rows),
                         .losses = support_blank(t, c.rows),
                         .d_logits = support_blank(t, n),
                         .best = support_blank(t, c.rows)};
    mr_run_sigmoid_loss(t->d, &k);
    sigmoid_losses(&c);
    support_near(t, "losses", support_take(t, k.losses, c.rows), c.losses, c.rows, 1e-6);
    support_take_bytes(t, best, k.best, c.rows * sizeof *best);
    assert_memory_equal(best, c.best, c.rows * sizeof *best);
    support_slopes(t, "d_logits", support_take(t, k.d_logits, n), c.logits, n, sigmoid_losses, &c, 1e-5);
    k = (mr_sigmoid_loss){
        .rows = c.rows, .classes = c.classes, .logits = k.logits, .targets = k.targets, .losses = k.losses};
    mr_run_sigmoid_loss(t->d, &k);
    for (size_t i = 0; i < c.classes; i++)
        c.positive[i] = 1;
    for (size_t r = 0; r < c.rows; r++)
        c.weights[r] = 1;
    sigmoid_losses(&c);
    support_near(t, "losses of evaluation", support_take(t, k.losses, c.rows), c.losses, c.rows, 1e-6);
}

static void several_labels_and_their_way_back(void **state)
{
    (void)state;
    support_on_devices(sigmoid_loss);
}

/* torch.nn.functional.binary_cross_entropy_with_logits(x, t, pos_weight=p, reduction="none").mean(1) and
 * torch.nn.functional.cross_entropy(x, [2, 0], label_smoothing=0.1, reduction="none"), by oracle_losses.py. */
static void oracle(support_trial *t)
{
    double logits[8] = {1.5, -2, 0.25, 3, -0.5, 0, 8, -7}, targets[8] = {1, 0, 0, 1, 0.25, 1, 0, 0.5};
    double positive[4] = {1, 2, 3, 0.5};
    int32_t labels[2] = {2, 0};
    mr_sigmoid_loss s = {.rows = 2,
                         .classes = 4,
                         .logits = support_give(t, logits, 8),
                         .targets = support_give(t, targets, 8),
                         .positive = support_give(t, positive, 4),
                         .losses = support_blank(t, 2)};
    mr_cross_entropy c = {.rows = 2,
                          .classes = 4,
                          .logits = s.logits,
                          .labels = support_give_bytes(t, labels, sizeof labels),
                          .losses = support_blank(t, 2),
                          .smoothing = 0.1F};
    mr_run_sigmoid_loss(t->d, &s);
    mr_run_cross_entropy(t->d, &c);
    support_near(t, "of several labels", support_take(t, s.losses, 2), (double[]){0.294643596173, 2.93409758788}, 2,
                 1e-6);
    support_near(t, "smoothed", support_take(t, c.losses, 2), (double[]){2.9638305085, 8.43803909156}, 2, 1e-6);
}

static void losses_are_those_of_pytorch(void **state)
{
    (void)state;
    support_on_devices(oracle);
}

static void no_number(support_trial *t)
{
    double logits[6] = {1, NAN, 2, 1, 2, 3};
    int32_t labels[2] = {0, 1};
    mr_cross_entropy k = {.rows = 2,
                          .classes = 3,
                          .logits = support_give(t, logits, 6),
                          .labels = support_give_bytes(t, labels, sizeof labels),
                          .losses = support_blank(t, 2)};
    mr_run_cross_entropy(t->d, &k);
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
        cmocka_unit_test(tokens_and_their_way_back),   cmocka_unit_test(patches_are_the_pixels),
        cmocka_unit_test(rows_go_where_they_should),   cmocka_unit_test(cross_entropy_and_its_way_back),
        cmocka_unit_test(labels_can_be_smoothed),      cmocka_unit_test(several_labels_and_their_way_back),
        cmocka_unit_test(losses_are_those_of_pytorch), cmocka_unit_test(a_loss_that_is_no_number_stays_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
