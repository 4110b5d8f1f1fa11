/* axis.c - which inputs contribute to an output, and with which weights.
 * Invariant: the operations on doubles are exactly those of Pillow's Resample.c, so that rounded coefficients are
 * equal; hence a weight is multiplied by 1 / fs, not divided by fs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "image/resize/kernels.h"

static double triangle(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double cubic(double x) /* Keys, a = -1/2 */
{
    const double a = -0.5;
    x = fabs(x);
    double inner = ((a + 2.0) * x - (a + 3.0)) * x * x + 1, outer = (((x - 5) * x + 8) * x - 4) * a;
    outer = x < 2.0 ? outer : 0.0; /* both are computed: the branch would be unpredictable */
    return x < 1.0 ? inner : outer;
}

typedef struct window {
    double centre, step; /* step: 1 / fs */
    uint32_t low, taps;
} window;

/* A pass that does not change the size copies: one tap of weight 1.  Inline, with the divisions first, so that they are
 * hoisted out of loops. */
static inline window window_of(uint32_t in, uint32_t out, bool bicubic, uint32_t o)
{
    double scale = (double)in / out, fs = scale < 1.0 ? 1.0 : scale, step = 1.0 / fs;
    double support = (bicubic ? 2.0 : 1.0) * fs, centre = (o + 0.5) * scale;
    double from = centre - support + 0.5, to = centre + support + 0.5;
    uint32_t low = from < 1.0 ? 0 : (uint32_t)from, high = to < in ? (uint32_t)to : in;
    return in == out ? (window){o + 0.5, 1.0, o, 1} : (window){centre, step, low, high - low};
}

/* The window of the side's output i, in the order of delivery. */
static inline window window_at(const mr_resize_side *s, uint32_t i)
{
    return window_of(s->in, s->out, s->bicubic, s->first + (s->mirrored ? s->count - 1 - i : i));
}

/* Windows begin and end in the order of their outputs. */
mr_resize_span mr_resize_side_needs(const mr_resize_side *s)
{
    window first = window_of(s->in, s->out, s->bicubic, s->first);
    window last = window_of(s->in, s->out, s->bicubic, s->first + s->count - 1);
    return (mr_resize_span){first.low, last.low + last.taps - first.low};
}

static uint32_t max_taps(const mr_resize_side *s)
{
    uint32_t taps = 1;
    for (uint32_t i = 0; i < s->count && s->in != s->out; i++) {
        window w = window_at(s, i);
        taps = w.taps > taps ? w.taps : taps;
    }
    return taps;
}

static int32_t fixed(double k)
{
    return (int32_t)(k * (1 << MR_RESIZE_BITS) + copysign(0.5, k));
}

static void put_tap(int16_t *k, uint32_t tap, int32_t v)
{
    int32_t low = v & ((1 << MR_RESIZE_SPLIT) - 1);
    k += tap / 2 * 4 + tap % 2;
    k[0] = (int16_t)low;
    k[2] = (int16_t)((v - low) / (1 << MR_RESIZE_SPLIT));
}

static inline double weight_of(const window *w, bool bicubic, uint32_t tap)
{
    double x = (tap + w->low - w->centre + 0.5) * w->step;
    return bicubic ? cubic(x) : triangle(x);
}

/* The sum of a window's weights, by which they are divided; 1 if it is 0. */
static inline double sum_of(const window *w, bool bicubic)
{
    double sum = 0.0;
    for (uint32_t j = 0; j < w->taps; j++)
        sum += weight_of(w, bicubic, j);
    return sum != 0.0 ? sum : 1.0;
}

static inline double share_of(const window *w, bool bicubic, double sum, uint32_t tap)
{
    return weight_of(w, bicubic, tap) / sum;
}

/* Taps are moved right by `lead`, after coefficients of 0, so that no window exceeds the inputs held. */
static inline void put_window(const window *w, bool bicubic, uint32_t lead, int16_t *k)
{
    double sum = sum_of(w, bicubic);
    for (uint32_t j = 0; j < w->taps; j++)
        put_tap(k, lead + j, fixed(share_of(w, bicubic, sum, j)));
}

static bool make_room(mr_resize_axis *axis, size_t outputs, size_t pairs)
{
    size_t n;
    if (outputs > axis->start_capacity) {
        free(axis->start);
        axis->start = mr_alloc(outputs, sizeof *axis->start);
        axis->start_capacity = axis->start ? outputs : 0;
    }
    if (__builtin_mul_overflow(outputs, pairs * 4, &n))
        return false;
    if (n > axis->k_capacity) {
        free(axis->k);
        axis->k = mr_alloc(n, sizeof *axis->k);
        axis->k_capacity = axis->k ? n : 0;
    }
    if (!axis->start || !axis->k)
        return false;
    memset(axis->k, 0, n * sizeof *axis->k);
    return true;
}

mr_status mr_resize_axis_set(mr_resize_axis *axis, const mr_resize_side *side, mr_error *err)
{
    const mr_resize_side kept = *side, *s = &kept; /* a copy that no store below can alias */
    uint32_t taps = max_taps(s), held = s->held.count;
    size_t pairs = (taps + 1) / 2;
    if (!make_room(axis, s->count, pairs))
        return mr_fail_memory(err, "resizing an image");
    axis->outputs = s->count;
    axis->pairs = pairs;
    uint32_t last = held > 2 * pairs ? held - (uint32_t)(2 * pairs) : 0; /* where a window may start */
    for (uint32_t i = 0; i < s->count; i++) {
        window w = window_at(s, i);
        uint32_t low = w.low - s->held.from, lead = low > last ? low - last : 0;
        axis->start[i] = low - lead;
        put_window(&w, s->bicubic, lead, axis->k + i * pairs * 4);
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
    if (outputs > axis->capacity) {
        free(axis->start);
        free(axis->count);
        axis->start = mr_alloc(outputs, sizeof *axis->start);
        axis->count = mr_alloc(outputs, sizeof *axis->count);
        axis->capacity = axis->start && axis->count ? outputs : 0;
    }
    if (__builtin_mul_overflow(outputs, taps, &n))
        return false;
    if (n > axis->k_capacity) {
        free(axis->k);
        axis->k = mr_alloc(n, sizeof *axis->k);
        axis->k_capacity = axis->k ? n : 0;
    }
    return axis->start && axis->count && axis->k;
}

mr_status mr_resize_floats_set(mr_resize_floats *axis, const mr_resize_side *s, mr_error *err)
{
    uint32_t taps = max_taps(s);
    if (!make_float_room(axis, s->count, taps))
        return mr_fail_memory(err, "resizing an image");
    axis->outputs = s->count;
    axis->taps = taps;
    for (uint32_t i = 0; i < s->count; i++) {
        window w = window_at(s, i);
        double sum = sum_of(&w, s->bicubic);
        axis->start[i] = w.low - s->held.from;
        axis->count[i] = w.taps;
        for (uint32_t t = 0; t < w.taps; t++)
            axis->k[(size_t)i * taps + t] = (float)share_of(&w, s->bicubic, sum, t);
    }
    return MR_OK;
}

void mr_resize_floats_free(mr_resize_floats *axis)
{
    free(axis->start);
    free(axis->count);
    free(axis->k);
}
