/* trainer_update.h - one update of a run: its micro-steps, the gradients and numbers of all ranks, the optimizer.
 * Invariant: an update is made by all ranks or by none of them. */
#ifndef MR_TRAINER_UPDATE_H
#define MR_TRAINER_UPDATE_H

#include "train/run/losses.h"
#include "train/run/pause.h"
#include "train/run/trainer.h"

/* The numbers that are summed over the ranks at each update, besides the gradients. */
enum {
    MR_UPDATE_LOSS,
    MR_UPDATE_WEIGHT,
    MR_UPDATE_SAMPLES,
    MR_UPDATE_SECONDS, /* and those below: what the rank spent before this update, for the lines of the log */
    MR_UPDATE_WAIT,
    MR_UPDATE_EXCHANGE,
    MR_UPDATE_READ,
    MR_UPDATE_DECODE,
    MR_UPDATE_PAUSE,
    MR_UPDATE_NUMBERS = MR_UPDATE_PAUSE + MR_PAUSE_NUMBERS
};

typedef struct mr_trainer_update {
    mr_pause pause;
    double numbers[MR_UPDATE_NUMBERS], sums[MR_UPDATE_NUMBERS];
    mr_update_facts facts;
    mr_losses losses;
    mr_status carried; /* failure of this rank since the update before, not yet known to the others */
    mr_error why;      /* the reason */
    mr_rank_use use;   /* what this rank has used so far */
    mr_rank_uses uses; /* on rank 0: what all ranks had used before this update */
} mr_trainer_update;

/* Allocates memory for the updates of `t`; close it also after a failure. */
mr_status mr_trainer_update_open(const mr_trainer *t, mr_trainer_update *u, mr_error *err);
void mr_trainer_update_close(mr_trainer_update *u);
/* Collective: the next update; u->sums and u->facts are then those of all ranks. */
mr_status mr_trainer_update_make(mr_trainer *t, mr_trainer_update *u, mr_error *err);
/* How every rank spent its time until the last update, as it reported; lent.  Empty on all ranks but 0. */
mr_rank_uses mr_trainer_update_uses(const mr_trainer *t, mr_trainer_update *u);

#endif
