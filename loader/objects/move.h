/* move.h - the objects of an image, moved as its pixels are: cut, scaled and mirrored.
 * Invariant: every coordinate is inside the delivered image, and what is moved depends on the objects and the view
 * alone.
 *
 *   meta -> objects, as stored -> as seen -> cut to the view, scaled, mirrored -> clipped -> one slot of a batch
 *           shards/format/objects.h          move.c                              clip.c     join.c: all slots
 * Source: torchvision's transforms v2: crop, resize, horizontal_flip, clamp_bounding_boxes, SanitizeBoundingBoxes. */
#ifndef MR_OBJECTS_MOVE_H
#define MR_OBJECTS_MOVE_H

#include "base/system/slab.h"
#include "loader/order/augment.h"
#include "shards/format/objects.h"

typedef struct mr_moved_object {
    float box[4]; /* left, top, right, bottom */
    int32_t label;
    uint32_t number;              /* among the objects of its meta */
    uint32_t polygons, keypoints; /* how many of each; they follow those of the object before */
    bool crowd;
} mr_moved_object;

typedef struct mr_moved { /* the moved objects of one slot; empty if zeroed */
    mr_moved_object *objects;
    size_t count, capacity;
    uint32_t *rings; /* points of each polygon */
    size_t ring_count, ring_capacity;
    float *numbers; /* numbers of the polygons: x, y, x, y ... */
    size_t number_count, number_capacity;
    float *keypoints; /* x, y, visibility */
    size_t keypoint_count, keypoint_capacity;
} mr_moved;

void mr_moved_clear(mr_moved *m); /* empty, memory kept */
void mr_moved_free(mr_moved *m);

/* Polygons in pixels of the result, while they are clipped. */
typedef struct mr_path {
    double *at; /* x, y, x, y ... */
    size_t count, capacity;
} mr_path;

typedef struct mr_mover { /* one per thread: working memory */
    mr_objects objects;
    mr_buf meta;
    mr_path path, other;
    mr_buf base64, png, numbers, steps; /* memory for reading a stored mask */
} mr_mover;
void mr_mover_free(mr_mover *m);

typedef struct mr_object_rules {
    double width, height; /* size of the delivered image */
    double least_side;    /* pixels: a box that is narrower or lower in the image is left out */
    double least_visible; /* share of a box's area that must be in the image */
} mr_object_rules;

/* Replaces *out by what of m->objects is to be seen in `v`.  The objects are of the image that the view's box is in.
 * False: out of memory. */
bool mr_objects_move(mr_mover *m, const mr_view *v, const mr_object_rules *rules, mr_moved *out);

/* Cuts a polygon to 0 .. width, 0 .. height: what is outside is drawn along the edge.  False: out of memory. */
bool mr_path_point(mr_path *p, double x, double y);
bool mr_path_clip(mr_path *p, mr_path *scratch, double width, double height);

/* Draws the polygons of a slot into height rows of `width` bytes: an object's label + 1, 0 where there is none; 255 for
 * crowds and what has no label below 254.  False: out of memory. */
bool mr_moved_draw(const mr_moved *m, mr_path *scratch, uint32_t width, uint32_t height, uint8_t *mask);

/* The slots as one: everything is in `memory`; an mr_batch_objects is at its start. */
mr_status mr_objects_join(const mr_moved *slots, uint64_t count, mr_slab *memory, mr_error *err);

#endif
