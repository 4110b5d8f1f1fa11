/* batch_queue.c - batches in flight; see batch_queue.h. */
#include "loader/batch/batch_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

enum { FREE, PLANNING, PLANNED, BINDING, LOADING, FINISHING, DONE, LENT };

enum {
    AHEAD = 128,  /* slots planned, and so read ahead, before slots are loaded (if prefetch allows) */
    RUN_MAX = 16, /* slots that a worker takes at once */
};

/* ---- the lock --------------------------------------------------------------------------------------------------- */

static void wake(mr_batch_queue *q, bool workers, bool callers)
{
    if (workers)
        pthread_cond_broadcast(&q->to_do);
    if (callers)
        pthread_cond_broadcast(&q->ready);
}

void mr_batch_queue_unlock(mr_batch_queue *q)
{
    bool workers = q->wake_workers, callers = q->wake_callers;
    q->wake_workers = q->wake_callers = false;
    pthread_mutex_unlock(&q->lock);
    wake(q, workers, callers);
}

void mr_batch_queue_wait(mr_batch_queue *q, pthread_cond_t *cond)
{
    wake(q, q->wake_workers, q->wake_callers);
    q->wake_workers = q->wake_callers = false;
    pthread_cond_wait(cond, &q->lock);
}

bool mr_batch_queue_wait_until(mr_batch_queue *q, pthread_cond_t *cond, const struct timespec *deadline)
{
    if (!deadline) {
        mr_batch_queue_wait(q, cond);
        return true;
    }
    wake(q, q->wake_workers, q->wake_callers);
    q->wake_workers = q->wake_callers = false;
    return pthread_cond_timedwait(cond, &q->lock, deadline) != ETIMEDOUT;
}

/* Between leave() and enter() a worker touches only its batch and `work`. */
static void leave(mr_batch_queue *q)
{
    q->busy++;
    mr_batch_queue_unlock(q);
}

static void enter(mr_batch_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->busy--;
}

/* ---- planning --------------------------------------------------------------------------------------------------- */

static void advance(mr_batch_queue *q)
{
    if (q->step >= q->work.schedule.steps) {
        q->step = 0;
        q->epoch++;
    }
    if (q->epoch >= q->last_epoch || q->work.schedule.steps == 0)
        q->planned_all = true;
}

/* A failed batch is the last one handed out. */
static void fail_batch(mr_batch_queue *q, mr_loading *b, mr_status status, const mr_error *why)
{
    b->status = status;
    b->error = *why;
    b->state = DONE;
    q->planned_all = true;
    q->wake_callers = true;
}

static void plan(mr_batch_queue *q)
{
    mr_loading *b = q->idle[--q->idles];
    mr_error why = {0};
    uint64_t epoch = q->epoch, step = q->step++;
    advance(q);
    b->state = PLANNING;
    q->queue[q->queued++] = b;
    q->planning = true;
    leave(q);
    mr_status status = mr_loading_plan(b, &q->work, epoch, step, &why);
    enter(q);
    q->planning = false;
    if (status != MR_OK)
        fail_batch(q, b, status, &why);
    else
        b->state = PLANNED;
    q->wake_workers = true;
}

