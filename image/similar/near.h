/* near.h - finds the images of a large set that look like an earlier one, without comparing all pairs.
 * Invariant: the result depends on the images and their order alone, not on threads and ranks.
 *
 *      grey cells -> hashes -> images whose hashes differ in few bits -> roughly alike -> decoded again and compared
 *      mr_alike      near_hash.c    near_table.c                           1 KiB each       mr_alike_compare()
 *
 * Recognised: what mr_alike_compare() recognises, as far as the hashes let it see the pair: encoded again, rescaled,
 * brighter, mirrored, turned by 90 degrees (and so any EXIF orientation), rotated by up to 3 degrees, or cropped to
 * 90 % of each side.  Not: a mirrored crop, a detail, a collage. */
#ifndef MR_NEAR_H
#define MR_NEAR_H

#include "image/similar/alike.h"
#include "base/cli/term.h"

#define MR_NEAR_DISTANCE_STANDARD 10 /* bits, of 63, that may differ; near_hash.c has what was measured */

enum {
    MR_NEAR_WINDOWS = 6, /* the whole image, its middle, its four corners */
    MR_NEAR_DISTANCE_MAX = 15,
};

typedef struct mr_near_hash { /* bit 0 is unused */
    uint64_t windows[MR_NEAR_WINDOWS];
} mr_near_hash;

/* The window of hash number `window`. */
mr_alike_window mr_near_window(unsigned window);
void mr_near_hash_make(const mr_alike *look, mr_near_hash *out);
/* The hash of the image turned and mirrored: `way` 0 to 7, 0 as it is. */
uint64_t mr_near_turned(uint64_t hash, unsigned way);

typedef enum mr_near_state {
    MR_NEAR_UNREADABLE, /* it cannot be decoded */
    MR_NEAR_PLAIN,      /* a single tone, which looks like no other image */
    MR_NEAR_HASHED,
} mr_near_state;

typedef struct mr_near_picture {
    mr_near_hash hash;
    mr_alike_rough rough;
    uint32_t split, content; /* equal contents: equal bytes, which are not compared */
    mr_near_state state;
} mr_near_picture;

/* Sets hash and state.  `look`: from mr_image_decode_look(); NULL: it cannot be decoded. */
void mr_near_set(mr_near_picture *picture, const mr_alike *look);

typedef enum mr_near_kind {
    MR_NEAR_UNIQUE,
    MR_NEAR_DUPLICATE, /* looks like an earlier image of its split */
    MR_NEAR_LEAK,      /* looks like an image of an earlier split */
} mr_near_kind;

typedef struct mr_near_found { /* for each image; no padding */
    uint32_t other;            /* a number of the earlier image, unless unique */
    uint8_t kind, distance;    /* mr_near_kind; bits */
    uint8_t crowded;           /* so many hashes are near its own that only the first were looked at */
    uint8_t zero;
} mr_near_found;

/* Decodes image `i` again, as mr_image_shrink().  MR_BAD_SAMPLE: it cannot be decoded.  Called by many threads. */
typedef mr_status (*mr_near_load)(void *ctx, size_t i, unsigned worker, mr_alike *out, mr_error *err);

typedef struct mr_near_search {
    const mr_near_picture *pictures; /* split by split */
    size_t count;
    unsigned distance, jobs;
    unsigned rank, world; /* this rank's share: every world-th image */
    mr_near_load load;
    void *ctx;
    mr_progress *progress; /* NULL: none */
} mr_near_search;

/* Fills found[count], for the images of this rank; those of others are zero.  Time and memory are linear in the
 * number of images, whatever they show: at most MR_NEAR_LOOKED hashes are looked at and 2 * MR_NEAR_TRIED images
 * compared for each. */
enum { MR_NEAR_LOOKED = 1 << 16, MR_NEAR_TRIED = 2 };
mr_status mr_near_find(const mr_near_search *search, mr_near_found *found, mr_error *err);

#endif
