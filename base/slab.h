/* slab.h - memory for many megabytes, used again and again.
 * Invariant: a slab only grows; memory that is new costs more than the work done in it (a fresh 4 KiB page fills at a
 * fifth of the rate of a page already there), so pages are huge where the system has them, and are kept. */
#ifndef MR_SLAB_H
#define MR_SLAB_H

#include "base/error.h"

typedef struct mr_slab { /* zeroed: empty and valid */
    uint8_t *data;       /* 64-byte aligned */
    size_t room;
    size_t mapped; /* bytes of the mapping; 0: from an allocator */
} mr_slab;

/* Room for `bytes`.  Contents are kept only up to `keep` bytes.  allocator NULL: huge-page backed memory. */
mr_status mr_slab_reserve(mr_slab *s, size_t bytes, size_t keep, const mr_allocator *allocator, mr_error *err);
void mr_slab_free(mr_slab *s, const mr_allocator *allocator);

#endif
