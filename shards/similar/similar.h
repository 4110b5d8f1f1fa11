/* similar.h - the images of a dataset that look like another of them, or have the same bytes in another split.
 * Invariant: an image is decoded once for its hash, and again only to be compared.
 *
 * This module, on top of dataset: for `inspect --near-duplicates` and for reports. */
#ifndef MR_SIMILAR_H
#define MR_SIMILAR_H

#include "image/similar/near.h"
#include "shards/dataset/dataset.h"

typedef struct mr_similar_picture { /* the first sample of a split with these bytes */
    uint64_t hash, number;          /* hash of the image; its number in the split */
    uint32_t len, split;
    int32_t label;
    uint32_t equal; /* the image of an earlier split with the same bytes; its own number: there is none */
    uint32_t content;
    bool large; /* one such image is decoded at a time */
} mr_similar_picture;

typedef struct mr_similar {       /* a zeroed one is empty */
    mr_similar_picture *pictures; /* split by split */
    mr_near_found *found;         /* NULL: only bytes were compared */
    size_t count;
    uint64_t repeated; /* samples with the same bytes as an earlier one of their split */
    uint64_t plain, unreadable, crowded, equal, leaks, duplicates;
} mr_similar;

typedef struct mr_similar_options {
    unsigned distance;   /* bits of a hash, of 63 */
    unsigned jobs;       /* threads; 0: the processors */
    int progress;        /* MR_PROGRESS_... */
    bool bytes_only;     /* decode nothing: find equal bytes in two splits */
    uint64_t max_pixels; /* larger images are not decoded; 0: MR_DEFAULT_MAX_PIXELS */
} mr_similar_options;

/* MR_BAD_DATA: an index or an image is damaged; to be freed after a failure, too. */
mr_status mr_similar_find(const char *dir, const mr_dataset *ds, const mr_similar_options *o, mr_similar *out,
                          mr_error *err);
void mr_similar_free(mr_similar *n);

typedef enum mr_similar_kind {
    MR_SIMILAR_EQUAL,     /* the same bytes in two splits */
    MR_SIMILAR_LEAK,      /* they look alike, in two splits */
    MR_SIMILAR_DUPLICATE, /* they look alike, in one split */
    MR_SIMILAR_KINDS
} mr_similar_kind;

uint64_t mr_similar_count(const mr_similar *n, mr_similar_kind kind);
/* The earlier image that image `i` is such a pair with; NULL: none. */
const mr_similar_picture *mr_similar_other(const mr_similar *n, size_t i, mr_similar_kind kind);

#endif
