/* ahead.c - a queue of wanted records, and threads that fetch them, each waiting for one answer.
 *
 *   FREE -> WANTED -> FETCHING -> READY -> FREE       or FREE, if it failed
 *
 * Invariant: the bytes held never exceed HELD_MAX; a READY record that nobody took is dropped when its place is
 * needed. */
#include "shards/remote/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/system/pool.h"
#include "shards/remote/parts.h"

/* 1,500 records a second at 20 ms of delay are 30 outstanding requests, and twice that if a server is busy. */
enum { THREADS = 64, SLOTS = 512, HELD_MAX = 256 << 20, LOOK_MS = 20 };

typedef enum state { FREE, WANTED, FETCHING, READY } state;

typedef struct slot {
    state state;
    bool awaited; /* a reader waits for it */
    bool failed;  /* READY: there are no bytes, and its reader is to read them by itself */
    const mr_shard *shard;
    uint64_t from, turn; /* the lowest turn is fetched first, and dropped first */
    size_t len;
    uint8_t *bytes;
} slot;

struct mr_ahead {
    mr_remote *remote;
    pid_t owner; /* in a child of fork() there are no threads */
    pthread_mutex_t lock;
    pthread_cond_t to_do, done;
    slot slots[SLOTS];
    uint64_t turn;
    size_t held;
    unsigned wanted, idle, count;
    pthread_t threads[THREADS];
    atomic_bool stop;
};

static void drop(mr_ahead *a, slot *s)
{
    free(s->bytes);
    a->held -= s->len;
    *s = (slot){.state = FREE};
}

/* The slot in this state with the lowest turn; NULL: none. */
static slot *first(mr_ahead *a, state wanted)
{
    slot *best = NULL;
    for (slot *s = a->slots; s < a->slots + SLOTS; s++)
        if (s->state == wanted && (!best || s->turn < best->turn))
            best = s;
    return best;
}

static slot *find(mr_ahead *a, const mr_shard *shard, uint64_t from, size_t len)
{
    for (slot *s = a->slots; s < a->slots + SLOTS; s++)
        if (s->state != FREE && s->shard == shard && s->from == from && s->len == len)
            return s;
    return NULL;
}

static void *run(void *ctx)
{
    mr_ahead *a = ctx;
    pthread_mutex_lock(&a->lock);
    while (!atomic_load(&a->stop)) {
        slot *s = a->wanted ? first(a, WANTED) : NULL;
        if (!s) {
            a->idle++;
            pthread_cond_wait(&a->to_do, &a->lock);
            a->idle--;
            continue;
        }
        a->wanted--;
        s->state = FETCHING;
        pthread_mutex_unlock(&a->lock);
        mr_status status = MR_OK;
        if (!mr_remote_read_coming(a->remote, s->shard, s->from, s->bytes, s->len, &a->stop))
            status = mr_remote_read(a->remote, s->shard, s->from, s->bytes, s->len, &a->stop, NULL);
        pthread_mutex_lock(&a->lock);
        s->state = READY;
        s->failed = status != MR_OK;
        if (s->failed && !s->awaited)
            drop(a, s);
        pthread_cond_broadcast(&a->done);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

mr_status mr_ahead_open(mr_remote *r, mr_ahead **out, mr_error *err)
{
    mr_ahead *a = mr_alloc(1, sizeof *a);
    if (!a)
        return mr_fail_memory(err, "reading ahead");
    a->remote = r;
    a->owner = getpid();
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->to_do, NULL);
    pthread_cond_init(&a->done, NULL);
    *out = a;
    return MR_OK;
}

void mr_ahead_close(mr_ahead *a)
{
    if (!a || a->owner != getpid())
        return; /* the threads are the parent's, and their lock may be held forever here */
    pthread_mutex_lock(&a->lock);
    atomic_store(&a->stop, true);
    pthread_cond_broadcast(&a->to_do);
    pthread_mutex_unlock(&a->lock);
    for (unsigned i = 0; i < a->count; i++)
        pthread_join(a->threads[i], NULL);
    for (slot *s = a->slots; s < a->slots + SLOTS; s++)
        free(s->bytes);
    pthread_cond_destroy(&a->to_do);
    pthread_cond_destroy(&a->done);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* With the lock held: a place for this many bytes, or NULL. */
static slot *make_place(mr_ahead *a, size_t len)
{
    slot *s = first(a, FREE);
    while (len <= HELD_MAX && (!s || a->held > HELD_MAX - len)) {
        slot *old = first(a, READY);
        if (!old || old->awaited)
            return NULL;
        drop(a, old);
        s = s ? s : old;
    }
    return len <= HELD_MAX ? s : NULL;
}

void mr_ahead_want(mr_ahead *a, const mr_shard *shard, uint64_t from, size_t len)
{
    if (a->owner != getpid() || !len)
        return;
    pthread_mutex_lock(&a->lock);
    slot *s = find(a, shard, from, len) ? NULL : make_place(a, len);
    if (s)
        *s = (slot){.shard = shard, .from = from, .bytes = mr_alloc(len, 1)};
    if (s && s->bytes) {
        s->state = WANTED;
        s->len = len;
        s->turn = a->turn++;
        a->held += len;
        a->wanted++;
        if (a->wanted > a->idle && a->count < THREADS && mr_thread_start(&a->threads[a->count], run, a) == 0)
            a->count++;
        pthread_cond_signal(&a->to_do);
    }
    pthread_mutex_unlock(&a->lock);
}

static void wait_a_while(mr_ahead *a)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    mr_time_add(&until, LOOK_MS);
    pthread_cond_timedwait(&a->done, &a->lock, &until);
}

bool mr_ahead_take(mr_ahead *a, const mr_shard *shard, uint64_t from, void *out, size_t len, const atomic_bool *stop)
{
    bool taken = false;
    if (a->owner != getpid())
        return false;
    pthread_mutex_lock(&a->lock);
    slot *s = find(a, shard, from, len);
    if (s && s->awaited)
        s = NULL; /* another reader wants the same bytes, and will take them */
    if (s && s->state == WANTED) {
        a->wanted--;
        drop(a, s); /* the reader is there before a thread is */
        s = NULL;
    }
    if (s) {
        s->awaited = true;
        while (s->state == FETCHING && !(stop && atomic_load(stop)))
            wait_a_while(a);
        s->awaited = false;
        taken = s->state == READY && !s->failed;
        if (taken)
            memcpy(out, s->bytes, len);
        if (s->state == READY)
            drop(a, s);
    }
    pthread_mutex_unlock(&a->lock);
    return taken;
}
