/* attention.c - the CPU's attention: one task per sample and head, in the thread's own scratch memory.
 * Invariant: only log sum exp of each row is saved; the backward pass recomputes the probabilities from q and k, which
 * costs a fifth of its products and saves batch * heads * queries * keys floats per layer.
 *
 *      a thread's scratch:   | p [block, keys] | d_p [block, keys] |       block: queries at a time
 */
#include <assert.h>
#include <string.h>

#include "base/scope.h"
#include "cpu/cpu.h"

enum {
    BLOCK = 256,     /* queries at a time, so that their rows stay in the cache */
    SMALL = 1000000, /* m n k up to which OpenBLAS does not pack: 205 rather than 165 GFLOP/s */
};

typedef struct job {
    const mr_cpu *d;
    const mr_attention *a;
    const mr_attention_back *back;
    size_t q_stride, k_stride, v_stride, out_stride, block;
} job;

/* One sample and head. */
typedef struct head {
    const float *q, *k, *v;
    const uint8_t *seen; /* [keys] or NULL */
    bool fully_masked;   /* every key is masked: the result is 0 */
    float *log_sums;     /* [queries] */
    mr_cpu_mask mask;
    uint32_t element; /* number of its first probability within the sample */
    size_t q_at, k_at, v_at, out_at;
    float *p, *d_p;
} head;

/* Queries are divided evenly. */
static size_t block_of(const mr_attention *a)
{
    size_t blocks = (a->queries + BLOCK - 1) / BLOCK;
    return blocks ? (a->queries + blocks - 1) / blocks : 1;
}

static job job_of(const mr_cpu *d, const mr_attention *a, const mr_attention_back *back)
{
    size_t dense = a->heads * a->head_dim;
    assert(a->type == MR_F32);
    return (job){.d = d,
                 .a = a,
                 .back = back,
                 .block = block_of(a),
                 .q_stride = a->q_stride ? a->q_stride : dense,
                 .k_stride = a->k_stride ? a->k_stride : dense,
                 .v_stride = a->v_stride ? a->v_stride : dense,
                 .out_stride = a->out_stride ? a->out_stride : dense};
}

mr_status mr_cpu_plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err)
{
    mr_cpu *d = mr_cpu_of(device);
    size_t rows, floats, bytes;
    if (__builtin_mul_overflow(a->batch, a->heads, &rows) || __builtin_mul_overflow(rows, a->queries, &rows) ||
        __builtin_mul_overflow(rows, sizeof(float), saved_bytes) ||
        __builtin_mul_overflow(block_of(a), a->keys, &floats) || floats > SIZE_MAX / 4 ||
        __builtin_mul_overflow((2 * floats + 15) / 16 * 16, sizeof(float) * mr_team_threads(d->team), &bytes))
        return mr_fail(err, MR_MISUSE, "attention of %zu queries and %zu keys is too large", a->queries, a->keys);
    floats = (2 * floats + 15) / 16 * 16;
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
    };
    h.d_p = h.p + j->block * a->keys;
    h.q = (const float *)a->q + h.q_at;
    h.k = (const float *)a->k + h.k_at;
    h.v = (const float *)a->v + h.v_at;
    h.fully_masked = none_seen(h.seen, a->keys);
    assert(2 * j->block * a->keys <= j->d->member_floats);
    return h;
}

static void zero_rows(float *x, size_t rows, size_t width, size_t stride)
{
    for (size_t r = 0; r < rows; r++)
        memset(x + r * stride, 0, width * sizeof *x);
}

/* A narrow product, in pieces of the size that OpenBLAS computes fastest. */
static void multiply_narrow(const mr_cpu *d, mr_cpu_product p)
{
    size_t whole = p.m, pieces = p.m * p.n * p.k / SMALL + 1, step = ((whole + pieces - 1) / pieces + 3) / 4 * 4;
    for (size_t at = 0; at < whole; at += step) {
        p.m = whole - at < step ? whole - at : step;
        mr_cpu_multiply(d, &p);
        p.a += p.transpose_a ? step : step * p.lda;
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
                                            .a = h->q + first * j->q_stride,
                                            .lda = j->q_stride,
                                            .b = h->k,
                                            .ldb = j->k_stride,
                                            .c = h->p,
                                            .ldc = a->keys});
}

