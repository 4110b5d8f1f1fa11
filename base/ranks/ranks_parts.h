/* ranks_parts.h - what ranks.c, ranks_calls.c and ranks_watch.c share.
 * Invariant: every wait for other ranks is between mr_watch_waits(true) and (false), so that the watch knows of it. */
#ifndef MR_RANKS_PARTS_H
#define MR_RANKS_PARTS_H

#include <stdatomic.h>

#include "base/ranks/ranks_iface.h"
#include "base/ranks/watch.h"

enum { MR_RANKS_HOST_MAX = 65, MR_RANKS_REPORT_SECONDS = 5 }; /* for the rank that reports, before the others end */

typedef struct mr_ranks_verdict {
    int32_t status;
    char text[sizeof((mr_error *)NULL)->text];
} mr_ranks_verdict;

struct mr_ranks {
    unsigned rank, world, here, beside;
    mr_ranks_verdict *verdicts;  /* [world], for agree(), which must work without memory; NULL: alone */
    uint64_t *verdict_lens;      /* [world] */
    const mr_ranks_iface *iface; /* NULL: alone */
    void *library, *group;
    char (*hosts)[MR_RANKS_HOST_MAX]; /* [world]; NULL: alone, or a part */
    bool several;                     /* hosts */
    bool threads;                     /* MPI may be called from any of them; in a part: false */
    mr_watch *watch;                  /* the run's, in a part as well; NULL: none */
    uint64_t stall_seconds;
    mr_ranks_tell tell;
    atomic_bool stalled; /* the watch ends this process */
    bool part, broken, reports;
};

mr_status mr_ranks_failed(mr_error *err);
/* Collective; allocates nothing.  Whether all ranks have the memory that the next call needs. */
mr_status mr_ranks_all_have(mr_ranks *r, bool mine, const char *what, mr_error *err);
/* The interface's, as the watch is to know them. */
int mr_ranks_iface_gather(mr_ranks *r, const void *mine, uint64_t len, void *all, const uint64_t *lens);
int mr_ranks_waited(mr_ranks *r, int code); /* ends a wait; returns `code` */

#endif
