/* pairs.h - images that look alike, side by side: leaks between splits, and duplicates in one.
 * Invariant: what is shown depends on the dataset alone; a dataset that is too large to be decoded for a page says
 * so. */
#ifndef MR_REPORT_PAIRS_H
#define MR_REPORT_PAIRS_H

#include "shards/report/facts.h"

/* More images, or pixels (see facts.h), are not decoded: some seconds on two processors.  Equal bytes are found among
 * more. */
enum { MR_PAIRS_PICTURES = 50000, MR_PAIRS_SAMPLES = 10000000 };
#define MR_PAIRS_PIXELS ((uint64_t)600 * 1000 * 1000)

/* Pairs shown of each kind; none are added once the section has this many bytes. */
enum { MR_PAIRS_SHOWN = 8, MR_PAIRS_BYTES = 600 << 10 };

/* Appends the section; nothing where the dataset has a single image.  `dir`: the dataset's; `max_pixels`,
 * `progress`: see mr_similar_options. */
mr_status mr_pairs_add(const char *dir, const mr_report_facts *f, uint64_t max_pixels, int progress, mr_buf *out,
                       mr_error *err);

#endif
