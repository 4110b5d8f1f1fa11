/* warp.c - an image transformed by a matrix: shear, translation, rotation.
 * Invariant: a pixel is one of the input, the nearest, or black; none is blended.
 * Source: torch's grid_sample(), mode nearest, zeros outside, corners not aligned: halves round to even. */
#include <math.h>
#include <string.h>

#include "loader/augment/policy.h"

void mr_warp(const float matrix[6], uint8_t *rgb, uint32_t width, uint32_t height, uint8_t *scratch)
{
    float middle_x = (float)(width - 1) / 2, middle_y = (float)(height - 1) / 2;
    memcpy(scratch, rgb, (size_t)width * height * 3);
    for (uint32_t y = 0; y < height; y++) {
        float down = (float)y - middle_y;
        float from_x = matrix[1] * down + matrix[2], from_y = matrix[4] * down + matrix[5];
        uint8_t *out = rgb + 3 * (size_t)y * width;
        for (uint32_t x = 0; x < width; x++, out += 3) {
            float across = (float)x - middle_x;
            float in_x = rintf(matrix[0] * across + from_x + middle_x),
                  in_y = rintf(matrix[3] * across + from_y + middle_y);
            bool inside = in_x >= 0 && in_x < (float)width && in_y >= 0 && in_y < (float)height;
            if (inside)
                memcpy(out, scratch + 3 * ((size_t)in_y * width + (size_t)in_x), 3);
            else
                memset(out, 0, 3);
        }
    }
}
