/* test_pairs.c - what models of pictures and words need of every device, against the same in double: rows of
 * tables, unit vectors, a learned scale, losses among some of the columns.
 * Invariant: what is added to starts from chance, so that a write in place of a sum is seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device/device.h"

/* ---- rows of a table ------------------------------------------------------------------------------------------ */

typedef struct lookup_case {
    size_t rows, width, entries;
    int32_t *ids;
    int32_t skip;
    double *table, *y, *d_y, *d_table;
} lookup_case;

/* Few entries are met by many rows, many are met by few and some by none; in some rounds ids are wrong. */
static lookup_case draw_lookup(support_trial *t)
{
    bool large = t->round < 2;
    lookup_case c = {.rows = large ? 400 + support_size_of(t, 50) : support_size_of(t, 40),
                     .width = large ? 280 + support_size_of(t, 50) : support_size_of(t, 40),
                     .entries = t->round % 2 ? 1000 : support_size_of(t, 9),
                     .skip = -1};
    c.ids = support_zeroed(t, c.rows * sizeof *c.ids);
    for (size_t i = 0; i < c.rows; i++)
        c.ids[i] = (int32_t)mr_random_below(&t->r, mr_random_below(&t->r, 2) ? 1 + c.entries / 2 : c.entries);
    const int32_t wrong[] = {-1, INT32_MIN, INT32_MAX, (int32_t)c.entries};
    for (size_t i = 0; i < c.rows && t->round % 3 == 1; i++)
        if (mr_random_below(&t->r, 4) == 0)
            c.ids[i] = wrong[mr_random_below(&t->r, MR_COUNT(wrong))];
    if (t->round % 3 == 0)
        c.skip = c.ids[mr_random_below(&t->r, c.rows)];
    c.table = support_draw(t, c.entries * c.width, -1, 1);
    c.y = support_draw(t, c.rows * c.width, -1, 1);
    c.d_y = support_draw(t, c.rows * c.width, -1, 1);
    c.d_table = support_draw(t, c.entries * c.width, -1, 1);
    return c;
}

static void look_up(support_trial *t, const lookup_case *c, bool by_ids)
{
    size_t count = c->rows * c->width, table_count = c->entries * c->width;
    mr_lookup l = {.rows = c->rows,
                   .width = c->width,
                   .entries = c->entries,
                   .skip = c->skip,
                   .ids = by_ids ? support_give_bytes(t, c->ids, c->rows * sizeof *c->ids) : NULL,
                   .table = support_give(t, c->table, table_count),
                   .accumulate = t->round % 2,
                   .y = t->round % 2 ? support_give(t, c->y, count) : support_blank(t, count)};
    mr_lookup back = l;
    back.y = NULL;
    back.d_y = support_give(t, c->d_y, count);
    back.d_table = support_give(t, c->d_table, table_count);
    mr_run_lookup(t->d, &l);
    mr_run_lookup_back(t->d, &back);
    double *y = support_doubles(t, count), *d_table = support_doubles(t, table_count);
    bool *met = support_zeroed(t, c->entries);
    memcpy(d_table, c->d_table, table_count * sizeof *d_table);
    for (size_t i = 0; i < count; i++) {
        int32_t id = by_ids ? c->ids[i / c->width] : 0;
        y[i] = l.accumulate ? c->y[i] : 0;
        if (id < 0 || (size_t)id >= c->entries)
            continue;
        size_t at = (size_t)id * c->width + i % c->width;
        y[i] += c->table[at];
        d_table[at] += id == c->skip ? 0 : c->d_y[i];
        met[id] |= id != c->skip;
    }
    double *got = support_take(t, back.d_table, table_count);
    support_near(t, "lookup", support_take(t, l.y, count), y, count, l.accumulate ? 1e-7 : 0);
    support_near(t, "lookup d_table", got, d_table, table_count, 1e-6);
    for (size_t i = 0; i < c->entries; i++)
        if (!met[i]) /* to the bit */
            assert_memory_equal(got + i * c->width, c->d_table + i * c->width, c->width * sizeof *got);
}

static void lookup(support_trial *t)
{
    lookup_case c = draw_lookup(t);
    look_up(t, &c, true);
    c.skip = t->round % 2 ? -1 : 0;
    look_up(t, &c, false);
}

static void rows_of_a_table_and_their_way_back(void **state)
{
    (void)state;
    support_on_devices(lookup);
}

/* ---- unit vectors --------------------------------------------------------------------------------------------- */

typedef struct unit_case {
    size_t rows, width;
    double eps;
    double *x, *y, *lengths, *d_y;
} unit_case;

