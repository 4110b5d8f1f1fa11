/* product.c - matrix products by cuBLASLt, with the bias added by it; by a kernel where there is none.
 * Invariant: how a product is computed depends on its shape, types and alignment alone, and partial sums are float32
 * that are added in a fixed order, so that the same device gives the same bits on every run.
 *
 * cuBLASLt has columns where we have rows: c = a b is computed as c' = b' a', with each matrix as it is stored.  If one
 * operand is bf16, so must be the other: one of float32, a weight, is rounded into the device's own memory first, as is
 * the bias of a result of bf16.  Its epilogue of GELU is not used: it is the approximation by tanh, and ours is x
 * Phi(x). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

enum { LINE = 8, ALIGNED = 256, BIAS = 2 }; /* elements; bytes, beyond which it makes no difference; the third buffer */

typedef struct shape { /* without padding, or with zeros in it */
    uint64_t m, n, k, lda, ldb, ldc;
    uint16_t a_aligned, b_aligned, c_aligned; /* bytes */
    uint8_t type, c_type, transpose_a, transpose_b, accumulate, bias;
} shape;

struct mr_cuda_plan {
    shape s;
    mr_lt_product product; /* NULL: cuBLASLt has no way to compute it */
    mr_lt_layout first, second, result;
    mr_lt_algorithm algorithm;
    size_t workspace;
};

/* ---- opening ---------------------------------------------------------------------------------------------------- */

void mr_cuda_products_open(mr_cuda *d)
{
    int code = d->api.lt.create ? d->api.lt.create(&d->lt) : 0;
    if (d->api.lt.create && !code) {
        size_t version = d->api.lt.version();
        snprintf(d->products, sizeof d->products, "cuBLASLt %zu.%zu", version / 10000, version % 10000 / 100);
        return;
    }
    d->lt = NULL;
    if (code)
        snprintf(d->api.lacks_lt, sizeof d->api.lacks_lt, "cublasLtCreate fails with code %d", code);
    snprintf(d->products, sizeof d->products, "millrace's own kernels, which are slower than cuBLASLt (%s)",
             d->api.lacks_lt);
}

static void release(const mr_cuda *d, mr_cuda_plan *p)
{
    const mr_lt_layout layouts[] = {p->first, p->second, p->result};
    for (size_t i = 0; i < MR_COUNT(layouts); i++)
        if (layouts[i])
            d->api.lt.layout_destroy(layouts[i]);
    if (p->product)
        d->api.lt.product_destroy(p->product);
    p->product = NULL;
    p->first = p->second = p->result = NULL;
}

