/* updates.cl - updates of parameters, a learned scale, and sums of squares, which must not overflow: all float32.
 * Invariant: an element is written by the lane that reads it, so every kernel works in place. */

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
 f32 beta1, f32 rest1, f32 beta2, f32 rest2, f32 step, f32 root, f32 eps, u32 aligned)
{
    u64 at = (u64)MR_ITEM() * MR_EIGHT;
    u32 left = count - at < MR_EIGHT ? (u32)(count - at) : MR_EIGHT, whole = aligned && left == MR_EIGHT;
    f32 x[MR_EIGHT], d[MR_EIGHT], first[MR_EIGHT], second[MR_EIGHT];
    MR_START(w);
    MR_START(g);
    MR_START(m);
    MR_START(v);
    if (at >= count)
        return;
    mr_get_floats(x, w + at, left, whole);
    mr_get_floats(d, g + at, left, whole);
    mr_get_floats(first, m + at, left, whole);
    mr_get_floats(second, v + at, left, whole);
    MR_UNROLL
    for (u32 k = 0; k < MR_EIGHT; k++) {
        d[k] *= g_scale;
        first[k] = beta1 * first[k] + rest1 * d[k];
        second[k] = beta2 * second[k] + rest2 * d[k] * d[k];
        x[k] = x[k] * keep - step * first[k] / (sqrt(second[k]) * root + eps);
    }
    mr_put_floats(m + at, first, left, whole);
    mr_put_floats(v + at, second, left, whole);
    mr_put_floats(w + at, x, left, whole);
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

/* ---- sums of squares ------------------------------------------------------------------------------------------ */

/* Sums of two floats, as precise as double: T. J. Dekker, "A floating-point technique for extending the available
 * precision", 1971; and of three sizes, as the squares of large and tiny numbers do not fit float32: J. L. Blue, "A
 * portable Fortran program to find the Euclidean norm of a vector", 1978.  So no device needs double. */
#if defined(__OPENCL_VERSION__)
#pragma OPENCL FP_CONTRACT OFF
#endif
#define MR_LARGE 1.099511627776e12F           /* 2^40 */
#define MR_SHRINK 8.271806125530277e-25F      /* 2^-80 */
#define MR_GROW 1.2089258196146292e24F        /* 2^80 */

MR_FN void mr_pair_add(f32 *high, f32 *low, f32 x, f32 rest)
{
    f32 sum = *high + x, back = sum - *high;
    f32 error = (*high - (sum - back)) + (x - back);
    error += *low + rest;
    *high = sum + error;
    *low = error - (*high - sum);
}

MR_FN void mr_square_add(f32 *high, f32 *low, f32 x)
{
    f32 square = x * x;
    mr_pair_add(high, low, square, fma(x, x, -square));
}

/* Six floats per group: high and low of the sums of (x 2^-80)^2, x^2, (x 2^80)^2. */
MR_KERNEL(mr_squares, MR_WIDTH)
(MR_SPOT MR_TENSOR(const f32, x), MR_TENSOR(f32, sums), u64 count, u32 groups, u32 aligned)
{
    MR_SHARED f32 part[6 * MR_WIDTH];
    u32 lane = MR_LANE();
    f32 s[6], v[MR_EIGHT];
    MR_START(x);
    MR_START(sums);
    for (u32 i = 0; i < 6; i++)
        s[i] = 0;
    for (u64 i = (u64)MR_ITEM() * MR_EIGHT; i < count; i += (u64)groups * MR_WIDTH * MR_EIGHT) {
        u32 left = count - i < MR_EIGHT ? (u32)(count - i) : MR_EIGHT;
        mr_get_floats(v, x + i, left, aligned && left == MR_EIGHT);
        MR_UNROLL
        for (u32 k = 0; k < MR_EIGHT; k++) {
            f32 size = fabs(v[k]);
            if (size > MR_LARGE)
                mr_square_add(&s[0], &s[1], v[k] * MR_SHRINK);
            else if (size < 1 / MR_LARGE)
                mr_square_add(&s[4], &s[5], v[k] * MR_GROW);
            else
                mr_square_add(&s[2], &s[3], v[k]);
        }
    }
    for (u32 i = 0; i < 6; i++)
        part[i * MR_WIDTH + lane] = s[i];
    MR_BARRIER();
    for (u32 apart = MR_WIDTH / 2; apart; apart >>= 1) {
        for (u32 i = 0; i < 6 && lane < apart; i += 2) {
            mr_pair_add(&s[i], &s[i + 1], part[i * MR_WIDTH + lane + apart], part[(i + 1) * MR_WIDTH + lane + apart]);
            part[i * MR_WIDTH + lane] = s[i];
            part[(i + 1) * MR_WIDTH + lane] = s[i + 1];
        }
        MR_BARRIER();
    }
    if (lane < 6)
        sums[MR_GROUP_ID() * 6 + lane] = part[lane * MR_WIDTH];
}
