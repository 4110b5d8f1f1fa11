/* avx512.c - the inner loops in AVX-512 with VBMI and VNNI (Ice Lake, Zen 4): byte permutes, dot products.
 * Invariant: rows may be read and written up to MR_RESIZE_SLACK bytes past their end, except those of `down`.
 *
 * Earlier processors, which slow down when they use 64-byte registers, use AVX2.
 *
 * across: a register holds four output pixels of a row, one per quarter, each with a pair of taps as in avx2.c:
 *
 *      bytes of a row   64, starting at the first of the four windows; vpermb selects all four
 *      permuted         r0 r1 | g0 g1 | b0 b1 | 0 0      as 16-bit numbers; vpdpwssd with k0 k1 adds each pair
 *
 * Windows too far apart for that are loaded one per quarter, and permuted there.  Weights are used for four rows. */
#include "image/resize/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define AVX512 __attribute__((target(MR_AVX512_VNNI_TARGET)))
#define INLINE AVX512 static inline __attribute__((always_inline))

enum { HELD = 3 }; /* pairs whose weights stay in registers */

typedef struct sums {
    __m512i low, high;
} sums;

INLINE sums no_sums(void)
{
    return (sums){_mm512_set1_epi32(1 << (MR_RESIZE_BITS - 1)), _mm512_setzero_si512()};
}

INLINE void add_pair(sums *s, __m512i pixels, __m512i low, __m512i high)
{
    s->low = _mm512_dpwssd_epi32(s->low, pixels, low);
    s->high = _mm512_dpwssd_epi32(s->high, pixels, high);
}

INLINE __m512i settle(sums s)
{
    return _mm512_srai_epi32(_mm512_add_epi32(s.low, _mm512_slli_epi32(s.high, MR_RESIZE_SPLIT)), MR_RESIZE_BITS);
}

/* ---- across ----------------------------------------------------------------------------------------------------- */

INLINE __m512i join(__m128i a, __m128i b, __m128i c, __m128i d)
{
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1), 1);
}

INLINE __m128i load_16(const void *p)
{
    return _mm_loadu_si128(p);
}

/* Two pairs of weights of four outputs, `pairs` pairs apart. */
INLINE __m512i two_pairs(const int16_t *k, size_t pairs)
{
    if (pairs == 2)
        return _mm512_loadu_si512(k);
    return join(load_16(k), load_16(k + pairs * 4), load_16(k + pairs * 8), load_16(k + pairs * 12));
}

/* One pair of each, without reading past it. */
INLINE __m512i one_pair(const int16_t *k, size_t pairs)
{
    const __m512i twice = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    if (pairs == 1)
        return _mm512_permutexvar_epi64(twice, _mm512_castsi256_si512(_mm256_loadu_si256((const void *)k)));
    return join(_mm_loadl_epi64((const void *)k), _mm_loadl_epi64((const void *)(k + pairs * 4)),
                _mm_loadl_epi64((const void *)(k + pairs * 8)), _mm_loadl_epi64((const void *)(k + pairs * 12)));
}

/* The lowest start of four windows: the last one's if the image is mirrored. */
INLINE size_t base_of(const uint32_t start[4])
{
    return start[0] < start[3] ? start[0] : start[3];
}

/* Whether four taps of each window are within 64 bytes. */
INLINE bool near_by(const uint32_t start[4])
{
    return (start[0] + start[3] - 2 * base_of(start) + 4) * 3 <= 64;
}

/* Where the bytes of a pair of taps of each window are: in 64 bytes from the first window on, or in four times 16. */
INLINE __m512i places(const uint32_t start[4], bool near)
{
    const __m512i pair = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 3, 0, 1, 0, 4, 0, 2, 0, 5, 0, 0, 0, 0, 0));
    const __m512i quarters = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    __m128i at = _mm_setr_epi32(0, 0x10101010, 0x20202020, 0x30303030); /* in each byte */
    if (near)
        at = _mm_mullo_epi32(_mm_sub_epi32(load_16(start), _mm_set1_epi32((int)base_of(start))),
                             _mm_set1_epi32(0x03030303));
    return _mm512_add_epi8(_mm512_permutexvar_epi32(quarters, _mm512_castsi128_si512(at)), pair);
}

