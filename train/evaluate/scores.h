/* scores.h - how well a model finds several labels per image: average precision, F1.
 * Invariant: the result does not depend on the order of the samples, and equal scores are one threshold, as in
 * scikit-learn. */
#ifndef MR_SCORES_H
#define MR_SCORES_H

#include "train/feed/targets.h"

typedef struct mr_class_score {
    uint64_t positives;           /* samples that have the class */
    double average_precision;     /* -1: there are none */
    double precision, recall, f1; /* at the threshold; 0 where nothing is found */
} mr_class_score;

typedef struct mr_scores { /* a zeroed one is empty */
    size_t classes;
    mr_class_score *each;  /* [classes] */
    double mean_precision; /* mean of the average precisions of classes with a positive: mAP */
    double f1;             /* F1 of all decisions together: micro F1 */
    double threshold;      /* probability from which a class counts as found */
} mr_scores;

/* logits[count, classes] of samples numbered samples[count].  `classes`: the model's class for each class of the
 * targets, NULL: the same; -1: left out.  `threshold` < 0: the one of the highest micro F1.
 * Source of average precision: scikit-learn's average_precision_score, the sum over thresholds of
 * (R_n - R_(n-1)) P_n. */
typedef struct mr_scores_input {
    const float *logits;
    const uint64_t *samples;
    size_t count, classes;
    const mr_targets *targets;
    const int32_t *map;
    double threshold;
} mr_scores_input;
mr_status mr_scores_measure(const mr_scores_input *in, mr_scores *out, mr_error *err);
void mr_scores_release(mr_scores *s);

#endif
