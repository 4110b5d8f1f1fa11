/* slab.h - large blocks of memory that are reused.
 * Invariant: a slab only grows.  New memory costs more than the work done in it (a fresh 4 KiB page fills at a fifth of
 * the rate of one in use), so it is kept, in huge pages if the system has them. */
#ifndef MR_SLAB_H
#define MR_SLAB_H

#include "base/error.h"

typedef struct mr_slab { /* zeroed: empty and valid */
    uint8_t *data;       /* 64-byte aligned */
    size_t capacity;
    size_t mapped; /* bytes of the mapping; 0: from an allocator */
} mr_slab;

/* Room for `bytes`.  Contents are kept only up to `keep` bytes.  allocator NULL: huge-page backed memory. */
mr_status mr_slab_reserve(mr_slab *s, size_t bytes, size_t keep, const mr_allocator *allocator, mr_error *err);
void mr_slab_free(mr_slab *s, const mr_allocator *allocator);

#endif
