/* wide_idct.h - private to avx2.c and avx512.c: the inverse DCT of as many blocks at a time as a register has lanes.
 * Invariant: as in kernels.h; coefficients that would wrap before the first pass are left to plain C.
 *
 * These must be defined before it is included, otherwise it is empty:
 *      WIDE            the attribute of the instructions' target      vec            a register
 *      OP(f), SI(f)    names of intrinsics: _mm256_f, _mm256_f_si256  LANES          of 128 bits, that it has
 *      dots()          32-bit numbers + sums of two 16-bit products   every_lane()   the same in all lanes
 *      swap_pairs()    the halves of 32-bit numbers                   row_of_lanes() a row of each block
 *      wraps()         whether a number times 4 exceeds 16 bits       put_two_rows() of 8 bytes per lane
 *
 * A lane holds one row of one block.  A pass takes rows 0 4, 2 6, 7 1, 3 5 interleaved for pmaddwd; so 7 + 3 and 1 + 5
 * are one sum, and pairs are transposed between the passes:
 *
 *      rows 2 and 6     a0 a1 ... a7 | b0 b1 ... b7      a0' ... | b0' ...
 *      low              a0 a0' a1 a1' a2 a2' a3 a3' | b0 b0' ...       pmaddwd with k k':  sums of columns 0 to 3 */
#ifndef MR_JPEG_WIDE_IDCT_H
#define MR_JPEG_WIDE_IDCT_H

#include "image/jpeg/kernels.h"

#ifdef WIDE
#define FLAT WIDE static inline __attribute__((always_inline))

typedef struct wide { /* 32-bit numbers of columns 0 to 3, and 4 to 7 */
    vec low, high;
} wide;

FLAT vec factors(int ka, int kb)
{
    return OP(set1_epi32)((int)((uint32_t)kb << 16 | (uint16_t)ka));
}

FLAT wide products(wide pairs, int ka, int kb)
{
    const vec k = factors(ka, kb);
    return (wide){OP(madd_epi16)(pairs.low, k), OP(madd_epi16)(pairs.high, k)};
}

FLAT wide plus_products(wide sum, wide pairs, int ka, int kb)
{
    const vec k = factors(ka, kb);
    return (wide){dots(sum.low, pairs.low, k), dots(sum.high, pairs.high, k)};
}

FLAT wide add(wide a, wide b)
{
    return (wide){OP(add_epi32)(a.low, b.low), OP(add_epi32)(a.high, b.high)};
}

FLAT wide subtract(wide a, wide b)
{
    return (wide){OP(sub_epi32)(a.low, b.low), OP(sub_epi32)(a.high, b.high)};
}

FLAT vec narrow(wide a, int shift)
{
    return OP(packs_epi32)(OP(srai_epi32)(a.low, shift), OP(srai_epi32)(a.high, shift));
}

FLAT void ends(vec r[8], int i, wide even, wide odd, int shift)
{
    r[i] = narrow(add(even, odd), shift);
    r[7 - i] = narrow(subtract(even, odd), shift);
}

FLAT wide interleave_rows(vec a, vec b)
{
    return (wide){OP(unpacklo_epi16)(a, b), OP(unpackhi_epi16)(a, b)};
}

/* Row 0 + row 4, and row 0 - row 4, in 16 bits that wrap. */
FLAT void sum_and_difference(wide pair, wide *sum, wide *difference)
{
    vec low = swap_pairs(pair.low), high = swap_pairs(pair.high);
    *sum = (wide){OP(add_epi16)(pair.low, low), OP(add_epi16)(pair.high, high)};
    *difference = (wide){OP(sub_epi16)(pair.low, low), OP(sub_epi16)(pair.high, high)};
}

/* One pass: pairs of rows become rows. With `few` the rows 4 to 7 are zero. */
FLAT void pass(const wide pair[4], vec r[8], int shift, bool few)
{
    const vec half = OP(set1_epi32)(1 << (shift - 1));
    const wide round = {half, half}, r26 = pair[1], r71 = pair[2], r35 = pair[3];
    wide sum = pair[0], difference = pair[0];
    if (!few)
        sum_and_difference(pair[0], &sum, &difference);
    wide low = plus_products(round, sum, 8192, 0), high = few ? low : plus_products(round, difference, 8192, 0);
    wide e2 = products(r26, 4433, 4433 - 15137), e3 = products(r26, 4433 + 6270, 4433);
    wide z = {OP(add_epi16)(r71.low, r35.low), OP(add_epi16)(r71.high, r35.high)};
    wide a = products(z, 9633 - 16069, 9633), b = products(z, 9633, 9633 - 3196);
    ends(r, 0, add(low, e3), plus_products(b, r71, -7373, 12299 - 7373), shift);
    ends(r, 1, add(high, e2), plus_products(a, r35, 25172 - 20995, -20995), shift);
    ends(r, 2, subtract(high, e2), plus_products(b, r35, -20995, 16819 - 20995), shift);
    ends(r, 3, subtract(low, e3), plus_products(a, r71, 2446 - 7373, -7373), shift);
}

/* Pairs of four rows become registers of a pair each. */
FLAT void turn_four(const vec r[4], vec out[4])
{
    vec a = OP(unpacklo_epi32)(r[0], r[1]), b = OP(unpacklo_epi32)(r[2], r[3]);
    vec c = OP(unpackhi_epi32)(r[0], r[1]), d = OP(unpackhi_epi32)(r[2], r[3]);
    out[0] = OP(unpacklo_epi64)(a, b);
    out[1] = OP(unpackhi_epi64)(a, b);
    out[2] = OP(unpacklo_epi64)(c, d);
    out[3] = OP(unpackhi_epi64)(c, d);
}

