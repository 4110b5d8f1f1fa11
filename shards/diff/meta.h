/* meta.h - private to this module: in which members the metas of two samples differ.
 * Invariant: class numbers and samples do not count, only what they stand for. */
#ifndef MR_DIFF_META_H
#define MR_DIFF_META_H

#include "shards/diff/diff.h"

/* Adds MR_DIFF_LABEL, MR_DIFF_OBJECTS and MR_DIFF_META to *what. */
mr_status mr_diff_metas(const mr_dataset *in_a, const mr_diff_side *a, const mr_dataset *in_b, const mr_diff_side *b,
                        unsigned *what, mr_error *err);

#endif
