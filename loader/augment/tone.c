/* tone.c - sharpness, and operations that look each byte up in a table.
 * Invariant: each is torchvision's function of a uint8 tensor, to one level.
 * Sources: torchvision/transforms/v2/functional/_color.py; equalize is Pillow's scheme. */
#include <math.h>
#include <string.h>

#include "loader/augment/policy.h"

static void look_up(uint8_t tables[3][256], uint8_t *rgb, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++)
            rgb[3 * i + (size_t)c] = tables[c][rgb[3 * i + (size_t)c]];
}

static void count(const uint8_t *rgb, size_t pixels, uint64_t counts[3][256])
{
    memset(counts, 0, 3 * sizeof *counts);
    for (size_t i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++)
            counts[c][rgb[3 * i + (size_t)c]]++;
}

void mr_posterize(unsigned bits, uint8_t *rgb, size_t pixels)
{
    uint8_t mask = (uint8_t)(0xFF00U >> bits);
    for (size_t i = 0; i < 3 * pixels; i++)
        rgb[i] &= mask;
}

void mr_solarize(float threshold, uint8_t *rgb, size_t pixels)
{
    unsigned from = (unsigned)ceilf(threshold);
    for (size_t i = 0; i < 3 * pixels; i++)
        rgb[i] = rgb[i] >= from ? (uint8_t)(255 - rgb[i]) : rgb[i];
}

/* The existing range becomes 0 to 255. */
void mr_autocontrast(uint8_t *rgb, size_t pixels)
{
    uint64_t counts[3][256];
    uint8_t tables[3][256];
    count(rgb, pixels, counts);
    for (int c = 0; c < 3; c++) {
        int low = 0, high = 255;
        while (low < 255 && !counts[c][low])
            low++;
        while (high > low && !counts[c][high])
            high--;
        float scale = (float)(high - low) * (1.0f / 255);
        for (int i = 0; i < 256; i++) {
            float value = low == high ? (float)i : (float)(i - low) / scale;
            tables[c][i] = mr_byte_of(value);
        }
    }
    look_up(tables, rgb, pixels);
}

void mr_equalize(uint8_t *rgb, size_t pixels)
{
    uint64_t counts[3][256];
    uint8_t tables[3][256];
    count(rgb, pixels, counts);
    for (int c = 0; c < 3; c++) {
        int last = 255;
        while (last && !counts[c][last])
            last--;
        uint64_t step = (pixels - counts[c][last]) / 255, below = 0;
        for (int i = 0; i < 256; i++) {
            uint64_t level = step ? (below + step / 2) / step : (uint64_t)i;
            tables[c][i] = (uint8_t)(level < 255 ? level : 255);
            below += counts[c][i];
        }
    }
    look_up(tables, rgb, pixels);
}

/* Away from a smoothed image, or towards it; the pixels at the edge stay. */
void mr_sharpen(float factor, uint8_t *rgb, uint32_t width, uint32_t height, uint8_t *scratch)
{
    const float edge = 1.0f / 13, centre = 5.0f / 13;
    size_t stride = 3 * (size_t)width;
    if (width <= 2 || height <= 2)
        return;
    memcpy(scratch, rgb, stride * height);
    for (uint32_t y = 1; y + 1 < height; y++) {
        const uint8_t *up = scratch + (y - 1) * stride, *own = up + stride, *down = own + stride;
        uint8_t *out = rgb + y * stride;
        for (size_t i = 3; i < stride - 3; i++) {
            int around = up[i - 3] + up[i] + up[i + 3] + own[i - 3] + own[i + 3] + down[i - 3] + down[i] + down[i + 3];
            float smooth = rintf((float)around * edge + (float)own[i] * centre), value = (float)own[i];
            value += (smooth - value) * (1 - factor);
            out[i] = mr_byte_of(value);
        }
    }
}
