/* describe.h - what a model learns from a batch besides its images.
 * Invariant: what is written about a sample depends on the sample, the seed and the epoch alone, except for the padding
 * of its text. */
#ifndef MR_DESCRIBE_H
#define MR_DESCRIBE_H

#include "train/feed/feed.h"

/* Fills f->host with the labels or targets, weights, keys and texts of f->batch; *weight: the sum of the weights.
 * Errors: those of mr_feed_next(). */
mr_status mr_feed_describe(mr_feed *f, double *weight, mr_error *err);

#endif