static double unit_loss(void *ctx)
{
    unit_case *c = ctx;
    double loss = 0;
    for (size_t r = 0; r < c->rows; r++) {
        const double *x = c->x + r * c->width;
        double squares = 0;
        for (size_t i = 0; i < c->width; i++)
            squares += x[i] * x[i];
        c->lengths[r] = fmax(sqrt(squares), c->eps);
        for (size_t i = 0; i < c->width; i++) {
            c->y[r * c->width + i] = x[i] / c->lengths[r];
            loss += x[i] / c->lengths[r] * c->d_y[r * c->width + i];
        }
    }
    return loss;
}

static void unit(support_trial *t)
{
    unit_case c = {.rows = t->round == 0 ? 150 : support_size_of(t, 20),
                   .width = 3 + support_size_of(t, 300),
                   .eps = t->round % 2 ? 0.75 : 1e-12};
    size_t n = c.rows * c.width;
    c.x = support_draw(t, n, -1, 1);
    c.d_y = support_draw(t, n, -1, 1);
    c.y = support_doubles(t, n);
    c.lengths = support_doubles(t, c.rows);
    for (size_t r = 0; r < c.rows; r++) { /* lengths on both sides of a large eps, and away from it */
        double size = r % 3 ? 4 : t->round % 2 ? 0.4 / (double)c.width : 0.1;
        for (size_t i = 0; i < c.width; i++)
            c.x[r * c.width + i] = (double)(float)(size * (i ? c.x[r * c.width + i] : 1));
        if (t->round % 2 && r % 6 == 0)
            memset(c.x + r * c.width, 0, c.width * sizeof *c.x);
    }
    mr_unit u = {.rows = c.rows,
                 .width = c.width,
                 .eps = (float)c.eps,
                 .x = support_give(t, c.x, n),
                 .y = support_blank(t, n),
                 .lengths = support_blank(t, c.rows)};
    mr_run_unit(t->d, &u);
    u.x = NULL;
    u.d_y = support_give(t, c.d_y, n);
    u.d_x = t->round % 3 ? support_blank(t, n) : (void *)(uintptr_t)u.d_y;
    mr_run_unit_back(t->d, &u);
    unit_loss(&c);
    support_near(t, "unit", support_take(t, u.y, n), c.y, n, 3e-7);
    support_near(t, "lengths", support_take(t, u.lengths, c.rows), c.lengths, c.rows, 3e-7);
    support_slopes(t, "unit d_x", support_take(t, u.d_x, n), c.x, n, unit_loss, &c, 1e-5);
}

static void unit_vectors_and_their_way_back(void **state)
{
    (void)state;
    support_on_devices(unit);
}

/* Zeros have no direction, and squares that no float32 holds no less a length. */
static void odd_lengths(support_trial *t)
{
    double x[6] = {0, 0, 0, 3e30, 0, -4e30}, d_y[6] = {1, -2, 0.5, 0, 1, 0};
    const double y[6] = {0, 0, 0, 0.6, 0, -0.8}, lengths[2] = {1e-12, 5e30};
    mr_unit u = {.rows = 2,
                 .width = 3,
                 .eps = 1e-12F,
                 .x = support_give(t, x, 6),
                 .y = support_blank(t, 6),
                 .lengths = support_blank(t, 2),
                 .d_y = support_give(t, d_y, 6),
                 .d_x = support_blank(t, 6)};
    mr_run_unit(t->d, &u);
    mr_run_unit_back(t->d, &u);
    support_near(t, "unit of odd lengths", support_take(t, u.y, 6), y, 6, 3e-7);
    double *got = support_take(t, u.lengths, 2), *d_x = support_take(t, u.d_x, 6);
    for (size_t i = 0; i < 2; i++)
        assert_true(fabs(got[i] / lengths[i] - 1) < 3e-7);
    for (size_t i = 0; i < 3; i++)
        assert_true(fabs(d_x[i] * 1e-12 - d_y[i]) < 3e-7);
    assert_true(d_x[3] == 0 && fabs(d_x[4] * 5e30 - 1) < 3e-7 && d_x[5] == 0);
}

static void odd_lengths_have_unit_vectors_too(void **state)
{
    (void)state;
    support_on_devices(odd_lengths);
}

/* ---- a learned scale ------------------------------------------------------------------------------------------ */

typedef struct scale_case {
    size_t count;
    double log_scale;
    double *x, *y, *d_y, *d_x;
} scale_case;

