/* watch.h - a thread on each rank that notices when the run can no longer go on, and ends it.
 * Invariant: the thread uses neither MPI nor files, so it works while both hang.
 *
 *      every rank ---- beat, each tick ---> rank 0, which judges (stall.h)
 *      every rank <--- answer, or the verdict ---- rank 0         no answer: rank 0 itself is silent
 *
 * One UDP socket per rank: unlike with TCP, a link that was down for a while works again at once, and a rank that is
 * gone leaves nothing to wait for.  Datagrams carry a random key of the run; others are ignored. */
#ifndef MR_WATCH_H
#define MR_WATCH_H

#include "base/buf.h"
#include "base/ranks/stall.h"

typedef struct mr_watch mr_watch;

/* Called on the watching thread, while the others go on; unless it is early, it is to end the process.  `speaks`: this
 * rank is to tell the user. */
typedef void (*mr_watch_alarm)(void *ctx, const mr_stall *stall, bool speaks);

typedef struct mr_watch_options {
    unsigned rank, world;
    uint64_t seconds;     /* without progress: a stall */
    bool speaks_of_first; /* this rank tells the user when rank 0 is silent */
    mr_watch_alarm alarm;
    void *ctx;
} mr_watch_options;

/* The time between two beats. */
long mr_watch_tick_ms(uint64_t seconds);

/* In this order: open; on rank 0 meet(), whose bytes the caller brings to the other ranks; on these find(), which waits
 * for rank 0's first answer.  Then arm, or end.  MR_SYSTEM: no answer, no socket, no thread, no memory. */
mr_status mr_watch_open(const mr_watch_options *o, mr_watch **out, mr_error *err);
mr_status mr_watch_meet(mr_watch *w, mr_buf *invitation, mr_error *err);
mr_status mr_watch_find(mr_watch *w, const mr_buf *invitation, mr_error *err);
/* From here on a stall ends the run. */
void mr_watch_arm(mr_watch *w);
void mr_watch_end(mr_watch *w); /* NULL is fine */

/* The processor time, so far, of the only thread that does not work for the run. */
void mr_watch_exclude_cpu(mr_watch *w, uint64_t ns); /* NULL is fine */

/* Around what waits for other ranks; may be nested. */
void mr_watch_waits(mr_watch *w, bool begins); /* NULL is fine */

#endif
