/* test_contrast.c - the contrastive head against the same in double, its gradients against differences, and many ranks
 * against one.
 * Invariant: ranks are tried one after another in one process: each is run three times, and its sums answer with what
 * all ranks have given in the runs before:
 *
 *      run 0    every rank gives its rows                 then the rows of all are known
 *      run 1    the sum answers; every rank gives its gradients
 *      run 2    both sums answer; this run counts */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/model/contrast.h"
#include "tests/support/device/device.h"

/* ---- in double ------------------------------------------------------------------------------------------------ */

typedef struct contrast_case {
    size_t count, embed; /* of all ranks */
    double *x[3], log_scale, *weights, *losses;
    double *y[3], *logits; /* room for [count, embed], [count] */
    int32_t *groups;       /* weights, groups: may be NULL */
} contrast_case;

static double weight_of(const contrast_case *c, size_t i)
{
    return c->weights ? c->weights[i] : 1;
}

static void units_in_double(contrast_case *c)
{
    for (size_t k = 0; k < 3; k++) {
        for (size_t r = 0; r < c->count; r++) {
            double squares = 0;
            for (size_t i = r * c->embed; i < (r + 1) * c->embed; i++)
                squares += c->x[k][i] * c->x[k][i];
            for (size_t i = r * c->embed; i < (r + 1) * c->embed; i++)
                c->y[k][i] = c->x[k][i] / fmax(sqrt(squares), 1e-12);
        }
    }
}

/* One row of logits of `a` x `b`: its loss before weights. */
static double row_loss(contrast_case *c, size_t row, size_t a, size_t b)
{
    double sum = 0;
    for (size_t i = 0; i < c->count; i++) {
        double dot = 0;
        for (size_t e = 0; e < c->embed; e++)
            dot += c->y[a][row * c->embed + e] * c->y[b][i * c->embed + e];
        c->logits[i] = exp(c->log_scale) * dot;
        bool seen = weight_of(c, i) != 0 && (!c->groups || i == row || c->groups[i] != c->groups[row]);
        sum += seen ? exp(c->logits[i]) : 0;
    }
    return log(sum) - c->logits[row];
}

static double all_losses(void *ctx)
{
    contrast_case *c = ctx;
    double all = 0;
    units_in_double(c);
    for (size_t r = 0; r < c->count; r++) {
        c->losses[r] = 0;
        if (weight_of(c, r) != 0)
            c->losses[r] = weight_of(c, r) / 3 * (row_loss(c, r, 0, 1) + row_loss(c, r, 0, 2) + row_loss(c, r, 1, 2));
        all += c->losses[r];
    }
    return all;
}

/* ---- cases ---------------------------------------------------------------------------------------------------- */

static contrast_case draw_case(support_trial *t, size_t count, size_t embed)
{
    /* Neighbours that a float32 would mix up, and signs. */
    static const int32_t groups[] = {16777216, 16777217, -1, -2, INT32_MIN, INT32_MAX, 65536, 32768};
    contrast_case c = {.count = count, .embed = embed, .log_scale = (double)(float)mr_random_real(&t->r, 0.5, 2.7)};
    for (size_t k = 0; k < 3; k++) {
        c.x[k] = support_draw(t, count * embed, -1, 1);
        c.y[k] = support_doubles(t, count * embed);
    }
    c.losses = support_doubles(t, count);
    c.logits = support_doubles(t, count);
    c.weights = t->round % 3 ? support_draw(t, count, 0.5, 2) : NULL;
    c.groups = t->round % 3 != 1 ? support_zeroed(t, (count + 1) * sizeof *c.groups) : NULL;
    for (size_t i = 0; i < count; i++) {
        if (c.weights && mr_random_below(&t->r, 4) == 0)
            c.weights[i] = 0;
        if (c.groups)
            c.groups[i] = groups[mr_random_below(&t->r, MR_COUNT(groups))];
    }
    return c;
}