/* Rows become pairs of columns; with `few` the columns 4 to 7 are taken as zero. */
FLAT void transpose(vec r[8], wide pair[4], bool few)
{
    const vec paired = every_lane(few ? _mm_setr_epi8(0, 1, -1, -1, 4, 5, -1, -1, -1, -1, 2, 3, 6, 7, -1, -1)
                                      : _mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, 14, 15, 2, 3, 6, 7, 10, 11));
    vec low[4], high[4];
    for (int i = 0; i < 8; i++)
        r[i] = OP(shuffle_epi8)(r[i], paired);
    turn_four(r, low);
    turn_four(r + 4, high);
    for (int i = 0; i < 4; i++)
        pair[i] = (wide){low[i], high[i]};
}

/* Columns of 16-bit samples become rows of bytes: rows 2i and 2i + 1 of each block. */
FLAT void turn_columns(const vec c[8], vec rows[4])
{
    const vec middle = OP(set1_epi8)(-128);
    vec p04 = OP(packs_epi16)(c[0], c[4]), p15 = OP(packs_epi16)(c[1], c[5]);
    vec p26 = OP(packs_epi16)(c[2], c[6]), p37 = OP(packs_epi16)(c[3], c[7]);
    vec s02 = OP(unpacklo_epi8)(p04, p26), s46 = OP(unpackhi_epi8)(p04, p26);
    vec s13 = OP(unpacklo_epi8)(p15, p37), s57 = OP(unpackhi_epi8)(p15, p37);
    vec t0 = OP(unpacklo_epi8)(s02, s13), t1 = OP(unpackhi_epi8)(s02, s13);
    vec t2 = OP(unpacklo_epi8)(s46, s57), t3 = OP(unpackhi_epi8)(s46, s57);
    rows[0] = SI(xor)(OP(unpacklo_epi32)(t0, t2), middle);
    rows[1] = SI(xor)(OP(unpackhi_epi32)(t0, t2), middle);
    rows[2] = SI(xor)(OP(unpacklo_epi32)(t1, t3), middle);
    rows[3] = SI(xor)(OP(unpackhi_epi32)(t1, t3), middle);
}

FLAT void clear(int16_t *block, size_t rows)
{
    for (size_t i = 0; i < rows * 8; i += 16)
        _mm256_store_si256((__m256i *)(block + i), _mm256_setzero_si256());
}

/* A block with only its mean: saturation, rounding and the wrap of the first pass as in the general case. */
WIDE static void fill(int16_t *block, int quant, uint8_t *out, size_t stride)
{
    int v = ((int16_t)(uint16_t)((uint32_t)(int16_t)(uint16_t)(uint32_t)(block[0] * quant) * 4) + 16) >> 5;
    v = v < -128 ? -128 : v > 127 ? 127 : v;
    __m128i row = _mm_set1_epi8((char)(v + 128));
    for (size_t y = 0; y < 8; y++)
        _mm_storel_epi64((__m128i *)(out + y * stride), row);
    block[0] = 0;
}

FLAT vec row_of(int16_t *const *block, const int16_t *quant, size_t i)
{
    return OP(mullo_epi16)(row_of_lanes(block, i), every_lane(_mm_loadu_si128((const __m128i *)(quant + 8 * i))));
}

/* With `few` only rows and columns 0 to 3 are nonzero. */
FLAT void transform_lanes(int16_t *const block[LANES], const int16_t quant[64], uint8_t *out, size_t stride, bool few)
{
    const vec zero = {0}, r0 = row_of(block, quant, 0);
    if (wraps(r0)) {
        mr_jpeg_plain.idct(block, LANES, quant, out, stride);
        return;
    }
    vec r[8], rows[4];
    vec r4 = few ? zero : row_of(block, quant, 4), r5 = few ? zero : row_of(block, quant, 5);
    vec r6 = few ? zero : row_of(block, quant, 6), r7 = few ? zero : row_of(block, quant, 7);
    wide pair[4] = {interleave_rows(r0, r4), interleave_rows(row_of(block, quant, 2), r6),
                    interleave_rows(r7, row_of(block, quant, 1)), interleave_rows(row_of(block, quant, 3), r5)};
    for (size_t i = 0; few && i < 4; i++)
        pair[i].high = pair[i].low; /* initialised, though transpose() does not read it */
    for (size_t i = 0; i < LANES; i++)
        clear(block[i], few ? 4 : 8);
    pass(pair, r, 11, few);
    transpose(r, pair, few);
    pass(pair, r, 18, few);
    turn_columns(r, rows);
    for (size_t i = 0; i < 4; i++)
        put_two_rows(rows[i], out + 2 * i * stride, stride);
}

enum { FEW = 10 }; /* zigzag places in the upper left 4 x 4 coefficients */

/* Lanes left after the last block repeat it, and their samples go into the rows' slack. */
WIDE static void idct(int16_t *const *block, unsigned count, const int16_t quant[64], uint8_t *out, size_t stride)
{
    for (unsigned at = 0; at < count; at += LANES, out += 8 * LANES) {
        unsigned used = 1;
        int16_t *lanes[LANES];
        for (unsigned i = 0; i < LANES; i++) {
            lanes[i] = block[at + i < count ? at + i : count - 1];
            used = (unsigned)lanes[i][MR_JPEG_USED] > used ? (unsigned)lanes[i][MR_JPEG_USED] : used;
        }
        if (used == 1) {
            for (unsigned i = 0; i < LANES; i++)
                fill(lanes[i], quant[0], out + 8 * i, stride);
        } else if (used <= FEW) {
            transform_lanes(lanes, quant, out, stride, true);
        } else {
            transform_lanes(lanes, quant, out, stride, false);
        }
    }
}

#endif
#endif
