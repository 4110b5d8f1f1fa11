/* test_attention_mma.c - attention of bf16 on the device MILLRACE_TEST_DEVICE, on CUDA by products of tiles; without
 * one, on the kernels without them, as plain C.
 * Invariant tested: results and gradients are those of double precision, and of the kernels without tensor cores, up to
 * the rounding of bf16, for shapes around the edges of tiles; twice the same bits; nothing is written between heads.
 * Covers launch/attention.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"
#include "tests/support/training/model.h"
#include "tests/support/device/plain.h"
#include "tests/support/support.h"

enum { GAP = 5, Q = 0, K, V, D_OUT, INPUTS, OUT = 0, D_Q, D_K, D_V, RESULTS }; /* GAP: elements between rows */

typedef struct shape {
    size_t batch, heads, dim, queries, keys;
    bool masked, drops, aligned; /* aligned: rows begin at multiples of 16 bytes */
} shape;

typedef struct attention_case {
    shape s;
    size_t stride, rows[INPUTS]; /* rows of q, k, v, d_out, and of the results, which have their shapes */
    uint16_t *in[INPUTS];
    double *exact[RESULTS]; /* in double precision */
    uint8_t *seen;
    uint64_t keys[4]; /* of dropout */
} attention_case;

/* The shape of a result is that of an input. */
static const unsigned shape_of[RESULTS] = {[OUT] = D_OUT, [D_Q] = Q, [D_K] = K, [D_V] = V};
static const char *const names[RESULTS] = {"out", "d_q", "d_k", "d_v"};

static void *zeroed(size_t count, size_t size)
{
    void *all = calloc(count, size);
    assert_non_null(all);
    return all;
}

static attention_case draw(mr_random *r, const shape *s)
{
    attention_case c = {.s = *s, .stride = s->heads * s->dim + (s->aligned ? 8 : GAP)};
    for (unsigned i = 0; i < INPUTS; i++) {
        c.rows[i] = s->batch * (i == K || i == V ? s->keys : s->queries);
        c.in[i] = zeroed(c.rows[i] * c.stride, sizeof *c.in[i]);
        for (size_t e = 0; e < c.rows[i] * c.stride; e++)
            c.in[i][e] = mr_bf16_of((float)mr_random_real(r, -1.5, 1.5));
    }
    for (unsigned i = 0; i < RESULTS; i++)
        c.exact[i] = zeroed(c.rows[shape_of[i]] * c.stride, sizeof *c.exact[i]);
    c.seen = zeroed(s->batch * s->keys, 1);
    for (size_t i = 0; i < s->batch * s->keys; i++)
        c.seen[i] =
            mr_random_below(r, 3) > 0 && (i >= s->keys || s->batch == 1); /* of the first of several samples, none */
    mr_random_bytes(r, c.keys, sizeof c.keys);
    return c;
}

static void drop_case(attention_case *c)
{
    for (unsigned i = 0; i < INPUTS; i++)
        free(c->in[i]);
    for (unsigned i = 0; i < RESULTS; i++)
        free(c->exact[i]);
    free(c->seen);
}

/* ---- on a device ------------------------------------------------------------------------------------------------- */

static void *give(mr_device *d, const void *bytes, size_t size)
{
    mr_error err;
    void *to = NULL;
    if (d->iface->alloc(d, size, "tests", &to, &err) != MR_OK)
        fail_msg("%s", err.text);
    d->iface->upload(d, to, bytes, size);
    return to;
}

static mr_attention attention_of(mr_device *d, const attention_case *c, void *const *in)
{
    const shape *s = &c->s;
    return (mr_attention){.type = MR_BF16,
                          .batch = s->batch,
                          .heads = s->heads,
                          .head_dim = s->dim,
                          .queries = s->queries,
                          .keys = s->keys,
                          .q = in[Q],
                          .k = in[K],
                          .v = in[V],
                          .q_stride = c->stride,
                          .k_stride = c->stride,
                          .v_stride = c->stride,
                          .out_stride = c->stride,
                          .key_mask = s->masked ? give(d, c->seen, s->batch * s->keys) : NULL,
                          .scale = (float)(1 / sqrt((double)s->dim)),
                          .dropout = {.rate = s->drops ? 0.25F : 0,
                                      .site = 3,
                                      .keys = s->drops ? give(d, c->keys, sizeof c->keys) : NULL}};
}

