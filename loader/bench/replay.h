/* replay.h - batches loaded again, and one digest for each over all ranks.
 * Invariant: the digest is that of the bytes of all samples in global batch order, whoever loads them: ranks of one
 * process, or one rank a process, which hand the unfinished digest on from rank to rank. */
#ifndef MR_REPLAY_H
#define MR_REPLAY_H

#include "batch/damage.h"

typedef struct mr_replay_batch {
    uint64_t epoch, step;
    uint8_t digest[16]; /* XXH3-128, canonical form */
    const char *text;   /* what `describe` wrote for all samples */
    size_t text_len;
} mr_replay_batch;

typedef struct mr_replay {
    mr_loader_options options; /* rank and world are set by mr_replay_run() */
    unsigned world;            /* all ranks; under a launcher: its ranks */
    uint64_t first, end;       /* steps of the epoch options.start.epoch */
    /* Appends words about a sample, in every process; NULL: none.  `bad`: the damaged one in whose place it stands (its
     * own where it is masked), NULL: none. */
    mr_status (*describe)(void *ctx, const mr_sample_facts *facts, const mr_bad_slot *bad, mr_buf *out, mr_error *err);
    /* Takes a finished batch, in order; in rank 0's process. */
    mr_status (*take)(void *ctx, const mr_replay_batch *batch, mr_error *err);
    void *ctx;
} mr_replay;

/* *damage, zeroed before, gets what was replaced or masked, joined; the caller's to release.
 * Collective.  MR_MISUSE also where a launcher's ranks are not `world`.  A failure is the same on every rank. */
mr_status mr_replay_run(const mr_replay *r, const mr_dataset *ds, mr_ranks *ranks, mr_damage *damage, mr_error *err);

#endif
