/* learning.h - how a classifier learns its labels: by which loss, from which classes, with which weights.
 * Invariant: a dataset and options decide it alone, so a resumed run decides as the run before did. */
#ifndef MR_LEARNING_H
#define MR_LEARNING_H

#include "train/feed/feed.h"
#include "train/setup/settings.h"

typedef struct mr_learning { /* a zeroed one: one label per sample, no weights */
    bool several;            /* a sample may have several labels */
    mr_targets train, eval;  /* with several */
    float *weights;          /* [classes], as mr_feed_labels; NULL: all 1 */
} mr_learning;

typedef struct mr_learning_splits {
    const mr_dataset *ds;
    const mr_split *train, *eval; /* eval NULL: none */
    const char *dataset;          /* its path, for messages */
} mr_learning_splits;

/* Collective.  `remarks` gets lines for the user.  MR_MISUSE: samples whose labels contradict the loss, with their
 * number and the first. */
mr_status mr_learning_open(const mr_settings *s, const mr_learning_splits *splits, unsigned threads, mr_ranks *ranks,
                           mr_learning *out, mr_buf *remarks, mr_error *err);
void mr_learning_release(mr_learning *l);

#endif
