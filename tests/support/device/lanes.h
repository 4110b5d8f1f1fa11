/* lanes.h - the lanes of a group of a kernel, one at a time, each on a stack of its own from barrier to barrier.
 * Invariant: after every barrier lanes run in another order - up, down, shuffled - so that a barrier that is missing
 * changes results; a lane that is not where the others of its group or warp wait ends the program.
 *
 *      up 0 1 2 3 | barrier, line 12 | down 3 2 1 0 | barrier, line 15 | shuffled 2 0 3 1 | ... | all have ended */
#ifndef MR_SUPPORT_LANES_H
#define MR_SUPPORT_LANES_H

#include <stdint.h>

enum { LANES_MOST = 1024, LANES_WARP = 32 };

typedef struct lanes_spot { /* where the running lane is */
    uint32_t lane, lanes, group, row;
} lanes_spot;

extern lanes_spot lanes_here;

/* Runs run(ctx) for each lane of each group of each row; unless it may wait, all on the caller's stack. */
void lanes_run(void (*run)(const void *ctx), const void *ctx, uint32_t lanes, uint32_t groups, uint32_t rows,
               int may_wait);
/* In a kernel: the other lanes of the group run until they are here, too. */
void lanes_wait(int line);
/* Those of the warp: LANES_WARP lanes from a multiple of it on. */
void lanes_wait_warp(int line);

#endif
