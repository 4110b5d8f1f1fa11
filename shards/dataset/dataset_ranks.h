/* dataset_ranks.h - whether all ranks read the same dataset.
 * Invariant: all ranks come to the same answer. */
#ifndef MR_DATASET_RANKS_H
#define MR_DATASET_RANKS_H

#include "base/ranks/ranks.h"
#include "shards/dataset/dataset.h"

/* Collective: mr_dataset_open() on all ranks, of which one on each host reads the manifest and looks at the shards'
 * files.  The others of the host get the manifest from it, and have the list of shards in memory in common; a rank
 * whose `path` is another file there reads that itself.  The failure of one is that of all. */
mr_status mr_dataset_open_all(const char *path, mr_ranks *ranks, mr_dataset **out, mr_error *err);

/* Collective, once each rank has read its manifest.  Ranks share out what the manifest lists: copies of which one is
 * out of date would be mixed with the others.  MR_BAD_DATA names the first rank that reads a different dataset from
 * rank 0. */
mr_status mr_dataset_agree(mr_ranks *ranks, const uint8_t digest[32], mr_error *err);

/* mr_dataset_stage() with one rank a host that copies; `dir` NULL: nothing, or for a URL
 * the default folder.  MR_MISUSE: a size without a folder; or as
 * there. */
mr_status mr_dataset_stage_here(mr_dataset *ds, const char *dir, uint64_t max_bytes, const mr_ranks *ranks,
                                mr_error *err);
/* Prints what mr_dataset_stage_remark() returns, on standard error and by one rank of each host. */
void mr_dataset_stage_warn(const mr_dataset *ds, const mr_ranks *ranks);

/* From the options. */
#define MR_LOCAL_HELP                                                                                                  \
    "cache shards in this folder on a local disk of each host; they are copied in the order of their first use"
#define MR_LOCAL_SIZE_HELP "size limit of --local; the least recently used copies are removed first (default: no limit)"

#endif
