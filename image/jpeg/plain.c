/* plain.c - the inner loops in plain C: the reference for the other sets of kernels.
 * Invariant: numbers wrap and saturate where libjpeg-turbo's SIMD code does.
 *
 * libjpeg-turbo's C code differs from its SIMD code only if a product of coefficient and quantiser, or a later sum,
 * exceeds 16 bits, which no encoder of images produces: C keeps 32 bits and masks the sample at the end, SIMD keeps
 * 16 and saturates.  On x86 the SIMD code runs, so it is the reference here.
 * Source: jidctint.c, jdsample.c, jdcolor.c and their SIMD counterparts, restated in the comments. */
#include <stddef.h>

#include "image/jpeg/lanes.h"

/* ---- entropy-coded bytes ----------------------------------------------------------------------------------------- */

static mr_jpeg_unstuffed unstuff(const uint8_t *in, size_t len, uint8_t *out)
{
    mr_jpeg_unstuffed done = {0, 0};
    while (done.taken < len) {
        const uint8_t *from = in + done.taken, *ff = memchr(from, 0xFF, len - done.taken);
        size_t n = ff ? (size_t)(ff - from) : len - done.taken;
        memcpy(out + done.given, from, n);
        done.taken += n;
        done.given += n;
        if (!ff || len - done.taken < 2 || ff[1] != 0)
            break;
        out[done.given++] = 0xFF;
        done.taken += 2;
    }
    return done;
}

bool mr_jpeg_plain_store(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count, int16_t *blocks)
{
    return mr_store_one(s, mcu, count, blocks);
}

bool mr_jpeg_plain_store_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count,
                             int16_t *const blocks[2])
{
    return mr_store_two(s, mcu, count, blocks);
}

bool mr_jpeg_plain_skip_two(mr_jpeg_stream *const s[2], const mr_jpeg_mcu *mcu, unsigned count)
{
    return mr_skip_two(s, mcu, count);
}

bool mr_jpeg_plain_skip(mr_jpeg_stream *s, const mr_jpeg_mcu *mcu, unsigned count)
{
    return mr_skip_one(s, mcu, count);
}

/* ---- inverse DCT: ISLOW ------------------------------------------------------------------------------------------ */

enum { /* times 2^13 */
       F_0_298 = 2446,
       F_0_390 = 3196,
       F_0_541 = 4433,
       F_0_765 = 6270,
       F_0_899 = 7373,
       F_1_175 = 9633,
       F_1_501 = 12299,
       F_1_847 = 15137,
       F_1_961 = 16069,
       F_2_053 = 16819,
       F_2_562 = 20995,
       F_3_072 = 25172,
};

static int clamp(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

static int32_t add32(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static int32_t sub32(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

/* Transforms eight numbers `step` apart; results are rounded, shifted, saturated to 16 bits. */
static void transform(const int16_t *in, size_t step, int shift, int16_t *out)
{
    int x[8];
    for (size_t i = 0; i < 8; i++)
        x[i] = in[i * step];
    int low = (int16_t)(x[0] + x[4]) * 8192, high = (int16_t)(x[0] - x[4]) * 8192;
    int e2 = x[2] * F_0_541 + x[6] * (F_0_541 - F_1_847), e3 = x[2] * (F_0_541 + F_0_765) + x[6] * F_0_541;
    const int32_t even[4] = {low + e3, high + e2, high - e2, low - e3};
    int z3 = (int16_t)(x[7] + x[3]), z4 = (int16_t)(x[5] + x[1]);
    int a = z3 * (F_1_175 - F_1_961) + z4 * F_1_175, b = z3 * F_1_175 + z4 * (F_1_175 - F_0_390);
    const int32_t odd[4] = {
        add32(x[7] * -F_0_899 + x[1] * (F_1_501 - F_0_899), b),
        add32(x[5] * -F_2_562 + x[3] * (F_3_072 - F_2_562), a),
        add32(x[5] * (F_2_053 - F_2_562) + x[3] * -F_2_562, b),
        add32(x[7] * (F_0_298 - F_0_899) + x[1] * -F_0_899, a),
    };
    for (size_t i = 0; i < 4; i++) {
        out[i * step] = (int16_t)clamp(add32(add32(even[i], odd[i]), 1 << (shift - 1)) >> shift, -32768, 32767);
        out[(7 - i) * step] = (int16_t)clamp(add32(sub32(even[i], odd[i]), 1 << (shift - 1)) >> shift, -32768, 32767);
    }
}

static bool one_row(const int16_t *block)
{
    for (size_t i = 8; i < 64; i++)
        if (block[i])
            return false;
    return true;
}

static void idct_one(int16_t *block, const int16_t *quant, uint8_t *out, size_t stride)
{
    int16_t w[64];
    bool flat = one_row(block);
    for (size_t i = 0; i < 64; i++)
        w[i] = (int16_t)((int32_t)block[i] * quant[i]);
    for (size_t x = 0; x < 8; x++) {
        if (!flat)
            transform(w + x, 8, 11, w + x);
        for (size_t y = 0; flat && y < 8; y++) /* wraps, does not saturate */
            w[y * 8 + x] = (int16_t)(y ? w[x] : w[x] * 4);
    }
    for (size_t y = 0; y < 8; y++, out += stride) {
        transform(w + y * 8, 1, 18, w + y * 8);
        for (size_t x = 0; x < 8; x++)
            out[x] = (uint8_t)(clamp(w[y * 8 + x], -128, 127) + 128);
    }
    memset(block, 0, 64 * sizeof *block);
}

static void idct(int16_t *const *block, unsigned count, const int16_t quant[64], uint8_t *out, size_t stride)
{
    for (unsigned i = 0; i < count; i++)
        idct_one(block[i], quant, out + 8 * (size_t)i, stride);
}

/* ---- fancy upsampling -------------------------------------------------------------------------------------------- */

static void across(const uint8_t *row, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = (uint8_t)((3 * row[i] + row[(ptrdiff_t)i - 1] + 1) >> 2);
        out[2 * i + 1] = (uint8_t)((3 * row[i] + row[i + 1] + 2) >> 2);
    }
}

static void across_between(const uint8_t *near, const uint8_t *far, size_t count, uint8_t *out)
{
    int last = 3 * near[-1] + far[-1], this = 3 * near[0] + far[0];
    for (size_t i = 0; i < count; i++) {
        int next = 3 * near[i + 1] + far[i + 1];
        out[2 * i] = (uint8_t)((3 * this + last + 8) >> 4);
        out[2 * i + 1] = (uint8_t)((3 * this + next + 7) >> 4);
        last = this;
        this = next;
    }
}

static void between(const uint8_t *near, const uint8_t *far, unsigned bias, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)((3 * near[i] + far[i] + (int)bias) >> 2);
}

/* ---- colour ------------------------------------------------------------------------------------------------------ */

static uint8_t byte(int v)
{
    return (uint8_t)clamp(v, 0, 255);
}

/* R = Y + 1.402 Cr, G = Y - 0.34414 Cb - 0.71414 Cr, B = Y + 1.772 Cb, each factor times 2^16. */
static void rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++, out += 3) {
        int b = cb[i] - 128, r = cr[i] - 128;
        out[0] = byte(y[i] + ((91881 * r + 32768) >> 16));
        out[1] = byte(y[i] + ((-22554 * b - 46802 * r + 32768) >> 16));
        out[2] = byte(y[i] + ((116130 * b + 32768) >> 16));
    }
}

const mr_jpeg_kernels mr_jpeg_plain = {
    .name = "plain",
    .needs = MR_PLAIN_C,
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
