/* test_attention.c - attention of every device against the same in double, its backward pass against differences;
 * and the rules of dropout: rate, independence, one mask for both ways, wherever in a batch a sample stands.
 * Covers cpu/attention.c, launch/attention.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device/device.h"

/* ---- attention ------------------------------------------------------------------------------------------------ */

typedef struct attention_case {
    mr_attention a; /* shapes, strides and scale; the pointers are the device's */
    double *q, *k, *v, *d_out, *out, *factor;
    size_t q_count, k_count, v_count, out_count;
    uint8_t *seen;
} attention_case;

static void attention_row(attention_case *c, size_t b, size_t h, size_t r)
{
    const mr_attention *a = &c->a;
    const double *q = c->q + (b * a->queries + r) * a->q_stride + h * a->head_dim;
    const double *factor = c->factor + ((b * a->heads + h) * a->queries + r) * a->keys;
    double *out = c->out + (b * a->queries + r) * a->out_stride + h * a->head_dim, sum = 0;
    for (size_t i = 0; i < a->head_dim; i++)
        out[i] = 0;
    for (size_t j = 0; j < a->keys; j++) {
        const double *k = c->k + (b * a->keys + j) * a->k_stride + h * a->head_dim;
        const double *v = c->v + (b * a->keys + j) * a->v_stride + h * a->head_dim;
        double s = 0;
        if (c->seen && !c->seen[b * a->keys + j])
            continue;
        for (size_t i = 0; i < a->head_dim; i++)
            s += q[i] * k[i];
        double p = exp((double)a->scale * s);
        sum += p;
        for (size_t i = 0; i < a->head_dim; i++)
            out[i] += p * factor[j] * v[i];
    }
    for (size_t i = 0; i < a->head_dim && sum > 0; i++)
        out[i] /= sum;
}

static double attention_loss(void *ctx)
{
    attention_case *c = ctx;
    double loss = 0;
    for (size_t b = 0; b < c->a.batch; b++)
        for (size_t h = 0; h < c->a.heads; h++)
            for (size_t r = 0; r < c->a.queries; r++)
                attention_row(c, b, h, r);
    for (size_t i = 0; i < c->out_count; i++)
        loss += c->out[i] * c->d_out[i];
    return loss;
}

static void draw_shape(support_trial *t, attention_case *c)
{
    mr_attention *a = &c->a;
    a->batch = support_size_of(t, 3);
    a->heads = support_size_of(t, 3);
    a->head_dim = support_size_of(t, 9);
    a->queries = support_size_of(t, 12);
    a->keys = support_size_of(t, 20);
    if (t->round == 4) { /* in blocks */
        *a = (mr_attention){.batch = 1, .heads = 2, .head_dim = 5, .queries = 600, .keys = 7};
        t->slopes = 16;
    }
    if (t->round == 5) { /* in pieces */
        *a = (mr_attention){.batch = 1, .heads = 1, .head_dim = 16, .queries = 250, .keys = 270};
        t->slopes = 4;
    }
    size_t dense = a->heads * a->head_dim, wide = t->round % 2;
    a->q_stride = dense + wide;
    a->k_stride = dense + 2 * wide;
    a->v_stride = dense + 3 * wide;
    a->out_stride = dense + 4 * wide;
    a->scale = 0.7F;
    c->q_count = (a->batch * a->queries - 1) * a->q_stride + dense;
    c->k_count = (a->batch * a->keys - 1) * a->k_stride + dense;
    c->v_count = (a->batch * a->keys - 1) * a->v_stride + dense;
    c->out_count = (a->batch * a->queries - 1) * a->out_stride + dense;
}

/* Half of the keys are not to be seen; one sample in a while sees none at all. */
static void draw_seen(support_trial *t, attention_case *c)
{
    size_t n = c->a.batch * c->a.keys;
    c->seen = support_zeroed(t, n);
    for (size_t i = 0; i < n; i++)
        c->seen[i] = mr_random_below(&t->r, 2) ? (uint8_t)(1 + mr_random_below(&t->r, 255)) : 0;
    for (size_t b = 0; b < c->a.batch; b++)
        if (b || t->round % 4)
            c->seen[b * c->a.keys] = 1;
        else
            memset(c->seen, 0, c->a.keys);
    c->a.key_mask = support_give_bytes(t, c->seen, n);
}

static void draw_factors(support_trial *t, attention_case *c)
{
    mr_attention *a = &c->a;
    size_t rows = a->batch * a->heads * a->queries;
    uint64_t *keys = support_zeroed(t, a->batch * sizeof *keys);
    mr_random_bytes(&t->r, keys, a->batch * sizeof *keys);
    if (t->round % 3 == 0 || t->round == 4)
        a->dropout =
            (mr_dropout){.rate = 0.25F, .site = 3, .keys = support_give_bytes(t, keys, a->batch * sizeof *keys)};
    c->factor = support_mask(t, &a->dropout, rows, a->keys, a->heads * a->queries);
}

