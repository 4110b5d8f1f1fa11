/* blur.c - a Gaussian blur: across, then down.
 * Invariant: the weights of a pixel sum to 1; at an edge the image is mirrored about its last pixel.
 * Source: torchvision's gaussian_blur() of a uint8 tensor, whose kernel_size would be 2 * ceil(3 * sigma) + 1. */
#include <math.h>

#include "loader/augment/changes.h"

enum { RADIUS_MOST = 3 * MR_BLUR_SIGMA_MOST, BLOCK = 192 };

/* Weights of the pixel itself and of those to one side. */
static unsigned kernel(float sigma, uint32_t side, float weights[RADIUS_MOST + 1])
{
    unsigned radius = (unsigned)ceilf(3 * sigma);
    double sum = 0;
    if (radius > RADIUS_MOST)
        radius = RADIUS_MOST;
    if (radius >= side)
        radius = side - 1;
    for (unsigned i = 0; i <= radius; i++) {
        double x = i / (double)sigma, weight = exp(-x * x / 2);
        weights[i] = (float)weight;
        sum += i ? 2 * weight : weight;
    }
    for (unsigned i = 0; i <= radius; i++)
        weights[i] = (float)(weights[i] / sum);
    return radius;
}

/* The place within a side that `at`, which may be outside, is mirrored to. */
static size_t mirrored(long at, uint32_t side)
{
    at = at < 0 ? -at : at;
    return (size_t)(at < (long)side ? at : 2 * ((long)side - 1) - at);
}

static void across(const float *weights, unsigned radius, const uint8_t *row, uint32_t width, float *out)
{
    size_t first = 3 * (size_t)radius, end = 3 * (size_t)width > first ? 3 * (size_t)width - first : 0;
    for (size_t i = first; i < end; i++)
        out[i] = weights[0] * (float)row[i];
    for (unsigned k = 1; k <= radius; k++)
        for (size_t i = first; i < end; i++)
            out[i] += weights[k] * (float)(row[i - 3 * (size_t)k] + row[i + 3 * (size_t)k]);
    for (uint32_t x = 0; x < width; x++) {
        if (x >= radius && x + radius < width)
            continue;
        for (size_t c = 0; c < 3; c++) {
            float sum = weights[0] * (float)row[3 * (size_t)x + c];
            for (unsigned k = 1; k <= radius; k++)
                sum += weights[k] *
                       (float)(row[3 * mirrored((long)x - k, width) + c] + row[3 * mirrored((long)x + k, width) + c]);
            out[3 * (size_t)x + c] = sum;
        }
    }
}

/* Bytes `at` to at + count - 1 of row y. */
static void down(const float *weights, unsigned radius, const float *lines, size_t stride, uint32_t y, uint32_t height,
                 size_t at, size_t count, uint8_t *out)
{
    float sums[BLOCK];
    const float *own = lines + y * stride + at;
    for (size_t i = 0; i < count; i++)
        sums[i] = weights[0] * own[i];
    for (unsigned k = 1; k <= radius; k++) {
        const float *above = lines + mirrored((long)y - k, height) * stride + at;
        const float *below = lines + mirrored((long)y + k, height) * stride + at;
        for (size_t i = 0; i < count; i++)
            sums[i] += weights[k] * (above[i] + below[i]);
    }
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)rintf(fminf(sums[i], 255));
}

void mr_blur(float sigma, uint8_t *rgb, uint32_t width, uint32_t height, float *scratch)
{
    float weights[RADIUS_MOST + 1];
    size_t stride = 3 * (size_t)width;
    unsigned radius = kernel(sigma, width, weights);
    for (uint32_t y = 0; y < height; y++)
        across(weights, radius, rgb + y * stride, width, scratch + y * stride);
    radius = kernel(sigma, height, weights);
    for (uint32_t y = 0; y < height; y++)
        for (size_t at = 0; at < stride; at += BLOCK)
            down(weights, radius, scratch, stride, y, height, at, stride - at < BLOCK ? stride - at : BLOCK,
                 rgb + y * stride + at);
}
