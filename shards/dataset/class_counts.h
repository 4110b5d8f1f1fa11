/* class_counts.h - how many samples of each split have each label, by the indexes alone.
 * Invariant: the counts of a split add up to its samples. */
#ifndef MR_CLASS_COUNTS_H
#define MR_CLASS_COUNTS_H

#include "shards/dataset/dataset.h"

/* After the classes: samples with no label, several, or one outside the classes. */
enum { MR_NO_LABEL, MR_SEVERAL_LABELS, MR_NO_SUCH_CLASS, MR_NOT_CLASSES };

/* Limits classes times splits: neither needs a file, so file sizes do not bound their product. */
enum { MR_CLASS_COUNTS_MAX = 4194304 };

typedef struct mr_class_counts {
    uint64_t *counts; /* [split * width + class]; to be freed, after a failure too */
    size_t width;
} mr_class_counts;

/* MR_BAD_DATA: an index is damaged or missing; MR_MISUSE: there would be more counts than that. */
mr_status mr_class_counts_read(const mr_dataset *ds, mr_class_counts *c, mr_error *err);

#endif
