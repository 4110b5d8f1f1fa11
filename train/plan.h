/* plan.h - what a run would need, stated before it begins: `millrace train --plan`.
 * Invariant: the table for people and JSON come from one set of sums. */
#ifndef MR_TRAIN_PLAN_H
#define MR_TRAIN_PLAN_H

#include "train/run/trainer.h"

/* The prepared run's parameters, FLOPs, memory and steps, on standard output, as --plan asks. */
mr_status mr_plan_print(const mr_trainer *t, mr_error *err);
/* "vit: patch 8, hidden 64, ...". */
void mr_plan_shape(const mr_model_config *m, char *text, size_t size);

#endif
