/* dataset_ranks.h - whether all ranks read the same dataset.
 * Invariant: all ranks come to the same answer. */
#ifndef MR_DATASET_RANKS_H
#define MR_DATASET_RANKS_H

#include "base/ranks.h"

/* Collective, once each rank has read its manifest.  Ranks share out what the manifest lists: copies of which one is
 * out of date would be mixed with the others.  MR_BAD_DATA names the first rank that reads another dataset than rank 0.
 */
mr_status mr_dataset_agree(mr_ranks *ranks, const uint8_t digest[32], mr_error *err);

#endif