static bool can_plan(const mr_batch_queue *q)
{
    return !q->planning && !q->planned_all && q->idles && q->queued < q->work.o.prefetch;
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static void bind(mr_batch_queue *q, mr_loading *b)
{
    mr_error why = {0};
    mr_slab memory = q->slabs[--q->slab_count];
    b->bound = true;
    b->state = BINDING;
    leave(q);
    mr_status status = mr_loading_bind(b, &q->work, memory, &why);
    enter(q);
    if (status != MR_OK)
        fail_batch(q, b, status, &why);
    else
        b->state = LOADING;
    q->wake_workers = true;
}

static void finish(mr_batch_queue *q, mr_loading *b, mr_worker *worker)
{
    mr_error why = {0};
    b->state = FINISHING;
    leave(q);
    mr_status status = mr_loading_finish(b, &q->work, worker, &why);
    enter(q);
    if (status != MR_OK) {
        fail_batch(q, b, status, &why);
        return;
    }
    b->state = DONE;
    if (q->queued && q->queue[0] == b)
        q->wake_callers = true;
}

/* Many slots at once while many are left; one by one near the end, so that all workers finish together. */
static uint64_t run_length(const mr_batch_queue *q, const mr_loading *b)
{
    uint64_t left = b->lent.count - b->taken, fair = q->workers > 1 ? left / (4 * (uint64_t)q->workers) : left;
    return fair < 1 ? 1 : fair < RUN_MAX ? fair : RUN_MAX;
}

/* A bad sample is noted; the first other failure fails the batch. */
static void note(mr_batch_queue *q, mr_loading *b, uint64_t slot, mr_status status, const mr_error *why)
{
    mr_error second = *why;
    pthread_mutex_lock(&q->lock);
    if (mr_status_is_bad(status))
        status = mr_loading_note(b, &q->work, slot, why, &second);
    if (status != MR_OK && b->status == MR_OK) {
        b->status = status;
        b->error = second;
    }
    pthread_mutex_unlock(&q->lock);
}

/* Loads a few slots.  Even a failed batch is handed out only once all of its slots are done. */
static void load(mr_batch_queue *q, mr_loading *b, mr_worker *worker)
{
    uint64_t begin = b->taken, end = begin + run_length(q, b);
    b->taken = end;
    leave(q);
    for (uint64_t i = begin; i < end && !q->work.stop; i++) {
        mr_error why = {0};
        mr_status status = mr_loading_load(b, &q->work, worker, i, &why);
        if (status != MR_OK)
            note(q, b, i, status, &why);
    }
    enter(q);
    b->done += end - begin;
    if (b->done < b->lent.count)
        return;
    if (b->status != MR_OK) {
        mr_error why = b->error;
        fail_batch(q, b, b->status, &why);
    } else {
        finish(q, b, worker);
    }
}

/* The earliest batch with work left; *slots: how many slots the queue has left. */
static mr_loading *earliest(const mr_batch_queue *q, uint64_t *slots)
{
    mr_loading *first = NULL;
    *slots = 0;
    for (unsigned i = 0; i < q->queued && *slots < AHEAD; i++) {
        mr_loading *b = q->queue[i];
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

bool mr_batch_queue_step(mr_batch_queue *q, mr_worker *worker)
{
    uint64_t slots;
    if (q->paused)
        return false;
    mr_loading *b = earliest(q, &slots);
    if (can_plan(q) && (!b || slots < AHEAD))
        plan(q);
    else if (b && b->state == PLANNED)
        bind(q, b);
    else if (b && b->lent.count == 0)
        finish(q, b, worker);
    else if (b)
        load(q, b, worker);
    else
        return false;
    return true;
}

bool mr_batch_queue_idle(const mr_batch_queue *q)
{
    uint64_t slots;
    return !q->busy && !can_plan(q) && !earliest(q, &slots);
}

/* ---- handing out ------------------------------------------------------------------------------------------------ */

mr_loading *mr_batch_queue_head(mr_batch_queue *q)
{
    return q->queued && q->queue[0]->state == DONE ? q->queue[0] : NULL;
}

bool mr_batch_queue_ended(const mr_batch_queue *q)
{
    return !q->queued && q->planned_all;
}

void mr_batch_queue_lend_head(mr_batch_queue *q)
{
    q->queue[0]->state = LENT;
    q->queued--;
    memmove(q->queue, q->queue + 1, q->queued * sizeof *q->queue);
}

static void set_free(mr_batch_queue *q, mr_loading *b)
{
    b->state = FREE;
    q->idle[q->idles++] = b;
    if (b->bound)
        q->slabs[q->slab_count++] = b->data;
    b->bound = false;
    b->data = (mr_slab){0};
}

void mr_batch_queue_take_back(mr_batch_queue *q, mr_loading *b)
{
    if (b->state == LENT)
        set_free(q, b);
}

mr_status mr_batch_queue_detach(mr_batch_queue *q, mr_loading *b, mr_batch **out, mr_error *err)
{
    MR_TRY(mr_loading_detach(b, &q->work, out, err));
    pthread_mutex_lock(&q->lock);
    mr_batch_queue_take_back(q, b);
    pthread_mutex_unlock(&q->lock);
    return MR_OK;
}

mr_cursor mr_cursor_after(const mr_batch_queue *q, uint64_t epoch, uint64_t step)
{
    if (step + 1 >= q->work.schedule.steps)
        return (mr_cursor){epoch + 1, 0};
    return (mr_cursor){epoch, mr_schedule_position(&q->work.schedule, step + 1)};
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static mr_status make_batches(mr_batch_queue *q, mr_error *err)
{
    /* Two more for the caller, who may hold two batches at a time. */
    q->total = q->work.o.prefetch + 2;
    q->batches = mr_alloc(q->total, sizeof *q->batches);
    q->queue = mr_alloc(q->total, sizeof *q->queue);
    q->idle = mr_alloc(q->total, sizeof *q->idle);
    q->slabs = mr_alloc(q->total, sizeof *q->slabs);
    if (!q->batches || !q->queue || !q->idle || !q->slabs)
        return mr_fail_memory(err, "opening a loader");
    for (unsigned i = 0; i < q->total; i++) {
        MR_TRY(mr_loading_init(&q->batches[i], &q->work, err));
        q->idle[q->idles++] = &q->batches[i];
        q->slab_count++;
    }
    return MR_OK;
}

static mr_status start_at(mr_batch_queue *q, const mr_cursor *from, mr_error *err)
{
    MR_TRY(mr_schedule_step_at(&q->work.schedule, from->position, &q->step, err));
    q->planned_all = false;
    q->epoch = from->epoch;
    q->last_epoch = UINT64_MAX - from->epoch < q->work.o.epochs ? UINT64_MAX : from->epoch + q->work.o.epochs;
    advance(q);
    return MR_OK;
}

mr_status mr_batch_queue_open(mr_batch_queue *q, const mr_dataset *ds, const mr_loader_options *options, mr_error *err)
{
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->to_do, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->ready, &monotonic);
    pthread_condattr_destroy(&monotonic);
    MR_TRY(mr_work_open(&q->work, ds, options, err));
    MR_TRY(start_at(q, &q->work.o.start, err));
    q->workers = q->work.o.threads ? q->work.o.threads : 1;
    return make_batches(q, err);
}

mr_status mr_batch_queue_seek(mr_batch_queue *q, const mr_cursor *cursor, mr_error *err)
{
    MR_TRY(start_at(q, cursor, err));
    while (q->queued)
        set_free(q, q->queue[--q->queued]);
    return MR_OK;
}

void mr_batch_queue_close(mr_batch_queue *q)
{
    for (unsigned i = 0; q->batches && i < q->total; i++)
        mr_loading_free(&q->batches[i], &q->work);
    for (unsigned i = 0; i < q->slab_count; i++)
        mr_slab_free(&q->slabs[i], q->work.o.allocator);
    free(q->batches);
    free(q->queue);
    free(q->idle);
    free(q->slabs);
    mr_work_close(&q->work);
    pthread_cond_destroy(&q->ready);
    pthread_cond_destroy(&q->to_do);
    pthread_mutex_destroy(&q->lock);
}
