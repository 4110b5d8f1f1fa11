/* outline.c - one polygon for each object, clipping, and fractions of the image. */
#include "shards/export/outline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void mr_outline_free(mr_outline *o)
{
    free(o->points);
    *o = (mr_outline){0};
}

static bool add(mr_outline *o, const mr_milli *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!MR_GROW(o->points, o->count, o->capacity))
            return false;
        o->points[o->count++] = numbers[i];
    }
    return true;
}

bool mr_outline_corners(const mr_object *o, mr_milli corners[8])
{
    const mr_milli *b = o->box;
    if (o->oriented)
        memcpy(corners, o->corners, sizeof o->corners);
    else if (o->has_box)
        memcpy(corners, (mr_milli[]){b[0], b[1], b[0] + b[2], b[1], b[0] + b[2], b[1] + b[3], b[0], b[1] + b[3]},
               sizeof o->corners);
    return o->oriented || o->has_box;
}

bool mr_outline_make(const mr_objects *all, const mr_object *object, mr_outline *out)
{
    mr_milli corners[8];
    out->count = 0;
    if (!object->ring_count)
        return !mr_outline_corners(object, corners) || add(out, corners, 8);
    for (size_t i = 0; i < object->ring_count; i++) {
        const mr_ring *first = &all->rings[object->ring], *ring = first + i;
        if (!add(out, all->points + ring->at, ring->count))
            return false;
        if (object->ring_count == 1)
            break;
        if (!add(out, all->points + ring->at, 2) ||
            (i && i + 1 < object->ring_count && !add(out, all->points + first->at, 2)))
            return false;
    }
    return true;
}

enum { ROUNDING = 10 }; /* thousandths of a pixel that fractions of an image cost */

static bool clip(mr_milli *value, uint32_t size)
{
    mr_milli before = *value, most = (mr_milli)size * 1000;
    *value = before < 0 ? 0 : before > most ? most : before;
    return before < -ROUNDING || before > most + ROUNDING;
}

bool mr_outline_clip(const mr_stored *picture, mr_milli *x, mr_milli *y)
{
    bool left = clip(x, picture->width), above = clip(y, picture->height);
    return left || above;
}

void mr_outline_fraction(mr_milli value, uint32_t size, mr_buf *out)
{
    enum { DIGITS = 1000000000 };
    uint64_t whole = (uint64_t)size * 1000, rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t part = whole ? rest % whole : 0;
    /* Below 2^42 x 10^9: in two steps of five and four digits. */
    uint64_t high = part * 100000 / (whole ? whole : 1), left = part * 100000 % (whole ? whole : 1);
    uint64_t digits = high * 10000 + (left * 10000 + whole / 2) / (whole ? whole : 1);
    rest = (whole ? rest / whole : 0) + digits / DIGITS;
    digits %= DIGITS;
    char text[40];
    int len = snprintf(text, sizeof text, "%s%" PRIu64 ".%09" PRIu64, value < 0 ? "-" : "", rest, digits);
    while (text[len - 1] == '0')
        len--;
    mr_buf_add(out, text, (size_t)(text[len - 1] == '.' ? len - 1 : len));
}
