/* stall.h - which rank holds up a run, judged from the beats that all ranks send to one of them.
 * Invariant: time is counted in ticks of the judging rank, and a tick counts once however late it comes: a run that is
 * suspended as a whole and continued an hour later has lost one tick.
 *
 *      silent  no beat: the process is stopped, or its host or the network is down
 *      idle    beats, but it neither waits for other ranks nor uses the processor: a read or write that never returns
 *      locked  all ranks wait for one another, and none of these waits has ended */
#ifndef MR_STALL_H
#define MR_STALL_H

#include "base/error.h"

typedef enum mr_stall_kind { MR_STALL_NONE = 0, MR_STALL_SILENT, MR_STALL_IDLE, MR_STALL_LOCKED } mr_stall_kind;

typedef struct mr_stall {
    mr_stall_kind kind;
    unsigned rank; /* the lowest one of that kind; MR_STALL_LOCKED: 0 */
    bool early;    /* it has been silent for half of the time: not yet a stall, once */
} mr_stall;

typedef struct mr_beat {
    bool waits;     /* for other ranks */
    bool over;      /* it has left the run, as agreed: the last beat */
    uint64_t work;  /* grows while it works */
    uint64_t turns; /* waits that have ended */
} mr_beat;

typedef struct mr_stall_line {
    mr_beat last;
    unsigned silent, idle; /* ticks */
} mr_stall_line;

typedef struct mr_stalls {
    unsigned world, limit, locked; /* ranks; ticks that are a stall; ticks that all have waited */
    uint64_t turns;
    mr_stall_line *lines; /* [world] */
} mr_stalls;

/* MR_SYSTEM: out of memory.  `limit`: at least 1. */
mr_status mr_stalls_begin(mr_stalls *s, unsigned world, unsigned limit, mr_error *err);
void mr_stalls_end(mr_stalls *s); /* a zeroed one is fine */

void mr_stalls_hear(mr_stalls *s, unsigned rank, const mr_beat *beat);
/* Another tick has passed.  Once at half of the limit, a rank that is silent is reported `early`. */
mr_stall mr_stalls_tick(mr_stalls *s);

/* The sentence for the user; `host` of that rank, `seconds` that are a stall.  Always MR_SYSTEM. */
mr_status mr_stall_explain(const mr_stall *stall, const char *host, uint64_t seconds, mr_error *err);

#endif
