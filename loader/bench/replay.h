/* replay.h - loads batches again and digests each over all ranks.
 * Invariant: the digest covers the bytes of all samples in global batch order, whether one process has all ranks or
 * each has one and they pass the unfinished digest from rank to rank. */
#ifndef MR_REPLAY_H
#define MR_REPLAY_H

#include "loader/batch/damage.h"
#include "device/device.h"

typedef struct mr_replay_batch {
    uint64_t epoch, step;
    uint8_t digest[16]; /* XXH3-128, canonical form */
    const char *text;   /* what `describe` wrote for all samples */
    size_t text_len;
} mr_replay_batch;

typedef struct mr_replay {
    mr_loader_options options; /* rank and world are set by mr_replay_run() */
    mr_device *device;         /* decodes, if options.deliver is MR_DELIVER_CODED: digests are those of float32 */
    unsigned world;            /* ranks; under a launcher, its number of ranks */
    uint64_t first, end;       /* steps of the epoch options.start.epoch */
    /* Appends text about a sample, in every process; NULL: no text.  `bad`: the damaged sample that it replaces (itself
     * if it is masked); NULL: none. */
    mr_status (*describe)(void *ctx, const mr_sample_facts *facts, const mr_bad_slot *bad, mr_buf *out, mr_error *err);
    /* Receives the finished batches in order, in rank 0's process. */
    mr_status (*take)(void *ctx, const mr_replay_batch *batch, mr_error *err);
    void *ctx;
} mr_replay;

/* Collective.  *damage, zeroed before, gets what was replaced or masked on all ranks; the caller releases it.
 * MR_MISUSE also if a launcher started a different number of ranks than `world`.  A failure is the same on every
 * rank. */
mr_status mr_replay_run(const mr_replay *r, const mr_dataset *ds, mr_ranks *ranks, mr_damage *damage, mr_error *err);

#endif
