/* draw.h - which sample an item of an epoch is, if samples are not seen exactly once.
 * Invariant: a pure function of (draw, seed, epoch, item).  The items of a group count through its samples, in another
 * order in each round, from one epoch to the next: in any run of epochs each sample of a group is seen as often as any
 * other, within one. */
#ifndef MR_ORDER_DRAW_H
#define MR_ORDER_DRAW_H

#include "millrace.h"
#include "shards/manifest/manifest.h"

/* Weights are for training: without a shuffle each sample is seen once, in order, and there is no draw (NULL). */
const mr_draw *mr_draw_of(const mr_split *split, mr_shuffle shuffle);
/* Items of an epoch. */
uint64_t mr_draw_items(const mr_split *split, mr_shuffle shuffle);
/* The sample of the split that an item is; item < d->items. */
uint64_t mr_draw_sample(const mr_draw *d, uint64_t seed, uint64_t epoch, uint64_t item);

#endif
