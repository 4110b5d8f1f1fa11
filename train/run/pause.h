/* pause.h - when a run stops before its end, and when it writes a checkpoint without evaluating it: signals, and
 * --checkpoint-every.
 * Invariant: a signal or the time, which only one rank may know, takes effect through the sums that all ranks get with
 * an update, so that all stop, or save, after the same one. */
#ifndef MR_PAUSE_H
#define MR_PAUSE_H

#include <signal.h>

#include "train/setup/settings.h"

/* SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 */
enum { MR_PAUSE_SIGNALS = 5 };

typedef struct mr_pause {
    mr_pace every;
    bool keeps_time, catches;
    double saved; /* mr_seconds() of the last checkpoint or of the start */
    struct sigaction old[MR_PAUSE_SIGNALS];
} mr_pause;

/* One per process at a time.  keeps_time: this rank's clock counts.  catches: until mr_pause_end(), signals stop the
 * run instead of ending the process, except for an ignored SIGHUP, as under nohup. */
void mr_pause_begin(mr_pause *p, const mr_pace *every, bool keeps_time, bool catches);
void mr_pause_end(mr_pause *p);

/* What this rank knows, to be summed over the ranks; the calls after it take the sums. */
enum { MR_PAUSE_NUMBERS = 3 };
void mr_pause_numbers(const mr_pause *p, double numbers[MR_PAUSE_NUMBERS]);
/* The signal that stops the run; 0: none. */
int mr_pause_stops(const double sums[MR_PAUSE_NUMBERS]);
/* Whether to write a checkpoint after update number `done`. */
bool mr_pause_saves(const mr_pause *p, const double sums[MR_PAUSE_NUMBERS], uint64_t done);
void mr_pause_saved(mr_pause *p); /* one was written, for whatever reason */

#endif
