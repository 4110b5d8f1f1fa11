/* augment.c - the part of an image that is shown, and whether it is mirrored.
 * Invariant: every box is inside the image and has at least one pixel, whatever the numbers.
 *
 *   train     seed, epoch, sample -> random stream: mirror?, then up to ten tries of (area, ratio), then the position
 *   patch     the same stream: mirror?, then the position
 *   center    W x H -> short side `resize` -> its central size x size              square    W x H -> size x size */
#include "loader/order/augment.h"

#include <math.h>

#include "base/error.h"
#include "loader/order/stream.h"
#include "image/resize/resize.h"

enum { TRIES = 10, DEFAULT_SIZE = 224 };

/* Makes these numbers independent of the order's, which has the same seed. */
#define PURPOSE UINT64_C(0x6175676D656E7421)

/* Python's round(): to nearest, ties to even.  Not rint(), which depends on the caller's rounding mode. */
static double round_half_even(double x)
{
    double below = floor(x), part = x - below;
    if (part < 0.5 || (part == 0.5 && fmod(below, 2) == 0))
        return below;
    return below + 1;
}

/* ---- train ---------------------------------------------------------------------------------------------------- */

static uint32_t size_of(const mr_transform *t)
{
    return t->size ? t->size : DEFAULT_SIZE;
}

typedef struct ratios {
    double low, high;
} ratios;

static ratios ratios_of(const mr_transform *t)
{
    bool given = t->ratio_min != 0 || t->ratio_max != 0;
    return given ? (ratios){(double)t->ratio_min, (double)t->ratio_max} : (ratios){3.0 / 4, 4.0 / 3};
}

/* If no try fits: the whole image, or its middle if it is longer than the ratios allow. */
static void fall_back(mr_view *v, ratios allowed, uint32_t width, uint32_t height)
{
    double ratio = (double)width / height, side;
    v->width = width;
    v->height = height;
    if (ratio < allowed.low) {
        side = fmax(round_half_even(width / allowed.low), 1);
        v->height = side < height ? (uint32_t)side : height;
    } else if (ratio > allowed.high) {
        side = fmax(round_half_even(height * allowed.high), 1);
        v->width = side < width ? (uint32_t)side : width;
    }
    v->left = (width - v->width) / 2;
    v->top = (height - v->height) / 2;
}

mr_view mr_view_train(const mr_transform *t, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t width,
                      uint32_t height)
{
    bool given = t->scale_min != 0 || t->scale_max != 0;
    double scale_min = given ? t->scale_min : 0.08f, scale_max = given ? t->scale_max : 1;
    double area = (double)width * height;
    ratios allowed = ratios_of(t);
    bool usual = t->ratio_min == 0 && t->ratio_max == 0; /* as log(3/4), to the last bit */
    double low = usual ? -log(4.0 / 3) : log(allowed.low), high = usual ? -low : log(allowed.high);
    mr_stream numbers = mr_stream_of(PURPOSE, seed, epoch, sample);
    mr_view v = {.out_width = size_of(t), .out_height = size_of(t)};
    v.flip = mr_stream_unit(&numbers) < t->flip;
    for (int i = 0; i < TRIES; i++) {
        double a = area * mr_stream_between(&numbers, scale_min, scale_max);
        double r = exp(mr_stream_between(&numbers, low, high));
        double w = round_half_even(sqrt(a * r)), h = round_half_even(sqrt(a / r));
        /* Compared as doubles, so that a value, even NaN, is cast only if it fits. */
        if (w >= 1 && w <= width && h >= 1 && h <= height) {
            v.width = (uint32_t)w;
            v.height = (uint32_t)h;
            v.top = mr_stream_upto(&numbers, height - v.height);
            v.left = mr_stream_upto(&numbers, width - v.width);
            return v;
        }
    }
    fall_back(&v, allowed, width, height);
    return v;
}

/* ---- eval ----------------------------------------------------------------------------------------------------- */

