/* elements.cl - elementwise operations on activations.
 * Invariant: a lane reads and writes one element, so every kernel works in place. */

MR_KERNEL(mr_drop, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, d_y), MR_TENSOR(mr_real, d_x), u32 width, u32 sample_rows, MR_DROPOUT)
{
    u32 column = MR_COLUMN(), row = MR_ROW(), sample = sample_rows ? row / sample_rows : 0;
    u64 at = (u64)row * width + column;
    MR_START(d_y);
    MR_START(d_x);
    if (column < width)
        d_x[at] = MR_PUT(MR_GET(d_y[at]) * mr_kept(MR_MASK_OF(sample), (row - sample * sample_rows) * width + column));
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
(MR_SPOT MR_TENSOR(const mr_real, x), MR_TENSOR(const mr_real, d_y), MR_TENSOR(mr_real, to), u32 kind, u32 back, u32 width,
 u32 sample_rows, MR_DROPOUT)
{
    u32 column = MR_COLUMN(), row = MR_ROW(), sample = sample_rows ? row / sample_rows : 0;
    u64 at = (u64)row * width + column;
    MR_START(x);
    MR_START(d_y);
    MR_START(to);
    if (column < width) {
        f32 at_x = MR_GET(x[at]), y = back ? MR_GET(d_y[at]) * mr_slope(kind, at_x) : mr_activated(kind, at_x);
        to[at] = MR_PUT(y * mr_kept(MR_MASK_OF(sample), (row - sample * sample_rows) * width + column));
    }
}

MR_KERNEL(mr_add, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, a), MR_TENSOR(const mr_real, b), MR_TENSOR(mr_real, sum), u64 count)
{
    u64 i = MR_ITEM();
    MR_START(a);
    MR_START(b);
    MR_START(sum);
    if (i < count)
        sum[i] = MR_PUT(MR_GET(a[i]) + MR_GET(b[i]));
}
