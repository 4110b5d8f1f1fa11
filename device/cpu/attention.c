/* attention.c - the CPU's attention: one task per sample and head, in the thread's own scratch memory.
 * Invariant: only log sum exp of each row is saved; the backward pass recomputes the probabilities from q and k, which
 * costs a fifth of its products and saves batch * heads * queries * keys floats per layer.
 *
 *      a thread's scratch:   | p [block, keys] | d_p [block, keys] |       block: queries at a time
 *                            | q | out | d_out | d_q [queries, head_dim] | k | v | d_k | d_v [keys, head_dim] |
 *
 * The second line is for bf16 alone, whose products are computed in float32: they are too small to gain. */
#include <assert.h>
#include <string.h>

#include "base/scope.h"
#include "device/cpu/lines.h"

enum {
    BLOCK = 256,     /* queries at a time, so that their rows stay in the cache */
    SMALL = 1000000, /* m n k up to which OpenBLAS does not pack: 205 rather than 165 GFLOP/s */
};

typedef struct job {
    mr_cpu *d;
    const mr_attention *a;
    const mr_attention_back *back;
    size_t q_stride, k_stride, v_stride, out_stride, block;
    size_t q_step, k_step, v_step, out_step; /* from row to row of what is computed with: the same, or head_dim */
} job;

/* One sample and head. */
typedef struct head {
    const float *q, *k, *v, *d_out;
    float *out, *d_q, *d_k, *d_v;
    const uint8_t *seen; /* [keys] or NULL */
    bool fully_masked;   /* every key is masked: the result is 0 */
    float *log_sums;     /* [queries] */
    mr_cpu_mask mask;
    uint32_t element; /* number of its first probability within the sample */
    size_t q_at, k_at, v_at, out_at;
    float *p, *d_p;
    mr_lines rows; /* rows of head_dim */
} head;

/* Queries are divided evenly. */
static size_t block_of(const mr_attention *a)
{
    size_t blocks = (a->queries + BLOCK - 1) / BLOCK;
    return blocks ? (a->queries + blocks - 1) / blocks : 1;
}

static job job_of(mr_cpu *d, const mr_attention *a, const mr_attention_back *back)
{
    size_t dense = a->heads * a->head_dim;
    job j = {.d = d,
             .a = a,
             .back = back,
             .block = block_of(a),
             .q_stride = a->q_stride ? a->q_stride : dense,
             .k_stride = a->k_stride ? a->k_stride : dense,
             .v_stride = a->v_stride ? a->v_stride : dense,
             .out_stride = a->out_stride ? a->out_stride : dense};
    bool copied = a->type == MR_BF16;
    j.q_step = copied ? a->head_dim : j.q_stride;
    j.k_step = copied ? a->head_dim : j.k_stride;
    j.v_step = copied ? a->head_dim : j.v_stride;
    j.out_step = copied ? a->head_dim : j.out_stride;
    return j;
}

/* Floats of a thread's scratch; false: more than there are addresses. */
static bool scratch_of(const mr_attention *a, size_t *floats)
{
    size_t rows, copies = 0;
    bool fits = !__builtin_mul_overflow(block_of(a), a->keys, floats) && *floats <= SIZE_MAX / 8 &&
                !__builtin_add_overflow(a->queries, a->keys, &rows) &&
                !__builtin_mul_overflow(rows, 4 * a->head_dim, &copies) && copies <= SIZE_MAX / 8;
    *floats = (2 * *floats + (a->type == MR_BF16 ? copies : 0) + 15) / 16 * 16;
    return fits;
}

mr_status mr_cpu_plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err)
{
    mr_cpu *d = mr_cpu_of(device);
    size_t rows, floats, bytes;
    if (__builtin_mul_overflow(a->batch, a->heads, &rows) || __builtin_mul_overflow(rows, a->queries, &rows) ||
        __builtin_mul_overflow(rows, sizeof(float), saved_bytes) || !scratch_of(a, &floats) ||
        __builtin_mul_overflow(floats, sizeof(float) * mr_team_threads(d->team), &bytes))
        return mr_fail(err, MR_MISUSE, "attention of %zu queries and %zu keys is too large", a->queries, a->keys);
    if (floats > d->member_floats) {
        MR_TRY(mr_slab_reserve(&d->scratch, bytes, 0, NULL, err));
        d->member_floats = floats;
    }
    return MR_OK;
}

static bool none_seen(const uint8_t *seen, size_t keys)
{
    for (size_t i = 0; seen && i < keys; i++)
        if (seen[i])
            return false;
    return seen != NULL;
}

/* Rows of one head as they are computed with: where they are, or copied to *spare, which moves on. */
static float *rows_of(const head *h, const void *base, size_t at, size_t rows, size_t stride, bool read, float **spare)
{
    const mr_lines *l = &h->rows;
    if (l->type == MR_F32)
        return (float *)(uintptr_t)base + at;
    float *copy = *spare;
    for (size_t r = 0; read && r < rows; r++)
        l->d->kernels->widen(l->width, (const uint16_t *)base + at + r * stride, copy + r * l->width);
    *spare += rows * l->width;
    return copy;
}

