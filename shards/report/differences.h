/* differences.h - what differs between two datasets as one page, the images side by side.
 * Invariant: like every page of a report, it needs no network; it shows the first few differences and counts all. */
#ifndef MR_REPORT_DIFFERENCES_H
#define MR_REPORT_DIFFERENCES_H

#include "shards/diff/diff.h"

typedef struct mr_compared {
    const char *path_a, *path_b; /* for the title */
    const mr_dataset *a, *b;
    const mr_diff *d;
} mr_compared;

/* Appends the page.  Images that cannot be decoded are named instead. */
mr_status mr_differences_page(const mr_compared *c, mr_buf *out, mr_error *err);

#endif