typedef struct run { /* of one rank, or of one that holds all rows */
    mr_contrast_input in;
    mr_contrast_output out;
    size_t first;
    double start; /* of d_log_scale */
} run;

static run draw_run(support_trial *t, const contrast_case *c, size_t first, size_t count, bool training)
{
    run r = {.first = first, .start = 0.25, .in = {.count = count, .training = training}};
    for (size_t k = 0; k < 3; k++) {
        r.in.x[k] = support_give(t, c->x[k] + first * c->embed, count * c->embed);
        r.in.d_x[k] = support_blank(t, count * c->embed);
    }
    r.in.log_scale = support_give(t, &c->log_scale, 1);
    r.in.weights = c->weights ? support_give(t, c->weights + first, count) : NULL;
    r.in.groups = c->groups ? support_give_bytes(t, c->groups + first, count * sizeof *c->groups) : NULL;
    r.in.d_log_scale = support_give(t, &r.start, 1);
    return r;
}

static mr_contrast *open_head(support_trial *t, size_t batch, size_t embed, unsigned world, bool training)
{
    mr_contrast *c = NULL;
    mr_error err;
    if (mr_contrast_open(t->d, batch, embed, world, training, &c, &err) != MR_OK)
        fail_msg("%s", err.text);
    return c;
}

/* What a run gave, put where the run's rows stand in all rows. */
typedef struct results {
    double *losses, *embeddings[3], *d_x[3], d_log_scale;
} results;

static results blank_results(support_trial *t, const contrast_case *c)
{
    results r = {.losses = support_doubles(t, c->count)};
    for (size_t k = 0; k < 3; k++) {
        r.embeddings[k] = support_doubles(t, c->count * c->embed);
        r.d_x[k] = support_doubles(t, c->count * c->embed);
    }
    return r;
}

static void collect(support_trial *t, const run *r, size_t embed, results *to)
{
    size_t at = r->first * embed, count = r->in.count * embed;
    memcpy(to->losses + r->first, support_take(t, r->out.losses, r->in.count), r->in.count * sizeof(double));
    for (size_t k = 0; k < 3; k++) {
        memcpy(to->embeddings[k] + at, support_take(t, r->out.embeddings[k], count), count * sizeof(double));
        if (r->in.training)
            memcpy(to->d_x[k] + at, support_take(t, r->in.d_x[k], count), count * sizeof(double));
    }
    if (r->in.training)
        to->d_log_scale += *support_take(t, r->in.d_log_scale, 1) - r->start;
}

static void check(support_trial *t, contrast_case *c, const results *r, bool training)
{
    size_t count = c->count * c->embed;
    all_losses(c);
    support_near(t, "losses", r->losses, c->losses, c->count, 2e-6);
    for (size_t k = 0; k < 3; k++)
        support_near(t, "embeddings", r->embeddings[k], c->y[k], count, 3e-7);
    for (size_t k = 0; training && k < 3; k++)
        support_slopes(t, "d_x", r->d_x[k], c->x[k], count, all_losses, c, 1e-5);
    if (training)
        support_slopes(t, "d_log_scale", &r->d_log_scale, &c->log_scale, 1, all_losses, c, 1e-5);
}

/* ---- alone ---------------------------------------------------------------------------------------------------- */

static void alone(support_trial *t)
{
    size_t batch = 2 + support_size_of(t, 11), embed = 1 + support_size_of(t, 20);
    mr_contrast *head = open_head(t, batch, embed, 1, true);
    t->slopes = 16;
    for (int i = 0; i < 3; i++) { /* the last, shorter ones after a full one; the last of all is evaluation */
        contrast_case c = draw_case(t, i ? support_size_of(t, batch) : batch, embed);
        run r = draw_run(t, &c, 0, c.count, i < 2);
        mr_contrast_run(head, &r.in, &r.out);
        results got = blank_results(t, &c);
        collect(t, &r, embed, &got);
        check(t, &c, &got, r.in.training);
    }
    mr_contrast_close(head);
}

