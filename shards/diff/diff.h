/* diff.h - what differs between two datasets, sample by sample.
 * Invariant: each sample of either dataset is in at most one difference; samples that agree in all are in none.
 *
 *   rows of A, rows of B --> those with equal split, image and meta cancel --> the rest by source --> by image
 *
 * Indexes tell which samples agree, so a meta is read only of those that do not.  This module, on top of dataset. */
#ifndef MR_DIFF_H
#define MR_DIFF_H

#include "shards/dataset/dataset.h"

enum { /* in what a sample differs */
       MR_DIFF_IMAGE = 1,
       MR_DIFF_LABEL = 2, /* by the names of the classes; or the list of labels */
       MR_DIFF_SPLIT = 4,
       MR_DIFF_OBJECTS = 8,
       MR_DIFF_META = 16,   /* other members of the meta */
       MR_DIFF_SOURCE = 32, /* the same image under another path: moved */
       MR_DIFF_BITS = 6,
};
extern const char *const mr_diff_words[MR_DIFF_BITS]; /* "image", "label" ... in the order of the bits */

typedef struct mr_diff_side { /* one sample of one dataset */
    char *source;             /* path text; owned */
    const char *split;
    uint64_t number; /* in the split */
    uint64_t image_hash, meta_hash;
    uint32_t image_len, flags; /* MR_FLAG_... */
    int32_t label;
} mr_diff_side;

typedef struct mr_difference {
    const mr_diff_side *a, *b; /* NULL: only the other dataset has it */
    unsigned what;             /* in what both differ: MR_DIFF_... */
} mr_difference;

typedef struct mr_diff { /* a zeroed one is empty */
    mr_diff_side *sides; /* those of A that do not agree, then those of B */
    size_t side_count, a_count;
    mr_difference *items; /* changed and moved, by A's source; then removed; then added */
    size_t count, changed, removed, added;
    size_t moved;              /* how many of `changed` differ in MR_DIFF_SOURCE */
    size_t bits[MR_DIFF_BITS]; /* how many of `changed` differ in each bit */
    uint64_t leaks_a, leaks_b; /* images that are in several splits */
    uint64_t new_leaks;        /* ... of B, and not of A */
    bool classes_differ;       /* names or their order */
} mr_diff;

/* Equal: nothing in `items`, and classes and sizes of splits agree.  MR_MISUSE: more than 4,294,967,294 samples;
 * MR_BAD_DATA, MR_BAD_SAMPLE: a dataset is damaged.  To be freed after a failure, too; both datasets must stay open
 * until then. */
mr_status mr_diff_find(const mr_dataset *a, const mr_dataset *b, const char *path_a, const char *path_b, mr_diff *out,
                       mr_error *err);
bool mr_diff_equal(const mr_diff *d);
void mr_diff_free(mr_diff *d);

#endif
