/* neon.c - the inner loops in NEON, which every aarch64 processor has.
 * Invariant: rows may be read and written up to MR_RESIZE_SLACK bytes past their end, except those of `down`.
 *
 * across: four rows at a time, as they share coefficients, which are put together again: a table lookup makes 32-bit
 * numbers r g b of a tap, so a tap takes one multiplication.  down: the halves of coefficients are cheaper, as they are
 * used once. */
#include "image/resize/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define FLAT static inline __attribute__((always_inline))

typedef struct sums {
    int32x4_t low, high;
} sums;

/* Adds four numbers times the coefficient that is split into lanes `tap` and `tap` + 2 of k. */
#define ADD(s, v, k, tap) ((sums){vmlal_lane_s16((s).low, v, k, tap), vmlal_lane_s16((s).high, v, k, (tap) + 2)})
#define ADD_HIGH(s, v, k, tap)                                                                                         \
    ((sums){vmlal_high_lane_s16((s).low, v, k, tap), vmlal_high_lane_s16((s).high, v, k, (tap) + 2)})

FLAT sums zero(void)
{
    return (sums){vdupq_n_s32(1 << (MR_RESIZE_BITS - 1)), vdupq_n_s32(0)}; /* rounds */
}

/* The upper 16 bits; 6 of the fraction's 22 are left to shift. */
FLAT int16x4_t settle(sums s)
{
    return vshrn_n_s32(vaddq_s32(s.low, vshlq_n_s32(s.high, MR_RESIZE_SPLIT)), 16);
}

FLAT int16x8_t widen(uint8x8_t v)
{
    return vreinterpretq_s16_u16(vmovl_u8(v));
}

/* Whole coefficients of two pairs of taps, or of one. */
FLAT int32x4_t factors_of(int16x8_t split)
{
    int32x4_t v = vreinterpretq_s32_s16(split);
    int16x4_t low = vget_low_s16(vreinterpretq_s16_s32(vuzp1q_s32(v, v)));
    int16x4_t high = vget_low_s16(vreinterpretq_s16_s32(vuzp2q_s32(v, v)));
    return vaddw_s16(vshll_n_s16(high, MR_RESIZE_SPLIT), low);
}

typedef struct places {
    uint8x16_t tap[4], squeeze; /* r g b . as 32-bit numbers; the lowest bytes of four such */
} places;

FLAT places make_places(void)
{
    static const uint8_t taps[4][16] = {
        {0, 255, 255, 255, 1, 255, 255, 255, 2, 255, 255, 255, 255, 255, 255, 255},
        {3, 255, 255, 255, 4, 255, 255, 255, 5, 255, 255, 255, 255, 255, 255, 255},
        {6, 255, 255, 255, 7, 255, 255, 255, 8, 255, 255, 255, 255, 255, 255, 255},
        {9, 255, 255, 255, 10, 255, 255, 255, 11, 255, 255, 255, 255, 255, 255, 255},
    };
    static const uint8_t squeeze[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 255, 255, 255, 255};
    return (places){{vld1q_u8(taps[0]), vld1q_u8(taps[1]), vld1q_u8(taps[2]), vld1q_u8(taps[3])}, vld1q_u8(squeeze)};
}

FLAT int32x4_t tap(uint8x16_t bytes, uint8x16_t place)
{
    return vreinterpretq_s32_u8(vqtbl1q_u8(bytes, place));
}