static void losses_and_gradients_of_one_rank(void **state)
{
    (void)state;
    support_on_devices(alone);
}

/* ---- many ranks ----------------------------------------------------------------------------------------------- */

typedef struct fake {
    mr_peers peers;
    unsigned pass, calls;
    float *known[2]; /* by the rows, by the gradients */
} fake;

static void fake_sum(mr_peers *p)
{
    fake *f = p->ctx;
    size_t floats = p->world * p->capacity;
    assert_true(f->calls < 2);
    if (f->pass > f->calls)
        memcpy(p->all, f->known[f->calls], floats * sizeof *p->all);
    for (size_t i = 0; f->pass == f->calls && i < floats; i++) {
        assert_true(f->calls || p->all[i] == 0 || i / p->capacity == p->rank);
        f->known[f->calls][i] += p->all[i];
    }
    f->calls++;
}

static fake open_fake(support_trial *t, unsigned world, size_t samples, size_t embed)
{
    fake f = {
        .peers = {.world = world, .samples = samples, .capacity = samples * mr_contrast_row(embed), .sum = fake_sum}};
    f.peers.all = support_zeroed(t, world * f.peers.capacity * sizeof *f.peers.all);
    for (size_t i = 0; i < 2; i++)
        f.known[i] = support_zeroed(t, world * f.peers.capacity * sizeof *f.known[i]);
    return f;
}

enum { RANKS = 4 };

/* A rank without a row has nothing to run, but sums as often as the others. */
static void run_ranks(support_trial *t, mr_contrast *head, fake *f, const contrast_case *c, const size_t *counts,
                      results *got, bool training)
{
    mr_peers *p = &f->peers;
    for (f->pass = 0; f->pass < 3; f->pass++) {
        size_t first = 0;
        for (p->rank = 0; p->rank < p->world; first += counts[p->rank++]) {
            run r = draw_run(t, c, first, counts[p->rank], training);
            r.in.peers = p;
            p->ctx = f;
            f->calls = 0;
            if (r.in.count || f->pass == 1)
                mr_contrast_run(head, &r.in, &r.out);
            else
                mr_peers_idle(p, training);
            assert_int_equal(f->calls, training ? 2 : 1);
            if (f->pass == 2)
                collect(t, &r, c->embed, got);
        }
    }
}

static void among_peers(support_trial *t, bool training)
{
    size_t embed = 1 + support_size_of(t, 12), counts[RANKS], all = 0, most = 0;
    unsigned world = t->round ? 2 + (unsigned)mr_random_below(&t->r, RANKS - 1) : RANKS;
    for (unsigned i = 0; i < world; i++) {
        counts[i] = i == world / 2 && t->round != 1 ? 0 : support_size_of(t, 5);
        all += counts[i];
        most = counts[i] > most ? counts[i] : most;
    }
    most += (size_t)mr_random_below(&t->r, 2);
    contrast_case c = draw_case(t, all, embed);
    results got = blank_results(t, &c);
    mr_contrast *head = open_head(t, most + (size_t)mr_random_below(&t->r, 2), embed, RANKS, training);
    fake f = open_fake(t, world, most, embed);
    run_ranks(t, head, &f, &c, counts, &got, training);
    mr_contrast_close(head);
    check(t, &c, &got, training);
}

static void ranks(support_trial *t)
{
    t->slopes = 12;
    among_peers(t, true);
    among_peers(t, false);
}

static void many_ranks_are_one_with_all_rows(void **state)
{
    (void)state;
    support_on_devices(ranks);
}

/* ---- the odd and the large ------------------------------------------------------------------------------------ */

/* A sum that fails leaves any values: random bytes here. */
static void garbage_sum(mr_peers *p)
{
    mr_random_bytes(p->ctx, p->all, p->world * p->capacity * sizeof *p->all);
    p->status = MR_SYSTEM;
}

