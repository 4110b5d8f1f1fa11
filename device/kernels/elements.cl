/* elements.cl - elementwise operations on activations.
 * Invariant: a lane reads and writes the same MR_EIGHT elements, so every kernel works in place. */

/* Element MR_COLUMN() * MR_EIGHT of row MR_ROW(), `e` in its sample. */
#define MR_EIGHT_OF_ROW                                                                                                \
    const u32 column = MR_COLUMN() * MR_EIGHT, row = MR_ROW(), sample = sample_rows ? row / sample_rows : 0;           \
    const u32 e = (row - sample * sample_rows) * width + column, left = width - column;                                \
    const u64 at = (u64)row * width + column

MR_KERNEL(mr_drop, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, d_y), MR_TENSOR(mr_real, d_x), u32 width, u32 sample_rows, u32 whole, MR_DROPOUT)
{
    MR_EIGHT_OF_ROW;
    f32 v[MR_EIGHT];
    MR_START(d_y);
    MR_START(d_x);
    if (column >= width)
        return;
    mr_mask mask = MR_MASK_OF(sample);
    mr_get_eight(v, d_y + at, left, whole);
    MR_UNROLL
    for (u32 i = 0; i < MR_EIGHT; i++)
        v[i] *= mr_kept(mask, e + i);
    mr_put_eight(d_x + at, v, left, whole);
}

/* ---- activations: 0: GELU, 1: quick GELU, 2: tanh ------------------------------------------------------------- */

#define MR_ROOT_HALF 0.70710678118654752440F /* 1 / sqrt(2) */
#define MR_DENSITY   0.39894228040143267794F /* 1 / sqrt(2 pi) */

MR_FN f32 mr_sigmoid(f32 x)
{
    return 1 / (1 + exp(x > -87.0F ? -x : 87.0F));
}

/* Phi(x), and *bell = exp(-x^2 / 2).  For bf16 by M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions",
 * 1964, 7.1.26: an error of at most 0.75e-7 beside the 2e-3 of a bf16, for half of erf's instructions. */
MR_FN f32 mr_normal(f32 x, f32 *bell)
{
#if defined(MR_REAL_BF16)
    f32 t = mr_inverse(MR_MAD(fabs(x), 0.3275911F * MR_ROOT_HALF, 1.0F));
    f32 sum = MR_MAD(t, 0.5F * 1.061405429F, 0.5F * -1.453152027F);
    sum = MR_MAD(t, sum, 0.5F * 1.421413741F);
    sum = MR_MAD(t, sum, 0.5F * -0.284496736F);
    sum = MR_MAD(t, sum, 0.5F * 0.254829592F);
    *bell = mr_power(x * x * (-0.5F * MR_LOG2_E));
    f32 tail = sum * t * *bell;
    return x < 0 ? tail : 1 - tail;
#else
    *bell = exp(-0.5F * x * x);
    return 0.5F + 0.5F * erf(x * MR_ROOT_HALF);
#endif
}

MR_FN f32 mr_activated(u32 kind, f32 x)
{
    f32 bell;
    if (kind == 0)
        return x * mr_normal(x, &bell);
    return kind == 1 ? x * mr_sigmoid(1.702F * x) : tanh(x);
}

MR_FN f32 mr_slope(u32 kind, f32 x)
{
    f32 bell;
    if (kind == 0) {
        f32 all = mr_normal(x, &bell);
        return all + x * MR_DENSITY * bell;
    }
    if (kind == 1) {
        f32 s = mr_sigmoid(1.702F * x);
        return s + 1.702F * x * s * (1 - s);
    }
    f32 t = tanh(x);
    return 1 - t * t;
}

MR_KERNEL(mr_activate, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, x), MR_TENSOR(mr_real, y), u32 kind, u32 width, u32 sample_rows, u32 whole, MR_DROPOUT)
{
    MR_EIGHT_OF_ROW;
    f32 v[MR_EIGHT];
    MR_START(x);
    MR_START(y);
    if (column >= width)
        return;
    mr_mask mask = MR_MASK_OF(sample);
    mr_get_eight(v, x + at, left, whole);
    MR_UNROLL
    for (u32 i = 0; i < MR_EIGHT; i++)
        v[i] = mr_activated(kind, v[i]) * mr_kept(mask, e + i);
    mr_put_eight(y + at, v, left, whole);
}

MR_KERNEL(mr_activate_back, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, x), MR_TENSOR(const mr_real, d_y), MR_TENSOR(mr_real, d_x), u32 kind, u32 width,
 u32 sample_rows, u32 whole, MR_DROPOUT)
{
    MR_EIGHT_OF_ROW;
    f32 v[MR_EIGHT], d[MR_EIGHT];
    MR_START(x);
    MR_START(d_y);
    MR_START(d_x);
    if (column >= width)
        return;
    mr_mask mask = MR_MASK_OF(sample);
    mr_get_eight(v, x + at, left, whole);
    mr_get_eight(d, d_y + at, left, whole);
    MR_UNROLL
    for (u32 i = 0; i < MR_EIGHT; i++)
        d[i] = d[i] * mr_slope(kind, v[i]) * mr_kept(mask, e + i);
    mr_put_eight(d_x + at, d, left, whole);
}

MR_KERNEL(mr_add, MR_WIDTH)
(MR_SPOT MR_TENSOR(const mr_real, a), MR_TENSOR(const mr_real, b), MR_TENSOR(mr_real, sum), u64 count, u32 aligned)
{
    u64 at = (u64)MR_ITEM() * MR_EIGHT;
    u32 left = count - at < MR_EIGHT ? (u32)(count - at) : MR_EIGHT, whole = aligned && left == MR_EIGHT;
    f32 v[MR_EIGHT], w[MR_EIGHT];
    MR_START(a);
    MR_START(b);
    MR_START(sum);
    if (at >= count)
        return;
    mr_get_eight(v, a + at, left, whole);
    mr_get_eight(w, b + at, left, whole);
    MR_UNROLL
    for (u32 i = 0; i < MR_EIGHT; i++)
        v[i] += w[i];
    mr_put_eight(sum + at, v, left, whole);
}
