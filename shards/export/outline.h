/* outline.h - the geometry of objects, as formats with one polygon for each object need it.
 * Invariant: points are those of the object, in its order; nothing is simplified. */
#ifndef MR_EXPORT_OUTLINE_H
#define MR_EXPORT_OUTLINE_H

#include "shards/format/objects.h"

typedef struct mr_outline { /* a zeroed one is empty */
    mr_milli *points;       /* x, y, x, y ... */
    size_t count, capacity; /* numbers */
} mr_outline;

void mr_outline_free(mr_outline *o);

/* The object's polygons as one: from the first point of the first there is a line to the first point of each other, and
 * back.  It covers what the parts cover, as the lines have no width.  For an object without polygons: the corners of
 * its oriented box, else of its box; empty if it has neither.  False: out of memory. */
bool mr_outline_make(const mr_objects *all, const mr_object *object, mr_outline *out);

/* The four corners of the oriented box, else of the box.  False: it has neither. */
bool mr_outline_corners(const mr_object *object, mr_milli corners[8]);

/* Moves a point into the image; true: it was outside by more than rounding. */
bool mr_outline_clip(const mr_stored *picture, mr_milli *x, mr_milli *y);

/* Appends value / size (pixels), rounded to nine decimals: 0.5 */
void mr_outline_fraction(mr_milli value, uint32_t size, mr_buf *out);

#endif
