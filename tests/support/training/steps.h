/* steps.h - the checkpoints of a run that was interrupted, against those of one that was not.
 * Invariant: training is exact, so every file of a checkpoint is compared to the byte, and state.json by everything it
 * records about the run. */
#ifndef MR_SUPPORT_STEPS_H
#define MR_SUPPORT_STEPS_H

#include "tests/support/support.h"

enum { STEPS_WHY = 1200 };

/* Whether the product finds its newest checkpoint in OUTPUT whole, or none, and every step there is that of WHOLE, an
 * OUTPUT with all of them.  *newest: its update, 0: there is none.  False: `why` says what is wrong. */
bool steps_good(const char *output, const char *whole, uint64_t *newest, char why[STEPS_WHY]);

/* The newest update whose checkpoint a --log promises: it tells an update after the checkpoint of the one before
 * (--eval-every 1).  0: none.  The log may be absent, cut or have holes. */
uint64_t steps_promised(const char *log);

#endif
