/* batch_queue.c - batches on their way; see flow.h. */
#include "batch/batch_queue.h"

#include <stdlib.h>
#include <string.h>

enum { FREE, PLANNING, PLANNED, BINDING, LOADING, FINISHING, DONE, LENT };

enum {
    AHEAD = 128, /* slots planned, so read ahead, before slots are loaded (if prefetch allows) */
    RUN = 16,    /* slots a worker takes at once, at most */
};

/* ---- the lock --------------------------------------------------------------------------------------------------- */

static void wake(mr_batch_queue *f, bool workers, bool callers)
{
    if (workers)
        pthread_cond_broadcast(&f->to_do);
    if (callers)
        pthread_cond_broadcast(&f->ready);
}

void mr_batch_queue_unlock(mr_batch_queue *f)
{
    bool workers = f->wake_workers, callers = f->wake_callers;
    f->wake_workers = f->wake_callers = false;
    pthread_mutex_unlock(&f->lock);
    wake(f, workers, callers);
}

void mr_batch_queue_wait(mr_batch_queue *f, pthread_cond_t *cond)
{
    wake(f, f->wake_workers, f->wake_callers);
    f->wake_workers = f->wake_callers = false;
    pthread_cond_wait(cond, &f->lock);
}

/* What is done between the two must not touch the flow but for its batch and `work`. */
static void leave(mr_batch_queue *f)
{
    f->busy++;
    mr_batch_queue_unlock(f);
}

static void enter(mr_batch_queue *f)
{
    pthread_mutex_lock(&f->lock);
    f->busy--;
}

/* ---- planning --------------------------------------------------------------------------------------------------- */

static void advance(mr_batch_queue *f)
{
    if (f->step >= f->work.schedule.steps) {
        f->step = 0;
        f->epoch++;
    }
    if (f->epoch >= f->last_epoch || f->work.schedule.steps == 0)
        f->planned_all = true;
}

/* A batch that failed is the last: nothing behind it will be given. */
static void fail_batch(mr_batch_queue *f, mr_loading *b, mr_status status, const mr_error *why)
{
    b->status = status;
    b->error = *why;
    b->state = DONE;
    f->planned_all = true;
    f->wake_callers = true;
}

static void plan(mr_batch_queue *f)
{
    mr_loading *b = f->idle[--f->idles];
    mr_error why = {0};
    uint64_t epoch = f->epoch, step = f->step++;
    advance(f);
    b->state = PLANNING;
    f->queue[f->queued++] = b;
    f->planning = true;
    leave(f);
    mr_status status = mr_loading_plan(b, &f->work, epoch, step, &why);
    enter(f);
    f->planning = false;
    if (status != MR_OK)
        fail_batch(f, b, status, &why);
    else
        b->state = PLANNED;
    f->wake_workers = true;
}

