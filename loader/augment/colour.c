/* colour.c - brightness, contrast, saturation, hue and grey of bytes, in place.
 * Invariant: each is torchvision's function of a uint8 tensor (transforms v2, adjust_brightness ...), to one level.
 * Sources: torchvision/transforms/v2/functional/_color.py, whose weights of grey are those of ITU-R BT.601. */
#include <math.h>

#include "loader/augment/changes.h"

static float grey_of(const uint8_t *p)
{
    return 0.2989f * (float)p[0] + 0.587f * (float)p[1] + 0.114f * (float)p[2];
}

static uint8_t byte_of(float value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void brighten(float factor, uint8_t *rgb, size_t pixels)
{
    uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = byte_of(factor * (float)i);
    for (size_t i = 0; i < 3 * pixels; i++)
        rgb[i] = table[rgb[i]];
}

/* Towards the mean of the grey picture, or away from it. */
static void contrast(float factor, uint8_t *rgb, size_t pixels)
{
    uint64_t sum = 0;
    uint8_t table[256];
    for (size_t i = 0; i < pixels; i++)
        sum += (uint64_t)grey_of(rgb + 3 * i);
    float mean = pixels ? (float)((double)sum / (double)pixels) : 0;
    for (int i = 0; i < 256; i++)
        table[i] = byte_of(factor * (float)i + (1 - factor) * mean);
    for (size_t i = 0; i < 3 * pixels; i++)
        rgb[i] = table[rgb[i]];
}

static void saturate(float factor, uint8_t *rgb, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++) {
        uint8_t *p = rgb + 3 * i;
        float grey = (1 - factor) * (float)(int)grey_of(p);
        for (int k = 0; k < 3; k++)
            p[k] = byte_of(factor * (float)p[k] + grey);
    }
}

/* Sixths of the circle from red; `range`: the difference of the largest and the smallest, above 0. */
static float hue_of(const uint8_t *p, float most, float range)
{
    float r = (most - (float)p[0]) / range, g = (most - (float)p[1]) / range, b = (most - (float)p[2]) / range;
    float hue = p[0] == most ? b - g : p[1] == most ? 2 + r - b : 4 + g - r;
    return hue < 0 ? hue + 6 : hue;
}

/* Back to bytes as torchvision scales floats: 256 steps of equal width. */
static uint8_t step_of(float byte)
{
    return byte_of(byte * (float)((256 - 1e-3) / 255));
}

static void turn(float share, uint8_t *rgb, size_t pixels)
{
    /* How much of the range each colour has at a place of the circle: full within a sixth of its own, none opposite. */
    static const float centre[3] = {0, 2, 4};
    for (size_t i = 0; i < pixels; i++) {
        uint8_t *p = rgb + 3 * i;
        float most = fmaxf(fmaxf(p[0], p[1]), p[2]), range = most - fminf(fminf(p[0], p[1]), p[2]);
        if (range == 0) { /* grey has no hue */
            p[0] = p[1] = p[2] = step_of(most);
            continue;
        }
        float hue = fmodf(hue_of(p, most, range) + 6 * share + 6, 6);
        for (int k = 0; k < 3; k++) {
            float far = fabsf(hue - centre[k]), near = fminf(far, 6 - far);
            float part = fminf(fmaxf(2 - near, 0), 1);
            p[k] = step_of(most - range * (1 - part));
        }
    }
}

void mr_jitter(int what, float amount, uint8_t *rgb, size_t pixels)
{
    static void (*const functions[MR_JITTERS])(float, uint8_t *, size_t) = {
        [MR_BRIGHTNESS] = brighten, [MR_CONTRAST] = contrast, [MR_SATURATION] = saturate, [MR_HUE] = turn};
    functions[what](amount, rgb, pixels);
}

void mr_grey(uint8_t *rgb, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++) {
        uint8_t *p = rgb + 3 * i;
        p[0] = p[1] = p[2] = (uint8_t)grey_of(p);
    }
}