INLINE __m512i load_windows(const uint32_t start[4], bool near, const uint8_t *row)
{
    if (near)
        return _mm512_loadu_si512(row + base_of(start) * 3);
    return join(load_16(row + (size_t)start[0] * 3), load_16(row + (size_t)start[1] * 3),
                load_16(row + (size_t)start[2] * 3), load_16(row + (size_t)start[3] * 3));
}

/* Four pixels of four rows, r g b 0 in 32 bits each, become 12 bytes and 4 more per row. */
INLINE void put_four(const sums s[4], uint8_t *const out[4], size_t at)
{
    const __m512i squeeze =
        _mm512_setr_epi32(0x10020100, 0x21201211, 0x32313022, 0, 0x14060504, 0x25241615, 0x36353426, 0, 0x180a0908,
                          0x29281a19, 0x3a39382a, 0, 0x1c0e0d0c, 0x2d2c1e1d, 0x3e3d3c2e, 0);
    __m512i v = _mm512_packus_epi16(_mm512_packs_epi32(settle(s[0]), settle(s[1])),
                                    _mm512_packs_epi32(settle(s[2]), settle(s[3])));
    v = _mm512_permutexvar_epi8(squeeze, v);
    _mm_storeu_si128((void *)(out[0] + at), _mm512_castsi512_si128(v));
    _mm_storeu_si128((void *)(out[1] + at), _mm512_extracti32x4_epi32(v, 1));
    _mm_storeu_si128((void *)(out[2] + at), _mm512_extracti32x4_epi32(v, 2));
    _mm_storeu_si128((void *)(out[3] + at), _mm512_extracti32x4_epi32(v, 3));
}

/* Outputs o to o + 3 of four rows. */
INLINE void across_four(const mr_resize_axis *axis, size_t pairs, size_t o, bool near, const uint8_t *const rows[4],
                        uint8_t *const out[4])
{
    const __mmask64 bytes = 0x0555055505550555; /* the bytes that hold pixels; the others are 0 */
    const uint32_t *start = axis->start + o;
    const int16_t *k = axis->k + o * pairs * 4;
    __m512i first = places(start, near), second = _mm512_add_epi8(first, _mm512_set1_epi8(6));
    sums s[4] = {no_sums(), no_sums(), no_sums(), no_sums()};
    for (size_t q = 0; q < pairs; q += 2) {
        bool two = q + 2 <= pairs;
        __m512i c = two ? two_pairs(k + q * 4, pairs) : one_pair(k + q * 4, pairs);
        __m512i low = _mm512_shuffle_epi32(c, 0x00), high = _mm512_shuffle_epi32(c, 0x55);
        __m512i low2 = _mm512_shuffle_epi32(c, 0xaa), high2 = _mm512_shuffle_epi32(c, 0xff);
        for (size_t r = 0; r < 4; r++) {
            __m512i v = load_windows(start, near, rows[r] + q * 6);
            add_pair(&s[r], _mm512_maskz_permutexvar_epi8(bytes, first, v), low, high);
            if (two)
                add_pair(&s[r], _mm512_maskz_permutexvar_epi8(bytes, second, v), low2, high2);
        }
    }
    put_four(s, out, o * 3);
}

/* Outputs from o on, wherever their windows are; the last four may overlap those before them. */
AVX512 static void across_rest(const mr_resize_axis *axis, size_t o, const uint8_t *const rows[4],
                               uint8_t *const out[4])
{
    for (; o < axis->outputs; o += 4)
        across_four(axis, axis->pairs, o + 4 <= axis->outputs ? o : axis->outputs - 4, false, rows, out);
}