/* What was computed goes to where it belongs. */
static void put_rows(const head *h, const float *copy, void *base, size_t at, size_t rows, size_t stride)
{
    for (size_t r = 0; h->rows.type == MR_BF16 && r < rows; r++)
        mr_line_write(&h->rows, copy + r * h->rows.width, base, at + r * stride);
}

static head head_of(const job *j, size_t task, unsigned member)
{
    const mr_attention *a = j->a;
    size_t sample = task / a->heads, column = task % a->heads * a->head_dim;
    head h = {
        .q_at = sample * a->queries * j->q_stride + column,
        .k_at = sample * a->keys * j->k_stride + column,
        .v_at = sample * a->keys * j->v_stride + column,
        .out_at = sample * a->queries * j->out_stride + column,
        .seen = a->key_mask ? a->key_mask + sample * a->keys : NULL,
        .log_sums = (float *)a->saved + task * a->queries,
        .mask = mr_cpu_mask_of(&a->dropout, sample),
        .element = (uint32_t)(task % a->heads * a->queries * a->keys),
        .p = (float *)(void *)j->d->scratch.data + member * j->d->member_floats,
        .rows = {.d = j->d, .member = member, .type = a->type, .width = a->head_dim},
    };
    h.d_p = h.p + j->block * a->keys;
    float *spare = h.d_p + j->block * a->keys;
    h.q = rows_of(&h, a->q, h.q_at, a->queries, j->q_stride, true, &spare);
    h.k = rows_of(&h, a->k, h.k_at, a->keys, j->k_stride, true, &spare);
    h.v = rows_of(&h, a->v, h.v_at, a->keys, j->v_stride, true, &spare);
    if (j->back) {
        h.d_out = rows_of(&h, j->back->d_out, h.out_at, a->queries, j->out_stride, true, &spare);
        h.d_q = rows_of(&h, j->back->d_q, h.q_at, a->queries, j->q_stride, false, &spare);
        h.d_k = rows_of(&h, j->back->d_k, h.k_at, a->keys, j->k_stride, false, &spare);
        h.d_v = rows_of(&h, j->back->d_v, h.v_at, a->keys, j->v_stride, false, &spare);
    } else {
        h.out = rows_of(&h, a->out, h.out_at, a->queries, j->out_stride, false, &spare);
    }
    h.fully_masked = none_seen(h.seen, a->keys);
    assert(2 * j->block * a->keys <= j->d->member_floats);
    return h;
}

static void zero_rows(float *x, size_t rows, size_t width, size_t stride)
{
    assert(x);
    for (size_t r = 0; r < rows; r++)
        memset(x + r * stride, 0, width * sizeof *x);
}

/* A narrow product, in pieces of the size that OpenBLAS computes fastest. */
static void multiply_narrow(mr_cpu *d, mr_cpu_product p)
{
    size_t whole = p.m, pieces = p.m * p.n * p.k / SMALL + 1, step = ((whole + pieces - 1) / pieces + 3) / 4 * 4;
    for (size_t at = 0; at < whole; at += step) {
        p.m = whole - at < step ? whole - at : step;
        mr_cpu_multiply(d, &p);
        p.a = (const float *)p.a + (p.transpose_a ? step : step * p.lda);
        p.c += step * p.ldc;
    }
}

/* p = scale q k^T for queries [first, first + count). */
static void scores(const job *j, const head *h, size_t first, size_t count)
{
    const mr_attention *a = j->a;
    mr_cpu_multiply(j->d, &(mr_cpu_product){.m = count,
                                            .n = a->keys,
                                            .k = a->head_dim,
                                            .transpose_b = true,
                                            .alpha = a->scale,
                                            .a = h->q + first * j->q_step,
                                            .lda = j->q_step,
                                            .b = h->k,
                                            .ldb = j->k_step,
                                            .c = h->p,
                                            .ldc = a->keys});
}

static void forward_head(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    const mr_attention *a = j->a;
    const mr_cpu_kernels *k = j->d->kernels;
    head h = head_of(j, task, member);
    if (h.fully_masked) {
        zero_rows(h.out, a->queries, a->head_dim, j->out_step);
        memset(h.log_sums, 0, a->queries * sizeof *h.log_sums);
    }
    for (size_t first = 0; first < a->queries && !h.fully_masked; first += j->block) {
        size_t count = a->queries - first < j->block ? a->queries - first : j->block;
        scores(j, &h, first, count);
        for (size_t r = 0; r < count; r++) {
            float *row = h.p + r * a->keys;
            h.log_sums[first + r] = k->softmax(a->keys, row, h.seen);
            if (h.mask.threshold)
                k->mask(a->keys, &h.mask, h.element + (uint32_t)((first + r) * a->keys), row, row);
        }
        multiply_narrow(j->d, (mr_cpu_product){.m = count,
                                               .n = a->head_dim,
                                               .k = a->keys,
                                               .alpha = 1,
                                               .a = h.p,
                                               .lda = a->keys,
                                               .b = h.v,
                                               .ldb = j->v_step,
                                               .c = h.out + first * j->out_step,
                                               .ldc = j->out_step});
    }
    put_rows(&h, h.out, a->out, h.out_at, a->queries, j->out_stride);
}

