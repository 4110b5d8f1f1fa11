/* objects.h - what an image shows, in one form for all layouts: the member "objects" of a meta.
 * Invariant: every length is a whole number of thousandths of a pixel of the image as it is stored (EXIF orientation
 * not applied), so that writing and reading are exact, and counting needs no rounding.
 *
 *   "objects":[{"label":3,"class":"dog","box":[x,y,width,height],"polygons":[[x1,y1,x2,y2,x3,y3],...],
 *               "oriented_box":[x1,y1,x2,y2,x3,y3,x4,y4],"keypoints":[[x,y,visibility],...],"crowd":true,"id":17},...]
 *
 * Every member of an object but the braces is optional.  A number is written without exponent, with up to three
 * decimals and no trailing zero. */
#ifndef MR_OBJECTS_H
#define MR_OBJECTS_H

#include "base/buf.h"
#include "shards/manifest/manifest.h"

typedef int64_t mr_milli; /* thousandths of a pixel */

typedef struct mr_stored { /* as stored */
    uint32_t width, height;
    uint8_t orientation; /* EXIF: 1 to 8 */
} mr_stored;

typedef struct mr_object {
    int32_t label; /* -1: none */
    bool has_box, oriented, crowd;
    mr_milli box[4];                 /* x, y, width, height */
    mr_milli corners[8];             /* the corners of an oriented box: x, y of each */
    size_t ring, ring_count;         /* its polygons: mr_objects.rings[ring ...] */
    size_t keypoint, keypoint_count; /* mr_objects.keypoints[keypoint ...] */
    size_t id_at, id_len;            /* its id in the source as JSON, in mr_objects.ids; length 0: none */
} mr_object;

typedef struct mr_ring { /* one ring of a polygon */
    size_t at, count;    /* numbers in mr_objects.points: x, y, x, y ... */
} mr_ring;

typedef struct mr_keypoint {
    mr_milli x, y;
    int visibility; /* 0: not labelled, 1: hidden, 2: visible (COCO) */
} mr_keypoint;

typedef struct mr_objects { /* the objects of one image; empty if zeroed */
    bool known;             /* the source states this image's objects, even if there are none */
    uint32_t width, height; /* size of the image as the source states it; 0: it does not */
    uint64_t unreadable;    /* objects of the source whose box or polygon could not be read */
    uint64_t reversed;      /* boxes whose sides the source has in the wrong order; see mr_objects_settle() */
    mr_object *items;
    size_t count, capacity;
    mr_ring *rings;
    size_t ring_count, ring_capacity;
    mr_milli *points;
    size_t point_count, point_capacity;
    mr_keypoint *keypoints;
    size_t keypoint_count, keypoint_capacity;
    mr_buf ids;
    bool failed; /* memory ran out */
} mr_objects;

void mr_objects_clear(mr_objects *o); /* empty, memory kept */
void mr_objects_free(mr_objects *o);

/* False: not a number, or beyond a million pixels. */
bool mr_milli_of(double pixels, mr_milli *out);
/* Appends it in pixels: without exponent, with up to three decimals. */
void mr_milli_write(mr_milli value, mr_buf *out);

/* A new object without anything; NULL: out of memory, kept in o->failed.  Lent until the next one is added. */
mr_object *mr_objects_add(mr_objects *o, int32_t label);
/* The last object gets another polygon, and its points one by one. */
void mr_objects_ring(mr_objects *o);
void mr_objects_point(mr_objects *o, mr_milli x, mr_milli y);
/* Appends to the keypoints of object `number`; those of one object follow one another. */
void mr_objects_keypoint(mr_objects *o, size_t number, mr_keypoint k);
/* The id of the last object, JSON text. */
void mr_objects_id(mr_objects *o, const char *json, size_t len);
/* Gives the last object the box around `count` numbers x, y, x, y ... */
void mr_objects_box_around(mr_objects *o, const mr_milli *numbers, size_t count);

/* ---- objects_turn.c: EXIF orientation ---------------------------------------------------------------------------- */

