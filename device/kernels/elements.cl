/* elements.cl - elementwise operations, and updates.
 * Invariant: a lane reads and writes one element, so every kernel works in place.
 * Of rows: column = item, row = MR_ROW(); of flat buffers: element = item. */

MR_KERNEL(mr_drop, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, d_y), MR_TENSOR(f32, d_x), u32 width, u32 sample_rows, MR_DROPOUT)
{
    u32 column = MR_ITEM(), row = MR_ROW(), sample = sample_rows ? row / sample_rows : 0;
    u64 at = (u64)row * width + column;
    MR_START(d_y);
    MR_START(d_x);
    if (column < width)
        d_x[at] = d_y[at] * mr_kept(MR_MASK_OF(sample), (row - sample * sample_rows) * width + column);
}

/* ---- activations: 0: GELU, 1: quick GELU, 2: tanh ------------------------------------------------------------- */

#define MR_ROOT_HALF 0.70710678118654752440F /* 1 / sqrt(2) */
#define MR_DENSITY   0.39894228040143267794F /* 1 / sqrt(2 pi) */

MR_FN f32 mr_sigmoid(f32 x)
{
    return 1 / (1 + exp(x > -87.0F ? -x : 87.0F));
}

MR_FN f32 mr_activated(u32 kind, f32 x)
{
    if (kind == 0)
        return x * (0.5F + 0.5F * erf(x * MR_ROOT_HALF));
    return kind == 1 ? x * mr_sigmoid(1.702F * x) : tanh(x);
}

MR_FN f32 mr_slope(u32 kind, f32 x)
{
    if (kind == 0)
        return 0.5F + 0.5F * erf(x * MR_ROOT_HALF) + x * MR_DENSITY * exp(-0.5F * x * x);
    if (kind == 1) {
        f32 s = mr_sigmoid(1.702F * x);
        return s + 1.702F * x * s * (1 - s);
    }
    f32 t = tanh(x);
    return 1 - t * t;
}

MR_KERNEL(mr_activate, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, x), MR_TENSOR(const f32, d_y), MR_TENSOR(f32, to), u32 kind, u32 back, u32 width,
 u32 sample_rows, MR_DROPOUT)
{
    u32 column = MR_ITEM(), row = MR_ROW(), sample = sample_rows ? row / sample_rows : 0;
    u64 at = (u64)row * width + column;
    MR_START(x);
    MR_START(d_y);
    MR_START(to);
    if (column < width) {
        f32 y = back ? d_y[at] * mr_slope(kind, x[at]) : mr_activated(kind, x[at]);
        to[at] = y * mr_kept(MR_MASK_OF(sample), (row - sample * sample_rows) * width + column);
    }
}

/* ---- flat buffers --------------------------------------------------------------------------------------------- */

MR_KERNEL(mr_add, MR_WIDTH)(MR_SPOT MR_TENSOR(const f32, a), MR_TENSOR(const f32, b), MR_TENSOR(f32, sum), u64 count)
{
    u64 i = MR_ITEM();
    MR_START(a);
    MR_START(b);
    MR_START(sum);
    if (i < count)
        sum[i] = a[i] + b[i];
}

MR_KERNEL(mr_sgd, MR_WIDTH)
(MR_SPOT MR_TENSOR(f32, w), MR_TENSOR(const f32, g), MR_TENSOR(f32, m), u64 count, f32 g_scale, f32 lr, f32 decay,
 f32 momentum)
{
    u64 i = MR_ITEM();
    MR_START(w);
    MR_START(g);
    MR_START(m);
    if (i < count) {
        f32 moved = momentum * m[i] + (g[i] * g_scale + decay * w[i]);
        m[i] = moved;
        w[i] -= lr * moved;
    }
}

/* rest = 1 - beta; keep = 1 - lr decay; step = lr / correction1; root = 1 / sqrt(correction2). */
MR_KERNEL(mr_adamw, MR_WIDTH)
(MR_SPOT MR_TENSOR(f32, w), MR_TENSOR(const f32, g), MR_TENSOR(f32, m), MR_TENSOR(f32, v), u64 count, f32 g_scale,
 f32 keep,
 f32 beta1, f32 rest1, f32 beta2, f32 rest2, f32 step, f32 root, f32 eps)
{
    u64 i = MR_ITEM();
    MR_START(w);
    MR_START(g);
    MR_START(m);
    MR_START(v);
    if (i < count) {
        f32 d = g[i] * g_scale, first = beta1 * m[i] + rest1 * d, second = beta2 * v[i] + rest2 * d * d;
        m[i] = first;
        v[i] = second;
        w[i] = w[i] * keep - step * first / (sqrt(second) * root + eps);
    }
}

/* ---- a learned scale ------------------------------------------------------------------------------------------ */

MR_KERNEL(mr_scale, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, log_scale), MR_TENSOR(const f32, x), MR_TENSOR(f32, y), u64 count)
{
    u64 i = MR_ITEM();
    MR_START(log_scale);
    MR_START(x);
    MR_START(y);
    if (i < count)
        y[i] = x[i] * exp(log_scale[0]);
}

/* d_x, and for each group its part of the sum of d_y y; groups take turns at MR_WIDTH elements. */
MR_KERNEL(mr_scale_back, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, log_scale), MR_TENSOR(const f32, y), MR_TENSOR(const f32, d_y), MR_TENSOR(f32, d_x),
 MR_TENSOR(f32, parts), u64 count, u32 groups)
{
    MR_SHARED f32 part[MR_WIDTH];
    f32 sum = 0, factor;
    MR_START(log_scale);
    MR_START(y);
    MR_START(d_y);
    MR_START(d_x);
    MR_START(parts);
    factor = exp(log_scale[0]);
    for (u64 i = MR_ITEM(); i < count; i += (u64)groups * MR_WIDTH) {
        sum += d_y[i] * y[i];
        d_x[i] = d_y[i] * factor;
    }
    sum = mr_group_sum(part, sum);
    if (MR_LANE() == 0)
        parts[MR_GROUP_ID()] = sum;
}