static void reserve_saved(support_trial *t, mr_attention *a)
{
    mr_error err;
    size_t bytes = 0;
    if (t->iface->plan_attention(t->d, a, &bytes, &err) != MR_OK)
        fail_msg("%s", err.text);
    a->saved = support_give_bytes(t, support_zeroed(t, bytes), bytes);
}

/* Between rows that are apart nothing may be written. */
static void take_rows(support_trial *t, const void *x, double *to, size_t count, size_t stride, size_t width)
{
    double *got = support_take(t, x, count);
    for (size_t i = 0; i < count; i++) {
        if (i % stride >= width)
            assert_true(isnan(got[i]));
        to[i] = i % stride < width ? got[i] : 0;
    }
}

static void attention(support_trial *t)
{
    attention_case c = {0};
    mr_attention *a = &c.a;
    draw_shape(t, &c);
    size_t dense = a->heads * a->head_dim;
    c.q = support_draw(t, c.q_count, -2, 2);
    c.k = support_draw(t, c.k_count, -2, 2);
    c.v = support_draw(t, c.v_count, -1, 1);
    c.d_out = support_draw(t, c.out_count, -1, 1);
    c.out = support_doubles(t, c.out_count);
    a->q = support_give(t, c.q, c.q_count);
    a->k = support_give(t, c.k, c.k_count);
    a->v = support_give(t, c.v, c.v_count);
    a->out = support_blank(t, c.out_count);
    if (t->round == 0 || t->round % 4 == 2 || t->round == 5)
        draw_seen(t, &c);
    draw_factors(t, &c);
    reserve_saved(t, a);
    mr_attention given = *a;
    if (t->round % 2 == 0) /* dense, said with zeros */
        given.q_stride = given.k_stride = given.v_stride = given.out_stride = 0;
    mr_attention_back back = {.forward = &given,
                              .d_out = support_give(t, c.d_out, c.out_count),
                              .d_q = support_blank(t, c.q_count),
                              .d_k = support_blank(t, c.k_count),
                              .d_v = support_blank(t, c.v_count)};
    mr_run_attention(t->d, &given);
    mr_run_attention_back(t->d, &back);
    double *out = support_doubles(t, c.out_count), *d_q = support_doubles(t, c.q_count);
    double *d_k = support_doubles(t, c.k_count), *d_v = support_doubles(t, c.v_count);
    take_rows(t, a->out, out, c.out_count, a->out_stride, dense);
    take_rows(t, back.d_q, d_q, c.q_count, a->q_stride, dense);
    take_rows(t, back.d_k, d_k, c.k_count, a->k_stride, dense);
    take_rows(t, back.d_v, d_v, c.v_count, a->v_stride, dense);
    attention_loss(&c);
    support_near(t, "attention", out, c.out, c.out_count, 3e-6);
    support_slopes(t, "attention d_q", d_q, c.q, c.q_count, attention_loss, &c, 2e-5);
    support_slopes(t, "attention d_k", d_k, c.k, c.k_count, attention_loss, &c, 2e-5);
    support_slopes(t, "attention d_v", d_v, c.v, c.v_count, attention_loss, &c, 2e-5);
}

static void attention_and_its_way_back(void **state)
{
    (void)state;
    support_on_devices(attention);
}

/* Scores far apart: probabilities of 0 and 1, and no NaN. */
static void far_apart(support_trial *t)
{
    double q[] = {300, -300}, k[] = {1, -1, 0.5}, v[] = {5, 7, 9}, want[] = {5, 7}, ones[] = {1, 1};
    const double zero[3] = {0};
    mr_attention a = {.batch = 1,
                      .heads = 1,
                      .head_dim = 1,
                      .queries = 2,
                      .keys = 3,
                      .scale = 1,
                      .q = support_give(t, q, 2),
                      .k = support_give(t, k, 3),
                      .v = support_give(t, v, 3),
                      .out = support_blank(t, 2)};
    mr_attention_back back = {.forward = &a,
                              .d_out = support_give(t, ones, 2),
                              .d_q = support_blank(t, 2),
                              .d_k = support_blank(t, 3),
                              .d_v = support_blank(t, 3)};
    double d_v[] = {1, 1, 0};
    reserve_saved(t, &a);
    mr_run_attention(t->d, &a);
    mr_run_attention_back(t->d, &back);
    support_near(t, "far apart", support_take(t, a.out, 2), want, 2, 1e-6);
    support_near(t, "far apart d_v", support_take(t, back.d_v, 3), d_v, 3, 1e-6);
    double *d_q = support_take(t, back.d_q, 2);
    for (int i = 0; i < 2; i++)
        assert_true(fabs(d_q[i] - zero[i]) < 1e-20);
}

