/* watch.c - beats and answers as datagrams, and the thread that sends and judges them.
 * Invariant: a rank works if its process uses the processor outside of this thread; long work needs no calls of its
 * own.
 *
 *      BEAT     state: bit 0: waits, bit 1: over
 *      VERDICT  state: the kind of stall; stalled: its rank */
#include "base/ranks/watch.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/ranks/datagram.h"
#include "base/system/pool.h"
#include "base/scope.h"

enum {
    TICKS = 16,         /* until a stall */
    TICK_MAX_MS = 1000, /* the longest tick */
    FIND_TRIES = 40,    /* for the first answer */
    FIND_MS = 50,       /* between two of them */
    VERDICTS = 3,       /* datagrams may be lost */
    WORK_NS = 10000000, /* processor time that is work: an idle process uses less in minutes */
};

enum { BEAT = 1, ANSWER, VERDICT };

struct mr_watch {
    mr_watch_options o;
    mr_datagrams net;
    int bell; /* an eventfd that wakes the thread to end */
    long tick_ms;
    unsigned limit;
    pthread_t thread;
    bool started;
    atomic_bool armed, ends;
    atomic_uint waits;
    atomic_ullong turns, aside_ns;
    /* For the thread alone, once it runs: */
    mr_stalls stalls;               /* rank 0 */
    struct sockaddr_storage *peers; /* [world], rank 0: where each was last heard from */
    unsigned silent;                /* ticks without an answer */
    bool answered;
    uint64_t work, used_ns;
};

/* ---- datagrams --------------------------------------------------------------------------------------------------- */