/* One output pixel of four rows. */
FLAT void pixels(const uint8_t *const rows[4], size_t from, const int16_t *k, size_t pairs, const places *at,
                 int16x4_t out[4])
{
    const int32x4_t half = vdupq_n_s32(1 << (MR_RESIZE_BITS - 1));
    int32x4_t s[4] = {half, half, half, half};
    size_t q = 0;
    for (; q + 2 <= pairs; q += 2, from += 12) {
        int32x4_t factors = factors_of(vld1q_s16(k + 4 * q));
        for (int i = 0; i < 4; i++) {
            uint8x16_t bytes = vld1q_u8(rows[i] + from);
            s[i] = vmlaq_laneq_s32(s[i], tap(bytes, at->tap[0]), factors, 0);
            s[i] = vmlaq_laneq_s32(s[i], tap(bytes, at->tap[1]), factors, 1);
            s[i] = vmlaq_laneq_s32(s[i], tap(bytes, at->tap[2]), factors, 2);
            s[i] = vmlaq_laneq_s32(s[i], tap(bytes, at->tap[3]), factors, 3);
        }
    }
    if (q < pairs) {
        int16x4_t split = vld1_s16(k + 4 * q);
        int32x4_t factors = factors_of(vcombine_s16(split, split));
        for (int i = 0; i < 4; i++) {
            uint8x16_t bytes = vld1q_u8(rows[i] + from);
            s[i] = vmlaq_laneq_s32(s[i], tap(bytes, at->tap[0]), factors, 0);
            s[i] = vmlaq_laneq_s32(s[i], tap(bytes, at->tap[1]), factors, 1);
        }
    }
    for (int i = 0; i < 4; i++)
        out[i] = vshrn_n_s32(s[i], 16);
}

FLAT void across_rows(const mr_resize_axis *axis, size_t pairs, const uint8_t *const rows[4], uint8_t *const out[4])
{
    const places at = make_places();
    for (size_t o = 0; o < axis->outputs; o += 4) {
        int16x4_t p[4][4];
        for (size_t i = 0; i < 4; i++) {
            size_t n = o + i < axis->outputs ? o + i : axis->outputs - 1;
            pixels(rows, (size_t)axis->start[n] * 3, axis->k + n * pairs * 4, pairs, &at, p[i]);
        }
        for (int i = 0; i < 4; i++) {
            uint8x8_t low = vqshrun_n_s16(vcombine_s16(p[0][i], p[1][i]), MR_RESIZE_BITS - 16);
            uint8x16_t v = vqshrun_high_n_s16(low, vcombine_s16(p[2][i], p[3][i]), MR_RESIZE_BITS - 16);
            vst1q_u8(out[i] + o * 3, vqtbl1q_u8(v, at.squeeze));
        }
    }
}

static void across(const mr_resize_axis *axis, const uint8_t *const rows[4], uint8_t *const out[4])
{
    if (axis->pairs == 1)
        across_rows(axis, 1, rows, out);
    else if (axis->pairs == 2)
        across_rows(axis, 2, rows, out);
    else if (axis->pairs == 3)
        across_rows(axis, 3, rows, out);
    else
        across_rows(axis, axis->pairs, rows, out);
}

/* 16 bytes of the weighted sum of rows. */
FLAT uint8x16_t down_16(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t x)
{
    sums s[4] = {zero(), zero(), zero(), zero()};
    for (size_t q = 0; q < pairs; q++, k += 4) {
        uint8x16_t a = vld1q_u8(rows[2 * q] + x), b = vld1q_u8(rows[2 * q + 1] + x);
        int16x8_t a0 = widen(vget_low_u8(a)), a1 = vreinterpretq_s16_u16(vmovl_high_u8(a));
        int16x8_t b0 = widen(vget_low_u8(b)), b1 = vreinterpretq_s16_u16(vmovl_high_u8(b));
        int16x4_t factors = vld1_s16(k);
        s[0] = ADD(s[0], vget_low_s16(a0), factors, 0);
        s[1] = ADD_HIGH(s[1], a0, factors, 0);
        s[2] = ADD(s[2], vget_low_s16(a1), factors, 0);
        s[3] = ADD_HIGH(s[3], a1, factors, 0);
        s[0] = ADD(s[0], vget_low_s16(b0), factors, 1);
        s[1] = ADD_HIGH(s[1], b0, factors, 1);
        s[2] = ADD(s[2], vget_low_s16(b1), factors, 1);
        s[3] = ADD_HIGH(s[3], b1, factors, 1);
    }
    uint8x8_t low = vqshrun_n_s16(vcombine_s16(settle(s[0]), settle(s[1])), MR_RESIZE_BITS - 16);
    return vqshrun_high_n_s16(low, vcombine_s16(settle(s[2]), settle(s[3])), MR_RESIZE_BITS - 16);
}

