/* schedule.h - global batches, and each rank's part of them.
 * Invariant: global batch k holds the same samples in the same order for any number of ranks and threads, and every
 * rank has the same number of steps.
 *
 *   epoch      | batch 0        | batch 1        | ... | tail  |
 *   batch k    | rank 0 | rank 1 | rank 2 | rank 3 |             contiguous slices
 *   tail       drop: left out; pad: filled with the epoch's first samples, weight 0; partial: a shorter batch, divided
 *              as evenly as its size allows (the first ranks have one more; some may have none) */
#ifndef MR_SCHEDULE_H
#define MR_SCHEDULE_H

#include "loader/order/draw.h"
#include "loader/order/order.h"

typedef struct mr_schedule {
    mr_order order;
    const mr_draw *draw;   /* which sample an item is; NULL: the one of its number */
    uint64_t global_batch; /* samples of all ranks together */
    unsigned world;
    mr_tail tail;
    uint64_t steps; /* steps of an epoch */
} mr_schedule;

/* The schedule has no draw.  A world of 0 counts as 1.  MR_MISUSE: a global batch of 0, of more than 2^40, or not
 * divisible by the ranks; the message names the nearest that is. */
mr_status mr_schedule_make(const mr_order *order, uint64_t global_batch, unsigned world, mr_tail tail, mr_schedule *out,
                           mr_error *err);

typedef struct mr_slot {
    uint64_t item, sample;
    float weight; /* 1, or 0 for padding */
} mr_slot;

/* The sample that an item of an epoch is. */
uint64_t mr_schedule_sample(const mr_schedule *s, uint64_t epoch, uint64_t item);
/* Slots of `rank` in a step: how many (0 for an unknown step or rank), and the i-th of them. */
uint64_t mr_schedule_count(const mr_schedule *s, uint64_t step, unsigned rank);
mr_slot mr_schedule_slot(const mr_schedule *s, uint64_t epoch, uint64_t step, unsigned rank, uint64_t i);

/* The step that begins at `position` samples of the epoch (a cursor); `steps` at its end, after the last step or after
 * all samples.  MR_MISUSE: no step begins there. */
mr_status mr_schedule_step_at(const mr_schedule *s, uint64_t position, uint64_t *step, mr_error *err);
uint64_t mr_schedule_position(const mr_schedule *s, uint64_t step); /* at most the number of samples */

#endif
