/* meeting.h - ends a process if other ranks do not start: MPI waits forever for a rank that does not start.
 * Invariant: it needs no other rank, and ends as soon as watch.h takes its place.  Time is counted in this process's
 * ticks. */
#ifndef MR_MEETING_H
#define MR_MEETING_H

#include "base/ranks/ranks.h"

typedef struct mr_meeting mr_meeting;

/* For a caller to add to a limit of seconds for work: hosts do not start a program at the same time. */
enum { MR_MEETING_MORE = 30 };

/* From here to mr_meeting_end() at most `seconds` may pass (0: any time); then `tell` is called on a thread, and the
 * process ends with exit code 3.  *out NULL: no launcher has started several processes.  MR_SYSTEM: no memory, no
 * thread. */
mr_status mr_meeting_begin(uint64_t seconds, mr_ranks_tell tell, mr_meeting **out, mr_error *err);
void mr_meeting_end(mr_meeting *m); /* NULL is fine */

#endif
