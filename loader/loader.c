/* loader.c - mr_loader_*: threads that load the slots of a few batches, and batches given out in order.
 *
 *   free -> planning -> planned -> binding -> loading -> finishing -> done -> lent -> free
 *           1 thread               1 thread   all        the last            caller
 *           |---------------------- queue, in plan order -------------|
 *
 * Contract: one lock guards states, queue and counters; plan, load and finish run outside of it on a batch that the
 * state gives them.  Threads take slots of the earliest batch that has some, so a batch is done as soon as it can be.
 * With threads = 0 the caller's own thread takes the same steps in mr_loader_next(). */
#include "loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch.h"

typedef unsigned long long ull;

enum { FREE, PLANNING, PLANNED, BINDING, LOADING, FINISHING, DONE, LENT };

enum {
    AHEAD = 128,                    /* slots planned, so read ahead, before slots are loaded (if prefetch allows) */
    RUN = 16,                       /* slots a thread takes at once, at most */
};

typedef struct hand {
    mr_loader *loader;
    mr_hands hands;
    pthread_t thread;
} hand;

struct mr_loader {
    mr_work work;
    pid_t process;
    pthread_mutex_t lock;
    pthread_cond_t to_do, ready;    /* for the threads; for callers */
    mr_loading *batches, **queue, **idle;   /* `total` each; queue[0] is the next to be given, idle is a stack */
    unsigned total, queued, idles;
    mr_slab *slabs;                 /* a stack as high as there are batches without one */
    unsigned slab_count;
    hand *hands;
    unsigned started, hand_count;   /* threads running; hands (one without threads) */
    unsigned busy, callers;         /* in plan, load or finish; inside of mr_loader_next() */
    bool planning, planned_all, settling;
    uint64_t epoch, step, last_epoch;       /* to be planned next; epochs end before last_epoch */
    uint64_t bad;                   /* of the batches given */
    mr_cursor cursor;
    mr_status status;               /* final, once it is not MR_OK */
    mr_error error;
};

/* ---- planning (under the lock, but for mr_loading_plan) ---------------------------------------------------------- */

static void advance(mr_loader *l)
{
    if (l->step >= l->work.schedule.steps) {
        l->step = 0;
        l->epoch++;
    }
    if (l->epoch >= l->last_epoch || l->work.schedule.steps == 0)
        l->planned_all = true;
}

/* A batch that failed is the last: nothing behind it will be given. */
static void fail_batch(mr_loader *l, mr_loading *b, mr_status status, const mr_error *why)
{
    b->status = status;
    b->error = *why;
    b->state = DONE;
    l->planned_all = true;
    pthread_cond_broadcast(&l->ready);
}

static void plan(mr_loader *l)
{
    mr_loading *b = l->idle[--l->idles];
    mr_error why = {0};
    uint64_t epoch = l->epoch, step = l->step++;
    advance(l);
    b->state = PLANNING;
    l->queue[l->queued++] = b;
    l->planning = true;
    l->busy++;
    pthread_mutex_unlock(&l->lock);
    mr_status status = mr_loading_plan(b, &l->work, epoch, step, &why);
    pthread_mutex_lock(&l->lock);
    l->busy--;
    l->planning = false;
    if (status != MR_OK)
        fail_batch(l, b, status, &why);
    else
        b->state = PLANNED;
    pthread_cond_broadcast(&l->to_do);
}

