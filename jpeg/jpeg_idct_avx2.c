/* jpeg_idct_avx2.c - the inverse DCT of two blocks at a time in AVX2.
 * Invariant: as in jpeg_kernels.h; coefficients that would wrap before the first pass are given to plain C.
 *
 * A register holds one row of two blocks, one a half.  Products of two neighbours are summed in 32 bits:
 *
 *      row 2 of block a   a0 a1 ... a7 | b0 b1 ... b7        row 6   a0' ... | b0' ...
 *      interleaved        a0 a0' a1 a1' a2 a2' a3 a3' | b0 b0' ...        pmaddwd with k k'   sums of columns 0 to 3
 */
#include "jpeg_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

typedef struct wide {                           /* 32-bit numbers of columns 0 to 3, and 4 to 7 */
    __m256i low, high;
} wide;

AVX2 static inline wide products(__m256i a, __m256i b, int ka, int kb)
{
    const __m256i k = _mm256_set1_epi32((int)((uint32_t)kb << 16 | (uint16_t)ka));
    return (wide){_mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), k), _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), k)};
}

AVX2 static inline wide add(wide a, wide b)
{
    return (wide){_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

AVX2 static inline wide subtract(wide a, wide b)
{
    return (wide){_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

AVX2 static inline wide times_8192(__m256i a)
{
    const __m256i zero = _mm256_setzero_si256();
    return (wide){_mm256_srai_epi32(_mm256_unpacklo_epi16(zero, a), 3),
                  _mm256_srai_epi32(_mm256_unpackhi_epi16(zero, a), 3)};
}

AVX2 static inline __m256i narrow(wide a, int shift)
{
    return _mm256_packs_epi32(_mm256_srai_epi32(a.low, shift), _mm256_srai_epi32(a.high, shift));
}

AVX2 static inline __attribute__((always_inline)) void ends(__m256i r[8], int i, wide even, wide odd, int shift)
{
    r[i] = narrow(add(even, odd), shift);
    r[7 - i] = narrow(subtract(even, odd), shift);
}

/* One pass, along the registers; `half` rounds. With `few` the rows 4 to 7 are zero. */
AVX2 static inline __attribute__((always_inline)) void pass(__m256i r[8], int shift, bool few)
{
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1)), zero = _mm256_setzero_si256();
    __m256i r4 = few ? zero : r[4], r5 = few ? zero : r[5], r6 = few ? zero : r[6], r7 = few ? zero : r[7];
    wide e2 = products(r[2], r6, 4433, 4433 - 15137), e3 = products(r[2], r6, 4433 + 6270, 4433);
    wide low = times_8192(_mm256_add_epi16(r[0], r4)), high = few ? low : times_8192(_mm256_sub_epi16(r[0], r4));
    const wide round = {half, half};
    low = add(low, round);
    high = add(high, round);
    __m256i z3 = _mm256_add_epi16(r7, r[3]), z4 = _mm256_add_epi16(r5, r[1]);
    wide a = products(z3, z4, 9633 - 16069, 9633), b = products(z3, z4, 9633, 9633 - 3196);
    const wide even[4] = {add(low, e3), add(high, e2), subtract(high, e2), subtract(low, e3)};
    const wide odd[4] = {
        add(products(r7, r[1], -7373, 12299 - 7373), b), add(products(r5, r[3], -20995, 25172 - 20995), a),
        add(products(r5, r[3], 16819 - 20995, -20995), b), add(products(r7, r[1], 2446 - 7373, -7373), a),
    };
    ends(r, 0, even[0], odd[0], shift);
    ends(r, 1, even[1], odd[1], shift);
    ends(r, 2, even[2], odd[2], shift);
    ends(r, 3, even[3], odd[3], shift);
}

/* Four rows become the columns 0 1, 2 3, 4 5, 6 7 of them. */
AVX2 static inline __attribute__((always_inline)) void turn_four(const __m256i r[4], __m256i out[4])
{
    __m256i a = _mm256_unpacklo_epi16(r[0], r[1]), b = _mm256_unpackhi_epi16(r[0], r[1]);
    __m256i c = _mm256_unpacklo_epi16(r[2], r[3]), d = _mm256_unpackhi_epi16(r[2], r[3]);
    out[0] = _mm256_unpacklo_epi32(a, c);
    out[1] = _mm256_unpackhi_epi32(a, c);
    out[2] = _mm256_unpacklo_epi32(b, d);
    out[3] = _mm256_unpackhi_epi32(b, d);
}

AVX2 static inline __attribute__((always_inline)) void transpose(__m256i r[8])
{
    __m256i a[4], b[4];
    turn_four(r, a);
    turn_four(r + 4, b);
    r[0] = _mm256_unpacklo_epi64(a[0], b[0]);
    r[1] = _mm256_unpackhi_epi64(a[0], b[0]);
    r[2] = _mm256_unpacklo_epi64(a[1], b[1]);
    r[3] = _mm256_unpackhi_epi64(a[1], b[1]);
    r[4] = _mm256_unpacklo_epi64(a[2], b[2]);
    r[5] = _mm256_unpackhi_epi64(a[2], b[2]);
    r[6] = _mm256_unpacklo_epi64(a[3], b[3]);
    r[7] = _mm256_unpackhi_epi64(a[3], b[3]);
}

/* Rows y and y + 1 of both blocks. */
AVX2 static inline void put_rows(__m256i v, uint8_t *const out[2], size_t y, size_t stride)
{
    __m128i a = _mm256_castsi256_si128(v), b = _mm256_extracti128_si256(v, 1);
    _mm_storel_epi64((__m128i *)(out[0] + y * stride), a);
    _mm_storel_epi64((__m128i *)(out[0] + (y + 1) * stride), _mm_unpackhi_epi64(a, a));
    _mm_storel_epi64((__m128i *)(out[1] + y * stride), b);
    _mm_storel_epi64((__m128i *)(out[1] + (y + 1) * stride), _mm_unpackhi_epi64(b, b));
}

/* Columns of 16-bit samples become rows of bytes. */
AVX2 static inline __attribute__((always_inline)) void put_columns(const __m256i c[8], uint8_t *const out[2],
                                                                   size_t stride)
{
    const __m256i middle = _mm256_set1_epi8(-128);
    __m256i p04 = _mm256_packs_epi16(c[0], c[4]), p15 = _mm256_packs_epi16(c[1], c[5]);
    __m256i p26 = _mm256_packs_epi16(c[2], c[6]), p37 = _mm256_packs_epi16(c[3], c[7]);
    __m256i s02 = _mm256_unpacklo_epi8(p04, p26), s46 = _mm256_unpackhi_epi8(p04, p26);
    __m256i s13 = _mm256_unpacklo_epi8(p15, p37), s57 = _mm256_unpackhi_epi8(p15, p37);
    __m256i t0 = _mm256_unpacklo_epi8(s02, s13), t1 = _mm256_unpackhi_epi8(s02, s13);
    __m256i t2 = _mm256_unpacklo_epi8(s46, s57), t3 = _mm256_unpackhi_epi8(s46, s57);
    put_rows(_mm256_xor_si256(_mm256_unpacklo_epi32(t0, t2), middle), out, 0, stride);
    put_rows(_mm256_xor_si256(_mm256_unpackhi_epi32(t0, t2), middle), out, 2, stride);
    put_rows(_mm256_xor_si256(_mm256_unpacklo_epi32(t1, t3), middle), out, 4, stride);
    put_rows(_mm256_xor_si256(_mm256_unpackhi_epi32(t1, t3), middle), out, 6, stride);
}

/* Row i of both blocks, times its quantisers. */
AVX2 static inline __m256i row_of(int16_t *const block[2], const int16_t *quant, size_t i)
{
    __m256i v = _mm256_castsi128_si256(_mm_load_si128((const __m128i *)(block[0] + 8 * i)));
    v = _mm256_inserti128_si256(v, _mm_load_si128((const __m128i *)(block[1] + 8 * i)), 1);
    __m128i q = _mm_loadu_si128((const __m128i *)(quant + 8 * i));
    return _mm256_mullo_epi16(v, _mm256_broadcastsi128_si256(q));
}

AVX2 static inline void clear(int16_t *block, size_t rows)
{
    for (size_t i = 0; i < rows * 8; i += 16)
        _mm256_store_si256((__m256i *)(block + i), _mm256_setzero_si256());
}

/* Nothing but the mean: saturation, rounding and the wrap of the first pass as in the long way. */
AVX2 static void fill(int16_t *block, int quant, uint8_t *out, size_t stride)
{
    int v = ((int16_t)(uint16_t)((uint32_t)(int16_t)(uint16_t)(uint32_t)(block[0] * quant) * 4) + 16) >> 5;
    v = v < -128 ? -128 : v > 127 ? 127 : v;
    __m128i row = _mm_set1_epi8((char)(v + 128));
    for (size_t y = 0; y < 8; y++)
        _mm_storel_epi64((__m128i *)(out + y * stride), row);
    block[0] = 0;
}

AVX2 static inline __attribute__((always_inline)) void blocks(int16_t *const block[2], const int16_t quant[64],
                                                              uint8_t *const out[2], size_t stride, bool few)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i r[8] = {row_of(block, quant, 0), row_of(block, quant, 1), row_of(block, quant, 2), row_of(block, quant, 3),
                    few ? zero : row_of(block, quant, 4), few ? zero : row_of(block, quant, 5),
                    few ? zero : row_of(block, quant, 6), few ? zero : row_of(block, quant, 7)};
    __m256i same = _mm256_cmpeq_epi16(_mm256_srai_epi16(_mm256_slli_epi16(r[0], 2), 2), r[0]);
    if (_mm256_movemask_epi8(same) != -1) {
        mr_jpeg_plain.idct(block, quant, 64, out, stride);
        return;
    }
    clear(block[0], few ? 4 : 8);
    clear(block[1], few ? 4 : 8);
    pass(r, 11, few);
    transpose(r);
    pass(r, 18, few);
    put_columns(r, out, stride);
}

enum { FEW = 10 };                  /* zigzag places in the upper left 4 x 4 coefficients */

AVX2 void mr_jpeg_idct_avx2(int16_t *const block[2], const int16_t quant[64], unsigned used, uint8_t *const out[2],
                            size_t stride)
{
    if (used == 1) {
        fill(block[0], quant[0], out[0], stride);
        fill(block[1], quant[0], out[1], stride);
    } else if (used <= FEW) {
        blocks(block, quant, out, stride, true);
    } else {
        blocks(block, quant, out, stride, false);
    }
}

#endif