static void compute(mr_device *d, const attention_case *c, uint16_t **results)
{
    mr_error err;
    size_t saved = 0;
    void *in[INPUTS], *out[RESULTS];
    for (unsigned i = 0; i < INPUTS; i++)
        in[i] = give(d, c->in[i], c->rows[i] * c->stride * sizeof *c->in[i]);
    for (unsigned i = 0; i < RESULTS; i++) { /* what is there before must not matter, and stays between heads */
        size_t size = c->rows[shape_of[i]] * c->stride * sizeof *c->in[i];
        results[i] = zeroed(size, 1);
        memset(results[i], 0xff, size);
        out[i] = give(d, results[i], size);
    }
    mr_attention a = attention_of(d, c, in);
    assert_int_equal(d->iface->plan_attention(d, &a, &saved, &err), MR_OK);
    uint8_t *nothing = zeroed(saved, 1);
    a.saved = give(d, nothing, saved);
    free(nothing);
    a.out = out[OUT];
    const mr_attention_back back = {
        .forward = &a, .d_out = in[D_OUT], .d_q = out[D_Q], .d_k = out[D_K], .d_v = out[D_V]};
    mr_run_attention(d, &a);
    mr_run_attention_back(d, &back);
    if (d->iface->wait(d, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (unsigned i = 0; i < RESULTS; i++)
        d->iface->download(d, results[i], out[i], c->rows[shape_of[i]] * c->stride * sizeof *c->in[i]);
    void *taken[] = {in[Q],
                     in[K],
                     in[V],
                     in[D_OUT],
                     out[OUT],
                     out[D_Q],
                     out[D_K],
                     out[D_V],
                     a.saved,
                     (void *)(uintptr_t)a.key_mask,
                     (void *)(uintptr_t)a.dropout.keys};
    for (size_t i = 0; i < MR_COUNT(taken); i++)
        d->iface->free(d, taken[i]);
}

/* What dropout multiplies the probabilities by: [batch, heads, queries, keys] of 0 and 4 / 3. */
static float *factors_of(mr_device *d, const attention_case *c)
{
    const shape *s = &c->s;
    size_t rows = s->batch * s->heads * s->queries, count = rows * s->keys;
    float *x = zeroed(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = 1;
    if (!s->drops)
        return x;
    const mr_dropout dropout = {.rate = 0.25F, .site = 3, .keys = give(d, c->keys, sizeof c->keys)};
    float *from = give(d, x, count * sizeof *x), *to = give(d, x, count * sizeof *x);
    mr_run_drop(d, &(mr_drop){MR_F32, rows, s->keys, s->heads * s->queries, dropout, from, to});
    d->iface->download(d, x, to, count * sizeof *x);
    void *taken[] = {from, to, (void *)(uintptr_t)dropout.keys};
    for (size_t i = 0; i < MR_COUNT(taken); i++)
        d->iface->free(d, taken[i]);
    return x;
}

/* ---- in double precision ----------------------------------------------------------------------------------------- */

static size_t at(const attention_case *c, size_t row, size_t head, size_t column)
{
    return row * c->stride + head * c->s.dim + column;
}

static double dot(const attention_case *c, unsigned a, size_t i, unsigned b, size_t j, size_t head)
{
    double sum = 0;
    for (size_t e = 0; e < c->s.dim; e++)
        sum += (double)mr_bf16_float(c->in[a][at(c, i, head, e)]) * (double)mr_bf16_float(c->in[b][at(c, j, head, e)]);
    return sum;
}

/* to[row] += factor * in[from]. */
static void add_row(const attention_case *c, double *to, size_t row, double factor, unsigned in, size_t from,
                    size_t head)
{
    for (size_t e = 0; e < c->s.dim; e++)
        to[at(c, row, head, e)] += factor * (double)mr_bf16_float(c->in[in][at(c, from, head, e)]);
}

static void one_query(attention_case *c, const float *factors, size_t sample, size_t head, size_t query)
{
    const shape *s = &c->s;
    size_t row = sample * s->queries + query, first = sample * s->keys;
    double *p = zeroed(s->keys, sizeof *p), *slope = zeroed(s->keys, sizeof *slope);
    double sum = 0, along = 0, scale = 1 / sqrt((double)s->dim);
    for (size_t j = 0; j < s->keys; j++) {
        bool used = !s->masked || c->seen[first + j];
        p[j] = used ? exp(scale * dot(c, Q, row, K, first + j, head)) : 0;
        sum += p[j];
    }
    for (size_t j = 0; j < s->keys && sum > 0; j++) {
        double kept = (double)factors[((sample * s->heads + head) * s->queries + query) * s->keys + j];
        p[j] /= sum;
        slope[j] = kept * dot(c, D_OUT, row, V, first + j, head);
        along += p[j] * slope[j];
        add_row(c, c->exact[OUT], row, p[j] * kept, V, first + j, head);
        add_row(c, c->exact[D_V], first + j, p[j] * kept, D_OUT, row, head);
    }
    for (size_t j = 0; j < s->keys; j++) {
        add_row(c, c->exact[D_Q], row, scale * p[j] * (slope[j] - along), K, first + j, head);
        add_row(c, c->exact[D_K], first + j, scale * p[j] * (slope[j] - along), Q, row, head);
    }
    free(p);
    free(slope);
}

static void compute_exactly(attention_case *c, const float *factors)
{
    for (size_t sample = 0; sample < c->s.batch; sample++)
        for (size_t head = 0; head < c->s.heads; head++)
            for (size_t query = 0; query < c->s.queries; query++)
                one_query(c, factors, sample, head, query);
}

/* ---- beside each other ------------------------------------------------------------------------------------------- */

/* Errors of sums of numbers of bf16: relative to the largest element, or what cancelled out. */
static void expect_near(const attention_case *c, unsigned result, const char *who, const uint16_t *got,
                        const uint16_t *other)
{
    const double tolerance = 0.01;
    double most = 0.25;
    size_t count = c->rows[shape_of[result]] * c->stride;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(c->exact[result][i]));
    for (size_t i = 0; i < count; i++) {
        double x = (double)mr_bf16_float(got[i]), want = other ? (double)mr_bf16_float(other[i]) : c->exact[result][i];
        if (i % c->stride >= c->s.heads * c->s.dim)
            assert_int_equal(got[i], 0xffff);
        else if (!(fabs(x - want) <= tolerance * most))
            fail_msg("%s, %s, heads of %zu, %zu queries, %zu keys: row %zu, column %zu is %g instead of %g", who,
                     names[result], c->s.dim, c->s.queries, c->s.keys, i / c->stride, i % c->stride, x, want);
    }
}

static void one_shape(mr_device *d, mr_device *plain, mr_random *r, const shape *s)
{
    attention_case c = draw(r, s);
    uint16_t *got[RESULTS], *again[RESULTS], *scalar[RESULTS];
    float *factors = factors_of(plain, &c);
    compute_exactly(&c, factors);
    compute(d, &c, got);
    compute(d, &c, again);
    compute(plain, &c, scalar);
    for (unsigned i = 0; i < RESULTS; i++) {
        assert_memory_equal(got[i], again[i], c.rows[shape_of[i]] * c.stride * sizeof *got[i]);
        expect_near(&c, i, "tiles beside double precision", got[i], NULL);
        expect_near(&c, i, "tiles beside lanes", got[i], scalar[i]);
        free(got[i]);
        free(again[i]);
        free(scalar[i]);
    }
    free(factors);
    drop_case(&c);
}

static void tiles_give_what_lanes_give(void **state)
{
    static const shape shapes[] = {
        {1, 1, 64, 64, 64, .aligned = true},
        {2, 2, 64, 130, 197, .masked = true, .drops = true, .aligned = true},
        {2, 2, 64, 70, 130, .aligned = true},
        {1, 2, 64, 65, 63, .masked = true},
        {2, 2, 16, 5, 130, .masked = true, .drops = true, .aligned = true},
        {1, 1, 80, 70, 66, .drops = true, .aligned = true},
        {1, 1, 129, 20, 17, .masked = false},
        {2, 3, 1, 3, 2, .masked = true},
        {1, 1, 200, 17, 70, .aligned = true},
        {2, 1, 24, 130, 3, .drops = true},
    };
    (void)state;
    mr_random r = support_random();
    mr_device *d = support_device(1), *plain;
    mr_error err;
    assert_int_equal(support_open("plain", &(mr_device_options){.threads = 1}, &plain, &err), MR_OK);
    for (size_t i = 0; i < MR_COUNT(shapes); i++)
        one_shape(d, plain, &r, &shapes[i]);
    mr_device_close(plain);
    mr_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_give_what_lanes_give)};
    const char *device = getenv("MILLRACE_TEST_DEVICE");
    if (!device || !*device)
        setenv("MILLRACE_TEST_DEVICE", "plain", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
