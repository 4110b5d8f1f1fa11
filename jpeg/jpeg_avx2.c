/* jpeg_avx2.c - the inner loops in AVX2 and BMI2, taken where the processor has both.
 * Invariant: as in jpeg_kernels.h; what is read or written behind a row stays within the slack. */
#include "jpeg_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define MR_JPEG_CMOV
#include "jpeg_lanes.h"

#define AVX2 __attribute__((target("avx2,bmi,bmi2")))

/* ---- entropy-coded bytes ----------------------------------------------------------------------------------------- */

AVX2 static mr_jpeg_unstuffed unstuff(const uint8_t *in, size_t len, uint8_t *out)
{
    const __m256i ff = _mm256_set1_epi8(-1);
    size_t i = 0, o = 0;
    while (len - i >= 33) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(in + i));
        uint32_t found = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, ff));
        _mm256_storeu_si256((__m256i *)(out + o), v);
        if (!found) {
            i += 32;
            o += 32;
            continue;
        }
        uint32_t before = _tzcnt_u32(found);
        i += before;
        o += before;
        if (in[i + 1])
            return (mr_jpeg_unstuffed){i, o};
        i += 2;
        o++;                                    /* FF itself is stored */
    }
    mr_jpeg_unstuffed rest = mr_jpeg_plain.unstuff(in + i, len - i, out + o);
    return (mr_jpeg_unstuffed){i + rest.taken, o + rest.given};
}

AVX2 static bool store(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks)
{
    return mr_store_one(s, mcu, count, blocks);
}

AVX2 static bool store_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count,
                           int16_t *const blocks[2])
{
    return mr_store_two(s, mcu, count, blocks);
}

AVX2 static bool skip_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count)
{
    return mr_skip_two(s, mcu, count);
}

AVX2 static bool skip(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count)
{
    return mr_skip_one(s, mcu, count);
}

/* ---- fancy upsampling -------------------------------------------------------------------------------------------- */

AVX2 static inline __m256i sixteen(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

AVX2 static inline __m256i thrice(__m256i v)
{
    return _mm256_add_epi16(v, _mm256_add_epi16(v, v));
}

/* Bytes in the low halves of 16-bit numbers, even and odd ones of a row. */
AVX2 static inline void put_pairs(__m256i even, __m256i odd, uint8_t *out)
{
    _mm256_storeu_si256((__m256i *)out, _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
}

AVX2 static void across(const uint8_t *row, size_t count, uint8_t *out)
{
    const __m256i one = _mm256_set1_epi16(1), two = _mm256_set1_epi16(2);
    for (size_t i = 0; i < count; i += 16, row += 16, out += 32) {
        __m256i v = thrice(sixteen(row));
        __m256i even = _mm256_add_epi16(_mm256_add_epi16(v, sixteen(row - 1)), one);
        __m256i odd = _mm256_add_epi16(_mm256_add_epi16(v, sixteen(row + 1)), two);
        put_pairs(_mm256_srli_epi16(even, 2), _mm256_srli_epi16(odd, 2), out);
    }
}

AVX2 static inline __m256i column_sums(const uint8_t *near, const uint8_t *far)
{
    return _mm256_add_epi16(thrice(sixteen(near)), sixteen(far));
}

AVX2 static void across_between(const uint8_t *near, const uint8_t *far, size_t count, uint8_t *out)
{
    const __m256i seven = _mm256_set1_epi16(7), eight = _mm256_set1_epi16(8);
    for (size_t i = 0; i < count; i += 16, near += 16, far += 16, out += 32) {
        __m256i v = thrice(column_sums(near, far));
        __m256i even = _mm256_add_epi16(_mm256_add_epi16(v, column_sums(near - 1, far - 1)), eight);
        __m256i odd = _mm256_add_epi16(_mm256_add_epi16(v, column_sums(near + 1, far + 1)), seven);
        put_pairs(_mm256_srli_epi16(even, 4), _mm256_srli_epi16(odd, 4), out);
    }
}

AVX2 static void between(const uint8_t *near, const uint8_t *far, unsigned bias, size_t count, uint8_t *out)
{
    const __m256i b = _mm256_set1_epi16((short)bias);
    for (size_t i = 0; i < count; i += 16) {
        __m256i v = _mm256_srli_epi16(_mm256_add_epi16(column_sums(near + i, far + i), b), 2);
        v = _mm256_permute4x64_epi64(_mm256_packus_epi16(v, v), 0x08);
        _mm_storeu_si128((__m128i *)(out + i), _mm256_castsi256_si128(v));
    }
}

/* ---- colour ------------------------------------------------------------------------------------------------------ */

/* The halves 48 bytes apart. */
AVX2 static inline void put_two(__m256i v, uint8_t *out)
{
    _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)(out + 48), _mm256_extracti128_si256(v, 1));
}