static bool can_plan(const mr_batch_queue *f)
{
    return !f->planning && !f->planned_all && f->idles && f->queued < f->work.o.prefetch;
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static void bind(mr_batch_queue *f, mr_loading *b)
{
    mr_error why = {0};
    mr_slab memory = f->slabs[--f->slab_count];
    b->state = BINDING;
    leave(f);
    mr_status status = mr_loading_bind(b, &f->work, memory, &why);
    enter(f);
    if (status != MR_OK)
        fail_batch(f, b, status, &why);
    else
        b->state = LOADING;
    f->wake_workers = true;
}

static void finish(mr_batch_queue *f, mr_loading *b, mr_worker *h)
{
    mr_error why = {0};
    b->state = FINISHING;
    leave(f);
    mr_status status = mr_loading_finish(b, &f->work, h, &why);
    enter(f);
    if (status != MR_OK) {
        fail_batch(f, b, status, &why);
        return;
    }
    b->state = DONE;
    if (f->queued && f->queue[0] == b)
        f->wake_callers = true;
}

/* Many at once while there are many; one by one towards the end, so that all workers end together. */
static uint64_t run_length(const mr_batch_queue *f, const mr_loading *b)
{
    uint64_t left = b->lent.count - b->taken, fair = f->workers > 1 ? left / (4 * (uint64_t)f->workers) : left;
    return fair < 1 ? 1 : fair < RUN ? fair : RUN;
}

/* A slot that failed.  A bad sample is noted; another failure is the batch's, and the first one counts. */
static void note(mr_batch_queue *f, mr_loading *b, uint64_t slot, mr_status status, const mr_error *why)
{
    mr_error second = *why;
    pthread_mutex_lock(&f->lock);
    if (mr_status_is_bad(status))
        status = mr_loading_note(b, &f->work, slot, why, &second);
    if (status != MR_OK && b->status == MR_OK) {
        b->status = status;
        b->error = second;
    }
    pthread_mutex_unlock(&f->lock);
}

/* A few slots.  After a failure that is not a bad sample the others of the batch end, then it is the caller's. */
static void load(mr_batch_queue *f, mr_loading *b, mr_worker *h)
{
    uint64_t begin = b->taken, end = begin + run_length(f, b);
    b->taken = end;
    leave(f);
    for (uint64_t i = begin; i < end && !f->work.stop; i++) {
        mr_error why = {0};
        mr_status status = mr_loading_load(b, &f->work, h, i, &why);
        if (status != MR_OK)
            note(f, b, i, status, &why);
    }
    enter(f);
    b->done += end - begin;
    if (b->done < b->lent.count)
        return;
    if (b->status != MR_OK) {
        mr_error why = b->error;
        fail_batch(f, b, b->status, &why);
    } else {
        finish(f, b, h);
    }
}

/* The earliest batch with something to be done, and how many slots all have. */
static mr_loading *earliest(const mr_batch_queue *f, uint64_t *slots)
{
    mr_loading *first = NULL;
    *slots = 0;
    for (unsigned i = 0; i < f->queued && *slots < AHEAD; i++) {
        mr_loading *b = f->queue[i];
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

bool mr_batch_queue_step(mr_batch_queue *f, mr_worker *h)
{
    uint64_t slots;
    mr_loading *b = earliest(f, &slots);
    if (can_plan(f) && (!b || slots < AHEAD))
        plan(f);
    else if (b && b->state == PLANNED)
        bind(f, b);
    else if (b && b->lent.count == 0)
        finish(f, b, h);
    else if (b)
        load(f, b, h);
    else
        return false;
    return true;
}

bool mr_batch_queue_at_rest(const mr_batch_queue *f)
{
    uint64_t slots;
    return !f->busy && !can_plan(f) && !earliest(f, &slots);
}

/* ---- giving out ------------------------------------------------------------------------------------------------- */

mr_loading *mr_batch_queue_head(mr_batch_queue *f)
{
    return f->queued && f->queue[0]->state == DONE ? f->queue[0] : NULL;
}

bool mr_batch_queue_ended(const mr_batch_queue *f)
{
    return !f->queued && f->planned_all;
}

void mr_batch_queue_lend_head(mr_batch_queue *f)
{
    f->queue[0]->state = LENT;
    f->queued--;
    memmove(f->queue, f->queue + 1, f->queued * sizeof *f->queue);
}

void mr_batch_queue_take_back(mr_batch_queue *f, mr_loading *b)
{
    if (b->state != LENT)
        return;
    b->state = FREE;
    f->idle[f->idles++] = b;
    f->slabs[f->slab_count++] = b->data;
    b->data = (mr_slab){0};
}

mr_cursor mr_cursor_after(const mr_batch_queue *f, uint64_t epoch, uint64_t step)
{
    if (step + 1 >= f->work.schedule.steps)
        return (mr_cursor){epoch + 1, 0};
    return (mr_cursor){epoch, mr_schedule_position(&f->work.schedule, step + 1)};
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static mr_status make_batches(mr_batch_queue *f, mr_error *err)
{
    /* One the caller works on, one more that it may hold meanwhile. */
    f->total = f->work.o.prefetch + 2;
    f->batches = mr_alloc(f->total, sizeof *f->batches);
    f->queue = mr_alloc(f->total, sizeof *f->queue);
    f->idle = mr_alloc(f->total, sizeof *f->idle);
    f->slabs = mr_alloc(f->total, sizeof *f->slabs);
    if (!f->batches || !f->queue || !f->idle || !f->slabs)
        return mr_fail_memory(err, "opening a loader");
    for (unsigned i = 0; i < f->total; i++) {
        mr_status status = mr_loading_init(&f->batches[i], &f->work, err);
        if (status != MR_OK)
            return status;
        f->idle[f->idles++] = &f->batches[i];
        f->slab_count++;
    }
    return MR_OK;
}

static mr_status place(mr_batch_queue *f, mr_error *err)
{
    const mr_cursor *from = &f->work.o.start;
    mr_status status = mr_schedule_step_at(&f->work.schedule, from->position, &f->step, err);
    f->epoch = from->epoch;
    f->last_epoch = UINT64_MAX - from->epoch < f->work.o.epochs ? UINT64_MAX : from->epoch + f->work.o.epochs;
    advance(f);
    return status;
}

mr_status mr_batch_queue_open(mr_batch_queue *f, const mr_dataset *ds, const mr_loader_options *options, mr_error *err)
{
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->to_do, NULL);
    pthread_cond_init(&f->ready, NULL);
    mr_status status = mr_work_open(&f->work, ds, options, err);
    if (status == MR_OK)
        status = place(f, err);
    if (status == MR_OK)
        status = make_batches(f, err);
    f->workers = f->work.o.threads ? f->work.o.threads : 1;
    return status;
}

void mr_batch_queue_close(mr_batch_queue *f)
{
    for (unsigned i = 0; f->batches && i < f->total; i++)
        mr_loading_free(&f->batches[i], &f->work);
    for (unsigned i = 0; i < f->slab_count; i++)
        mr_slab_free(&f->slabs[i], f->work.o.allocator);
    free(f->batches);
    free(f->queue);
    free(f->idle);
    free(f->slabs);
    mr_work_close(&f->work);
    pthread_cond_destroy(&f->ready);
    pthread_cond_destroy(&f->to_do);
    pthread_mutex_destroy(&f->lock);
}
