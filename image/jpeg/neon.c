/* neon.c - the inner loops in NEON, which every aarch64 processor has.
 * Invariant: as in kernels.h; reads and writes past a row stay within the slack.
 *
 * Entropy decoding is that of plain C: its conditional moves are instructions of this processor, and compilers use
 * them. */
#include "image/jpeg/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <string.h>

#define FLAT static inline __attribute__((always_inline))

/* ---- entropy-coded bytes ----------------------------------------------------------------------------------------- */

static mr_jpeg_unstuffed unstuff(const uint8_t *in, size_t len, uint8_t *out)
{
    size_t i = 0, o = 0;
    while (len - i >= 17) {
        uint8x16_t v = vld1q_u8(in + i);
        /* Four bits a byte, as there is no instruction for one. */
        uint8x8_t found = vshrn_n_u16(vreinterpretq_u16_u8(vceqq_u8(v, vdupq_n_u8(0xFF))), 4);
        uint64_t nibbles = vget_lane_u64(vreinterpret_u64_u8(found), 0);
        vst1q_u8(out + o, v);
        if (!nibbles) {
            i += 16;
            o += 16;
            continue;
        }
        size_t before = (size_t)__builtin_ctzll(nibbles) / 4;
        i += before;
        o += before;
        if (in[i + 1])
            return (mr_jpeg_unstuffed){i, o};
        i += 2;
        o++; /* FF itself is stored */
    }
    mr_jpeg_unstuffed rest = mr_jpeg_plain.unstuff(in + i, len - i, out + o);
    return (mr_jpeg_unstuffed){i + rest.taken, o + rest.given};
}

/* ---- inverse DCT: ISLOW, as in plain.c --------------------------------------------------------------------------- */

typedef struct wide { /* 32-bit numbers of lanes 0 to 3, and 4 to 7 */
    int32x4_t low, high;
} wide;

FLAT wide times(int16x8_t x, int16_t k)
{
    return (wide){vmull_n_s16(vget_low_s16(x), k), vmull_high_n_s16(x, k)};
}

FLAT wide plus(wide sum, int16x8_t x, int16_t k)
{
    return (wide){vmlal_n_s16(sum.low, vget_low_s16(x), k), vmlal_high_n_s16(sum.high, x, k)};
}

/* x * 2^13 and what makes the later shift round. */
FLAT wide scaled(int16x8_t x, int32_t half)
{
    const int32x4_t round = vdupq_n_s32(half);
    return (wide){vaddq_s32(vshll_n_s16(vget_low_s16(x), 13), round), vaddq_s32(vshll_high_n_s16(x, 13), round)};
}

/* Sum and difference, shifted by 11 bits with saturation, or by 16 of 18. */
FLAT void ends(int16x8_t r[8], int i, wide even, wide odd, bool columns)
{
    if (columns) {
        r[i] = vqshrn_high_n_s32(vqshrn_n_s32(vaddq_s32(even.low, odd.low), 11), vaddq_s32(even.high, odd.high), 11);
        r[7 - i] =
            vqshrn_high_n_s32(vqshrn_n_s32(vsubq_s32(even.low, odd.low), 11), vsubq_s32(even.high, odd.high), 11);
    } else {
        r[i] = vaddhn_high_s32(vaddhn_s32(even.low, odd.low), even.high, odd.high);
        r[7 - i] = vsubhn_high_s32(vsubhn_s32(even.low, odd.low), even.high, odd.high);
    }
}

