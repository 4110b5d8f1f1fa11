/* resize_axis.c - which inputs make an output, and how much of each.
 * Invariant: the operations on doubles are those of Pillow's Resample.c, one by one, so that each rounded coefficient
 * is equal; that is why a weight is scaled by 1 / fs and not divided by fs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "resize_kernels.h"

static double triangle(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double cubic(double x)           /* Keys, a = -1/2 */
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

typedef struct window {
    double centre, step;                /* step: 1 / fs */
    uint32_t low, taps;
} window;

/* A pass that changes no size copies: one tap, whose weight is 1. */
static window window_of(uint32_t in, uint32_t out, bool bicubic, uint32_t o)
{
    double scale = (double)in / out, fs = scale < 1.0 ? 1.0 : scale, support = (bicubic ? 2.0 : 1.0) * fs;
    double centre = (o + 0.5) * scale, from = centre - support + 0.5, to = centre + support + 0.5;
    uint32_t low = from < 1.0 ? 0 : (uint32_t)from, high = to < in ? (uint32_t)to : in;
    return in == out ? (window){o + 0.5, 1.0, o, 1} : (window){centre, 1.0 / fs, low, high - low};
}

static uint32_t most_taps(uint32_t in, uint32_t out, uint32_t first, uint32_t count, bool bicubic)
{
    uint32_t taps = 1;
    for (uint32_t i = 0; i < count && in != out; i++) {
        window w = window_of(in, out, bicubic, first + i);
        taps = w.taps > taps ? w.taps : taps;
    }
    return taps;
}

static int32_t fixed(double k)
{
    return (int32_t)(k * (1 << MR_RESIZE_BITS) + (k < 0 ? -0.5 : 0.5));
}

static void put_tap(int16_t *k, uint32_t tap, int32_t v)
{
    int32_t low = v & ((1 << MR_RESIZE_SPLIT) - 1);
    k += tap / 2 * 4 + tap % 2;
    k[0] = (int16_t)low;
    k[2] = (int16_t)((v - low) / (1 << MR_RESIZE_SPLIT));
}

/* The weights of a window, which add up to 1. */
static double sum_of(const window *w, bool bicubic)
{
    double (*weight)(double) = bicubic ? cubic : triangle, sum = 0.0;
    for (uint32_t j = 0; j < w->taps; j++)
        sum += weight((j + w->low - w->centre + 0.5) * w->step);
    return sum;
}

static double share_of(const window *w, bool bicubic, double sum, uint32_t tap)
{
    double v = (bicubic ? cubic : triangle)((tap + w->low - w->centre + 0.5) * w->step);
    return sum != 0.0 ? v / sum : v;
}

/* Taps are moved right by `lead`, behind coefficients of 0, so that a window at the far end stays inside the input. */
static void put_window(const window *w, bool bicubic, uint32_t lead, int16_t *k)
{
    double sum = sum_of(w, bicubic);
    for (uint32_t j = 0; j < w->taps; j++)
        put_tap(k, lead + j, fixed(share_of(w, bicubic, sum, j)));
}

static bool make_room(mr_resize_axis *axis, size_t outputs, size_t pairs)
{
    size_t n;
    if (outputs > axis->start_room) {
        free(axis->start);
        axis->start = mr_alloc(outputs, sizeof *axis->start);
        axis->start_room = axis->start ? outputs : 0;
    }
    if (__builtin_mul_overflow(outputs, pairs * 4, &n))
        return false;
    if (n > axis->k_room) {
        free(axis->k);
        axis->k = mr_alloc(n, sizeof *axis->k);
        axis->k_room = axis->k ? n : 0;
    }
    if (!axis->start || !axis->k)
        return false;
    memset(axis->k, 0, n * sizeof *axis->k);
    return true;
}

mr_status mr_resize_axis_set(mr_resize_axis *axis, uint32_t in, uint32_t out, uint32_t first, uint32_t count,
                             bool bicubic, bool mirrored, mr_error *err)
{
    uint32_t taps = most_taps(in, out, first, count, bicubic);
    size_t pairs = (taps + 1) / 2;
    if (!make_room(axis, count, pairs))
        return mr_fail_memory(err, "resizing a picture");
    axis->outputs = count;
    axis->pairs = pairs;
    uint32_t last = in > 2 * pairs ? in - (uint32_t)(2 * pairs) : 0;    /* where a window may start */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t o = first + (mirrored ? count - 1 - i : i);
        window w = window_of(in, out, bicubic, o);
        uint32_t lead = w.low > last ? w.low - last : 0;
        axis->start[i] = w.low - lead;
        put_window(&w, bicubic, lead, axis->k + i * pairs * 4);
    }
    return MR_OK;
}

void mr_resize_axis_free(mr_resize_axis *axis)
{
    free(axis->start);
    free(axis->k);
}

/* ---- floats ----------------------------------------------------------------------------------------------------- */

static bool make_float_room(mr_resize_floats *axis, size_t outputs, size_t taps)
{
    size_t n;
    if (outputs > axis->room) {
        free(axis->start);
        free(axis->count);
        axis->start = mr_alloc(outputs, sizeof *axis->start);
        axis->count = mr_alloc(outputs, sizeof *axis->count);
        axis->room = axis->start && axis->count ? outputs : 0;
    }
    if (__builtin_mul_overflow(outputs, taps, &n))
        return false;
    if (n > axis->k_room) {
        free(axis->k);
        axis->k = mr_alloc(n, sizeof *axis->k);
        axis->k_room = axis->k ? n : 0;
    }
    return axis->start && axis->count && axis->k;
}

mr_status mr_resize_floats_set(mr_resize_floats *axis, uint32_t in, uint32_t out, uint32_t first, uint32_t count,
                               bool bicubic, bool mirrored, mr_error *err)
{
    uint32_t taps = most_taps(in, out, first, count, bicubic);
    if (!make_float_room(axis, count, taps))
        return mr_fail_memory(err, "resizing a picture");
    axis->outputs = count;
    axis->taps = taps;
    for (uint32_t i = 0; i < count; i++) {
        window w = window_of(in, out, bicubic, first + (mirrored ? count - 1 - i : i));
        double sum = sum_of(&w, bicubic);
        axis->start[i] = w.low;
        axis->count[i] = w.taps;
        for (uint32_t t = 0; t < w.taps; t++)
            axis->k[(size_t)i * taps + t] = (float)share_of(&w, bicubic, sum, t);
    }
    return MR_OK;
}

void mr_resize_floats_free(mr_resize_floats *axis)
{
    free(axis->start);
    free(axis->count);
    free(axis->k);
}
