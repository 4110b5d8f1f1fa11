/* ranks_watch.c - a run whose rank stalls ends on all ranks.
 * Invariant: from the alarm on, this process does nothing but say why and end. */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/ranks/ranks_parts.h"
#include "base/scope.h"

/* If ending all ranks hangs as well, this one ends by itself. */
static void *end_later(void *arg)
{
    nanosleep(&(struct timespec){.tv_sec = MR_RANKS_REPORT_SECONDS}, NULL);
    _exit(3);
    return arg;
}

static void on_stall(void *ctx, const mr_stall *stall, bool speaks)
{
    mr_ranks *r = ctx;
    mr_error err;
    pthread_t timer;
    atomic_store(&r->stalled, !stall->early);
    if (speaks) {
        mr_stall_explain(stall, r->hosts[stall->rank], r->stall_seconds, &err);
        r->tell(&err);
    }
    if (stall->early)
        return;
    /* All notice within a tick.  A rank that ended before would be a second failure to those that have not yet. */
    uint64_t ms = (speaks ? 2 : 4) * (uint64_t)mr_watch_tick_ms(r->stall_seconds) + 100;
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
    if (pthread_create(&timer, NULL, end_later, NULL) != 0)
        _exit(3);
    r->iface->abort(3);
    _exit(3);
}

void mr_ranks_aside(mr_ranks *r, uint64_t ns)
{
    mr_watch_exclude_cpu(r->watch, ns);
}

void mr_ranks_quit(mr_ranks *r, const mr_error *why)
{
    pthread_t timer;
    if (r->tell)
        r->tell(why);
    if (r->iface && pthread_create(&timer, NULL, end_later, NULL) == 0)
        r->iface->abort(3);
    _exit(3);
}

/* The first rank of each host, not counting rank 0. */
static bool speaks_of_first(const mr_ranks *r)
{
    for (unsigned i = 1; i < r->rank; i++)
        if (strcmp(r->hosts[i], r->hosts[r->rank]) == 0)
            return false;
    return true;
}

static mr_status begin_watch(mr_ranks *r, mr_error *err)
{
    mr_watch_options o = {.rank = r->rank,
                          .world = r->world,
                          .seconds = r->stall_seconds,
                          .speaks_of_first = speaks_of_first(r),
                          .alarm = on_stall,
                          .ctx = r};
    MR_AUTO(mr_buf_free) mr_buf invitation = {0};
    MR_TRY(mr_ranks_agree(r, mr_watch_open(&o, &r->watch, err), err));
    MR_TRY(mr_ranks_agree(r, r->rank == 0 ? mr_watch_meet(r->watch, &invitation, err) : MR_OK, err));
    MR_TRY(mr_ranks_share(r, &invitation, err));
    MR_TRY(mr_ranks_agree(r, r->rank == 0 ? MR_OK : mr_watch_find(r->watch, &invitation, err), err));
    mr_watch_arm(r->watch);
    return MR_OK;
}

mr_status mr_ranks_watch(mr_ranks *r, uint64_t seconds, mr_ranks_tell tell, mr_error *err)
{
    mr_error why;
    r->stall_seconds = seconds;
    r->tell = tell;
    if (r->world == 1 || seconds == 0 || begin_watch(r, &why) == MR_OK)
        return MR_OK;
    mr_watch_end(r->watch);
    r->watch = NULL;
    return mr_fail(err, MR_AGAIN, "%s: a rank that stalls will not be noticed", why.text);
}
