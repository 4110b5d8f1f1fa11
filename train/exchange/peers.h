/* peers.h - one host buffer that all ranks fill: for losses whose negatives are the samples of every rank.
 * Invariant: `all` is a slot for each rank; after sum() it holds the same on every rank.
 *
 *      all:  | rank 0: capacity floats | rank 1: capacity floats | ...      each rank fills its slot, zeros elsewhere,
 * and sums: so slots are shared, or all ranks fill all slots, and gradients are added up */
#ifndef MR_PEERS_H
#define MR_PEERS_H

#include "base/ranks/ranks.h"

typedef struct mr_peers mr_peers;

struct mr_peers {
    unsigned rank, world;
    size_t samples;  /* the most of any rank */
    size_t capacity; /* floats a slot */
    float *all;      /* [world, capacity], host */
    /* all = the sum over ranks of `all`.  A failure is kept: later sums do nothing, and what is computed with them is
     * meaningless. */
    void (*sum)(mr_peers *p);
    mr_status status;
    mr_error why; /* the reason */
    void *ctx;
};

/* Over the ranks of a run; `row`: floats shared per sample (mr_contrast_row()).  Every rank gives the same
 * numbers; not collective, so the caller makes sure that all ranks continue or none.  MR_MISUSE: more bytes
 * than there are addresses. */
mr_status mr_peers_open(mr_ranks *ranks, size_t samples, size_t row, mr_peers *out, mr_error *err);
void mr_peers_close(mr_peers *p); /* a zeroed one is fine */
/* The sums of a rank without samples while the others compute a loss (`training`: and its gradient). */
void mr_peers_idle(mr_peers *p, bool training);

#endif
