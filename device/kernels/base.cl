/* base.cl - what every kernel of the trainer shares: tensors as arguments, sums over a group, dropout.
 * Invariant: a kernel's sums are added in an order that its arguments' shape alone decides, without atomics, so that
 * the same device gives the same bits on every run.
 */
#define MR_WIDTH 64 /* lanes of a group, except for products */

/* ---- the type of activations ------------------------------------------------------------------------------------ */

/* See base/bf16.h: to nearest, ties to even; a NaN stays one. */
MR_FN u16 mr_narrow(f32 x)
{
    u32 bits = MR_BITS(x), rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    return (u16)((bits & 0x7fffffffU) > 0x7f800000U ? bits >> 16 | 0x40U : rounded);
}

MR_FN f32 mr_widen(u16 upper)
{
    return MR_OF_BITS((u32)upper << 16);
}

/* Two next to each other, the first one below. */
MR_FN u32 mr_narrow_two(f32 low, f32 high)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
    u32 both; /* of a NaN, 0x7fff */
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else
    return mr_narrow(low) | (u32)mr_narrow(high) << 16;
#endif
}

/* Kernels that work on activations are built once per type: with MR_REAL_BF16, and without. */
#if defined(MR_REAL_BF16)
typedef u16 mr_real;
#define MR_GET(x) mr_widen(x) /* to compute with */
#define MR_PUT(x) mr_narrow(x) /* to keep */
#else
typedef f32 mr_real;
#define MR_GET(x) (x)
#define MR_PUT(x) (x)
#endif

/* ---- eight elements of a row at a time --------------------------------------------------------------------------- */

/* With `whole`, eight are there, at a multiple of 16 bytes; otherwise `left`, or eight if those are more, and what is
 * read of the others is 0. */
#define MR_EIGHT 8

MR_FN void mr_get_floats(f32 *v, MR_GLOBAL const f32 *x, u32 left, u32 whole)
{
    u32 words[MR_EIGHT];
    if (whole) {
        MR_GET_WORDS(words, x);
        MR_GET_WORDS(words + 4, x + 4);
    }
    MR_UNROLL
    for (u32 i = 0; i < MR_EIGHT; i++)
        v[i] = whole ? MR_OF_BITS(words[i]) : i < left ? x[i] : 0.0F;
}

MR_FN void mr_put_floats(MR_GLOBAL f32 *x, const f32 *v, u32 left, u32 whole)
{
    u32 words[MR_EIGHT];
    MR_UNROLL
    for (u32 i = 0; i < MR_EIGHT; i++) {
        words[i] = MR_BITS(v[i]);
        if (!whole && i < left)
            x[i] = v[i];
    }
    if (whole) {
        MR_PUT_WORDS(x, words);
        MR_PUT_WORDS(x + 4, words + 4);
    }
}

MR_FN void mr_put_halves(MR_GLOBAL u16 *x, const f32 *v, u32 left, u32 whole)
{
    u32 words[MR_EIGHT / 2];
    MR_UNROLL
    for (u32 i = 0; i < MR_EIGHT; i += 2) {
        words[i / 2] = mr_narrow_two(v[i], v[i + 1]);
        if (!whole && i < left)
            x[i] = (u16)words[i / 2];
        if (!whole && i + 1 < left)
            x[i + 1] = (u16)(words[i / 2] >> 16);
    }
    if (whole)
        MR_PUT_WORDS(x, words);
}

#if defined(MR_REAL_BF16)
#define mr_put_eight mr_put_halves

MR_FN void mr_get_eight(f32 *v, MR_GLOBAL const mr_real *x, u32 left, u32 whole)
{
    u32 words[MR_EIGHT / 2];
    if (whole)
        MR_GET_WORDS(words, x);
    MR_UNROLL
    for (u32 i = 0; i < MR_EIGHT; i++)
        v[i] = whole ? mr_widen((u16)(words[i / 2] >> 16 * (i % 2))) : i < left ? mr_widen(x[i]) : 0.0F;
}
#else
#define mr_get_eight mr_get_floats
#define mr_put_eight mr_put_floats
#endif

/* ---- what GPUs have instructions for ------------------------------------------------------------------------------ */

#define MR_LOG2_E 1.44269504F
#if defined(__CUDACC__)
/* x of lane ^ away, in a warp of 32. */
MR_FN f32 mr_of_lane(f32 x, u32 away)
{
    return __shfl_xor_sync(0xffffffffU, x, away);
}

/* 2 to the power of x, within 2^-22 of it; 0 of -infinity. */
MR_FN f32 mr_power(f32 x)
{
    f32 y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 1 / x, within 2^-23 of it. */
MR_FN f32 mr_inverse(f32 x)
{
    f32 y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
#define mr_power(x)   exp2(x)
#define mr_inverse(x) (1 / (x))
#endif

/* ---- sums over a group ------------------------------------------------------------------------------------------ */

/* The sum of x over the lanes of a group, for every lane; part: f32[MR_WIDTH].  Warps add in the same order. */
MR_FN f32 mr_group_sum(MR_NEAR f32 *part, f32 x)
{
    u32 lane = MR_LANE();
    part[lane] = x;
    MR_BARRIER();
#if defined(__CUDACC__)
    f32 sum = part[lane % 32] + part[lane % 32 + 32];
    MR_UNROLL
    for (u32 away = 16; away; away /= 2)
        sum += mr_of_lane(sum, away);
#else
    for (u32 apart = MR_WIDTH / 2; apart; apart >>= 1) {
        if (lane < apart)
            part[lane] += part[lane + apart];
        MR_BARRIER();
    }
    f32 sum = part[0];
#endif
    MR_BARRIER();
    return sum;
}

/* ---- dropout -------------------------------------------------------------------------------------------------- */

/* See mr_dropout in device/device.h; the same bits as device/cpu/kernels.c. */
#define MR_DROPOUT MR_TENSOR(const u64, keys), u32 threshold, f32 scale, u32 site

typedef struct mr_mask {
    u32 key0, key1, threshold;
    f32 scale;
} mr_mask;

MR_FN u64 mr_mixed(u64 z) /* the end of splitmix64, see base/random.h */
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebUL;
    return z ^ (z >> 31);
}

MR_FN mr_mask mr_mask_of(MR_GLOBAL const u64 *keys, u64 keys_at, u32 threshold, f32 scale, u32 site, u32 sample)
{
    mr_mask m;
    m.threshold = threshold;
    m.scale = scale;
    m.key0 = 0;
    m.key1 = 0;
    if (threshold) {
        u64 key = mr_mixed(mr_mixed(keys[keys_at + sample] + 0x9e3779b97f4a7c15UL) + site);
        m.key0 = (u32)key;
        m.key1 = (u32)(key >> 32);
    }
    return m;
}
#define MR_MASK_OF(sample) mr_mask_of(keys, keys_at, threshold, scale, site, sample)

/* What element e of the sample is multiplied by. */
MR_FN f32 mr_kept(mr_mask m, u32 e)
{
    if (!m.threshold)
        return 1;
    u32 x = e ^ m.key0;
    x ^= x >> 17;
    x *= 0xed5ad4bbU;
    x ^= x >> 11;
    x += m.key1;
    x *= 0xac4c1b51U;
    x ^= x >> 15;
    x *= 0x31848babU;
    x ^= x >> 14;
    return (x >> 8) < m.threshold ? 0.0F : m.scale;
}
