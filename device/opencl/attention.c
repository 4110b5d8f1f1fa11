/* attention.c - attention in tiles, see device/kernels/attention.cl.
 * Invariant: memory that grows with queries x keys is never needed: two floats per sample, head and query are kept. */
#include <assert.h>

#include "opencl/opencl.h"

mr_status mr_cl_plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err)
{
    size_t rows;
    (void)device;
    if (a->head_dim > MR_CL_HEAD_MAX)
        return mr_fail(err, MR_MISUSE, "opencl: attention heads of %zu elements; at most %d are supported", a->head_dim,
                       MR_CL_HEAD_MAX);
    if (__builtin_mul_overflow(a->batch, a->heads, &rows) || __builtin_mul_overflow(rows, a->queries, &rows) ||
        __builtin_mul_overflow(rows, 2 * sizeof(float), saved_bytes) || rows > UINT32_MAX / MR_CL_WIDTH ||
        a->keys > UINT32_MAX / MR_CL_WIDTH)
        return mr_fail(err, MR_MISUSE, "attention of %zu queries and %zu keys is too large", a->queries, a->keys);
    return MR_OK;
}

static bool is_empty(const mr_attention *a)
{
    assert(a->type == MR_F32);
    return !a->batch || !a->heads || !a->queries || !a->keys || !a->head_dim;
}

static size_t stride(const mr_attention *a, size_t given)
{
    return given ? given : a->heads * a->head_dim;
}

/* MR_SHAPE and MR_DROPOUT of the kernels. */
static void put_shape(mr_cl_call *c, const mr_attention *a)
{
    mr_cl_u32(c, a->heads);
    mr_cl_u32(c, a->head_dim);
    mr_cl_u32(c, a->queries);
    mr_cl_u32(c, a->keys);
    mr_cl_u64(c, stride(a, a->q_stride));
    mr_cl_u64(c, stride(a, a->k_stride));
    mr_cl_u64(c, stride(a, a->v_stride));
    mr_cl_u64(c, stride(a, a->out_stride));
    mr_cl_f32(c, (double)a->scale);
    mr_cl_u32(c, a->key_mask != NULL);
    mr_cl_dropout(c, &a->dropout);
}

static void put_inputs(mr_cl_call *c, const mr_attention *a)
{
    mr_cl_floats(c, a->q);
    mr_cl_floats(c, a->k);
    mr_cl_floats(c, a->v);
    mr_cl_tensor(c, a->key_mask, 1);
    mr_cl_floats(c, a->saved);
}

/* A group per few rows of each sample and head. */
static void run(mr_cl_call *c, const mr_attention *a, size_t rows)
{
    mr_cl_run_groups(c, a->batch * a->heads * ((rows + MR_CL_FEW - 1) / MR_CL_FEW), MR_CL_WIDTH);
}

void mr_cl_attention(mr_device *device, const mr_attention *a)
{
    if (is_empty(a))
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_attention);
    put_inputs(&c, a);
    mr_cl_floats(&c, a->out);
    put_shape(&c, a);
    run(&c, a, a->queries);
}

static void sum_along(mr_device *device, const mr_attention *a, const void *d_out)
{
    size_t rows = a->batch * a->heads * a->queries;
    mr_cl_call c = mr_cl_begin(device, MR_CL_attention_along);
    mr_cl_floats(&c, a->out);
    mr_cl_floats(&c, d_out);
    mr_cl_floats(&c, a->saved);
    mr_cl_u32(&c, a->heads);
    mr_cl_u32(&c, a->head_dim);
    mr_cl_u32(&c, a->queries);
    mr_cl_u64(&c, stride(a, a->out_stride));
    mr_cl_u32(&c, rows);
    mr_cl_run_flat(&c, rows);
}

void mr_cl_attention_back(mr_device *device, const mr_attention_back *b)
{
    const mr_attention *a = b->forward;
    if (is_empty(a))
        return;
    sum_along(device, a, b->d_out);
    mr_cl_call c = mr_cl_begin(device, MR_CL_attention_back_q);
    put_inputs(&c, a);
    mr_cl_floats(&c, b->d_out);
    mr_cl_floats(&c, b->d_q);
    put_shape(&c, a);
    run(&c, a, a->queries);
    c = mr_cl_begin(device, MR_CL_attention_back_kv);
    put_inputs(&c, a);
    mr_cl_floats(&c, b->d_out);
    mr_cl_floats(&c, b->d_k);
    mr_cl_floats(&c, b->d_v);
    put_shape(&c, a);
    run(&c, a, a->keys);
}
