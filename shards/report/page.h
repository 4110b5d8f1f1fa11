/* page.h - a dataset as one HTML file that needs no network and no scripts.
 * Invariant: equal datasets and options give equal bytes. */
#ifndef MR_REPORT_PAGE_H
#define MR_REPORT_PAGE_H

#include "shards/report/wall.h"

typedef struct mr_page_options {
    uint64_t seed, max_pixels; /* seed of the samples shown; images with more pixels than that are not decoded */
    int progress;              /* MR_PROGRESS_..., for the search for images that look alike */
} mr_page_options;

/* Appends the page.  MR_MISUSE: no dataset at `dir`; MR_BAD_DATA,
 * MR_BAD_SAMPLE: it is damaged. */
mr_status mr_page_write(const char *dir, const mr_page_options *o, mr_buf *out, mr_error *err);

#endif