static mr_datagram blank(const mr_watch *w, uint32_t kind)
{
    mr_datagram d = {.kind = kind, .rank = w->o.rank};
    memcpy(d.key, w->net.host.key, MR_DATAGRAM_KEY);
    return d;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static mr_beat my_beat(mr_watch *w, bool over)
{
    uint64_t aside = clock_ns(CLOCK_THREAD_CPUTIME_ID) + atomic_load(&w->aside_ns);
    uint64_t used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - aside;
    if (used >= w->used_ns + WORK_NS) {
        w->used_ns = used;
        w->work++;
    }
    return (mr_beat){
        .waits = atomic_load(&w->waits) != 0, .over = over, .work = w->work, .turns = atomic_load(&w->turns)};
}

/* To all addresses of rank 0: which of them lead there may change. */
static void send_beat(mr_watch *w, bool over)
{
    mr_beat beat = my_beat(w, over);
    mr_datagram d = blank(w, BEAT);
    d.state = (uint32_t)beat.waits | (uint32_t)beat.over << 1;
    d.work = beat.work;
    d.turns = beat.turns;
    for (uint32_t i = 0; i < w->net.host.count; i++)
        mr_datagram_send(&w->net, &w->net.host.at[i], &d);
}

/* ---- rank 0 ------------------------------------------------------------------------------------------------------ */

static void hear(mr_watch *w, const mr_datagram *d, const struct sockaddr_storage *from)
{
    const mr_beat beat = {d->state & 1, d->state >> 1 & 1, d->work, d->turns};
    const mr_datagram answer = blank(w, ANSWER);
    if (d->kind != BEAT || d->rank == 0 || d->rank >= w->o.world)
        return;
    mr_stalls_hear(&w->stalls, d->rank, &beat);
    w->peers[d->rank] = *from;
    mr_datagram_send(&w->net, from, &answer);
}

static void tell_all(mr_watch *w, const mr_stall *stall)
{
    mr_datagram d = blank(w, VERDICT);
    d.state = stall->kind;
    d.stalled = stall->rank;
    for (int i = 0; i < VERDICTS; i++) {
        for (unsigned r = 1; r < w->o.world; r++)
            mr_datagram_send(&w->net, &w->peers[r], &d);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

static mr_stall judge(mr_watch *w)
{
    const mr_beat mine = my_beat(w, false);
    mr_stalls_hear(&w->stalls, 0, &mine);
    if (!atomic_load(&w->armed))
        return (mr_stall){MR_STALL_NONE, 0, false};
    mr_stall stall = mr_stalls_tick(&w->stalls);
    if (stall.kind != MR_STALL_NONE && !stall.early)
        tell_all(w, &stall);
    return stall;
}

/* ---- the other ranks --------------------------------------------------------------------------------------------- */

static mr_stall ask(mr_watch *w)
{
    send_beat(w, false);
    w->silent = w->answered || !atomic_load(&w->armed) ? 0 : w->silent + 1;
    w->answered = false;
    bool early = w->silent == w->limit / 2 + 1;
    return (mr_stall){w->silent > w->limit || early ? MR_STALL_SILENT : MR_STALL_NONE, 0, early};
}

static void heed(mr_watch *w, const mr_datagram *d, mr_stall *stall)
{
    if (d->rank != 0 || (d->kind != ANSWER && d->kind != VERDICT))
        return;
    w->answered = true;
    if (d->kind == VERDICT && d->stalled < w->o.world)
        *stall = (mr_stall){d->state, d->stalled, false};
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Handles what arrives until the end of the tick. */
static mr_stall listen_for_a_tick(mr_watch *w)
{
    mr_stall stall = {MR_STALL_NONE, 0, false};
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + (uint64_t)w->tick_ms * 1000000u;
    for (;;) {
        mr_datagram d;
        struct sockaddr_storage from;
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        struct pollfd ready[2] = {{.fd = w->net.socket, .events = POLLIN}, {.fd = w->bell, .events = POLLIN}};
        int n = poll(ready, 2, now < until ? (int)((until - now) / 1000000u) + 1 : 0);
        while (n > 0 && mr_datagram_receive(&w->net, &d, &from))
            if (w->o.rank == 0)
                hear(w, &d, &from);
            else
                heed(w, &d, &stall);
        if (stall.kind != MR_STALL_NONE || atomic_load(&w->ends) || now >= until)
            return stall;
    }
}

static void *watch(void *arg)
{
    mr_watch *w = arg;
    while (!atomic_load(&w->ends)) {
        mr_stall told = listen_for_a_tick(w);
        mr_stall found = told.kind != MR_STALL_NONE ? told : w->o.rank == 0 ? judge(w) : ask(w);
        if (found.kind == MR_STALL_NONE || atomic_load(&w->ends))
            continue;
        bool speaks = w->o.rank == 0 || (told.kind == MR_STALL_NONE && w->o.speaks_of_first);
        if (speaks || !found.early)
            w->o.alarm(w->o.ctx, &found, speaks);
        if (!found.early)
            return NULL;
    }
    if (w->o.rank != 0)
        send_beat(w, true);
    return NULL;
}

static bool start(mr_watch *w)
{
    w->started = mr_thread_start(&w->thread, watch, w) == 0;
    return w->started;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

long mr_watch_tick_ms(uint64_t seconds)
{
    return seconds < TICK_MAX_MS * TICKS / 1000 ? (long)seconds * 1000 / TICKS : TICK_MAX_MS;
}

mr_status mr_watch_open(const mr_watch_options *o, mr_watch **out, mr_error *err)
{
    mr_watch *w = mr_alloc(1, sizeof *w);
    if (!w)
        return mr_fail_memory(err, "watching the ranks");
    w->o = *o;
    w->tick_ms = mr_watch_tick_ms(o->seconds);
    uint64_t limit = o->seconds < UINT32_MAX / 1000 ? o->seconds * 1000 / (uint64_t)w->tick_ms : UINT32_MAX / 2;
    w->limit = (unsigned)limit;
    w->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mr_status status = mr_datagrams_open(&w->net, err);
    if (status == MR_OK && w->bell < 0)
        status = mr_fail(err, MR_SYSTEM, "watching the ranks: no eventfd");
    if (status == MR_OK && o->rank == 0)
        status = mr_stalls_begin(&w->stalls, o->world, w->limit, err);
    if (status == MR_OK && o->rank == 0 && !(w->peers = mr_alloc(o->world, sizeof *w->peers)))
        status = mr_fail_memory(err, "watching the ranks");
    if (status == MR_OK)
        *out = w;
    else
        mr_watch_end(w);
    return status;
}

mr_status mr_watch_meet(mr_watch *w, mr_buf *out, mr_error *err)
{
    MR_TRY(mr_datagrams_invite(&w->net, err));
    if (!start(w))
        return mr_fail(err, MR_SYSTEM, "watching the ranks: no thread " MR_NO_THREAD);
    mr_buf_add(out, &w->net.host, sizeof w->net.host);
    return mr_buf_status(out, err, "watching the ranks");
}

mr_status mr_watch_find(mr_watch *w, const mr_buf *in, mr_error *err)
{
    mr_stall none = {MR_STALL_NONE, 0, false};
    if (in->len != sizeof w->net.host)
        return mr_fail(err, MR_SYSTEM, "rank 0 cannot be watched");
    memcpy(&w->net.host, in->data, sizeof w->net.host);
    for (int i = 0; i < FIND_TRIES && !w->answered; i++) {
        mr_datagram d;
        struct sockaddr_storage from;
        struct pollfd ready = {.fd = w->net.socket, .events = POLLIN};
        send_beat(w, false);
        poll(&ready, 1, FIND_MS);
        while (mr_datagram_receive(&w->net, &d, &from))
            heed(w, &d, &none);
    }
    if (!w->answered)
        return mr_fail(err, MR_SYSTEM, "rank 0 does not answer UDP datagrams");
    return start(w) ? MR_OK : mr_fail(err, MR_SYSTEM, "watching the ranks: no thread " MR_NO_THREAD);
}

void mr_watch_arm(mr_watch *w)
{
    atomic_store(&w->armed, true);
}

void mr_watch_end(mr_watch *w)
{
    if (!w)
        return;
    atomic_store(&w->ends, true);
    if (w->started) {
        eventfd_write(w->bell, 1);
        pthread_join(w->thread, NULL);
    }
    mr_datagrams_close(&w->net);
    mr_scope_close(&w->bell);
    mr_stalls_end(&w->stalls);
    free(w->peers);
    free(w);
}

void mr_watch_exclude_cpu(mr_watch *w, uint64_t ns)
{
    if (w)
        atomic_store(&w->aside_ns, ns);
}

void mr_watch_waits(mr_watch *w, bool begins)
{
    if (!w)
        return;
    if (begins) {
        atomic_fetch_add(&w->waits, 1);
    } else {
        atomic_fetch_add(&w->turns, 1);
        atomic_fetch_sub(&w->waits, 1);
    }
}
