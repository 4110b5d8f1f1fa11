/* norm.c - (pixel / 255 - mean) / std for each value of a pixel.
 * Invariant: each operation is rounded to float32, as in torch; `quick` was tested on all 768 values. */
#include <math.h>
#include <string.h>

#include "base/bf16.h"
#include "base/f16.h"
#include "image/resize/kernels.h"

void mr_resize_inverse(float x, float *inverse, float *rest)
{
    *inverse = (float)(1.0 / (double)x);
    *rest = (float)(1.0 / (double)x - (double)*inverse);
}

/* The operations of the fast kernels, whose multiply-adds also round once. */
static bool quick_gives(const mr_resize_norm *n, int c, int v)
{
    float inverse, rest;
    mr_resize_inverse(255.0f, &inverse, &rest);
    float unit = fmaf((float)v, inverse, (float)v * rest), centred = unit - n->mean[c];
    float quick = fmaf(centred, n->inverse[c], centred * n->rest[c]);
    return !memcmp(&quick, &n->f32[c][v], sizeof quick);
}

static void set_channel(mr_resize_norm *n, int c)
{
    mr_resize_inverse(n->std[c], &n->inverse[c], &n->rest[c]);
    for (int v = 0; v < 256; v++) {
        float unit = (float)v / 255.0f, centred = unit - n->mean[c];
        n->f32[c][v] = centred / n->std[c];
        n->bf16[c][v] = mr_bf16_of(n->f32[c][v]);
        n->f16[c][v] = mr_f16_of(n->f32[c][v]);
        n->quick = n->quick && quick_gives(n, c, v);
    }
}

mr_status mr_resize_norm_set(mr_resize_norm *n, const float mean[3], const float std[3], mr_error *err)
{
    for (int c = 0; c < 3; c++)
        if (!isfinite(mean[c]) || !isfinite(std[c]) || !isfinite(1 / std[c]))
            return mr_fail(err, MR_MISUSE, "normalising by mean %g and std %g: both must be finite, and std not 0",
                           (double)mean[c], (double)std[c]);
    if (n->set && !memcmp(n->mean, mean, sizeof n->mean) && !memcmp(n->std, std, sizeof n->std))
        return MR_OK;
    memcpy(n->mean, mean, sizeof n->mean);
    memcpy(n->std, std, sizeof n->std);
    n->set = n->quick = true;
    for (int c = 0; c < 3; c++)
        set_channel(n, c);
    return MR_OK;
}

void mr_resize_norm_planes(const mr_resize_norm *n, float *values, size_t plane)
{
    for (int c = 0; c < 3; c++) {
        float mean = n->mean[c], std = n->std[c];
        for (size_t i = 0; i < plane; i++, values++)
            *values = (*values - mean) / std;
    }
}
