/* run_print.h - a training run for `millrace inspect RUN`: what was trained on what.
 * Invariant: reads only state.json, so it is as quick for a large model as for a small one. */
#ifndef MR_REPORT_RUN_PRINT_H
#define MR_REPORT_RUN_PRINT_H

#include "base/error.h"

/* `run`: a run's folder, or one checkpoint in it.  MR_MISUSE: no checkpoint there; MR_BAD_DATA: it is damaged. */
mr_status mr_run_print(const char *run, bool json, mr_error *err);

#endif