static void forward_head(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    const mr_attention *a = j->a;
    const mr_cpu_kernels *k = j->d->kernels;
    head h = head_of(j, task, member);
    float *out = (float *)a->out + h.out_at;
    if (h.fully_masked) {
        zero_rows(out, a->queries, a->head_dim, j->out_stride);
        memset(h.log_sums, 0, a->queries * sizeof *h.log_sums);
        return;
    }
    for (size_t first = 0; first < a->queries; first += j->block) {
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
                                               .ldb = j->v_stride,
                                               .c = out + first * j->out_stride,
                                               .ldc = j->out_stride});
    }
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
static void probabilities_back(const job *j, const head *h, const float *d_out, size_t first, size_t count)
{
    const mr_attention *a = j->a;
    scores(j, h, first, count);
    mr_cpu_multiply(j->d, &(mr_cpu_product){/* d_p = d_out v^T */
                                            .m = count,
                                            .n = a->keys,
                                            .k = a->head_dim,
                                            .transpose_b = true,
                                            .alpha = 1,
                                            .a = d_out + first * j->out_stride,
                                            .lda = j->out_stride,
                                            .b = h->v,
                                            .ldb = j->v_stride,
                                            .c = h->d_p,
                                            .ldc = a->keys});
    back_rows(j, h, first, count);
}

static void back_head(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    const mr_attention *a = j->a;
    head h = head_of(j, task, member);
    const float *d_out = (const float *)j->back->d_out + h.out_at;
    float *d_q = (float *)j->back->d_q + h.q_at, *d_k = (float *)j->back->d_k + h.k_at;
    float *d_v = (float *)j->back->d_v + h.v_at;
    if (h.fully_masked) {
        zero_rows(d_q, a->queries, a->head_dim, j->q_stride);
        zero_rows(d_k, a->keys, a->head_dim, j->k_stride);
        zero_rows(d_v, a->keys, a->head_dim, j->v_stride);
        return;
    }
    for (size_t first = 0; first < a->queries; first += j->block) {
        size_t count = a->queries - first < j->block ? a->queries - first : j->block;
        float more = first ? 1 : 0;
        probabilities_back(j, &h, d_out, first, count);
        multiply_narrow(j->d, (mr_cpu_product){/* d_v = p^T d_out */
                                               .m = a->keys,
                                               .n = a->head_dim,
                                               .k = count,
                                               .transpose_a = true,
                                               .alpha = 1,
                                               .beta = more,
                                               .a = h.p,
                                               .lda = a->keys,
                                               .b = d_out + first * j->out_stride,
                                               .ldb = j->out_stride,
                                               .c = d_v,
                                               .ldc = j->v_stride});
        multiply_narrow(j->d, (mr_cpu_product){/* d_q = scale d_p k */
                                               .m = count,
                                               .n = a->head_dim,
                                               .k = a->keys,
                                               .alpha = a->scale,
                                               .a = h.d_p,
                                               .lda = a->keys,
                                               .b = h.k,
                                               .ldb = j->k_stride,
                                               .c = d_q + first * j->q_stride,
                                               .ldc = j->q_stride});
        multiply_narrow(j->d, (mr_cpu_product){/* d_k = scale d_p^T q */
                                               .m = a->keys,
                                               .n = a->head_dim,
                                               .k = count,
                                               .transpose_a = true,
                                               .alpha = a->scale,
                                               .beta = more,
                                               .a = h.d_p,
                                               .lda = a->keys,
                                               .b = h.q + first * j->q_stride,
                                               .ldb = j->q_stride,
                                               .c = d_k,
                                               .ldc = j->k_stride});
    }
}

void mr_cpu_attention_back(mr_device *device, const mr_attention_back *back)
{
    mr_cpu *d = mr_cpu_of(device);
    const mr_attention *a = back->forward;
    job j = job_of(d, a, back);
    if (a->queries && a->keys && a->head_dim)
        mr_team_run(d->team, a->batch * a->heads, back_head, &j);
}
