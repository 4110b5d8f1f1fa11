/* page.h - a dataset as one HTML file that needs no network and no scripts.
 * Invariant: equal datasets and options give equal bytes. */
#ifndef MR_REPORT_PAGE_H
#define MR_REPORT_PAGE_H

#include "shards/report/wall.h"

/* Appends the page; images of more pixels are not decoded.  MR_MISUSE: no dataset at `dir`; MR_BAD_DATA,
 * MR_BAD_SAMPLE: it is damaged. */
mr_status mr_page_write(const char *dir, uint64_t seed, uint64_t max_pixels, mr_buf *out, mr_error *err);

#endif
