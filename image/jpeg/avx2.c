/* avx2.c - the inner loops in AVX2 and BMI2.
 * Invariant: as in kernels.h; reads and writes past a row stay within the slack. */
#include "image/jpeg/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define MR_JPEG_CMOV
#include "image/jpeg/lanes.h"

#define AVX2 __attribute__((target(MR_AVX2_TARGET)))

/* ---- entropy-coded bytes ----------------------------------------------------------------------------------------- */

AVX2 mr_jpeg_unstuffed mr_jpeg_avx2_unstuff(const uint8_t *in, size_t len, uint8_t *out)
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
        o++; /* FF itself is stored */
    }
    mr_jpeg_unstuffed rest = mr_jpeg_plain.unstuff(in + i, len - i, out + o);
    return (mr_jpeg_unstuffed){i + rest.taken, o + rest.given};
}

AVX2 bool mr_jpeg_avx2_store(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks)
{
    return mr_store_one(s, mcu, count, blocks);
}

AVX2 bool mr_jpeg_avx2_store_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count,
                                 int16_t *const blocks[2])
{
    return mr_store_two(s, mcu, count, blocks);
}

AVX2 bool mr_jpeg_avx2_skip_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count)
{
    return mr_skip_two(s, mcu, count);
}

AVX2 bool mr_jpeg_avx2_skip(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count)
{
    return mr_skip_one(s, mcu, count);
}

/* ---- samples and pixels ------------------------------------------------------------------------------------------ */

#define WIDE  AVX2
#define OP(f) _mm256_##f
#define SI(f) _mm256_##f##_si256

enum { LANES = 2 };

typedef __m256i vec;

AVX2 static inline vec every_lane(__m128i v)
{
    return _mm256_broadcastsi128_si256(v);
}

AVX2 static inline vec dots(vec sum, vec a, vec b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

AVX2 static inline vec swap_pairs(vec v)
{
    return _mm256_shuffle_epi8(v, every_lane(_mm_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)));
}

AVX2 static inline vec row_of_lanes(int16_t *const *block, size_t i)
{
    vec v = _mm256_castsi128_si256(_mm_load_si128((const __m128i *)(block[0] + 8 * i)));
    return _mm256_inserti128_si256(v, _mm_load_si128((const __m128i *)(block[1] + 8 * i)), 1);
}

/* Times 4. */
AVX2 static inline bool wraps(vec v)
{
    return _mm256_movemask_epi8(_mm256_cmpeq_epi16(_mm256_srai_epi16(_mm256_slli_epi16(v, 2), 2), v)) != -1;
}

AVX2 static inline void put_two_rows(vec v, uint8_t *out, size_t stride)
{
    v = _mm256_permute4x64_epi64(v, 0xD8);
    _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)(out + stride), _mm256_extracti128_si256(v, 1));
}

AVX2 static inline vec load_half(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

/* The halves 48 bytes apart. */
AVX2 static inline void put_two(vec v, uint8_t *out)
{
    _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)(out + 48), _mm256_extracti128_si256(v, 1));
}

/* In each half, sixteen bytes per colour become 48. */
AVX2 static inline void interleave(vec r, vec g, vec b, uint8_t *out)
{
#define BOTH(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)
    const vec r0 = BOTH(0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5);
    const vec g0 = BOTH(-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1);
    const vec b0 = BOTH(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1);
    const vec r1 = BOTH(-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1);
    const vec g1 = BOTH(5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10);
    const vec b1 = BOTH(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1);
    const vec r2 = BOTH(-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1);
    const vec g2 = BOTH(-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1);
    const vec b2 = BOTH(10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15);
#undef BOTH
    put_two(_mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(r, r0), _mm256_shuffle_epi8(g, g0)),
                            _mm256_shuffle_epi8(b, b0)),
            out);
    put_two(_mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(r, r1), _mm256_shuffle_epi8(g, g1)),
                            _mm256_shuffle_epi8(b, b1)),
            out + 16);
    put_two(_mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(r, r2), _mm256_shuffle_epi8(g, g2)),
                            _mm256_shuffle_epi8(b, b2)),
            out + 32);
}

#include "image/jpeg/wide_idct.h"
#include "image/jpeg/wide_pixels.h"

const mr_jpeg_kernels mr_jpeg_avx2 = {
    .name = "avx2",
    .needs = MR_AVX2,
    .unstuff = mr_jpeg_avx2_unstuff,
    .store = mr_jpeg_avx2_store,
    .skip = mr_jpeg_avx2_skip,
    .store_two = mr_jpeg_avx2_store_two,
    .skip_two = mr_jpeg_avx2_skip_two,
    .idct = idct,
    .across = across,
    .across_between = across_between,
    .between = between,
    .rgb = rgb,
};

#endif
