/* positions.c - position embeddings of another grid.
 * Invariant: the class token's row is copied.
 * Source: scipy.ndimage.zoom(order=1), as in google-research/vision_transformer, vit_jax/checkpoint.py. */
#include "train/model/vit/parts.h"

#include <string.h>

void mr_vit_resize_positions(const float *in, uint32_t from, float *out, uint32_t to, size_t width)
{
    double step = to > 1 ? (double)(from - 1) / (to - 1) : 0;
    memcpy(out, in, width * sizeof *out);
    in += width;
    out += width;
    for (uint32_t y = 0; y < to; y++) {
        uint32_t y0 = (uint32_t)(y * step), y1 = y0 + 1 < from ? y0 + 1 : from - 1;
        double below = y * step - y0;
        for (uint32_t x = 0; x < to; x++, out += width) {
            uint32_t x0 = (uint32_t)(x * step), x1 = x0 + 1 < from ? x0 + 1 : from - 1;
            double right = x * step - x0;
            const float *a = in + ((size_t)y0 * from + x0) * width, *b = in + ((size_t)y0 * from + x1) * width;
            const float *c = in + ((size_t)y1 * from + x0) * width, *d = in + ((size_t)y1 * from + x1) * width;
            for (size_t k = 0; k < width; k++)
                out[k] = (float)((1 - below) * ((1 - right) * a[k] + right * b[k]) +
                                 below * ((1 - right) * c[k] + right * d[k]));
        }
    }
}
