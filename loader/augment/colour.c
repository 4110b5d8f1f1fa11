/* colour.c - brightness, contrast, saturation, hue and grey of bytes, in place.
 * Invariant: each is torchvision's function of a uint8 tensor (transforms v2, adjust_brightness ...), to one level.
 *
 *   bytes R G B R G B ...  ->  a block of planes, as floats  ->  loops without branches, for vectors  ->  bytes
 *
 * Sources: torchvision/transforms/v2/functional/_color.py, whose weights of grey are those of ITU-R BT.601. */
#include "loader/augment/changes.h"

enum { BLOCK = 256 };

typedef struct planes {
    float red[BLOCK], green[BLOCK], blue[BLOCK];
} planes;

static void take(const uint8_t *rgb, size_t count, planes *p)
{
    for (size_t i = 0; i < count; i++) {
        p->red[i] = rgb[3 * i];
        p->green[i] = rgb[3 * i + 1];
        p->blue[i] = rgb[3 * i + 2];
    }
}

static void put(const planes *p, size_t count, uint8_t *rgb)
{
    for (size_t i = 0; i < count; i++) {
        rgb[3 * i] = mr_byte_of(p->red[i]);
        rgb[3 * i + 1] = mr_byte_of(p->green[i]);
        rgb[3 * i + 2] = mr_byte_of(p->blue[i]);
    }
}

/* ---- by a table of bytes ----------------------------------------------------------------------------------------- */

static void look_up(const uint8_t table[256], uint8_t *rgb, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        rgb[i] = table[rgb[i]];
}

static void brighten(float factor, uint8_t *rgb, size_t pixels)
{
    uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = mr_byte_of(factor * (float)i);
    look_up(table, rgb, 3 * pixels);
}

static int grey_of(float red, float green, float blue)
{
    return (int)(0.2989f * red + 0.587f * green + 0.114f * blue);
}

static int grey_at(const uint8_t *p)
{
    return grey_of((float)p[0], (float)p[1], (float)p[2]);
}

/* Towards the mean of the grey image, or away from it. */
static void contrast(float factor, uint8_t *rgb, size_t pixels)
{
    uint8_t table[256];
    uint64_t sum = 0;
    for (size_t i = 0; i < pixels; i++)
        sum += (uint64_t)grey_at(rgb + 3 * i);
    float mean = pixels ? (float)((double)sum / (double)pixels) : 0;
    for (int i = 0; i < 256; i++)
        table[i] = mr_byte_of(factor * (float)i + (1 - factor) * mean);
    look_up(table, rgb, 3 * pixels);
}

/* ---- by planes --------------------------------------------------------------------------------------------------- */

static void saturate(float factor, planes *p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float own = (float)grey_of(p->red[i], p->green[i], p->blue[i]);
        float grey = (1 - factor) * own;
        p->red[i] = factor * p->red[i] + grey;
        p->green[i] = factor * p->green[i] + grey;
        p->blue[i] = factor * p->blue[i] + grey;
    }
}

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

/* A channel of a fully saturated colour, which is highest at `centre` on the circle of six sixths: 1 within a sixth of
 * it, 0 beyond two; then to bytes as torchvision scales floats, in 256 steps of equal width. */
static float colour_at(float hue, float centre, float most, float range)
{
    float far = hue > centre ? hue - centre : centre - hue, near = smaller(far, 6 - far);
    float part = smaller(larger(2 - near, 0), 1);
    return (most - range * (1 - part)) * (float)((256 - 1e-3) / 255);
}

static void turn(float share, planes *p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float red = p->red[i], green = p->green[i], blue = p->blue[i];
        float most = larger(larger(red, green), blue), range = most - smaller(smaller(red, green), blue);
        float by = 1 / (range > 0 ? range : 1); /* grey has no hue, and no range that would show it */
        float of_red = (green - blue) * by, of_green = 2 + (blue - red) * by, of_blue = 4 + (red - green) * by;
        float others = green == most ? of_green : of_blue;
        float hue = (red == most ? of_red : others) + 6 * share;
        hue += hue < 0 ? 6.0f : 0.0f;
        hue -= hue >= 6 ? 6.0f : 0.0f;
        p->red[i] = colour_at(hue, 0, most, range);
        p->green[i] = colour_at(hue, 2, most, range);
        p->blue[i] = colour_at(hue, 4, most, range);
    }
}

static void by_planes(void (*change)(float, planes *, size_t), float amount, uint8_t *rgb, size_t pixels)
{
    planes p;
    for (size_t at = 0; at < pixels; at += BLOCK) {
        size_t count = pixels - at < BLOCK ? pixels - at : BLOCK;
        take(rgb + 3 * at, count, &p);
        change(amount, &p, count);
        put(&p, count, rgb + 3 * at);
    }
}

void mr_jitter(int what, float amount, uint8_t *rgb, size_t pixels)
{
    if (what == MR_BRIGHTNESS)
        brighten(amount, rgb, pixels);
    else if (what == MR_CONTRAST)
        contrast(amount, rgb, pixels);
    else
        by_planes(what == MR_HUE ? turn : saturate, amount, rgb, pixels);
}

void mr_grey(uint8_t *rgb, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++) {
        uint8_t *p = rgb + 3 * i;
        p[0] = p[1] = p[2] = (uint8_t)grey_at(p);
    }
}
