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

/* ---- sums over a group ------------------------------------------------------------------------------------------ */

/* The sum of x over the lanes of a group, for every lane; part: f32[MR_WIDTH]. */
MR_FN f32 mr_group_sum(MR_NEAR f32 *part, f32 x)
{
    u32 lane = MR_LANE();
    part[lane] = x;
    MR_BARRIER();
    for (u32 apart = MR_WIDTH / 2; apart; apart >>= 1) {
        if (lane < apart)
            part[lane] += part[lane + apart];
        MR_BARRIER();
    }
    f32 sum = part[0];
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
