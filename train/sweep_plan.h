/* sweep_plan.h - what each way of a sweep would need, before it is run.
 * Invariant: nothing is run, and nothing but the dataset is read. */
#ifndef MR_SWEEP_PLAN_H
#define MR_SWEEP_PLAN_H

#include "train/sweep.h"

/* Fills in memory and limit of each way, and skips those that cannot work here.  MR_MISUSE: none can. */
mr_status mr_sweep_plan(mr_sweep *s, mr_error *err);

#endif