void mr_cuda_products_close(mr_cuda *d)
{
    for (size_t i = 0; i < d->plan_count; i++)
        release(d, &d->plans[i]);
    free(d->plans);
    d->plans = NULL;
    if (d->lt)
        d->api.lt.destroy(d->lt);
    d->lt = NULL;
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

static int lt_type(unsigned type)
{
    return type == MR_BF16 ? MR_LT_BF16 : MR_LT_F32;
}

/* Matrices as they are stored: rows of ours are its columns. */
static bool describe(const mr_cuda *d, const shape *s, mr_cuda_plan *p)
{
    const int transposed = MR_LT_OP_T, epilogue = MR_LT_EPILOGUE_BIAS, type = lt_type(s->type);
    return d->api.lt.product_create(&p->product, MR_LT_COMPUTE_F32, MR_LT_F32) == 0 &&
           (!s->transpose_b ||
            d->api.lt.product_set(p->product, MR_LT_TRANSPOSE_A, &transposed, sizeof transposed) == 0) &&
           (!s->transpose_a ||
            d->api.lt.product_set(p->product, MR_LT_TRANSPOSE_B, &transposed, sizeof transposed) == 0) &&
           (!s->bias || d->api.lt.product_set(p->product, MR_LT_EPILOGUE, &epilogue, sizeof epilogue) == 0) &&
           d->api.lt.layout_create(&p->first, type, s->transpose_b ? s->k : s->n, s->transpose_b ? s->n : s->k,
                                   (int64_t)s->ldb) == 0 &&
           d->api.lt.layout_create(&p->second, type, s->transpose_a ? s->m : s->k, s->transpose_a ? s->k : s->m,
                                   (int64_t)s->lda) == 0 &&
           d->api.lt.layout_create(&p->result, lt_type(s->c_type), s->n, s->m, (int64_t)s->ldc) == 0;
}

static bool prefer(const mr_cuda *d, const shape *s, mr_lt_preference preference)
{
    const size_t workspace = MR_CUDA_WORKSPACE;
    const uint32_t reductions = MR_LT_IN_COMPUTE_TYPE;
    const uint32_t aligned[] = {s->b_aligned, s->a_aligned, s->c_aligned, s->c_aligned};
    bool fine = d->api.lt.preference_set(preference, MR_LT_MOST_WORKSPACE, &workspace, sizeof workspace) == 0 &&
                d->api.lt.preference_set(preference, MR_LT_REDUCTIONS, &reductions, sizeof reductions) == 0;
    for (size_t i = 0; i < MR_COUNT(aligned) && fine; i++)
        fine = d->api.lt.preference_set(preference, MR_LT_ALIGNMENT_A + (int)i, &aligned[i], sizeof aligned[i]) == 0;
    return fine;
}

static bool choose(const mr_cuda *d, const shape *s, mr_cuda_plan *p)
{
    mr_lt_preference preference = NULL;
    mr_lt_choice best = {.state = 1};
    int count = 0;
    if (d->api.lt.preference_create(&preference) != 0)
        return false;
    bool found = prefer(d, s, preference) &&
                 d->api.lt.choose(d->lt, p->product, p->first, p->second, p->result, p->result, preference, 1, &best,
                                  &count) == 0 &&
                 count > 0 && best.state == 0 && best.workspace <= MR_CUDA_WORKSPACE;
    d->api.lt.preference_destroy(preference);
    p->algorithm = best.algorithm;
    p->workspace = best.workspace;
    return found;
}

/* NULL: out of memory; the plan's product is NULL where a kernel has to compute it. */
static mr_cuda_plan *plan_of(mr_cuda *d, const shape *s)
{
    for (size_t i = 0; i < d->plan_count; i++)
        if (memcmp(&d->plans[i].s, s, sizeof *s) == 0)
            return &d->plans[i];
    if (!MR_GROW(d->plans, d->plan_count, d->plan_capacity))
        return NULL;
    mr_cuda_plan *p = &d->plans[d->plan_count++];
    memset(p, 0, sizeof *p);
    p->s = *s;
    if (!describe(d, s, p) || !choose(d, s, p))
        release(d, p);
    return p;
}

/* For the end of a run: if a large product is declined, a step is many times slower. */
const char *mr_cuda_declined(mr_device *device)
{
    mr_cuda *d = mr_cuda_of(device);
    const shape *first = NULL;
    unsigned count = 0;
    for (size_t i = d->plan_count; i-- > 0;)
        if (!d->plans[i].product) {
            first = &d->plans[i].s;
            count++;
        }
    if (!first)
        return NULL;
    snprintf(d->declined, sizeof d->declined,
             "cuBLASLt declined %u shape%s of products, the first %llu x %llu x %llu in %s; millrace's own kernels, "
             "which are slower, computed them",
             count, count == 1 ? "" : "s", (unsigned long long)first->m, (unsigned long long)first->n,
             (unsigned long long)first->k, mr_type_word(first->type));
    return d->declined;
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

static bool reserve(mr_cuda *d, void **buffer, size_t *has, size_t bytes)
{
    mr_error err;
    if (*buffer && *has >= bytes)
        return true;
    if (*buffer)
        mr_cuda_note(d, "products", d->api.cu.stream_wait(d->stream));
    mr_cuda_free(&d->launcher.device, *buffer);
    *buffer = NULL;
    if (mr_cuda_alloc(&d->launcher.device, bytes, "products", buffer, &err) != MR_OK) {
        mr_cuda_fail(d, &err);
        return false;
    }
    *has = bytes;
    return true;
}

/* A float32 matrix of `rows` rows as bf16, in memory of the device's; *stride becomes the stride there. */
static const void *narrow(mr_cuda *d, unsigned which, const void *x, size_t rows, size_t width, uint64_t *stride)
{
    size_t line = (width + LINE - 1) / LINE * LINE;
    if (!reserve(d, &d->narrowed[which], &d->narrowed_bytes[which], rows * line * sizeof(uint16_t)))
        return NULL;
    MR_LAUNCH(&d->launcher.device, to_bf16, MR_F32, mr_grid_rows(mr_launch_eights(width), rows), MR_FLOATS(x),
              MR_TENSOR_OF(d->narrowed[which], sizeof(uint16_t)), MR_U32(width), MR_U64(*stride), MR_U64(line),
              MR_WHOLE(*stride, x));
    *stride = line;
    return d->narrowed[which];
}

static uint16_t alignment(const void *x)
{
    uintptr_t at = (uintptr_t)x, lowest = at & (~at + 1);
    return at && lowest < ALIGNED ? (uint16_t)lowest : ALIGNED;
}

/* ---- products --------------------------------------------------------------------------------------------------- */

typedef struct operands {
    const void *a, *b, *bias;
    void *c;
} operands;

/* False: a kernel has to compute it, or it failed. */
static bool prepare(mr_cuda *d, const mr_gemm *g, shape *s, operands *o)
{
    uint64_t of_bias = g->n;
    bool narrows = g->a_type == MR_BF16 || g->b_type == MR_BF16;
    if (!d->lt || !g->k || (!narrows && g->c_type == MR_BF16))
        return false;
    memset(s, 0, sizeof *s);
    s->m = g->m, s->n = g->n, s->k = g->k;
    s->lda = g->lda ? g->lda : g->transpose_a ? g->m : g->k;
    s->ldb = g->ldb ? g->ldb : g->transpose_b ? g->k : g->n;
    s->ldc = g->ldc ? g->ldc : g->n;
    s->type = narrows ? MR_BF16 : MR_F32;
    s->c_type = (uint8_t)g->c_type;
    s->transpose_a = g->transpose_a, s->transpose_b = g->transpose_b;
    s->accumulate = g->accumulate, s->bias = g->bias != NULL;
    *o = (operands){g->a, g->b, g->bias, g->c};
    if (narrows && g->a_type == MR_F32)
        o->a = narrow(d, 0, g->a, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k, &s->lda);
    if (narrows && g->b_type == MR_F32)
        o->b = narrow(d, 1, g->b, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n, &s->ldb);
    if (g->bias && g->c_type == MR_BF16)
        o->bias = narrow(d, BIAS, g->bias, 1, g->n, &of_bias);
    s->a_aligned = alignment(o->a);
    s->b_aligned = alignment(o->b);
    s->c_aligned = alignment(o->c);
    return o->a && o->b && (o->bias || !g->bias) && !d->wrong[0];
}

static bool multiply(mr_cuda *d, const shape *s, const operands *o)
{
    const float one = 1, beta = s->accumulate ? 1 : 0;
    size_t workspace = d->workspace ? MR_CUDA_WORKSPACE : 0;
    mr_cuda_plan *p = plan_of(d, s);
    if (!p || !p->product || !reserve(d, &d->workspace, &workspace, MR_CUDA_WORKSPACE))
        return false;
    int code = s->bias ? d->api.lt.product_set(p->product, MR_LT_BIAS_POINTER, &o->bias, sizeof o->bias) : 0;
    if (!code)
        code = d->api.lt.multiply(d->lt, p->product, &one, o->b, p->first, o->a, p->second, &beta, o->c, p->result,
                                  o->c, p->result, &p->algorithm, d->workspace, p->workspace, d->stream);
    if (code && !d->wrong[0])
        snprintf(d->wrong, sizeof d->wrong, "%.40s: product: cublasLtMatmul fails with code %d", d->name, code);
    return true;
}

void mr_cuda_gemm(mr_device *device, const mr_gemm *g)
{
    mr_cuda *d = mr_cuda_of(device);
    shape s;
    operands o;
    if (!g->m || !g->n || !mr_cuda_use(d))
        return;
    if (!prepare(d, g, &s, &o) || !multiply(d, &s, &o))
        mr_launch_gemm(device, g);
}
