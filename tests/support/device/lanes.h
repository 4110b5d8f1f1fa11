/* lanes.h - the lanes of a group of a kernel in plain C, each on a stack of its own, in turns from barrier to barrier.
 * Invariant: lanes run in another order after every barrier, so that one that is missing changes results from run to
 * run; a lane that does not come to the barrier that the others are at ends the program.
 *
 *      order 2 0 3 1 | barrier, line 12 | order 1 2 0 3 | barrier, line 15 | ... | all have ended
 */
#ifndef MR_SUPPORT_LANES_H
#define MR_SUPPORT_LANES_H

#include <stdint.h>

enum { LANES_MOST = 256 };

typedef struct lanes_spot { /* where the running lane is */
    uint32_t lane, lanes, group, row;
} lanes_spot;

extern lanes_spot lanes_here;

/* Runs run(ctx) for each lane of each group of each row.  Without barriers no stacks are needed. */
void lanes_run(void (*run)(const void *ctx), const void *ctx, uint32_t lanes, uint32_t groups, uint32_t rows,
               int has_barriers);
/* In a kernel: the other lanes run until they are here, too. */
void lanes_wait(int line);

#endif