static bool can_plan(const mr_loader *l)
{
    return !l->planning && !l->planned_all && l->idles && l->queued < l->work.o.prefetch;
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static void finish(mr_loader *l, mr_loading *b, hand *h)
{
    mr_error why = {0};
    b->state = FINISHING;
    l->busy++;
    pthread_mutex_unlock(&l->lock);
    mr_status status = mr_loading_finish(b, &l->work, &h->hands, &why);
    pthread_mutex_lock(&l->lock);
    l->busy--;
    if (status != MR_OK) {
        fail_batch(l, b, status, &why);
        return;
    }
    b->state = DONE;
    if (l->queued && l->queue[0] == b)
        pthread_cond_broadcast(&l->ready);
}

static void bind(mr_loader *l, mr_loading *b)
{
    mr_error why = {0};
    mr_slab memory = l->slabs[--l->slab_count];
    b->state = BINDING;
    l->busy++;
    pthread_mutex_unlock(&l->lock);
    mr_status status = mr_loading_bind(b, &l->work, memory, &why);
    pthread_mutex_lock(&l->lock);
    l->busy--;
    if (status != MR_OK)
        fail_batch(l, b, status, &why);
    else
        b->state = LOADING;
    pthread_cond_broadcast(&l->to_do);
}

/* Many at once while there are many; one by one towards the end, so that the threads end together. */
static uint64_t run_length(const mr_loader *l, const mr_loading *b)
{
    uint64_t fair = (b->lent.count - b->taken) / (4 * (uint64_t)l->hand_count);
    return fair < 1 ? 1 : fair < RUN ? fair : RUN;
}

/* A few slots.  After a failure that is not a bad sample the others of the batch end, then it is the caller's. */
static void load(mr_loader *l, mr_loading *b, hand *h)
{
    uint64_t begin = b->taken, end = begin + run_length(l, b);
    if (end > b->lent.count)
        end = b->lent.count;
    b->taken = end;
    l->busy++;
    pthread_mutex_unlock(&l->lock);
    for (uint64_t i = begin; i < end && !l->work.stop; i++) {
        mr_error why, second;
        mr_status status = mr_loading_load(b, &l->work, &h->hands, i, &why);
        if (status == MR_OK)
            continue;
        pthread_mutex_lock(&l->lock);
        if (mr_status_is_bad(status))
            status = mr_loading_note(b, &l->work, i, &why, &second);
        else
            second = why;
        if (status != MR_OK && b->status == MR_OK) {
            b->status = status;
            b->error = second;
        }
        pthread_mutex_unlock(&l->lock);
    }
    pthread_mutex_lock(&l->lock);
    l->busy--;
    b->done += end - begin;
    if (b->done < b->lent.count)
        return;
    if (b->status != MR_OK) {
        mr_error why = b->error;
        fail_batch(l, b, b->status, &why);
    } else {
        finish(l, b, h);
    }
}

/* The earliest batch with something to be done, and how many slots all have. */
static mr_loading *earliest(const mr_loader *l, uint64_t *slots)
{
    mr_loading *first = NULL;
    *slots = 0;
    for (unsigned i = 0; i < l->queued && *slots < AHEAD; i++) {
        mr_loading *b = l->queue[i];
        if (b->state == DONE && b->status != MR_OK)
            break;
        if (b->state != PLANNED && (b->state != LOADING || (b->taken == b->lent.count && b->lent.count)))
            continue;
        if (!first)
            first = b;
        *slots += b->lent.count - b->taken;
    }
    return first;
}

/* One thing that is to be done; false if there is nothing. */
static bool step(mr_loader *l, hand *h)
{
    uint64_t slots;
    mr_loading *b = earliest(l, &slots);
    if (can_plan(l) && (!b || slots < AHEAD))
        plan(l);
    else if (b && b->state == PLANNED)
        bind(l, b);
    else if (b && b->lent.count == 0)
        finish(l, b, h);
    else if (b)
        load(l, b, h);
    else
        return false;
    return true;
}

static void *work(void *arg)
{
    hand *h = arg;
    mr_loader *l = h->loader;
    pthread_mutex_lock(&l->lock);
    while (!l->work.stop) {
        if (step(l, h))
            continue;
        if (l->settling && l->busy == 0)
            pthread_cond_broadcast(&l->ready);
        pthread_cond_wait(&l->to_do, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static mr_status make_batches(mr_loader *l, mr_error *err)
{
    /* One the caller works on, one more that it may hold meanwhile. */
    l->total = l->work.o.prefetch + 2;
    l->batches = mr_alloc(l->total, sizeof *l->batches);
    l->queue = mr_alloc(l->total, sizeof *l->queue);
    l->idle = mr_alloc(l->total, sizeof *l->idle);
    l->slabs = mr_alloc(l->total, sizeof *l->slabs);
    if (!l->batches || !l->queue || !l->idle || !l->slabs)
        return mr_fail_memory(err, "opening a loader");
    for (unsigned i = 0; i < l->total; i++) {
        mr_status status = mr_loading_init(&l->batches[i], &l->work, err);
        if (status != MR_OK)
            return status;
        l->idle[l->idles++] = &l->batches[i];
        l->slab_count++;
    }
    return MR_OK;
}

static mr_status make_hands(mr_loader *l, mr_error *err)
{
    unsigned count = l->work.o.threads ? l->work.o.threads : 1;
    l->hands = mr_alloc(count, sizeof *l->hands);
    if (!l->hands)
        return mr_fail_memory(err, "opening a loader");
    for (; l->hand_count < count; l->hand_count++) {
        hand *h = &l->hands[l->hand_count];
        h->loader = l;
        mr_status status = mr_hands_init(&h->hands, err);
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}

/* Signals are for the caller's threads.  A thread that cannot be started only means fewer hands, but for the first. */
static mr_status start(mr_loader *l, mr_error *err)
{
    sigset_t all, before;
    int why = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (why == 0 && l->started < l->work.o.threads) {
        hand *h = &l->hands[l->started];
        why = pthread_create(&h->thread, NULL, work, h);
        if (why == 0)
            l->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (l->started || l->work.o.threads == 0)
        return MR_OK;
    return mr_fail_errno(err, why, "a loader's thread cannot be started");
}

static mr_status place(mr_loader *l, mr_error *err)
{
    const mr_cursor *from = &l->work.o.start;
    mr_status status = mr_schedule_step_at(&l->work.schedule, from->position, &l->step, err);
    l->epoch = from->epoch;
    l->last_epoch = UINT64_MAX - from->epoch < l->work.o.epochs ? UINT64_MAX : from->epoch + l->work.o.epochs;
    advance(l);
    l->cursor = (mr_cursor){l->epoch, mr_schedule_position(&l->work.schedule, l->step)};
    return status;
}

static void free_parts(mr_loader *l)
{
    for (unsigned i = 0; l->batches && i < l->total; i++)
        mr_loading_free(&l->batches[i], &l->work);
    for (unsigned i = 0; i < l->slab_count; i++)
        mr_slab_free(&l->slabs[i], l->work.o.allocator);
    for (unsigned i = 0; i < l->hand_count; i++)
        mr_hands_free(&l->hands[i].hands);
    free(l->hands);
    free(l->batches);
    free(l->queue);
    free(l->idle);
    free(l->slabs);
    mr_work_close(&l->work);
    free(l);
}

mr_status mr_loader_open(const mr_dataset *ds, const mr_loader_options *options, mr_loader **out, mr_error *err)
{
    mr_loader *l = mr_alloc(1, sizeof *l);
    if (!l)
        return mr_fail_memory(err, "opening a loader");
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->to_do, NULL);
    pthread_cond_init(&l->ready, NULL);
    l->process = getpid();
    mr_status status = mr_work_open(&l->work, ds, options, err);
    if (status == MR_OK)
        status = place(l, err);
    if (status == MR_OK)
        status = make_batches(l, err);
    if (status == MR_OK)
        status = make_hands(l, err);
    if (status == MR_OK)
        status = start(l, err);
    if (status == MR_OK)
        *out = l;
    else
        mr_loader_free(l);
    return status;
}

void mr_loader_free(mr_loader *l)
{
    if (!l)
        return;
    /* A child of fork() has none of the threads, and the lock as it happened to be. */
    if (l->started && l->process != getpid()) {
        free_parts(l);
        return;
    }
    pthread_mutex_lock(&l->lock);
    l->work.stop = true;
    pthread_cond_broadcast(&l->to_do);
    pthread_cond_broadcast(&l->ready);
    pthread_mutex_unlock(&l->lock);
    for (unsigned i = 0; i < l->started; i++)
        pthread_join(l->hands[i].thread, NULL);
    pthread_mutex_lock(&l->lock);
    while (l->callers)
        pthread_cond_wait(&l->ready, &l->lock);
    pthread_mutex_unlock(&l->lock);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->to_do);
    pthread_mutex_destroy(&l->lock);
    free_parts(l);
}

/* ---- giving out ------------------------------------------------------------------------------------------------- */

static mr_status end(mr_loader *l, mr_status status, const mr_error *why, mr_error *err)
{
    if (l->status == MR_OK) {
        l->status = status;
        l->error = *why;
    }
    if (err && l->status != MR_END)
        *err = l->error;
    return l->status;
}

/* The first batch of the queue, which is done. */
static mr_status give(mr_loader *l, const mr_batch **out, mr_error *err)
{
    mr_loading *b = l->queue[0];
    uint64_t limit = l->work.o.max_bad;
    if (b->status != MR_OK)
        return end(l, b->status, &b->error, err);
    if (limit && b->lent.replaced > limit - l->bad) {
        const mr_error *first = &b->bad[limit - l->bad].error;
        mr_error why;
        mr_fail(&why, first->status, "%s; it is one more than the %llu bad samples allowed", first->text, (ull)limit);
        return end(l, why.status, &why, err);
    }
    l->bad += b->lent.replaced;
    l->queued--;
    memmove(l->queue, l->queue + 1, l->queued * sizeof *l->queue);
    b->state = LENT;
    uint64_t next = b->lent.step + 1;
    l->cursor = next < l->work.schedule.steps
                    ? (mr_cursor){b->lent.epoch, mr_schedule_position(&l->work.schedule, next)}
                    : (mr_cursor){b->lent.epoch + 1, 0};
    pthread_cond_signal(&l->to_do);
    *out = &b->lent;
    return MR_OK;
}

/* Under the lock.  Without threads one caller at a time does the work, the others wait. */
static mr_status next(mr_loader *l, const mr_batch **out, mr_error *err)
{
    for (;;) {
        if (l->work.stop)
            return MR_END;
        if (l->status != MR_OK)
            return end(l, l->status, &l->error, err);
        if (l->queued && l->queue[0]->state == DONE)
            return give(l, out, err);
        if (!l->queued && l->planned_all)
            return end(l, MR_END, &l->error, err);
        if (l->started || l->busy || !step(l, &l->hands[0]))
            pthread_cond_wait(&l->ready, &l->lock);
        else if (l->callers > 1)
            pthread_cond_broadcast(&l->ready);
    }
}

mr_status mr_loader_next(mr_loader *l, const mr_batch **out, mr_error *err)
{
    if (l->started && l->process != getpid())
        return mr_fail(err, MR_MISUSE, "this loader was opened before a fork: its threads stayed in the other process; "
                       "open a loader in each process, or one without threads");
    pthread_mutex_lock(&l->lock);
    l->callers++;
    mr_status status = next(l, out, err);
    l->callers--;
    pthread_cond_broadcast(&l->ready);
    pthread_mutex_unlock(&l->lock);
    return status;
}

void mr_batch_release(mr_loader *l, const mr_batch *batch)
{
    if (!batch || (l->started && l->process != getpid()))
        return;
    mr_loading *b = (mr_loading *)(uintptr_t)batch;
    pthread_mutex_lock(&l->lock);
    if (b->state == LENT) {
        b->state = FREE;
        l->idle[l->idles++] = b;
        l->slabs[l->slab_count++] = b->data;
        b->data = (mr_slab){0};
        pthread_cond_signal(&l->to_do);
        /* Without threads a caller may be waiting for it. */
        if (!l->started)
            pthread_cond_broadcast(&l->ready);
    }
    pthread_mutex_unlock(&l->lock);
}

uint64_t mr_loader_steps(const mr_loader *l)
{
    return l->work.schedule.steps;
}

mr_cursor mr_loader_cursor(const mr_loader *l)
{
    mr_loader *unlocked = (mr_loader *)(uintptr_t)l;
    pthread_mutex_lock(&unlocked->lock);
    mr_cursor cursor = l->cursor;
    pthread_mutex_unlock(&unlocked->lock);
    return cursor;
}

void mr_loader_settle(mr_loader *l)
{
    uint64_t slots;
    pthread_mutex_lock(&l->lock);
    l->settling = true;
    while (l->started && !l->work.stop && (l->busy || can_plan(l) || earliest(l, &slots)))
        pthread_cond_wait(&l->ready, &l->lock);
    l->settling = false;
    pthread_mutex_unlock(&l->lock);
}
