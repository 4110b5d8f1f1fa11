/* objects_tally.c - counts the objects of images, and which of them are odd.
 * Invariant: the counts of a dataset are those of its metas: ingest counts while it writes, inspect later, by the same
 * code. */
#include <stdlib.h>
#include <string.h>

#include "shards/format/objects.h"

enum { TOLERANCE = 1000 }; /* one pixel: the difference between counting pixels and counting the edges between them */

const char *const mr_object_words[MR_OBJECT_ODDITY_COUNT] = {
#define X(word, json, text) json,
    MR_OBJECT_ODDITIES(X)
#undef X
};

const char *const mr_object_texts[MR_OBJECT_ODDITY_COUNT] = {
#define X(word, json, text) text,
    MR_OBJECT_ODDITIES(X)
#undef X
};

static bool is_outside(mr_milli x, mr_milli y, const mr_stored *p)
{
    return x < -TOLERANCE || y < -TOLERANCE || x > (mr_milli)p->width * 1000 + TOLERANCE ||
           y > (mr_milli)p->height * 1000 + TOLERANCE;
}

static bool leaves(const mr_objects *all, const mr_object *o, const mr_stored *p)
{
    const mr_milli *box = o->box;
    bool out = o->has_box && (is_outside(box[0], box[1], p) || is_outside(box[0] + box[2], box[1] + box[3], p));
    for (size_t r = 0; r < o->ring_count && !out; r++) {
        const mr_ring *ring = &all->rings[o->ring + r];
        for (size_t i = 0; i + 1 < ring->count && !out; i += 2)
            out = is_outside(all->points[ring->at + i], all->points[ring->at + i + 1], p);
    }
    for (size_t k = 0; k < o->keypoint_count && !out; k++) {
        const mr_keypoint *point = &all->keypoints[o->keypoint + k];
        out = point->visibility && is_outside(point->x, point->y, p);
    }
    return out;
}

/* No annotator draws such a box, but 0.1, 0.2, 0.5, 0.5 of an image is one, also where a format counts from 1. */
static bool is_fraction(const mr_object *o)
{
    bool is = o->has_box;
    for (int i = 0; i < 2; i++) {
        mr_milli from = o->box[i], length = o->box[2 + i];
        is = is && from >= -TOLERANCE && length > 0 && from + length <= TOLERANCE;
    }
    return is;
}

typedef struct extent {
    mr_milli from[2], to[2];
    bool any;
} extent;

static void include(extent *e, mr_milli x, mr_milli y)
{
    const mr_milli at[2] = {x, y};
    for (int i = 0; i < 2; i++) {
        e->from[i] = !e->any || at[i] < e->from[i] ? at[i] : e->from[i];
        e->to[i] = !e->any || at[i] > e->to[i] ? at[i] : e->to[i];
    }
    e->any = true;
}

static bool misses(const extent *e, const mr_milli box[4])
{
    bool apart = false;
    for (int i = 0; i < 2 && e->any; i++)
        apart = apart || e->to[i] < box[i] - TOLERANCE || e->from[i] > box[i] + box[2 + i] + TOLERANCE;
    return apart;
}

/* Whether not even a part of all polygons, or of all keypoints, is in the box: one of them is in another unit. */
static bool is_apart(const mr_objects *all, const mr_object *o)
{
    extent outline = {.any = false}, points = {.any = false};
    for (size_t r = 0; r < o->ring_count && o->has_box; r++) {
        const mr_ring *ring = &all->rings[o->ring + r];
        for (size_t i = 0; i + 1 < ring->count; i += 2)
            include(&outline, all->points[ring->at + i], all->points[ring->at + i + 1]);
    }
    for (size_t k = 0; k < o->keypoint_count && o->has_box; k++) {
        const mr_keypoint *point = &all->keypoints[o->keypoint + k];
        if (point->visibility)
            include(&points, point->x, point->y);
    }
    return misses(&outline, o->box) || misses(&points, o->box);
}

static bool is_unplaced(const mr_object *o)
{
    return !o->has_box && !o->ring_count && !o->keypoint_count;
}