void mr_cpu_attention(mr_device *device, const mr_attention *a)
{
    mr_cpu *d = mr_cpu_of(device);
    job j = job_of(d, a, NULL);
    if (a->queries && a->keys && a->head_dim)
        mr_team_run(d->team, a->batch * a->heads, forward_head, &j);
}

/* p becomes the probabilities of the forward pass, d_p the gradient of scale q k^T. */
static void back_rows(const job *j, const head *h, size_t first, size_t count)
{
    const mr_cpu_kernels *k = j->d->kernels;
    size_t keys = j->a->keys;
    for (size_t r = 0; r < count; r++) {
        float *p = h->p + r * keys, *d_p = h->d_p + r * keys;
        uint32_t e = h->element + (uint32_t)((first + r) * keys);
        k->softmax_again(keys, p, h->seen, h->log_sums[first + r]);
        if (h->mask.threshold)
            k->mask(keys, &h->mask, e, d_p, d_p);
        k->softmax_back(keys, p, d_p);
        if (h->mask.threshold)
            k->mask(keys, &h->mask, e, p, p);
    }
}

/* p and, from d_out, the gradient of scale q k^T for queries [first, first + count). */
static void probabilities_back(const job *j, const head *h, size_t first, size_t count)
{
    const mr_attention *a = j->a;
    scores(j, h, first, count);
    mr_cpu_multiply(j->d, &(mr_cpu_product){/* d_p = d_out v^T */
                                            .m = count,
                                            .n = a->keys,
                                            .k = a->head_dim,
                                            .transpose_b = true,
                                            .alpha = 1,
                                            .a = h->d_out + first * j->out_step,
                                            .lda = j->out_step,
                                            .b = h->v,
                                            .ldb = j->v_step,
                                            .c = h->d_p,
                                            .ldc = a->keys});
    back_rows(j, h, first, count);
}

static void back_head(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    const mr_attention *a = j->a;
    head h = head_of(j, task, member);
    if (h.fully_masked) {
        zero_rows(h.d_q, a->queries, a->head_dim, j->q_step);
        zero_rows(h.d_k, a->keys, a->head_dim, j->k_step);
        zero_rows(h.d_v, a->keys, a->head_dim, j->v_step);
    }
    for (size_t first = 0; first < a->queries && !h.fully_masked; first += j->block) {
        size_t count = a->queries - first < j->block ? a->queries - first : j->block;
        float more = first ? 1 : 0;
        probabilities_back(j, &h, first, count);
        multiply_narrow(j->d, (mr_cpu_product){/* d_v = p^T d_out */
                                               .m = a->keys,
                                               .n = a->head_dim,
                                               .k = count,
                                               .transpose_a = true,
                                               .alpha = 1,
                                               .beta = more,
                                               .a = h.p,
                                               .lda = a->keys,
                                               .b = h.d_out + first * j->out_step,
                                               .ldb = j->out_step,
                                               .c = h.d_v,
                                               .ldc = j->v_step});
        multiply_narrow(j->d, (mr_cpu_product){/* d_q = scale d_p k */
                                               .m = count,
                                               .n = a->head_dim,
                                               .k = a->keys,
                                               .alpha = a->scale,
                                               .a = h.d_p,
                                               .lda = a->keys,
                                               .b = h.k,
                                               .ldb = j->k_step,
                                               .c = h.d_q + first * j->q_step,
                                               .ldc = j->q_step});
        multiply_narrow(j->d, (mr_cpu_product){/* d_k = scale d_p^T q */
                                               .m = a->keys,
                                               .n = a->head_dim,
                                               .k = count,
                                               .transpose_a = true,
                                               .alpha = a->scale,
                                               .beta = more,
                                               .a = h.d_p,
                                               .lda = a->keys,
                                               .b = h.q + first * j->q_step,
                                               .ldb = j->q_step,
                                               .c = h.d_k,
                                               .ldc = j->k_step});
    }
    put_rows(&h, h.d_q, j->back->d_q, h.q_at, a->queries, j->q_stride);
    put_rows(&h, h.d_k, j->back->d_k, h.k_at, a->keys, j->k_stride);
    put_rows(&h, h.d_v, j->back->d_v, h.v_at, a->keys, j->v_stride);
}

void mr_cpu_attention_back(mr_device *device, const mr_attention_back *back)
{
    mr_cpu *d = mr_cpu_of(device);
    const mr_attention *a = back->forward;
    job j = job_of(d, a, back);
    if (a->queries && a->keys && a->head_dim)
        mr_team_run(d->team, a->batch * a->heads, back_head, &j);
}
