/* attention.c - attention in tiles, see device/kernels/attention.cl and attention_mma.cl.
 * Invariant: no memory grows with queries x keys: two floats per sample, head and query are kept. */
#include "device/launch/launch.h"

mr_status mr_launch_plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err)
{
    size_t rows;
    if (a->head_dim > MR_LAUNCH_HEAD_MAX)
        return mr_fail(err, MR_MISUSE, "%s: attention heads of %zu elements; at most %d are supported",
                       device->iface->name, a->head_dim, MR_LAUNCH_HEAD_MAX);
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

/* MR_SHAPE and MR_DROPOUT of the kernels, and what they begin with. */
#define SHAPE(a)                                                                                                       \
    MR_U32((a)->heads), MR_U32((a)->head_dim), MR_U32((a)->queries), MR_U32((a)->keys),                                \
        MR_U64(stride(a, (a)->q_stride)), MR_U64(stride(a, (a)->k_stride)), MR_U64(stride(a, (a)->v_stride)),          \
        MR_U64(stride(a, (a)->out_stride)), MR_REAL((a)->scale), MR_U32((a)->key_mask != NULL), MR_KEPT((a)->dropout)
#define INPUTS(a)                                                                                                      \
    MR_REALS((a)->q), MR_REALS((a)->k), MR_REALS((a)->v), MR_TENSOR_OF((a)->key_mask, 1), MR_FLOATS((a)->saved)

static bool uses_mma(mr_device *device, const mr_attention *a)
{
    return mr_launcher_of(device)->mma && a->type == MR_BF16;
}

/* A group per few rows of each sample and head. */
static mr_grid grid(mr_device *device, const mr_attention *a, size_t rows)
{
    bool mma = uses_mma(device, a);
    size_t few = mma ? MR_LAUNCH_MMA_FEW : MR_LAUNCH_FEW;
    return mr_grid_groups(a->batch * a->heads * ((rows + few - 1) / few), mma ? MR_LAUNCH_MMA_LANES : MR_LAUNCH_WIDTH);
}

/* What the plain kernels of attention_mma.cl compute; d_out NULL: forward. */
static bool is_plain(mr_device *device, const mr_attention *a, const void *d_out)
{
    const void *const tensors[] = {a->q, a->k, a->v, d_out};
    size_t strides =
        stride(a, a->q_stride) | stride(a, a->k_stride) | stride(a, a->v_stride) | stride(a, a->out_stride);
    return uses_mma(device, a) && a->head_dim == MR_LAUNCH_TILE && !a->key_mask && !(a->dropout.rate > 0) &&
           mr_launch_whole(strides, tensors, MR_COUNT(tensors));
}

#define LAUNCH(device, name, plain, a, rows, ...)                                                                      \
    MR_LAUNCH_ID(device, (plain) ? MR_KERNEL_##name##_plain : MR_KERNEL_##name, (a)->type, grid(device, a, rows),      \
                 __VA_ARGS__)

void mr_launch_attention(mr_device *device, const mr_attention *a)
{
    if (!is_empty(a))
        LAUNCH(device, attention_forward, is_plain(device, a, NULL), a, a->queries, INPUTS(a), MR_REALS(a->out),
               SHAPE(a));
}

void mr_launch_attention_back(mr_device *device, const mr_attention_back *b)
{
    const mr_attention *a = b->forward;
    size_t rows = a->batch * a->heads * a->queries;
    bool plain = is_plain(device, a, b->d_out);
    if (is_empty(a))
        return;
    MR_LAUNCH(device, attention_along, a->type, mr_grid_flat(rows), MR_REALS(a->out), MR_REALS(b->d_out),
              MR_FLOATS(a->saved), MR_U32(a->heads), MR_U32(a->head_dim), MR_U32(a->queries),
              MR_U64(stride(a, a->out_stride)), MR_U32(rows),
              MR_WHOLE(a->head_dim | stride(a, a->out_stride), a->out, b->d_out));
    LAUNCH(device, attention_back_q, plain, a, a->queries, INPUTS(a), MR_REALS(b->d_out), MR_REALS(b->d_q), SHAPE(a));
    LAUNCH(device, attention_back_kv, plain, a, a->keys, INPUTS(a), MR_REALS(b->d_out), MR_REALS(b->d_k),
           MR_REALS(b->d_v), SHAPE(a));
}