static double scale_loss(void *ctx)
{
    scale_case *c = ctx;
    double loss = 0;
    for (size_t i = 0; i < c->count; i++) {
        c->y[i] = c->x[i] * exp(c->log_scale);
        c->d_x[i] = c->d_y[i] * exp(c->log_scale);
        loss += c->y[i] * c->d_y[i];
    }
    return loss;
}

static void scale(support_trial *t)
{
    scale_case c = {.count = t->round == 0 ? 100001 : support_size_of(t, 3000),
                    .log_scale = (double)(float)mr_random_real(&t->r, -2, 3)};
    c.x = support_draw(t, c.count, -1, 1);
    c.d_y = support_draw(t, c.count, -1, 1);
    c.y = support_doubles(t, c.count);
    c.d_x = support_doubles(t, c.count);
    double start = 0.5;
    mr_scale s = {.count = c.count,
                  .log_scale = support_give(t, &c.log_scale, 1),
                  .x = support_give(t, c.x, c.count),
                  .y = support_blank(t, c.count),
                  .d_y = support_give(t, c.d_y, c.count),
                  .d_log_scale = support_give(t, &start, 1)};
    s.d_x = t->round % 2 ? support_blank(t, c.count) : (void *)(uintptr_t)s.d_y;
    mr_run_scale(t->d, &s);
    s.x = NULL;
    mr_run_scale_back(t->d, &s);
    scale_loss(&c);
    support_near(t, "scale", support_take(t, s.y, c.count), c.y, c.count, 3e-7);
    support_near(t, "scale d_x", support_take(t, s.d_x, c.count), c.d_x, c.count, 3e-7);
    double *d_log_scale = support_take(t, s.d_log_scale, 1);
    *d_log_scale -= start;
    support_slopes(t, "d_log_scale", d_log_scale, &c.log_scale, 1, scale_loss, &c, 1e-5);
}

static void a_learned_scale_and_its_way_back(void **state)
{
    (void)state;
    support_on_devices(scale);
}

/* ---- losses among some of the columns ------------------------------------------------------------------------- */

typedef struct loss_case {
    size_t rows, classes;
    double share;
    double *logits, *weights, *columns, *losses;
    int32_t *labels, *groups, *best;
} loss_case;

static bool looked_at(const loss_case *c, size_t row, size_t i)
{
    size_t label = (size_t)c->labels[row];
    if (c->columns && c->columns[i] == 0)
        return false;
    return !c->groups || c->labels[row] < 0 || i == label || c->groups[i] != c->groups[label];
}

static double all_losses(void *ctx)
{
    loss_case *c = ctx;
    double all = 0;
    for (size_t r = 0; r < c->rows; r++) {
        const double *x = c->logits + r * c->classes;
        double sum = 0;
        int32_t best = -1;
        for (size_t i = 0; i < c->classes; i++) {
            if (!looked_at(c, r, i))
                continue;
            sum += exp(x[i]);
            best = best < 0 || x[i] > x[best] ? (int32_t)i : best;
        }
        c->best[r] = best < 0 ? 0 : best;
        bool counts = c->labels[r] >= 0 && c->weights[r] != 0;
        c->losses[r] = counts ? c->share * c->weights[r] * (log(sum) - x[c->labels[r]]) : 0;
        all += c->losses[r];
    }
    return all;
}

static loss_case draw_loss(support_trial *t)
{
    loss_case c = {.rows = support_size_of(t, 30),
                   .classes = t->round == 0 ? 777 : support_size_of(t, 20),
                   .share = t->round % 2 ? (double)(1.0F / 3) : 1};
    c.logits = support_draw(t, c.rows * c.classes, -3, 3);
    c.weights = support_draw(t, c.rows, 0, 2);
    c.losses = support_doubles(t, c.rows);
    c.labels = support_zeroed(t, c.rows * sizeof *c.labels);
    c.best = support_zeroed(t, c.rows * sizeof *c.best);
    c.columns = t->round % 3 ? support_doubles(t, c.classes) : NULL;
    c.groups = t->round % 3 == 1 ? NULL : support_zeroed(t, c.classes * sizeof *c.groups);
    for (size_t i = 0; i < c.classes; i++) {
        if (c.columns)
            c.columns[i] = mr_random_below(&t->r, 3) ? 0.5 : 0;
        if (c.groups)
            c.groups[i] = (int32_t)mr_random_below(&t->r, 4) - 2;
    }
    for (size_t r = 0; r < c.rows; r++) {
        c.labels[r] = r % 9 == 8 ? -1 : (int32_t)mr_random_below(&t->r, c.classes);
        if (c.columns && c.labels[r] >= 0 && c.columns[c.labels[r]] == 0)
            c.weights[r] = 0;
        if (r % 3 == 1) /* the largest, and often not looked at */
            c.logits[r * c.classes] = 40;
    }
    return c;
}