static void failed_sum(support_trial *t)
{
    enum { WORLD = 3, BATCH = 4, EMBED = 5 };
    contrast_case c = draw_case(t, BATCH, EMBED);
    mr_contrast *head = open_head(t, BATCH, EMBED, WORLD, true);
    fake f = open_fake(t, WORLD, BATCH, EMBED);
    mr_error err;
    f.peers.rank = 1;
    f.peers.sum = garbage_sum;
    f.peers.ctx = &t->r;
    run r = draw_run(t, &c, 0, BATCH, true);
    r.in.peers = &f.peers;
    mr_contrast_run(head, &r.in, &r.out);
    assert_int_equal(t->iface->wait(t->d, &err), MR_OK);
    mr_contrast_close(head);
}

static void a_failed_sum_breaks_nothing(void **state)
{
    (void)state;
    support_on_devices(failed_sum);
}

/* The shape of a run on eight devices, held against one rank that has all rows. */
static void large(support_trial *t)
{
    enum { WORLD = 8, BATCH = 48, EMBED = 512, ALL = WORLD * BATCH };
    if (t->round != 2 || strcmp(t->loops, "avx2") == 0 || strcmp(t->loops, "avx512") == 0)
        return;
    contrast_case c = draw_case(t, ALL, EMBED);
    results joined = blank_results(t, &c), got = blank_results(t, &c);
    run r = draw_run(t, &c, 0, ALL, true);
    mr_contrast *head = open_head(t, ALL, EMBED, 1, true);
    mr_contrast_run(head, &r.in, &r.out);
    collect(t, &r, EMBED, &joined);
    mr_contrast_close(head);
    size_t counts[WORLD];
    for (size_t i = 0; i < WORLD; i++)
        counts[i] = BATCH;
    fake f = open_fake(t, WORLD, BATCH, EMBED);
    head = open_head(t, BATCH, EMBED, WORLD, true);
    run_ranks(t, head, &f, &c, counts, &got, true);
    mr_contrast_close(head);
    support_near(t, "losses of many", got.losses, joined.losses, ALL, 2e-6);
    for (size_t k = 0; k < 3; k++)
        support_near(t, "d_x of many", got.d_x[k], joined.d_x[k], ALL * EMBED, 2e-6);
    support_near(t, "d_log_scale of many", &got.d_log_scale, &joined.d_log_scale, 1, 1e-5);
}

static void a_large_world(void **state)
{
    (void)state;
    support_on_devices(large);
}

static void impossible_sizes(support_trial *t)
{
    mr_contrast *c = NULL;
    mr_error err;
    if (t->round)
        return;
    assert_true(mr_contrast_bytes(SIZE_MAX / 2, 512, 8, true) == UINT64_MAX);
    assert_true(mr_contrast_bytes(48, SIZE_MAX / 2, 8, true) == UINT64_MAX);
    assert_true(mr_contrast_row(SIZE_MAX - 1) == SIZE_MAX && mr_contrast_row(512) >= 2 * 512 + 3);
    assert_true(mr_contrast_bytes(48, 512, 8, true) > mr_contrast_bytes(48, 512, 8, false));
    assert_true(mr_contrast_bytes(48, 512, 8, false) > mr_contrast_bytes(48, 512, 1, false));
    assert_true(mr_contrast_bytes(48, 512, 8, true) < 16 << 20);
    assert_int_equal(mr_contrast_open(t->d, SIZE_MAX / 2, 512, 8, true, &c, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "smaller batch"));
    assert_int_equal(mr_contrast_open(t->d, (size_t)1 << 31, 0, 1, true, &c, &err), MR_MISUSE);
    assert_null(c);
    mr_contrast_close(NULL);
}

static void sizes_that_are_none(void **state)
{
    (void)state;
    support_on_devices(impossible_sizes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_gradients_of_one_rank),
        cmocka_unit_test(many_ranks_are_one_with_all_rows),
        cmocka_unit_test(a_failed_sum_breaks_nothing),
        cmocka_unit_test(a_large_world),
        cmocka_unit_test(sizes_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
