/* resize.h - a resizer for each set of inner loops, and memory for their results.
 * Invariant: a set that this machine runs is among them. */
#ifndef MR_SUPPORT_RESIZE_H
#define MR_SUPPORT_RESIZE_H

#include "image/resize/kernels.h"
#include "tests/support/support.h"

enum { SUPPORT_MOST_SETS = 8 };

typedef struct support_resizers {
    mr_resizer *of[SUPPORT_MOST_SETS];
    const mr_resize_kernels *set[SUPPORT_MOST_SETS]; /* best first */
    size_t count;
} support_resizers;

support_resizers support_resizers_new(void);
void support_resizers_free(support_resizers *all);

/* `len` bytes on the heap, followed by some that support_check_guard finds unchanged: a sanitizer sees no masked
 * stores. */
void *support_guarded(size_t len);
void support_check_guard(const void *p, size_t len);

#endif