static void losses_among(support_trial *t)
{
    loss_case c = draw_loss(t);
    size_t n = c.rows * c.classes;
    double *before = support_draw(t, c.rows, -1, 1);
    int32_t *best = support_zeroed(t, c.rows * sizeof *best);
    mr_cross_entropy k = {.rows = c.rows,
                          .classes = c.classes,
                          .logits = support_give(t, c.logits, n),
                          .labels = support_give_bytes(t, c.labels, c.rows * sizeof *c.labels),
                          .weights = support_give(t, c.weights, c.rows),
                          .losses = support_give(t, before, c.rows),
                          .d_logits = support_blank(t, n),
                          .best = support_blank(t, c.rows),
                          .share = t->round % 2 ? 1.0F / 3 : 0,
                          .add_losses = true,
                          .columns = c.columns ? support_give(t, c.columns, c.classes) : NULL,
                          .groups = c.groups ? support_give_bytes(t, c.groups, c.classes * sizeof *c.groups) : NULL};
    mr_run_cross_entropy(t->d, &k);
    all_losses(&c);
    double *losses = support_take(t, k.losses, c.rows), *d_logits = support_take(t, k.d_logits, n);
    for (size_t r = 0; r < c.rows; r++)
        losses[r] -= before[r];
    support_near(t, "losses among columns", losses, c.losses, c.rows, 1e-6);
    support_take_bytes(t, best, k.best, c.rows * sizeof *best);
    assert_memory_equal(best, c.best, c.rows * sizeof *best);
    for (size_t i = 0; i < n; i++)
        assert_true(looked_at(&c, i / c.classes, i % c.classes) || d_logits[i] == 0);
    support_slopes(t, "d_logits among columns", d_logits, c.logits, n, all_losses, &c, 1e-5);
}

static void losses_among_some_columns(void **state)
{
    (void)state;
    support_on_devices(losses_among);
}

/* Nothing left out is the same to the bit as nothing asked for; a label that is not looked at has no finite loss. */
static void nothing_left_out(support_trial *t)
{
    enum { ROWS = 5, CLASSES = 7 };
    double *logits = support_draw(t, ROWS * CLASSES, -3, 3), columns[CLASSES];
    int32_t labels[ROWS] = {3, 0, 6, -1, 3}, groups[CLASSES] = {0, 1, 2, 3, 4, 5, 6};
    uint8_t plain[ROWS * CLASSES * sizeof(float)], same[sizeof plain];
    for (size_t i = 0; i < CLASSES; i++)
        columns[i] = 1;
    mr_cross_entropy k = {.rows = ROWS,
                          .classes = CLASSES,
                          .logits = support_give(t, logits, ROWS * CLASSES),
                          .labels = support_give_bytes(t, labels, sizeof labels),
                          .losses = support_blank(t, ROWS),
                          .d_logits = support_blank(t, ROWS * CLASSES)};
    mr_cross_entropy all = k;
    all.losses = support_blank(t, ROWS);
    all.d_logits = support_blank(t, ROWS * CLASSES);
    all.share = 1;
    all.columns = support_give(t, columns, CLASSES);
    all.groups = support_give_bytes(t, groups, sizeof groups);
    mr_run_cross_entropy(t->d, &k);
    mr_run_cross_entropy(t->d, &all);
    support_take_bytes(t, plain, k.d_logits, sizeof plain);
    support_take_bytes(t, same, all.d_logits, sizeof same);
    assert_memory_equal(plain, same, sizeof plain);
    support_take_bytes(t, plain, k.losses, ROWS * sizeof(float));
    support_take_bytes(t, same, all.losses, ROWS * sizeof(float));
    assert_memory_equal(plain, same, ROWS * sizeof(float));
    columns[3] = 0;
    all.columns = support_give(t, columns, CLASSES);
    mr_run_cross_entropy(t->d, &all);
    double *got = support_take(t, all.losses, ROWS);
    assert_true(isinf(got[0]) && isfinite(got[1]) && isfinite(got[2]) && got[3] == 0 && isinf(got[4]));
}

static void what_is_not_asked_for_changes_no_bit(void **state)
{
    (void)state;
    support_on_devices(nothing_left_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_table_and_their_way_back), cmocka_unit_test(unit_vectors_and_their_way_back),
        cmocka_unit_test(odd_lengths_have_unit_vectors_too),  cmocka_unit_test(a_learned_scale_and_its_way_back),
        cmocka_unit_test(losses_among_some_columns),          cmocka_unit_test(what_is_not_asked_for_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
