/* sweep.h - the ways to divide a run among ranks, threads and batches, tried in short runs of `millrace train`.
 * Invariant: a way that cannot work is skipped with its reason, and never ends the others.
 *
 *      values of each axis --product--> ways --checked by a plan--> first turn, cheapest first --> second turn, of the
 *      ways that came within half of the best: longer, and what counts */
#ifndef MR_SWEEP_H
#define MR_SWEEP_H

#include "base/cli.h"
#include "run/trainer.h"

typedef enum mr_sweep_axis {
    MR_SWEEP_RANKS,
    MR_SWEEP_THREADS,
    MR_SWEEP_BATCH,
    MR_SWEEP_DECODER,
    MR_SWEEP_DECODE_ON,
    MR_SWEEP_EXCHANGE,
    MR_SWEEP_RECOMPUTE,
    MR_SWEEP_PRECISION,
    MR_SWEEP_AXES
} mr_sweep_axis;

extern const char *const mr_sweep_words[MR_SWEEP_AXES]; /* "ranks": the option's name, in `train` as well */

typedef struct mr_sweep_way {
    const char *value[MR_SWEEP_AXES]; /* lent */
    uint64_t memory;                  /* planned bytes of all ranks */
    double limit;                     /* samples/s if all of the work were one large matrix multiplication */
    bool measured;
    double rate, compute, wait, exchange; /* samples/s; shares of the slowest rank's time */
    uint64_t used;                        /* bytes that a rank used at most */
    char skipped[400];                    /* why it was not measured, or only briefly; "": it was */
} mr_sweep_way;

typedef struct mr_sweep {
    const char *dataset;
    char *const *options; /* for every run */
    size_t option_count;
    const char *lists[MR_SWEEP_AXES]; /* "1,2,4" */
    const char *launcher;             /* "mpirun --bind-to none": words that come before -n RANKS */
    double budget;                    /* seconds */
    double seconds;                   /* of a run of the second turn */
    const char *folder;               /* for what the runs write */
    bool speaks;                      /* a line on stderr for each run */
    /* made by mr_sweep_run(): */
    mr_sweep_way *ways;
    size_t count, room;
    mr_buf texts; /* the values */
    bool stopped; /* by a signal */
} mr_sweep;

/* MR_MISUSE: an axis or an option that no way accepts.  The caller releases in any case. */
mr_status mr_sweep_run(mr_sweep *s, mr_error *err);
void mr_sweep_release(mr_sweep *s);

/* The fastest way; NULL: none was measured. */
const mr_sweep_way *mr_sweep_best(const mr_sweep *s);
#endif