FLAT void down_row(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t len, uint8_t *out)
{
    for (size_t x = 0; x + 16 <= len; x += 16)
        vst1q_u8(out + x, down_16(k, pairs, rows, x));
    if (len >= 16) /* the last 16 bytes, which may overlap the previous ones */
        vst1q_u8(out + len - 16, down_16(k, pairs, rows, len - 16));
}

static void down(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t len, uint8_t *out)
{
    if (len < 16)
        mr_resize_plain.down(k, pairs, rows, len, out);
    else if (pairs == 1)
        down_row(k, 1, rows, len, out);
    else if (pairs == 2)
        down_row(k, 2, rows, len, out);
    else
        down_row(k, pairs, rows, len, out);
}

/* ---- normalised planes ---------------------------------------------------------------------------------------- */

typedef struct constants {
    float32x4_t unit, unit_rest, mean, inverse, rest;
} constants;

FLAT constants constants_of(const mr_resize_norm *n, size_t c)
{
    float inverse, rest;
    mr_resize_inverse(255.0f, &inverse, &rest);
    return (constants){vdupq_n_f32(inverse), vdupq_n_f32(rest), vdupq_n_f32(n->mean[c]), vdupq_n_f32(n->inverse[c]),
                       vdupq_n_f32(n->rest[c])};
}

FLAT float32x4_t normalised(uint16x4_t bytes, const constants *k)
{
    float32x4_t v = vcvtq_f32_u32(vmovl_u16(bytes));
    v = vsubq_f32(vfmaq_f32(vmulq_f32(v, k->unit_rest), v, k->unit), k->mean);
    return vfmaq_f32(vmulq_f32(v, k->rest), v, k->inverse);
}

/* The upper halves of four numbers, rounded to nearest, ties to even. */
FLAT uint16x4_t halves(float32x4_t v)
{
    uint32x4_t bits = vreinterpretq_u32_f32(v), odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vshrn_n_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd), 16);
}

static void spread_f32(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, float *out, size_t plane)
{
    const constants k[3] = {constants_of(n, 0), constants_of(n, 1), constants_of(n, 2)};
    size_t whole = n->quick ? pixels & ~(size_t)7 : 0;
    for (size_t x = 0; x < whole; x += 8) {
        uint8x8x3_t v = vld3_u8(rgb + x * 3);
        for (size_t c = 0; c < 3; c++) {
            uint16x8_t wide = vmovl_u8(v.val[c]);
            vst1q_f32(out + c * plane + x, normalised(vget_low_u16(wide), &k[c]));
            vst1q_f32(out + c * plane + x + 4, normalised(vget_high_u16(wide), &k[c]));
        }
    }
    mr_resize_plain.spread_f32(n, rgb + whole * 3, pixels - whole, out + whole, plane);
}

static void spread_bf16(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, uint16_t *out, size_t plane)
{
    const constants k[3] = {constants_of(n, 0), constants_of(n, 1), constants_of(n, 2)};
    size_t whole = n->quick ? pixels & ~(size_t)7 : 0;
    for (size_t x = 0; x < whole; x += 8) {
        uint8x8x3_t v = vld3_u8(rgb + x * 3);
        for (size_t c = 0; c < 3; c++) {
            uint16x8_t wide = vmovl_u8(v.val[c]);
            uint16x4_t low = halves(normalised(vget_low_u16(wide), &k[c]));
            vst1q_u16(out + c * plane + x, vcombine_u16(low, halves(normalised(vget_high_u16(wide), &k[c]))));
        }
    }
    mr_resize_plain.spread_bf16(n, rgb + whole * 3, pixels - whole, out + whole, plane);
}

const mr_resize_kernels mr_resize_neon = {
    .name = "neon",
    .needs = MR_NEON,
    .across = across,
    .down = down,
    .spread_f32 = spread_f32,
    .spread_bf16 = spread_bf16,
};

#endif
