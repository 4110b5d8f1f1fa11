/* avx2.c - the inner loops in AVX2 and FMA.
 * Invariant: rows may be read and written up to MR_RESIZE_SLACK bytes past their end, except those of `down`.
 *
 * across: a register holds two rows, one per half, each with the taps of one output pixel in pairs:
 *
 *      bytes of a row   r0 g0 b0 r1 g1 b1 r2 g2 b2 r3 g3 b3 ...
 *      shuffled         r0 r1 | g0 g1 | b0 b1 | 0 0      as 16-bit numbers; pmaddwd with k0 k1 sums each pair */
#include "image/resize/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target(MR_AVX2_TARGET)))

typedef struct sums {
    __m256i low, high;
} sums;

AVX2 static inline __m256i broadcast_pair(const int16_t *k)
{
    int32_t v;
    memcpy(&v, k, sizeof v);
    return _mm256_set1_epi32(v);
}

AVX2 static inline __m256i load_two(const uint8_t *a, const uint8_t *b)
{
    __m256i low = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a));
    return _mm256_inserti128_si256(low, _mm_loadu_si128((const __m128i *)b), 1);
}

AVX2 static inline void add_pair(sums *s, __m256i pixels, __m256i low, __m256i high)
{
    s->low = _mm256_add_epi32(s->low, _mm256_madd_epi16(pixels, low));
    s->high = _mm256_add_epi32(s->high, _mm256_madd_epi16(pixels, high));
}

AVX2 static inline __m256i settle(sums s)
{
    __m256i half = _mm256_set1_epi32(1 << (MR_RESIZE_BITS - 1));
    __m256i v = _mm256_add_epi32(_mm256_add_epi32(s.low, half), _mm256_slli_epi32(s.high, MR_RESIZE_SPLIT));
    return _mm256_srai_epi32(v, MR_RESIZE_BITS);
}

/* One output pixel of four rows, r g b 0 in 32 bits each: of rows 0 and 1, and of rows 2 and 3. */
AVX2 static inline void pixel(const uint8_t *const rows[4], size_t from, const int16_t *k, size_t pairs, __m256i *p01,
                              __m256i *p23)
{
    const __m256i first = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 0, -1, 3, -1, 1,
                                           -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    const __m256i second = _mm256_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                                            -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    sums s = {_mm256_setzero_si256(), _mm256_setzero_si256()}, t = s;
    size_t q = 0;
    for (; q < pairs; q += 2, k += 8, from += 12) {
        __m256i v = load_two(rows[0] + from, rows[1] + from), w = load_two(rows[2] + from, rows[3] + from);
        __m256i low = broadcast_pair(k), high = broadcast_pair(k + 2);
        add_pair(&s, _mm256_shuffle_epi8(v, first), low, high);
        add_pair(&t, _mm256_shuffle_epi8(w, first), low, high);
        if (q + 1 == pairs)
            break;
        low = broadcast_pair(k + 4);
        high = broadcast_pair(k + 6);
        add_pair(&s, _mm256_shuffle_epi8(v, second), low, high);
        add_pair(&t, _mm256_shuffle_epi8(w, second), low, high);
    }
    *p01 = settle(s);
    *p23 = settle(t);
}

/* Four pixels of two rows, packed to 12 bytes and 4 zeros per row. */
AVX2 static inline __m256i pack_four(const __m256i p[4])
{
    const __m256i squeeze = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6,
                                             8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    __m256i v = _mm256_packus_epi16(_mm256_packs_epi32(p[0], p[1]), _mm256_packs_epi32(p[2], p[3]));
    return _mm256_shuffle_epi8(v, squeeze);
}

AVX2 static inline void across_four(const mr_resize_axis *axis, size_t pairs, const uint8_t *const rows[4],
                                    uint8_t *const out[4])
{
    const uint8_t *const in[4] = {rows[0], rows[1], rows[2], rows[3]}; /* copies that no store can alias */
    uint8_t *const to[4] = {out[0], out[1], out[2], out[3]};
    const mr_resize_axis held = *axis;
    for (size_t o = 0; o < held.outputs; o += 4) {
        __m256i p01[4], p23[4];
        for (size_t i = 0; i < 4; i++) {
            size_t at = o + i < held.outputs ? o + i : held.outputs - 1;
            pixel(in, (size_t)held.start[at] * 3, held.k + at * pairs * 4, pairs, &p01[i], &p23[i]);
        }
        __m256i v = pack_four(p01), w = pack_four(p23);
        _mm_storeu_si128((__m128i *)(to[0] + o * 3), _mm256_castsi256_si128(v));
        _mm_storeu_si128((__m128i *)(to[1] + o * 3), _mm256_extracti128_si256(v, 1));
        _mm_storeu_si128((__m128i *)(to[2] + o * 3), _mm256_castsi256_si128(w));
        _mm_storeu_si128((__m128i *)(to[3] + o * 3), _mm256_extracti128_si256(w, 1));
    }
}

AVX2 static void across(const mr_resize_axis *axis, const uint8_t *const rows[4], uint8_t *const out[4])
{
    if (axis->pairs == 1)
        across_four(axis, 1, rows, out);
    else if (axis->pairs == 2)
        across_four(axis, 2, rows, out);
    else if (axis->pairs == 3)
        across_four(axis, 3, rows, out);
    else
        across_four(axis, axis->pairs, rows, out);
}