/* One pass over columns or over rows, a register for each place; with `few`, places 4 to 7 are zero. */
FLAT void pass(int16x8_t r[8], bool columns, bool few)
{
    const int32_t half = columns ? 1 << 10 : 1 << 17;
    wide low = scaled(few ? r[0] : vaddq_s16(r[0], r[4]), half),
         high = scaled(few ? r[0] : vsubq_s16(r[0], r[4]), half);
    wide e2 = times(r[2], 4433), e3 = times(r[2], 4433 + 6270);
    int16x8_t z3 = few ? r[3] : vaddq_s16(r[7], r[3]), z4 = few ? r[1] : vaddq_s16(r[5], r[1]);
    wide a = plus(times(z3, 9633 - 16069), z4, 9633), b = plus(times(z3, 9633), z4, 9633 - 3196);
    wide odd0 = plus(b, r[1], 12299 - 7373), odd1 = plus(a, r[3], 25172 - 20995);
    wide odd2 = plus(b, r[3], -20995), odd3 = plus(a, r[1], -7373);
    if (!few) {
        e2 = plus(e2, r[6], 4433 - 15137);
        e3 = plus(e3, r[6], 4433);
        odd0 = plus(odd0, r[7], -7373);
        odd1 = plus(odd1, r[5], -20995);
        odd2 = plus(odd2, r[5], 16819 - 20995);
        odd3 = plus(odd3, r[7], 2446 - 7373);
    }
    ends(r, 0, (wide){vaddq_s32(low.low, e3.low), vaddq_s32(low.high, e3.high)}, odd0, columns);
    ends(r, 1, (wide){vaddq_s32(high.low, e2.low), vaddq_s32(high.high, e2.high)}, odd1, columns);
    ends(r, 2, (wide){vsubq_s32(high.low, e2.low), vsubq_s32(high.high, e2.high)}, odd2, columns);
    ends(r, 3, (wide){vsubq_s32(low.low, e3.low), vsubq_s32(low.high, e3.high)}, odd3, columns);
}

FLAT int16x8_t pairs32(int16x8_t a, int16x8_t b, bool second)
{
    int32x4_t x = vreinterpretq_s32_s16(a), y = vreinterpretq_s32_s16(b);
    return vreinterpretq_s16_s32(second ? vtrn2q_s32(x, y) : vtrn1q_s32(x, y));
}

FLAT int16x8_t pairs64(int16x8_t a, int16x8_t b, bool second)
{
    int64x2_t x = vreinterpretq_s64_s16(a), y = vreinterpretq_s64_s16(b);
    return vreinterpretq_s16_s64(second ? vtrn2q_s64(x, y) : vtrn1q_s64(x, y));
}

