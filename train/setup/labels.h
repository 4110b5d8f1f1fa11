/* labels.h - whether a classifier can be trained or evaluated on a split.
 * Invariant: samples without exactly one label are reported before the first of them is loaded. */
#ifndef MR_LABELS_H
#define MR_LABELS_H

#include "train/feed/targets.h"

/* Collective.  A sample may have no label or several; either would end a run when the sample is loaded.  Reads the
 * split's indexes, each rank its part.  `dataset`: its path; `advice`: end of the message.  MR_MISUSE: how many there
 * are, and the first. */
mr_status mr_labels_check(const mr_dataset *ds, const mr_split *split, mr_ranks *ranks, const char *dataset,
                          const char *advice, mr_error *err);

/* The same where a sample may have several labels, or none on purpose.  MR_MISUSE: no sample has any, or the source of
 * some does not say. */
mr_status mr_labels_check_targets(const mr_targets *t, const mr_split *split, const char *dataset, mr_error *err);

/* Collective.  How many samples of the split have no label of their own: the same number on all ranks. */
mr_status mr_labels_missing(const mr_dataset *ds, const mr_split *split, mr_ranks *ranks, uint64_t *count,
                            mr_error *err);

#endif