/* 16 bytes of the weighted sum of rows. */
AVX2 static inline __m128i down_16(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t x)
{
    sums s = {_mm256_setzero_si256(), _mm256_setzero_si256()}, t = s;
    for (size_t q = 0; q < pairs; q++, k += 4) {
        __m128i a = _mm_loadu_si128((const __m128i *)(rows[2 * q] + x));
        __m128i b = _mm_loadu_si128((const __m128i *)(rows[2 * q + 1] + x));
        __m256i low = broadcast_pair(k), high = broadcast_pair(k + 2);
        add_pair(&s, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)), low, high);
        add_pair(&t, _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)), low, high);
    }
    __m256i v = _mm256_permute4x64_epi64(_mm256_packs_epi32(settle(s), settle(t)), 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

AVX2 static inline void down_row(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t len, uint8_t *out)
{
    for (size_t x = 0; x + 16 <= len; x += 16)
        _mm_storeu_si128((__m128i *)(out + x), down_16(k, pairs, rows, x));
    if (len >= 16) /* the last 16 bytes, which may overlap the previous ones */
        _mm_storeu_si128((__m128i *)(out + len - 16), down_16(k, pairs, rows, len - 16));
}

AVX2 static void down(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t len, uint8_t *out)
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
    __m256 unit, unit_rest, mean, inverse, rest;
} constants;

AVX2 static inline constants constants_of(const mr_resize_norm *n, size_t c)
{
    float inverse, rest;
    mr_resize_inverse(255.0f, &inverse, &rest);
    return (constants){_mm256_set1_ps(inverse), _mm256_set1_ps(rest), _mm256_set1_ps(n->mean[c]),
                       _mm256_set1_ps(n->inverse[c]), _mm256_set1_ps(n->rest[c])};
}

/* Channel c of eight pixels: every third of 24 bytes. */
AVX2 static inline __m256 eight(const uint8_t *rgb, size_t c, const constants *k)
{
    static const int8_t early[3][8] = {
        {0, 3, 6, 9, 12, 15, -1, -1}, {1, 4, 7, 10, 13, -1, -1, -1}, {2, 5, 8, 11, 14, -1, -1, -1}};
    static const int8_t late[3][8] = {
        {-1, -1, -1, -1, -1, -1, 10, 13}, {-1, -1, -1, -1, -1, 8, 11, 14}, {-1, -1, -1, -1, -1, 9, 12, 15}};
    __m128i a = _mm_loadu_si128((const __m128i *)rgb), b = _mm_loadu_si128((const __m128i *)(rgb + 8));
    a = _mm_shuffle_epi8(a, _mm_loadl_epi64((const __m128i *)early[c]));
    b = _mm_shuffle_epi8(b, _mm_loadl_epi64((const __m128i *)late[c]));
    __m256 v = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_or_si128(a, b)));
    v = _mm256_sub_ps(_mm256_fmadd_ps(v, k->unit, _mm256_mul_ps(v, k->unit_rest)), k->mean);
    return _mm256_fmadd_ps(v, k->inverse, _mm256_mul_ps(v, k->rest));
}

AVX2 static void spread_f32(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, float *out, size_t plane)
{
    size_t whole = n->quick ? pixels & ~(size_t)7 : 0;
    bool past = mr_resize_past_caches(out, pixels * sizeof *out, plane * sizeof *out);
    for (size_t c = 0; c < 3; c++) {
        const constants k = constants_of(n, c);
        float *row = out + c * plane;
        for (size_t x = 0; x < whole; x += 8) {
            __m256 v = eight(rgb + x * 3, c, &k);
            if (past)
                _mm256_stream_ps(row + x, v);
            else
                _mm256_storeu_ps(row + x, v);
        }
    }
    mr_resize_plain.spread_f32(n, rgb + whole * 3, pixels - whole, out + whole, plane);
}

/* The upper halves of eight numbers, rounded to nearest, ties to even. */
AVX2 static inline __m128i halves(__m256 v)
{
    __m256i bits = _mm256_castps_si256(v), odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

AVX2 static void spread_bf16(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, uint16_t *out, size_t plane)
{
    size_t whole = n->quick ? pixels & ~(size_t)7 : 0;
    bool past = mr_resize_past_caches(out, pixels * sizeof *out, plane * sizeof *out);
    for (size_t c = 0; c < 3; c++) {
        const constants k = constants_of(n, c);
        uint16_t *row = out + c * plane;
        for (size_t x = 0; x < whole; x += 8) {
            __m128i v = halves(eight(rgb + x * 3, c, &k));
            if (past)
                _mm_stream_si128((void *)(row + x), v);
            else
                _mm_storeu_si128((void *)(row + x), v);
        }
    }
    mr_resize_plain.spread_bf16(n, rgb + whole * 3, pixels - whole, out + whole, plane);
}

const mr_resize_kernels mr_resize_avx2 = {
    .name = "avx2",
    .needs = MR_AVX2,
    .across = across,
    .down = down,
    .spread_f32 = spread_f32,
    .spread_bf16 = spread_bf16,
};

#endif