INLINE void across_near(const mr_resize_axis *axis, size_t pairs, const uint8_t *const rows[4], uint8_t *const out[4])
{
    const mr_resize_axis held = *axis; /* a copy that no store can alias */
    const uint8_t *const from[4] = {rows[0], rows[1], rows[2], rows[3]};
    uint8_t *const to[4] = {out[0], out[1], out[2], out[3]};
    size_t o = 0;
    for (; o + 4 <= held.outputs && near_by(held.start + o); o += 4)
        across_four(&held, pairs, o, true, from, to);
    across_rest(axis, o, rows, out);
}

AVX512 static void across(const mr_resize_axis *axis, const uint8_t *const rows[4], uint8_t *const out[4])
{
    if (axis->outputs < 4)
        mr_resize_avx2.across(axis, rows, out);
    else if (axis->pairs == 1)
        across_near(axis, 1, rows, out);
    else if (axis->pairs == 2)
        across_near(axis, 2, rows, out);
    else if (axis->pairs == 3)
        across_near(axis, 3, rows, out);
    else
        across_near(axis, axis->pairs, rows, out);
}

/* ---- down ------------------------------------------------------------------------------------------------------- */

typedef struct weights {
    __m512i low, high;
} weights;

INLINE weights weights_of(const int16_t *k)
{
    int32_t v[2];
    memcpy(v, k, sizeof v);
    return (weights){_mm512_set1_epi32(v[0]), _mm512_set1_epi32(v[1])};
}

/* 64 bytes of the weighted sum of rows, of which `bytes` count.  Packing undoes the order that unpacking makes. */
INLINE void down_64(const weights *held, const int16_t *k, size_t pairs, const uint8_t *const *rows, __mmask64 bytes,
                    size_t x, uint8_t *out)
{
    const __m512i zero = _mm512_setzero_si512();
    sums s[4] = {no_sums(), no_sums(), no_sums(), no_sums()};
    for (size_t q = 0; q < pairs; q++) {
        weights w = held ? held[q] : weights_of(k + q * 4);
        __m512i a = _mm512_maskz_loadu_epi8(bytes, rows[2 * q] + x);
        __m512i b = _mm512_maskz_loadu_epi8(bytes, rows[2 * q + 1] + x);
        __m512i left = _mm512_unpacklo_epi8(a, b), right = _mm512_unpackhi_epi8(a, b);
        add_pair(&s[0], _mm512_unpacklo_epi8(left, zero), w.low, w.high);
        add_pair(&s[1], _mm512_unpackhi_epi8(left, zero), w.low, w.high);
        add_pair(&s[2], _mm512_unpacklo_epi8(right, zero), w.low, w.high);
        add_pair(&s[3], _mm512_unpackhi_epi8(right, zero), w.low, w.high);
    }
    __m512i v = _mm512_packus_epi16(_mm512_packs_epi32(settle(s[0]), settle(s[1])),
                                    _mm512_packs_epi32(settle(s[2]), settle(s[3])));
    _mm512_mask_storeu_epi8(out + x, bytes, v);
}

INLINE void down_row(const weights *held, const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t len,
                     uint8_t *out)
{
    size_t x = 0;
    for (; x + 64 <= len; x += 64)
        down_64(held, k, pairs, rows, ~(__mmask64)0, x, out);
    if (x < len)
        down_64(held, k, pairs, rows, ~(__mmask64)0 >> (64 - (len - x)), x, out);
}

/* Few rows, with pointers and weights copied so that no store forces them to be reloaded. */
INLINE void down_few(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t len, uint8_t *out)
{
    const uint8_t *from[2 * HELD];
    weights held[HELD];
    for (size_t q = 0; q < pairs; q++) {
        held[q] = weights_of(k + q * 4);
        from[2 * q] = rows[2 * q];
        from[2 * q + 1] = rows[2 * q + 1];
    }
    down_row(held, k, pairs, from, len, out);
}