static void scores_far_apart_are_harmless(void **state)
{
    (void)state;
    support_on_devices(far_apart);
}

/* ---- dropout -------------------------------------------------------------------------------------------------- */

static double *mask_of(support_trial *t, const uint64_t *keys, size_t samples, size_t rows, size_t width, uint32_t site,
                       float rate)
{
    mr_dropout d = {.rate = rate, .site = site, .keys = support_give_bytes(t, keys, samples * sizeof *keys)};
    return support_mask(t, &d, samples * rows, width, rows);
}

/* Shares of dropped elements, and of pairs both dropped, within 5 deviations of what chance gives. */
static void near_share(const char *what, double share, double rate, double count)
{
    if (fabs(share - rate) > 5 * sqrt(rate * (1 - rate) / count))
        fail_msg("dropout, %s: %.5f instead of %.5f", what, share, rate);
}

static double both(const double *a, const double *b, size_t n)
{
    double dropped = 0;
    for (size_t i = 0; i < n; i++)
        dropped += a[i] == 0 && b[i] == 0;
    return dropped / (double)n;
}

static void chance(support_trial *t)
{
    static const float rates[] = {0.1F, 0.5F, 0.01F, 0.9F, 0.25F, 0.3F};
    const size_t rows = 64, width = 1024, n = rows * width;
    const double rate = (double)rates[t->round], count = (double)n;
    uint64_t base = mr_random_u64(&t->r);
    uint64_t keys[4] = {base, base + 1, base + (UINT64_C(1) << 32), 0}; /* neighbours */
    double *m = mask_of(t, keys, 4, rows, width, 7, rates[t->round]);
    double *other = mask_of(t, keys, 4, rows, width, 8, rates[t->round]); /* another place of the model */
    for (size_t i = 0; i < 4 * n; i++)
        assert_true(m[i] == 0 || fabs(m[i] * (1 - rate) - 1) < 1e-6);
    for (size_t b = 0; b < 4; b++) {
        near_share("rate", both(m + b * n, m + b * n, n), rate, count);
        near_share("another sample", both(m + b * n, m + (b + 1) % 4 * n, n), rate * rate, count);
        near_share("another place", both(m + b * n, other + b * n, n), rate * rate, count);
        static const size_t lags[] = {1, 2, 3, 4, 8, 16, 64, 256, 1024, 4096, 32768};
        for (size_t i = 0; i < MR_COUNT(lags); i++)
            near_share("neighbours", both(m + b * n, m + b * n + lags[i], n - lags[i]), rate * rate,
                       (double)(n - lags[i]));
        for (size_t r = 0; r < rows; r++)
            near_share("rate of a row", both(m + b * n + r * width, m + b * n + r * width, width), rate, (double)width);
    }
}

static void dropout_is_chance(void **state)
{
    (void)state;
    support_on_devices(chance);
}

/* The same key, the same mask: whatever the batch, the place in it, and the other samples. */
static void same_mask(support_trial *t)
{
    size_t rows = support_size_of(t, 9), width = support_size_of(t, 70), n = rows * width;
    uint64_t keys[5] = {11, 22, 33, 44, 55}, turned[3] = {55, 22, 22};
    double *m = mask_of(t, keys, 5, rows, width, 1, 0.5F), *k = mask_of(t, turned, 3, rows, width, 1, 0.5F);
    double *one = mask_of(t, keys + 3, 1, rows, width, 1, 0.5F), *none = mask_of(t, keys, 5, rows, width, 1, 0);
    mr_dropout d = {.rate = 0.5F, .site = 1, .keys = support_give_bytes(t, keys, sizeof keys)};
    double *x = support_draw(t, 5 * n, -1, 1);
    void *in_place = support_give(t, x, 5 * n);
    mr_run_drop(t->d, &(mr_drop){MR_F32, 5 * rows, width, rows, d, in_place, in_place});
    double *dropped = support_take(t, in_place, 5 * n);
    for (size_t i = 0; i < 5 * n; i++)
        assert_true(dropped[i] == x[i] * m[i]); /* twice a number, or 0 */
    assert_memory_equal(k, m + 4 * n, n * sizeof *m);
    assert_memory_equal(k + n, m + n, n * sizeof *m);
    assert_memory_equal(k + 2 * n, m + n, n * sizeof *m);
    assert_memory_equal(one, m + 3 * n, n * sizeof *m);
    for (size_t i = 0; i < 5 * n; i++)
        assert_true(none[i] == 1);
}

static void a_mask_belongs_to_its_sample(void **state)
{
    (void)state;
    support_on_devices(same_mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_and_its_way_back),
        cmocka_unit_test(scores_far_apart_are_harmless),
        cmocka_unit_test(dropout_is_chance),
        cmocka_unit_test(a_mask_belongs_to_its_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
