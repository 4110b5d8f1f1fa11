/* near_table.h - private to near*.c: finds the hashes within a distance of a given one.
 * Invariant: entries are found in an order that depends on the hashes and images alone. */
#ifndef MR_NEAR_TABLE_H
#define MR_NEAR_TABLE_H

#include "base/error.h"

enum { MR_NEAR_CHUNKS = 4, MR_NEAR_BUCKETS = 1 << 16 };

typedef struct mr_near_entry {
    uint64_t hash;
    uint32_t picture, split;
} mr_near_entry;

typedef struct mr_near_table {
    uint32_t *start[MR_NEAR_CHUNKS]; /* where each bucket begins, by the chunk's bits; one more is the end */
    mr_near_entry *entries[MR_NEAR_CHUNKS];
    size_t count;
} mr_near_table;

/* Sorts `entries` and drops repeated ones: only the first images with equal hashes in a split are kept, so that images
 * which are all the same do not cost more than others. */
mr_status mr_near_table_make(mr_near_entry *entries, size_t count, mr_near_table *out, mr_error *err);
void mr_near_table_free(mr_near_table *t);

/* Calls `take` for entries of images below `before` within `distance`, some of them repeatedly.  *left: how many more
 * entries may be looked at.  False: there are more. */
typedef void (*mr_near_take)(void *ctx, uint32_t picture, unsigned distance);
bool mr_near_table_find(const mr_near_table *t, uint64_t hash, unsigned distance, uint32_t before, size_t *left,
                        mr_near_take take, void *ctx);

#endif