static int by_label_and_box(const void *a, const void *b)
{
    const mr_object *x = *(const mr_object *const *)a, *y = *(const mr_object *const *)b;
    int order = (x->label > y->label) - (x->label < y->label);
    for (int i = 0; i < 4 && !order; i++)
        order = (x->box[i] > y->box[i]) - (x->box[i] < y->box[i]);
    return order;
}

/* By sorting, since a hostile source may put a million objects into one image. */
static bool count_repeats(const mr_objects *o, uint64_t *repeats)
{
    if (o->count < 2)
        return true;
    const mr_object **boxes = mr_alloc(o->count, sizeof *boxes);
    size_t count = 0;
    if (!boxes)
        return false;
    for (size_t i = 0; i < o->count; i++)
        if (o->items[i].has_box)
            boxes[count++] = &o->items[i];
    if (count)
        qsort(boxes, count, sizeof *boxes, by_label_and_box);
    for (size_t i = 1; i < count; i++)
        *repeats += by_label_and_box(&boxes[i - 1], &boxes[i]) == 0;
    free(boxes);
    return true;
}

static void count_kinds(const mr_objects *o, mr_object_tally *t)
{
    for (size_t i = 0; i < o->count; i++) {
        const mr_object *object = &o->items[i];
        t->boxes += object->has_box;
        t->polygons += object->ring_count > 0;
        t->oriented += object->oriented;
        t->keypoints += object->keypoint_count > 0;
        t->crowds += object->crowd;
    }
}

bool mr_objects_count(const mr_objects *o, const mr_stored *picture, uint64_t sample, mr_object_tally *tally)
{
    uint64_t odd[MR_OBJECT_ODDITY_COUNT] = {0};
    if (!o->known)
        return true;
    for (size_t i = 0; i < o->count; i++) {
        odd[MR_OBJECT_LEAVES] += leaves(o, &o->items[i], picture);
        odd[MR_OBJECT_EMPTY] += o->items[i].has_box && (o->items[i].box[2] <= 0 || o->items[i].box[3] <= 0);
        odd[MR_OBJECT_FRACTIONS] += is_fraction(&o->items[i]);
        odd[MR_OBJECT_APART] += is_apart(o, &o->items[i]);
        odd[MR_OBJECT_UNNAMED] += o->items[i].label < 0;
        odd[MR_OBJECT_UNPLACED] += is_unplaced(&o->items[i]);
    }
    odd[MR_OBJECT_UNREADABLE] = o->unreadable;
    odd[MR_OBJECT_REVERSED] = o->reversed;
    odd[MR_OBJECT_TURNED] = picture->orientation > 1 ? o->count : 0;
    odd[MR_OBJECT_RESIZED] =
        (o->width && o->width != picture->width) || (o->height && o->height != picture->height) ? o->count : 0;
    if (!count_repeats(o, &odd[MR_OBJECT_REPEATED]))
        return false;
    tally->pictures++;
    tally->without += !o->count;
    tally->objects += o->count;
    count_kinds(o, tally);
    for (int k = 0; k < MR_OBJECT_ODDITY_COUNT; k++) {
        if (odd[k] && !tally->odd[k].pictures++)
            tally->odd[k].first = sample;
        tally->odd[k].objects += odd[k];
    }
    return true;
}

void mr_object_tally_add(mr_object_tally *tally, const mr_object_tally *more)
{
    tally->pictures += more->pictures;
    tally->without += more->without;
    tally->objects += more->objects;
    tally->boxes += more->boxes;
    tally->polygons += more->polygons;
    tally->oriented += more->oriented;
    tally->keypoints += more->keypoints;
    tally->crowds += more->crowds;
    tally->masks += more->masks;
    for (int k = 0; k < MR_OBJECT_ODDITY_COUNT; k++) {
        if (!tally->odd[k].pictures)
            tally->odd[k].first = more->odd[k].first;
        tally->odd[k].pictures += more->odd[k].pictures;
        tally->odd[k].objects += more->odd[k].objects;
    }
}
