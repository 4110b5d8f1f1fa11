/* mask.c - polygons of an image drawn as a mask: a byte for each pixel that says what is there.
 * Invariant: a pixel belongs to a polygon if its centre is inside by the even-odd rule; each polygon is drawn by
 * itself, and a later object over an earlier one. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "loader/objects/move.h"

enum { OTHER = 255 }; /* crowds, objects without a class, classes that a byte cannot hold */

static uint8_t value_of(const mr_moved_object *object)
{
    return object->crowd || object->label < 0 || object->label >= OTHER - 1 ? OTHER : (uint8_t)(object->label + 1);
}

/* Where the polygon crosses the line y, in order. */
static bool cross_line(const float *points, size_t count, float y, mr_path *at)
{
    at->count = 0;
    for (size_t i = 0, before = count - 1; i < count; before = i++) {
        const float *a = points + 2 * before, *b = points + 2 * i;
        if ((a[1] > y) == (b[1] > y))
            continue;
        double x =
            (double)a[0] + ((double)b[0] - (double)a[0]) * ((double)y - (double)a[1]) / ((double)b[1] - (double)a[1]);
        if (!MR_GROW(at->at, at->count, at->capacity))
            return false;
        size_t place = at->count++;
        for (; place > 0 && at->at[place - 1] > x; place--)
            at->at[place] = at->at[place - 1];
        at->at[place] = x;
    }
    return true;
}

/* The first pixel whose centre is not before x; clipped polygons are inside, except for the rounding of floats. */
static size_t pixel_from(double x, size_t size)
{
    double at = x - 0.5;
    if (at <= 0 || at >= (double)size)
        return at <= 0 ? 0 : size;
    size_t before = (size_t)at;
    return before + ((double)before < at);
}

static bool fill(const float *points, size_t count, uint8_t value, size_t width, size_t height, mr_path *crossings,
                 uint8_t *mask)
{
    float top = INFINITY, bottom = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        top = points[2 * i + 1] < top ? points[2 * i + 1] : top;
        bottom = points[2 * i + 1] > bottom ? points[2 * i + 1] : bottom;
    }
    for (size_t y = pixel_from((double)top, height); y < pixel_from((double)bottom, height); y++) {
        if (!cross_line(points, count, (float)y + 0.5F, crossings))
            return false;
        for (size_t i = 0; i + 1 < crossings->count; i += 2) {
            size_t from = pixel_from(crossings->at[i], width), to = pixel_from(crossings->at[i + 1], width);
            memset(mask + y * width + from, value, to - from);
        }
    }
    return true;
}

bool mr_moved_draw(const mr_moved *m, mr_path *scratch, uint32_t width, uint32_t height, uint8_t *mask)
{
    const float *points = m->numbers;
    size_t ring = 0;
    memset(mask, 0, (size_t)width * height);
    for (size_t i = 0; i < m->count; i++)
        for (uint32_t k = 0; k < m->objects[i].polygons; k++, ring++) {
            if (!fill(points, m->rings[ring], value_of(&m->objects[i]), width, height, scratch, mask))
                return false;
            points += 2 * (size_t)m->rings[ring];
        }
    return true;
}
