/* plain.c - the inner loops in plain C: the reference for the faster ones.
 * Invariant: nothing here depends on the machine. */
#include "image/resize/kernels.h"

static uint8_t settle(uint32_t low, uint32_t high)
{
    int32_t v = (int32_t)(low + (high << MR_RESIZE_SPLIT) + (1u << (MR_RESIZE_BITS - 1))) >> MR_RESIZE_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void across_row(const mr_resize_axis *axis, const uint8_t *row, uint8_t *out)
{
    const int16_t *k = axis->k;
    for (size_t o = 0; o < axis->outputs; o++, out += 3) {
        const uint8_t *p = row + (size_t)axis->start[o] * 3;
        uint32_t low[3] = {0}, high[3] = {0};
        for (size_t q = 0; q < axis->pairs; q++, k += 4, p += 6) {
            for (int c = 0; c < 3; c++) {
                low[c] += (uint32_t)(p[c] * k[0] + p[c + 3] * k[1]);
                high[c] += (uint32_t)(p[c] * k[2] + p[c + 3] * k[3]);
            }
        }
        for (int c = 0; c < 3; c++)
            out[c] = settle(low[c], high[c]);
    }
}

static void across(const mr_resize_axis *axis, const uint8_t *const rows[4], uint8_t *const out[4])
{
    for (int i = 0; i < 4; i++)
        if (i == 0 || out[i] != out[i - 1])
            across_row(axis, rows[i], out[i]);
}

static void down(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t len, uint8_t *out)
{
    for (size_t x = 0; x < len; x++) {
        uint32_t low = 0, high = 0;
        for (size_t q = 0; q < pairs; q++) {
            uint8_t a = rows[2 * q][x], b = rows[2 * q + 1][x];
            low += (uint32_t)(a * k[4 * q] + b * k[4 * q + 1]);
            high += (uint32_t)(a * k[4 * q + 2] + b * k[4 * q + 3]);
        }
        out[x] = settle(low, high);
    }
}

static void spread_f32(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, float *out, size_t plane)
{
    for (size_t x = 0; x < pixels; x++, rgb += 3)
        for (size_t c = 0; c < 3; c++)
            out[c * plane + x] = n->f32[c][rgb[c]];
}

void mr_resize_spread_halves(const uint16_t table[3][256], const uint8_t *rgb, size_t pixels, uint16_t *out,
                             size_t plane)
{
    for (size_t x = 0; x < pixels; x++, rgb += 3)
        for (size_t c = 0; c < 3; c++)
            out[c * plane + x] = table[c][rgb[c]];
}

static void spread_bf16(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, uint16_t *out, size_t plane)
{
    mr_resize_spread_halves(n->bf16, rgb, pixels, out, plane);
}

const mr_resize_kernels mr_resize_plain = {
    .name = "plain",
    .needs = MR_PLAIN_C,
    .across = across,
    .down = down,
    .spread_f32 = spread_f32,
    .spread_bf16 = spread_bf16,
};