static uint32_t longer_side(uint32_t resize, uint32_t longer, uint32_t shorter)
{
    /* One rounded division, then truncated, as Python's int(resize * longer / shorter). */
    double side = (double)resize * longer / shorter;
    return side < UINT32_MAX ? (uint32_t)side : UINT32_MAX;
}

static uint32_t middle(uint32_t side, uint32_t size)
{
    return (uint32_t)round_half_even((side - size) / 2.0);
}

mr_view mr_view_eval(const mr_transform *t, uint32_t width, uint32_t height)
{
    uint32_t size = size_of(t), resize = t->resize ? t->resize : (uint32_t)((uint64_t)size * 256 / 224);
    mr_view v = {.width = width, .height = height, .out_width = size, .out_height = size};
    if (t->kind == MR_TRANSFORM_SQUARE)
        return v;
    if (resize < size)
        resize = size;
    v.out_width = width <= height ? resize : longer_side(resize, width, height);
    v.out_height = width <= height ? longer_side(resize, height, width) : resize;
    v.crop_left = middle(v.out_width, size);
    v.crop_top = middle(v.out_height, size);
    return v;
}

static uint32_t scaled(uint32_t side, uint32_t to, uint32_t of)
{
    double at = round_half_even((double)side * to / of);
    return at > 1 ? (uint32_t)at : 1;
}

mr_view mr_view_letterbox(const mr_transform *t, uint32_t out_height, uint32_t width, uint32_t height)
{
    uint32_t size = size_of(t);
    bool wide = (uint64_t)width * out_height >= (uint64_t)height * size;
    mr_view v = {.width = width, .height = height};
    v.out_width = wide ? size : scaled(width, out_height, height);
    v.out_height = wide ? scaled(height, size, width) : out_height;
    v.pad_left = (size - v.out_width) / 2;
    v.pad_top = (out_height - v.out_height) / 2;
    return v;
}

/* One axis of a patch. */
typedef struct span {
    uint32_t from, count, pad;
} span;

static span draw_span(mr_stream *numbers, uint32_t side, uint32_t padding, uint32_t size)
{
    int64_t slack = (int64_t)side + 2 * (int64_t)padding - size;
    int64_t at =
        slack < 0 ? -(((int64_t)size - side) / 2) : (int64_t)mr_stream_upto(numbers, (uint32_t)slack) - padding;
    int64_t from = at > 0 ? at : 0, end = at + size < side ? at + size : side;
    return (span){(uint32_t)from, (uint32_t)(end - from), (uint32_t)(from - at)};
}

mr_view mr_view_patch(const mr_transform *t, uint32_t out_height, uint64_t seed, uint64_t epoch, uint64_t sample,
                      uint32_t width, uint32_t height)
{
    mr_stream numbers = mr_stream_of(PURPOSE, seed, epoch, sample);
    bool flip = mr_stream_unit(&numbers) < t->flip;
    const span y = draw_span(&numbers, height, t->resize, out_height);
    const span x = draw_span(&numbers, width, t->resize, size_of(t));
    return (mr_view){.left = x.from,
                     .top = y.from,
                     .width = x.count,
                     .height = y.count,
                     .out_width = x.count,
                     .out_height = y.count,
                     .pad_left = x.pad,
                     .pad_top = y.pad,
                     .flip = flip};
}

bool mr_view_is_framed(mr_transform_kind kind)
{
    return kind == MR_TRANSFORM_LETTERBOX || kind == MR_TRANSFORM_PATCH;
}

mr_status mr_view_check(const mr_view *v, mr_error *err)
{
    if (v->out_width <= MR_RESIZE_LONGEST && v->out_height <= MR_RESIZE_LONGEST)
        return MR_OK;
    return mr_fail(err, MR_BAD_SAMPLE, "%u x %u pixels resized to a short side of %u have a long one of more than %u",
                   v->width, v->height, v->out_width < v->out_height ? v->out_width : v->out_height, MR_RESIZE_LONGEST);
}
