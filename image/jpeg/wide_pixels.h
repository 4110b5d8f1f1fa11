/* wide_pixels.h - private to avx2.c and avx512.c: upsampling and colour conversion of a register of samples at a time.
 * Invariant: as in kernels.h; reads and writes past a row stay within the slack.
 *
 * Must be defined before it is included: wide_idct.h and what that needs; load_half(), half a register of bytes as
 * 16-bit numbers; interleave(), three registers of colours to pixels. */
#ifndef MR_JPEG_WIDE_PIXELS_H
#define MR_JPEG_WIDE_PIXELS_H

#include "image/jpeg/kernels.h"

#ifdef WIDE
#include <string.h>

enum { BYTES = sizeof(vec) };

FLAT vec thrice(vec v)
{
    return OP(add_epi16)(v, OP(add_epi16)(v, v));
}

/* ---- fancy upsampling -------------------------------------------------------------------------------------------- */

/* Bytes in the low halves of 16-bit numbers, even and odd ones of a row. */
FLAT void put_pairs(vec even, vec odd, uint8_t *out)
{
    SI(storeu)((vec *)(void *)out, SI(or)(even, OP(slli_epi16)(odd, 8)));
}

WIDE static void across(const uint8_t *row, size_t count, uint8_t *out)
{
    const vec one = OP(set1_epi16)(1), two = OP(set1_epi16)(2);
    for (size_t i = 0; i < count; i += BYTES / 2, row += BYTES / 2, out += BYTES) {
        vec v = thrice(load_half(row));
        vec even = OP(add_epi16)(OP(add_epi16)(v, load_half(row - 1)), one);
        vec odd = OP(add_epi16)(OP(add_epi16)(v, load_half(row + 1)), two);
        put_pairs(OP(srli_epi16)(even, 2), OP(srli_epi16)(odd, 2), out);
    }
}

FLAT vec column_sums(const uint8_t *near, const uint8_t *far)
{
    return OP(add_epi16)(thrice(load_half(near)), load_half(far));
}

WIDE static void across_between(const uint8_t *near, const uint8_t *far, size_t count, uint8_t *out)
{
    const vec seven = OP(set1_epi16)(7), eight = OP(set1_epi16)(8);
    for (size_t i = 0; i < count; i += BYTES / 2, near += BYTES / 2, far += BYTES / 2, out += BYTES) {
        vec v = thrice(column_sums(near, far));
        vec even = OP(add_epi16)(OP(add_epi16)(v, column_sums(near - 1, far - 1)), eight);
        vec odd = OP(add_epi16)(OP(add_epi16)(v, column_sums(near + 1, far + 1)), seven);
        put_pairs(OP(srli_epi16)(even, 4), OP(srli_epi16)(odd, 4), out);
    }
}

typedef struct two { /* bytes as 16-bit numbers: those of the lanes' low halves, and of the high ones */
    vec low, high;
} two;

FLAT two load(const uint8_t *p)
{
    const vec zero = {0}, v = SI(loadu)((const vec *)(const void *)p);
    return (two){OP(unpacklo_epi8)(v, zero), OP(unpackhi_epi8)(v, zero)};
}

WIDE static void between(const uint8_t *near, const uint8_t *far, unsigned bias, size_t count, uint8_t *out)
{
    const vec b = OP(set1_epi16)((short)bias);
    for (size_t i = 0; i < count; i += BYTES) {
        two n = load(near + i), f = load(far + i);
        vec low = OP(add_epi16)(OP(add_epi16)(thrice(n.low), f.low), b);
        vec high = OP(add_epi16)(OP(add_epi16)(thrice(n.high), f.high), b);
        SI(storeu)((vec *)(void *)(out + i), OP(packus_epi16)(OP(srli_epi16)(low, 2), OP(srli_epi16)(high, 2)));
    }
}

/* ---- colour ------------------------------------------------------------------------------------------------------ */

/* 1.402 x = x + 0.402 x and 1.772 x = 2 x - 0.228 x: the fractions as the upper half of a product, rounded:
 * (2 x k >> 16) + 1 >> 1 is x k + 2^15 >> 16. */
FLAT vec fraction(vec x, int k)
{
    vec v = OP(mulhi_epi16)(OP(add_epi16)(x, x), OP(set1_epi16)((short)k));
    return OP(srai_epi16)(OP(add_epi16)(v, OP(set1_epi16)(1)), 1);
}

/* -0.34414 b - 0.71414 r = -0.34414 b + 0.28586 r - r. */
FLAT vec green(vec b, vec r)
{
    const vec k = OP(set1_epi32)((int)(18734u << 16 | (uint16_t)-22554)), half = OP(set1_epi32)(1 << 15);
    vec low = dots(half, OP(unpacklo_epi16)(b, r), k), high = dots(half, OP(unpackhi_epi16)(b, r), k);
    return OP(sub_epi16)(OP(packs_epi32)(OP(srai_epi32)(low, 16), OP(srai_epi32)(high, 16)), r);
}

typedef struct colours {
    vec red, green, blue;
} colours;

FLAT colours colours_of(vec luma, vec cb, vec cr)
{
    const vec middle = OP(set1_epi16)(128);
    vec b = OP(sub_epi16)(cb, middle), r = OP(sub_epi16)(cr, middle);
    return (colours){OP(add_epi16)(OP(add_epi16)(luma, r), fraction(r, 26345)), OP(add_epi16)(luma, green(b, r)),
                     OP(add_epi16)(OP(add_epi16)(luma, OP(add_epi16)(b, b)), fraction(b, -14942))};
}

FLAT void some_pixels(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out)
{
    two luma = load(y), blue = load(cb), red = load(cr);
    colours a = colours_of(luma.low, blue.low, red.low), b = colours_of(luma.high, blue.high, red.high);
    interleave(OP(packus_epi16)(a.red, b.red), OP(packus_epi16)(a.green, b.green), OP(packus_epi16)(a.blue, b.blue),
               out);
}

WIDE static void rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *out)
{
    if (count < BYTES) {
        uint8_t few[3 * BYTES];
        some_pixels(y, cb, cr, few);
        memcpy(out, few, 3 * count);
        return;
    }
    for (size_t i = 0; i < count; i += BYTES) {
        size_t at = i + BYTES <= count ? i : count - BYTES; /* the last register may overlap the previous one */
        some_pixels(y + at, cb + at, cr + at, out + 3 * at);
    }
}

#endif
#endif
