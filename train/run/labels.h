/* labels.h - whether a classifier can learn from a split, or be judged by it.
 * Invariant: samples without a label of their own are told before the first of them is loaded. */
#ifndef MR_LABELS_H
#define MR_LABELS_H

#include "dataset/dataset.h"

/* Samples may be without a label of their own, as those of several labels are; one of them would end a run when its
 * turn comes.  Reads the split's indexes.  `dataset`: its path; `act` ("learns from", "is judged by") and `way`, what
 * may be done about it, are words of the message.  MR_MISUSE: there are some; their number and the first are named. */
mr_status mr_labels_check(const mr_dataset *ds, const mr_split *split, const char *dataset, const char *act,
                          const char *way, mr_error *err);

#endif
