/* avx512.c - the inner loops on samples and pixels in AVX-512 with VBMI and VNNI (Ice Lake, Zen 4).
 * Invariant: as in kernels.h.  Entropy decoding gains nothing from wider registers and uses AVX2. */
#include "image/jpeg/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define WIDE  __attribute__((target(MR_AVX512_VNNI_TARGET)))
#define OP(f) _mm512_##f
#define SI(f) _mm512_##f##_si512

enum { LANES = 4 };

typedef __m512i vec;

WIDE static inline vec every_lane(__m128i v)
{
    return _mm512_broadcast_i32x4(v);
}

WIDE static inline vec dots(vec sum, vec a, vec b)
{
    return _mm512_dpwssd_epi32(sum, a, b);
}

WIDE static inline vec swap_pairs(vec v)
{
    return _mm512_rol_epi32(v, 16);
}

WIDE static inline vec row_of_lanes(int16_t *const *block, size_t i)
{
    vec v = _mm512_castsi128_si512(_mm_load_si128((const __m128i *)(block[0] + 8 * i)));
    v = _mm512_inserti32x4(v, _mm_load_si128((const __m128i *)(block[1] + 8 * i)), 1);
    v = _mm512_inserti32x4(v, _mm_load_si128((const __m128i *)(block[2] + 8 * i)), 2);
    return _mm512_inserti32x4(v, _mm_load_si128((const __m128i *)(block[3] + 8 * i)), 3);
}

WIDE static inline bool wraps(vec v)
{
    return _mm512_cmpneq_epi16_mask(_mm512_srai_epi16(_mm512_slli_epi16(v, 2), 2), v) != 0;
}

WIDE static inline void put_two_rows(vec v, uint8_t *out, size_t stride)
{
    v = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v);
    _mm256_storeu_si256((__m256i *)out, _mm512_castsi512_si256(v));
    _mm256_storeu_si256((__m256i *)(out + stride), _mm512_extracti64x4_epi64(v, 1));
}

WIDE static inline vec load_half(const uint8_t *p)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)p));
}

/* Source of each byte of 64 pixels: bit 64 selects green instead of red; the mask `blue` selects blue. */
#define PIXEL(i) (i), (i) + 64, (i)
#define FOUR(i)  PIXEL(i), PIXEL((i) + 1), PIXEL((i) + 2), PIXEL((i) + 3)
static const uint8_t source[3 * 64] = {FOUR(0),  FOUR(4),  FOUR(8),  FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28),
                                       FOUR(32), FOUR(36), FOUR(40), FOUR(44), FOUR(48), FOUR(52), FOUR(56), FOUR(60)};

WIDE static inline void interleave(vec r, vec g, vec b, uint8_t *out)
{
    static const uint64_t blue[3] = {0x4924924924924924, 0x2492492492492492, 0x9249249249249249};
    for (size_t i = 0; i < 3; i++) {
        vec from = _mm512_loadu_si512(source + 64 * i), v = _mm512_permutex2var_epi8(r, from, g);
        _mm512_storeu_si512(out + 64 * i, _mm512_mask_permutexvar_epi8(v, blue[i], from, b));
    }
}

#include "image/jpeg/wide_idct.h"
#include "image/jpeg/wide_pixels.h"

const mr_jpeg_kernels mr_jpeg_avx512 = {
    .name = "avx512",
    .needs = MR_AVX512_VNNI,
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
