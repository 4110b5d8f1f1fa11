/* blend.c - shares from a beta distribution, and pixels by shares.
 * Invariant: numbers are drawn by counters, and rejection only takes more of the pair's own, so any pair can be
 * computed alone. */
#include "loader/augment/blend.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/bf16.h"
#include "base/f16.h"
#include "loader/order/stream.h"

#define PURPOSE UINT64_C(0x626C656E64696E67)

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static double normal(mr_stream *numbers)
{
    double radius = sqrt(-2 * log(1 - mr_stream_unit(numbers)));
    return radius * cos(2 * 3.14159265358979323846 * mr_stream_unit(numbers));
}

/* The logarithm of a gamma variate, which for small `shape` is below what a double can hold.  Source: Marsaglia and
 * Tsang, A Simple Method for Generating Gamma Variables, 2000; below 1 by gamma(shape + 1) times U to the power 1 /
 * shape. */
static double log_gamma_variate(mr_stream *numbers, double shape)
{
    double more = 0;
    if (shape < 1) {
        more = log(1 - mr_stream_unit(numbers)) / shape;
        shape += 1;
    }
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(numbers), v = 1 + c * x, u = 1 - mr_stream_unit(numbers);
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + more;
    }
}

static double beta(mr_stream *numbers, double alpha)
{
    double a = log_gamma_variate(numbers, alpha), b = log_gamma_variate(numbers, alpha);
    return 1 / (1 + exp(b - a));
}

/* As torchvision's CutMix: the sides are sqrt(1 - share) of the image's, the centre is anywhere. */
static void draw_box(mr_stream *numbers, uint32_t width, uint32_t height, mr_blend *b)
{
    double half = 0.5 * sqrt(1 - (double)b->share);
    uint32_t x = mr_stream_upto(numbers, width - 1), y = mr_stream_upto(numbers, height - 1);
    uint32_t across = (uint32_t)(half * width), down = (uint32_t)(half * height);
    uint32_t right = x + across < width ? x + across : width, bottom = y + down < height ? y + down : height;
    b->left = x > across ? x - across : 0;
    b->top = y > down ? y - down : 0;
    b->width = right - b->left;
    b->height = bottom - b->top;
    b->share = (float)(1 - (double)b->width * b->height / ((double)width * height));
}

mr_blend mr_blend_draw(float mixup, float cutmix, uint64_t seed, uint64_t epoch, uint64_t pair, uint32_t width,
                       uint32_t height)
{
    mr_stream numbers = mr_stream_of(PURPOSE, seed, epoch, pair);
    double coin = mr_stream_unit(&numbers);
    mr_blend b = {.boxed = cutmix > 0 && (!(mixup > 0) || coin < 0.5)};
    b.share = (float)beta(&numbers, (double)(b.boxed ? cutmix : mixup));
    if (b.boxed)
        draw_box(&numbers, width, height, &b);
    return b;
}

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

static void mix_floats(float share, float *one, float *other, size_t count)
{
    float rest = 1 - share;
    for (size_t i = 0; i < count; i++) {
        float x = one[i], y = other[i];
        one[i] = share * x + rest * y;
        other[i] = share * y + rest * x;
    }
}

/* Inlined for each format. */
static inline void mix_halves(float share, uint16_t *one, uint16_t *other, size_t count, float (*widen)(uint16_t),
                              uint16_t (*narrow)(float))
{
    float rest = 1 - share;
    for (size_t i = 0; i < count; i++) {
        float x = widen(one[i]), y = widen(other[i]);
        one[i] = narrow(share * x + rest * y);
        other[i] = narrow(share * y + rest * x);
    }
}

static void mix_bytes(float share, uint8_t *one, uint8_t *other, size_t count)
{
    float rest = 1 - share;
    for (size_t i = 0; i < count; i++) {
        float x = one[i], y = other[i];
        one[i] = (uint8_t)(share * x + rest * y + 0.5f);
        other[i] = (uint8_t)(share * y + rest * x + 0.5f);
    }
}

static void exchange(uint8_t *one, uint8_t *other, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        uint8_t kept = one[i];
        one[i] = other[i];
        other[i] = kept;
    }
}

/* A pixel has `pixel` bytes in each of `planes` planes. */
static void exchange_box(const mr_blend *b, uint8_t *one, uint8_t *other, size_t pixel, size_t planes, uint32_t width,
                         uint32_t height)
{
    for (size_t p = 0; p < planes; p++)
        for (uint32_t y = b->top; y < b->top + b->height; y++) {
            size_t at = ((p * height + y) * width + b->left) * pixel;
            exchange(one + at, other + at, b->width * pixel);
        }
}

void mr_blend_apply(const mr_blend *b, mr_delivery deliver, void *one, void *other, uint32_t width, uint32_t height)
{
    size_t count = (size_t)3 * width * height;
    bool bytes = deliver == MR_DELIVER_U8_NHWC,
         halves = deliver == MR_DELIVER_BF16_NCHW || deliver == MR_DELIVER_F16_NCHW;
    if (b->boxed)
        exchange_box(b, one, other,
                     bytes    ? 3
                     : halves ? sizeof(uint16_t)
                              : sizeof(float),
                     bytes ? 1 : 3, width, height);
    else if (bytes)
        mix_bytes(b->share, one, other, count);
    else if (deliver == MR_DELIVER_F16_NCHW)
        mix_halves(b->share, one, other, count, mr_f16_float, mr_f16_of);
    else if (halves)
        mix_halves(b->share, one, other, count, mr_bf16_float, mr_bf16_of);
    else
        mix_floats(b->share, one, other, count);
}