/* In both halves sixteen bytes of each colour become 48. */
AVX2 static inline void interleave(__m256i r, __m256i g, __m256i b, uint8_t *out)
{
#define BOTH(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)
    const __m256i r0 = BOTH(0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5);
    const __m256i g0 = BOTH(-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1);
    const __m256i b0 = BOTH(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1);
    const __m256i r1 = BOTH(-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1);
    const __m256i g1 = BOTH(5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10);
    const __m256i b1 = BOTH(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1);
    const __m256i r2 = BOTH(-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1);
    const __m256i g2 = BOTH(-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1);
    const __m256i b2 = BOTH(10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15);
#undef BOTH
    put_two(_mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(r, r0), _mm256_shuffle_epi8(g, g0)),
                            _mm256_shuffle_epi8(b, b0)), out);
    put_two(_mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(r, r1), _mm256_shuffle_epi8(g, g1)),
                            _mm256_shuffle_epi8(b, b1)), out + 16);
    put_two(_mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(r, r2), _mm256_shuffle_epi8(g, g2)),
                            _mm256_shuffle_epi8(b, b2)), out + 32);
}

/* Two times sixteen 16-bit numbers, saturated to bytes in order. */
AVX2 static inline __m256i bytes_of(__m256i a, __m256i b)
{
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xD8);
}

/* 1.402 x = x + 0.402 x and 1.772 x = 2 x - 0.228 x: the fractions as the upper half of a product, rounded:
 * (2 x k >> 16) + 1 >> 1 is x k + 2^15 >> 16. */
AVX2 static inline __m256i fraction(__m256i x, int k)
{
    __m256i v = _mm256_mulhi_epi16(_mm256_add_epi16(x, x), _mm256_set1_epi16((short)k));
    return _mm256_srai_epi16(_mm256_add_epi16(v, _mm256_set1_epi16(1)), 1);
}

/* -0.34414 b - 0.71414 r = -0.34414 b + 0.28586 r - r. */
AVX2 static inline __m256i green(__m256i b, __m256i r)
{
    const __m256i k = _mm256_set1_epi32((int)(18734u << 16 | (uint16_t)-22554)), half = _mm256_set1_epi32(1 << 15);
    __m256i low = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi16(b, r), k), half);
    __m256i high = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi16(b, r), k), half);
    return _mm256_sub_epi16(_mm256_packs_epi32(_mm256_srai_epi32(low, 16), _mm256_srai_epi32(high, 16)), r);
}

typedef struct colours {
    __m256i red, green, blue;
} colours;

AVX2 static inline colours colours_of(const uint8_t *y, const uint8_t *cb, const uint8_t *cr)
{
    const __m256i middle = _mm256_set1_epi16(128);
    __m256i luma = sixteen(y), b = _mm256_sub_epi16(sixteen(cb), middle), r = _mm256_sub_epi16(sixteen(cr), middle);
    return (colours){_mm256_add_epi16(_mm256_add_epi16(luma, r), fraction(r, 26345)),
                     _mm256_add_epi16(luma, green(b, r)),
                     _mm256_add_epi16(_mm256_add_epi16(luma, _mm256_add_epi16(b, b)), fraction(b, -14942))};
}

AVX2 static inline __attribute__((always_inline)) void some_pixels(const uint8_t *y, const uint8_t *cb,
                                                                   const uint8_t *cr, uint8_t *out)
{
    colours a = colours_of(y, cb, cr), b = colours_of(y + 16, cb + 16, cr + 16);
    interleave(bytes_of(a.red, b.red), bytes_of(a.green, b.green), bytes_of(a.blue, b.blue), out);
}

AVX2 static void rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *out)
{
    enum { SOME = 32 };
    size_t i = 0;
    for (; count - i >= SOME; i += SOME)
        some_pixels(y + i, cb + i, cr + i, out + 3 * i);
    if (i < count) {
        uint8_t last[3 * SOME];
        some_pixels(y + i, cb + i, cr + i, last);
        memcpy(out + 3 * i, last, 3 * (count - i));
    }
}

static const mr_jpeg_kernels avx2 = {
    .unstuff = unstuff,
    .store = store,
    .skip = skip,
    .store_two = store_two,
    .skip_two = skip_two,
    .idct = mr_jpeg_idct_avx2,
    .across = across,
    .across_between = across_between,
    .between = between,
    .rgb = rgb,
};

const mr_jpeg_kernels *mr_jpeg_kernels_best(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? &avx2 : &mr_jpeg_plain;
}

#else

const mr_jpeg_kernels *mr_jpeg_kernels_best(void)
{
    return &mr_jpeg_plain;
}

#endif