/* The image as EXIF shows it: turned, with nothing left to turn. */
mr_stored mr_stored_shown(const mr_stored *picture);
/* Moves everything from the image as stored to the image as shown, and back; the order of points stays.  Keypoints
 * that are not labelled (visibility 0) have no place and stay. */
void mr_objects_show(mr_objects *o, const mr_stored *picture);
void mr_objects_turn_back(mr_objects *o, const mr_stored *picture);
/* Puts the sides of boxes in order, so that no width or height is negative, and counts these boxes.  Where the source
 * states the size that the image has only after EXIF turned it, its coordinates are of the image as shown: turns
 * them back. */
void mr_objects_settle(mr_objects *o, const mr_stored *picture);

/* ---- objects.c, objects_parse.c ---------------------------------------------------------------------------------- */

/* Appends ,"objects":[...] to a meta. */
void mr_objects_write(const mr_objects *o, const mr_class *classes, size_t class_count, mr_buf *out);

/* Replaces the contents with the objects of a whole meta; o->known is false where it has no "objects".  MR_BAD_DATA:
 * not as above.  Anything else in a meta is skipped unchecked: the caller must know that it is valid. */
mr_status mr_objects_parse(const void *meta, size_t len, mr_objects *o, mr_error *err);
/* The same for the value of "objects", which begins at `value`; what follows it is not read. */
mr_status mr_objects_parse_value(const char *value, const char *end, mr_objects *o, mr_error *err);

/* ---- objects_tally.c: what of it is odd ------------------------------------------------------------------------- */

#define MR_OBJECT_ODDITIES(X)                                                                                          \
    X(LEAVES, "leave_picture", "objects that extend more than a pixel beyond their image")                             \
    X(EMPTY, "empty", "objects without width or height")                                                               \
    X(REVERSED, "reversed", "boxes whose sides were in the wrong order (xmax < xmin); \"objects\" has them in order")  \
    X(FRACTIONS, "fractions", "boxes within the first pixel of their image, as if they were in fractions of it")       \
    X(APART, "apart", "objects whose polygons or keypoints are outside of their box")                                  \
    X(UNNAMED, "without_class", "objects without a class")                                                             \
    X(UNPLACED, "without_place", "objects without a box, polygon or keypoints")                                        \
    X(REPEATED, "repeated", "objects with the same class and box as another object of the same image")                 \
    X(UNREADABLE, "unreadable", "objects whose box, polygon or mask is not valid, which \"objects\" lacks")            \
    X(TURNED, "turned", "objects in images that EXIF rotates; \"objects\" places them in the image as stored")         \
    X(RESIZED, "resized", "objects in images of a different size from the source states")                              \
    X(MASK_RESIZED, "masks_resized", "masks of a different size from their image")                                     \
    X(MASK_UNREADABLE, "masks_unreadable", "masks that are not intact PNGs of at most 64 MiB, which \"masks\" lacks")

typedef enum mr_object_oddity {
#define X(word, json, text) MR_OBJECT_##word,
    MR_OBJECT_ODDITIES(X)
#undef X
        MR_OBJECT_ODDITY_COUNT
} mr_object_oddity;

extern const char *const mr_object_words[MR_OBJECT_ODDITY_COUNT]; /* in reports */
extern const char *const mr_object_texts[MR_OBJECT_ODDITY_COUNT]; /* "objects that ..." */

typedef struct mr_object_tally {
    uint64_t pictures, without; /* images that the source mentions; those among them without an object */
    uint64_t objects, boxes, polygons, oriented, keypoints, crowds;
    uint64_t masks; /* counted by ingest alone, and so are those that are odd */
    struct {
        uint64_t objects, pictures;
        uint64_t first; /* the sample that was counted first, of `pictures` > 0 */
    } odd[MR_OBJECT_ODDITY_COUNT];
} mr_object_tally;

/* Counts the objects of one image, if o->known.  False: out of memory. */
bool mr_objects_count(const mr_objects *o, const mr_stored *picture, uint64_t sample, mr_object_tally *tally);
/* Adds `more`, which counted later samples. */
void mr_object_tally_add(mr_object_tally *tally, const mr_object_tally *more);

#endif