AVX512 static void down(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t len, uint8_t *out)
{
    if (pairs == 1)
        down_few(k, 1, rows, len, out);
    else if (pairs == 2)
        down_few(k, 2, rows, len, out);
    else if (pairs == HELD)
        down_few(k, HELD, rows, len, out);
    else
        down_row(NULL, k, pairs, rows, len, out);
}

/* ---- normalised planes ------------------------------------------------------------------------------------------ */

typedef struct constants {
    __m512 unit, unit_rest, mean, inverse, rest;
    __m512i bytes; /* every third of 48 */
} constants;

INLINE constants constants_of(const mr_resize_norm *n, size_t c)
{
    const __m512i third = _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45);
    float inverse, rest;
    mr_resize_inverse(255.0f, &inverse, &rest);
    return (constants){_mm512_set1_ps(inverse),    _mm512_set1_ps(rest),
                       _mm512_set1_ps(n->mean[c]), _mm512_set1_ps(n->inverse[c]),
                       _mm512_set1_ps(n->rest[c]), _mm512_add_epi32(third, _mm512_set1_epi32((int)c))};
}

/* A channel of 16 pixels. */
INLINE __m512 sixteen(const uint8_t *rgb, const constants *k)
{
    __m512i bytes = _mm512_maskz_permutexvar_epi8(0x1111111111111111, k->bytes, _mm512_loadu_si512(rgb));
    __m512 v = _mm512_cvtepi32_ps(bytes);
    v = _mm512_sub_ps(_mm512_fmadd_ps(v, k->unit, _mm512_mul_ps(v, k->unit_rest)), k->mean);
    return _mm512_fmadd_ps(v, k->inverse, _mm512_mul_ps(v, k->rest));
}

INLINE __mmask16 first_of(size_t pixels)
{
    return (__mmask16)(pixels < 16 ? (1u << pixels) - 1 : 0xffff);
}

AVX512 static void spread_f32(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, float *out, size_t plane)
{
    if (!n->quick) {
        mr_resize_plain.spread_f32(n, rgb, pixels, out, plane);
        return;
    }
    bool past = mr_resize_past_caches(out, pixels * sizeof *out, plane * sizeof *out);
    for (size_t c = 0; c < 3; c++) {
        const constants k = constants_of(n, c);
        float *row = out + c * plane;
        for (size_t x = 0; x < pixels; x += 16) {
            __m512 v = sixteen(rgb + x * 3, &k);
            if (past)
                _mm512_stream_ps(row + x, v);
            else
                _mm512_mask_storeu_ps(row + x, first_of(pixels - x), v);
        }
    }
}

/* The upper halves of sixteen numbers, rounded to nearest, ties to even. */
INLINE __m256i halves(__m512 v)
{
    __m512i bits = _mm512_castps_si512(v), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
}

AVX512 static void spread_bf16(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, uint16_t *out, size_t plane)
{
    if (!n->quick) {
        mr_resize_plain.spread_bf16(n, rgb, pixels, out, plane);
        return;
    }
    bool past = mr_resize_past_caches(out, pixels * sizeof *out, plane * sizeof *out);
    for (size_t c = 0; c < 3; c++) {
        const constants k = constants_of(n, c);
        uint16_t *row = out + c * plane;
        for (size_t x = 0; x < pixels; x += 16) {
            __m256i v = halves(sixteen(rgb + x * 3, &k));
            if (past)
                _mm256_stream_si256((void *)(row + x), v);
            else
                _mm256_mask_storeu_epi16(row + x, first_of(pixels - x), v);
        }
    }
}

const mr_resize_kernels mr_resize_avx512 = {
    .name = "avx512",
    .needs = MR_AVX512_VNNI,
    .across = across,
    .down = down,
    .spread_f32 = spread_f32,
    .spread_bf16 = spread_bf16,
};

#endif
