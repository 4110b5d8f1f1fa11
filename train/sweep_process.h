/* sweep_process.h - runs this program's `train` for one way of a sweep.
 * Invariant: as mr_program: it is waited for, and its failure is never mistaken for success. */
#ifndef MR_SWEEP_PROCESS_H
#define MR_SWEEP_PROCESS_H

#include "train/sweep.h"

uint64_t mr_sweep_ranks(const mr_sweep_way *w);

/* `train` with the way's options and `more`, which ends with NULL.  `launched`: on its ranks, otherwise one process.
 * `out` gets what it prints.  Errors as mr_program_end(). */
mr_status mr_sweep_process(const mr_sweep *s, const mr_sweep_way *way, bool launched, const char *const *more,
                           mr_buf *out, mr_error *err);

/* The command to be copied. */
void mr_sweep_command(const mr_sweep *s, const mr_sweep_way *w, mr_buf *out);

#endif
