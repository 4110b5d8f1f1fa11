/* attention.c - attention in tiles, see device/kernels/attention.cl and attention_mma.cl.
 * Invariant: memory that grows with queries x keys is never needed: two floats per sample, head and query are kept. */
#include "launch/launch.h"

mr_status mr_launch_plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err)
{
    size_t rows;
    if (a->head_dim > MR_LAUNCH_HEAD_MAX)
        return mr_fail(err, MR_MISUSE, "%s: attention heads of %zu elements; at most %d are supported",
                       device->card->name, a->head_dim, MR_LAUNCH_HEAD_MAX);
    if (__builtin_mul_overflow(a->batch, a->heads, &rows) || __builtin_mul_overflow(rows, a->queries, &rows) ||
        __builtin_mul_overflow(rows, 2 * sizeof(float), saved_bytes) || rows > UINT32_MAX / MR_LAUNCH_WIDTH ||
        a->keys > UINT32_MAX / MR_LAUNCH_WIDTH)
        return mr_fail(err, MR_MISUSE, "attention of %zu queries and %zu keys is too large", a->queries, a->keys);
    return MR_OK;
}

static bool is_empty(const mr_attention *a)
{
    return !a->batch || !a->heads || !a->queries || !a->keys || !a->head_dim;
}

static size_t stride(const mr_attention *a, size_t given)
{
    return given ? given : a->heads * a->head_dim;
}

/* MR_SHAPE and MR_DROPOUT of the kernels. */
static void put_shape(mr_call *c, const mr_attention *a)
{
    mr_call_u32(c, a->heads);
    mr_call_u32(c, a->head_dim);
    mr_call_u32(c, a->queries);
    mr_call_u32(c, a->keys);
    mr_call_u64(c, stride(a, a->q_stride));
    mr_call_u64(c, stride(a, a->k_stride));
    mr_call_u64(c, stride(a, a->v_stride));
    mr_call_u64(c, stride(a, a->out_stride));
    mr_call_f32(c, (double)a->scale);
    mr_call_u32(c, a->key_mask != NULL);
    mr_call_dropout(c, &a->dropout);
}

static void put_inputs(mr_call *c, const mr_attention *a)
{
    mr_call_typed(c, a->q);
    mr_call_typed(c, a->k);
    mr_call_typed(c, a->v);
    mr_call_tensor(c, a->key_mask, 1);
    mr_call_floats(c, a->saved);
}

/* A group per few rows of each sample and head. */
static void run(mr_call *c, const mr_attention *a, size_t rows)
{
    bool mma = c->d->mma && a->type == MR_BF16;
    size_t few = mma ? MR_LAUNCH_MMA_FEW : MR_LAUNCH_FEW;
    mr_call_run_groups(c, a->batch * a->heads * ((rows + few - 1) / few), mma ? MR_LAUNCH_MMA_LANES : MR_LAUNCH_WIDTH);
}

void mr_launch_attention(mr_device *device, const mr_attention *a)
{
    if (is_empty(a))
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_attention_forward, a->type);
    put_inputs(&c, a);
    mr_call_typed(&c, a->out);
    put_shape(&c, a);
    run(&c, a, a->queries);
}

static void sum_along(mr_device *device, const mr_attention *a, const void *d_out)
{
    size_t rows = a->batch * a->heads * a->queries;
    mr_call c = mr_call_of(device, MR_KERNEL_attention_along, a->type);
    mr_call_typed(&c, a->out);
    mr_call_typed(&c, d_out);
    mr_call_floats(&c, a->saved);
    mr_call_u32(&c, a->heads);
    mr_call_u32(&c, a->head_dim);
    mr_call_u32(&c, a->queries);
    mr_call_u64(&c, stride(a, a->out_stride));
    mr_call_u32(&c, rows);
    mr_call_run_flat(&c, rows);
}

void mr_launch_attention_back(mr_device *device, const mr_attention_back *b)
{
    const mr_attention *a = b->forward;
    if (is_empty(a))
        return;
    sum_along(device, a, b->d_out);
    mr_call c = mr_call_of(device, MR_KERNEL_attention_back_q, a->type);
    put_inputs(&c, a);
    mr_call_typed(&c, b->d_out);
    mr_call_typed(&c, b->d_q);
    put_shape(&c, a);
    run(&c, a, a->queries);
    c = mr_call_of(device, MR_KERNEL_attention_back_kv, a->type);
    put_inputs(&c, a);
    mr_call_typed(&c, b->d_out);
    mr_call_typed(&c, b->d_k);
    mr_call_typed(&c, b->d_v);
    put_shape(&c, a);
    run(&c, a, a->keys);
}