/* Rows become columns; with `few`, only the first four are made. */
FLAT void transpose(int16x8_t r[8], bool few)
{
    int16x8_t t[8], u[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = vtrn1q_s16(r[i], r[i + 1]);
        t[i + 1] = vtrn2q_s16(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            u[i + k] = pairs32(t[i + k], t[i + k + 2], false);
            u[i + k + 2] = pairs32(t[i + k], t[i + k + 2], true);
        }
    for (int i = 0; i < 4; i++) {
        r[i] = pairs64(u[i], u[i + 4], false);
        if (!few)
            r[i + 4] = pairs64(u[i], u[i + 4], true);
    }
}

/* Columns of 16-bit samples become eight rows of bytes. */
FLAT void put_columns(const int16x8_t c[8], uint8_t *out, size_t stride)
{
    uint8x16_t pair[4]; /* columns i and i + 4 */
    for (int i = 0; i < 4; i++)
        pair[i] =
            veorq_u8(vreinterpretq_u8_s8(vqshrn_high_n_s16(vqshrn_n_s16(c[i], 2), c[i + 4], 2)), vdupq_n_u8(0x80));
    uint16x8_t a = vreinterpretq_u16_u8(vtrn1q_u8(pair[0], pair[1])),
               b = vreinterpretq_u16_u8(vtrn2q_u8(pair[0], pair[1]));
    uint16x8_t c2 = vreinterpretq_u16_u8(vtrn1q_u8(pair[2], pair[3])),
               d = vreinterpretq_u16_u8(vtrn2q_u8(pair[2], pair[3]));
    const uint32x4_t rows[4] = {
        vreinterpretq_u32_u16(vtrn1q_u16(a, c2)), /* halves of rows 0 and 4, for columns 0 to 3, then 4 to 7 */
        vreinterpretq_u32_u16(vtrn1q_u16(b, d)),
        vreinterpretq_u32_u16(vtrn2q_u16(a, c2)),
        vreinterpretq_u32_u16(vtrn2q_u16(b, d)),
    };
    for (size_t i = 0; i < 4; i++) {
        uint32x4_t whole = vuzp1q_u32(rows[i], rows[i]), other = vuzp2q_u32(rows[i], rows[i]);
        vst1_u8(out + i * stride, vreinterpret_u8_u32(vget_low_u32(whole)));
        vst1_u8(out + (i + 4) * stride, vreinterpret_u8_u32(vget_low_u32(other)));
    }
}

/* A block with only its mean: saturation, rounding and the wrap of the first pass as in the general case. */
static void fill(int16_t *block, int quant, uint8_t *out, size_t stride)
{
    int v = ((int16_t)(uint16_t)((uint32_t)(int16_t)(uint16_t)(uint32_t)(block[0] * quant) * 4) + 16) >> 5;
    v = v < -128 ? -128 : v > 127 ? 127 : v;
    uint8x8_t row = vdup_n_u8((uint8_t)(v + 128));
    for (size_t y = 0; y < 8; y++)
        vst1_u8(out + y * stride, row);
    block[0] = 0;
}

FLAT void transform(int16_t *block, const int16_t quant[64], uint8_t *out, size_t stride, bool few)
{
    int16x8_t r[8];
    const int16x8_t zero = vdupq_n_s16(0);
    for (size_t i = 0; i < 8; i++)
        r[i] = few && i >= 4 ? zero : vmulq_s16(vld1q_s16(block + 8 * i), vld1q_s16(quant + 8 * i));
    /* Where four times the first row exceeds 16 bits, a block of one row wraps instead of saturating. */
    if (!vminvq_u16(vceqq_s16(vshrq_n_s16(vshlq_n_s16(r[0], 2), 2), r[0]))) {
        mr_jpeg_plain.idct(&block, 1, quant, out, stride);
        return;
    }
    for (size_t i = 0; i < (few ? 32 : 64); i += 8)
        vst1q_s16(block + i, zero);
    pass(r, true, few);
    transpose(r, few);
    pass(r, false, few);
    put_columns(r, out, stride);
}

enum { FEW = 10 }; /* zigzag places in the upper left 4 x 4 coefficients */

static void idct(int16_t *const *block, unsigned count, const int16_t quant[64], uint8_t *out, size_t stride)
{
    for (unsigned i = 0; i < count; i++, out += 8) {
        int used = block[i][MR_JPEG_USED];
        if (used <= 1)
            fill(block[i], quant[0], out, stride);
        else if (used <= FEW)
            transform(block[i], quant, out, stride, true);
        else
            transform(block[i], quant, out, stride, false);
    }
}

/* ---- fancy upsampling -------------------------------------------------------------------------------------------- */

static void across(const uint8_t *row, size_t count, uint8_t *out)
{
    const uint8x8_t three = vdup_n_u8(3);
    for (size_t i = 0; i < count; i += 8, row += 8, out += 16) {
        uint16x8_t v = vmull_u8(vld1_u8(row), three);
        uint16x8_t even = vaddq_u16(vaddw_u8(v, vld1_u8(row - 1)), vdupq_n_u16(1)), odd = vaddw_u8(v, vld1_u8(row + 1));
        vst2_u8(out, (uint8x8x2_t){{vshrn_n_u16(even, 2), vrshrn_n_u16(odd, 2)}});
    }
}

FLAT uint16x8_t column_sums(const uint8_t *near, const uint8_t *far)
{
    return vmlal_u8(vmovl_u8(vld1_u8(far)), vld1_u8(near), vdup_n_u8(3));
}

static void across_between(const uint8_t *near, const uint8_t *far, size_t count, uint8_t *out)
{
    uint16x8_t last = vdupq_n_u16((uint16_t)(3 * near[-1] + far[-1])), this = column_sums(near, far);
    for (size_t i = 0; i < count; i += 8, out += 16) {
        uint16x8_t next = column_sums(near + i + 8, far + i + 8);
        uint16x8_t even = vmlaq_n_u16(vextq_u16(last, this, 7), this, 3);
        uint16x8_t odd = vaddq_u16(vmlaq_n_u16(vextq_u16(this, next, 1), this, 3), vdupq_n_u16(7));
        vst2_u8(out, (uint8x8x2_t){{vrshrn_n_u16(even, 4), vshrn_n_u16(odd, 4)}});
        last = this;
        this = next;
    }
}

static void between(const uint8_t *near, const uint8_t *far, unsigned bias, size_t count, uint8_t *out)
{
    const uint16x8_t b = vdupq_n_u16((uint16_t)bias);
    for (size_t i = 0; i < count; i += 8)
        vst1_u8(out + i, vshrn_n_u16(vaddq_u16(column_sums(near + i, far + i), b), 2));
}

/* ---- colour ------------------------------------------------------------------------------------------------------ */

/* 1.402 x = x + 0.402 x and 1.772 x = 2 x - 0.228 x: the fractions, x k + 2^15 >> 16, as (2 x k >> 16) + 1 >> 1. */
FLAT int16x8_t fraction(int16x8_t x, int16_t k)
{
    return vrshrq_n_s16(vqdmulhq_n_s16(x, k), 1);
}

/* -0.34414 b - 0.71414 r = -0.34414 b + 0.28586 r - r. */
FLAT int16x8_t green(int16x8_t b, int16x8_t r)
{
    wide v = plus(times(b, -22554), r, 18734);
    return vsubq_s16(vrshrn_high_n_s32(vrshrn_n_s32(v.low, 16), v.high, 16), r);
}

typedef struct colours {
    uint8x8_t red, green, blue;
} colours;

FLAT colours colours_of(uint8x8_t y, uint8x8_t cb, uint8x8_t cr)
{
    const uint8x8_t middle = vdup_n_u8(128);
    int16x8_t luma = vreinterpretq_s16_u16(vmovl_u8(y));
    int16x8_t b = vreinterpretq_s16_u16(vsubl_u8(cb, middle)), r = vreinterpretq_s16_u16(vsubl_u8(cr, middle));
    return (colours){vqmovun_s16(vaddq_s16(vaddq_s16(luma, r), fraction(r, 26345))),
                     vqmovun_s16(vaddq_s16(luma, green(b, r))),
                     vqmovun_s16(vaddq_s16(vaddq_s16(luma, vaddq_s16(b, b)), fraction(b, -14942)))};
}

FLAT void some_pixels(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out)
{
    uint8x16_t luma = vld1q_u8(y), blue = vld1q_u8(cb), red = vld1q_u8(cr);
    colours a = colours_of(vget_low_u8(luma), vget_low_u8(blue), vget_low_u8(red));
    colours b = colours_of(vget_high_u8(luma), vget_high_u8(blue), vget_high_u8(red));
    vst3q_u8(out,
             (uint8x16x3_t){{vcombine_u8(a.red, b.red), vcombine_u8(a.green, b.green), vcombine_u8(a.blue, b.blue)}});
}

enum { PIXELS = 16 };

static void rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *out)
{
    if (count < PIXELS) {
        uint8_t few[3 * PIXELS];
        some_pixels(y, cb, cr, few);
        memcpy(out, few, 3 * count);
        return;
    }
    for (size_t i = 0; i < count; i += PIXELS) {
        size_t at = i + PIXELS <= count ? i : count - PIXELS; /* the last ones may overlap the previous ones */
        some_pixels(y + at, cb + at, cr + at, out + 3 * at);
    }
}

const mr_jpeg_kernels mr_jpeg_neon = {
    .name = "neon",
    .needs = MR_NEON,
    .unstuff = unstuff,
    .store = mr_jpeg_plain_store,
    .skip = mr_jpeg_plain_skip,
    .store_two = mr_jpeg_plain_store_two,
    .skip_two = mr_jpeg_plain_skip_two,
    .idct = idct,
    .across = across,
    .across_between = across_between,
    .between = between,
    .rgb = rgb,
};

#endif
