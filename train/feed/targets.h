/* targets.h - which classes each sample of a split has, for a model that may find several in an image.
 * Invariant: the same on every rank; a sample's classes are ascending, each once.
 *
 * They are, of the first of these that the source states: the sample's label; its list of labels; the classes of its
 * objects.  A sample whose list is empty, or whose image is said to show no object, has none, which a model learns as
 * well. */
#ifndef MR_TARGETS_H
#define MR_TARGETS_H

#include "base/ranks/ranks.h"
#include "shards/dataset/dataset.h"

typedef struct mr_targets { /* a zeroed one is empty */
    uint64_t samples;
    uint64_t *at;                  /* [samples + 1] */
    int32_t *classes;              /* [at[samples]]; those of sample n begin at at[n] */
    uint64_t several, none;        /* samples with more than one class; with none */
    uint64_t listed;               /* samples without a label of their own whose source says what they show */
    uint64_t silent, first_silent; /* how many have none because their source does not say; the number of the first */
} mr_targets;

/* Collective: each rank reads its share of the metas with `threads` threads.  A sample that cannot be read has no class
 * and is left to the loader.  MR_BAD_DATA: a class that the dataset does not have. */
mr_status mr_targets_read(const mr_dataset *ds, const mr_split *split, unsigned threads, mr_ranks *ranks,
                          mr_targets *out, mr_error *err);
void mr_targets_release(mr_targets *t);

/* Samples of each class, added to counts[class_count]. */
void mr_targets_count(const mr_targets *t, uint64_t *counts);

#endif
