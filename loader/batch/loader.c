/* loader.c - mr_loader_*: the threads that work on a flow of batches, and the callers who wait for them.
 * Invariant: a failure is kept and comes again; nobody is inside when a loader is freed.
 *
 *   threads          step, step, step ...   until told to stop; they wait on `to_do`
 *   mr_loader_next   the head of the flow   as soon as it is done; waits on `ready`
 *
 * With threads = 0 the caller's own thread takes the same steps in mr_loader_next(). */
#include "batch/loader.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch/batch_queue.h"

typedef struct member {
    mr_loader *loader;
    mr_worker worker;
    pthread_t thread;
} member;

struct mr_loader {
    mr_batch_queue flow; /* its lock guards what is below, too */
    pid_t process;
    member *worker;
    unsigned started, worker_count; /* threads running; worker (one without threads) */
    unsigned callers;               /* inside of mr_loader_next() */
    bool settling;
    uint64_t *met; /* bad samples of the batches given, ascending, where there is a limit */
    size_t met_count, met_room;
    mr_cursor cursor;
    mr_status status; /* final, once it is not MR_OK */
    mr_error error;
};

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void *work(void *arg)
{
    member *h = arg;
    mr_loader *l = h->loader;
    pthread_mutex_lock(&l->flow.lock);
    while (!l->flow.work.stop) {
        if (mr_batch_queue_step(&l->flow, &h->worker))
            continue;
        if (l->settling && l->flow.busy == 0)
            l->flow.wake_callers = true;
        mr_batch_queue_wait(&l->flow, &l->flow.to_do);
    }
    mr_batch_queue_unlock(&l->flow);
    return NULL;
}

static mr_status make_workers(mr_loader *l, mr_error *err)
{
    l->worker = mr_alloc(l->flow.workers, sizeof *l->worker);
    if (!l->worker)
        return mr_fail_memory(err, "opening a loader");
    for (; l->worker_count < l->flow.workers; l->worker_count++) {
        member *h = &l->worker[l->worker_count];
        h->loader = l;
        mr_status status = mr_worker_init(&h->worker, &l->flow.work, err);
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}

/* Signals are for the caller's threads.  A thread that cannot be started only means fewer worker, but for the first. */
static mr_status start(mr_loader *l, mr_error *err)
{
    sigset_t all, before;
    unsigned threads = l->flow.work.o.threads;
    int why = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (why == 0 && l->started < threads) {
        member *h = &l->worker[l->started];
        why = pthread_create(&h->thread, NULL, work, h);
        if (why == 0)
            l->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (l->started || threads == 0)
        return MR_OK;
    return mr_fail_errno(err, why, "a loader's thread cannot be started, " MR_NO_THREAD);
}

/* None is open yet. */
static void share_files(mr_work *w, const mr_work *with)
{
    mr_shard_files_free(w->files);
    w->files = mr_shard_files_share(with->files);
}

mr_status mr_loader_open_beside(const mr_loader *first, const mr_dataset *ds, const mr_loader_options *options,
                                mr_loader **out, mr_error *err)
{
    mr_loader *l = mr_alloc(1, sizeof *l);
    if (!l)
        return mr_fail_memory(err, "opening a loader");
    l->process = getpid();
    mr_status status = mr_batch_queue_open(&l->flow, ds, options, err);
    if (status == MR_OK && first)
        share_files(&l->flow.work, &first->flow.work);
    if (status == MR_OK) {
        l->cursor = (mr_cursor){l->flow.epoch, mr_schedule_position(&l->flow.work.schedule, l->flow.step)};
        status = make_workers(l, err);
    }
    if (status == MR_OK)
        status = start(l, err);
    if (status == MR_OK)
        *out = l;
    else
        mr_loader_free(l);
    return status;
}

mr_status mr_loader_open(const mr_dataset *ds, const mr_loader_options *options, mr_loader **out, mr_error *err)
{
    return mr_loader_open_beside(NULL, ds, options, out, err);
}

/* A child of fork() has none of the threads. */
static bool forked(const mr_loader *l)
{
    return l->started && l->process != getpid();
}

/* Ends the threads, then waits until the last caller has left. */
static void stop(mr_loader *l)
{
    mr_batch_queue *f = &l->flow;
    pthread_mutex_lock(&f->lock);
    f->work.stop = true;
    f->wake_workers = f->wake_callers = true;
    mr_batch_queue_unlock(f);
    for (unsigned i = 0; i < l->started; i++)
        pthread_join(l->worker[i].thread, NULL);
    pthread_mutex_lock(&f->lock);
    while (l->callers)
        mr_batch_queue_wait(f, &f->ready);
    pthread_mutex_unlock(&f->lock);
}

/* In a child nothing is touched: the threads were anywhere, in the middle of an allocation or waiting for a shard, and
 * stay there for ever. */
void mr_loader_free(mr_loader *l)
{
    if (!l || forked(l))
        return;
    stop(l);
    for (unsigned i = 0; i < l->worker_count; i++)
        mr_worker_free(&l->worker[i].worker);
    free(l->worker);
    free(l->met);
    mr_batch_queue_close(&l->flow);
    free(l);
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

/* Where a sample stands, or belongs, among those met. */
static size_t place_of(const mr_loader *l, uint64_t sample)
{
    size_t low = 0, high = l->met_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->met[middle] < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A sample counts once, in however many epochs it comes; the rank that has it as padding leaves it to its owner. */
static mr_status meet(mr_loader *l, const mr_bad_slot *bad, mr_error *err)
{
    uint64_t limit = l->flow.work.o.max_bad;
    if (!limit || bad->padding)
        return MR_OK;
    size_t at = place_of(l, bad->sample);
    if (at < l->met_count && l->met[at] == bad->sample)
        return MR_OK;
    if (l->met_count == limit)
        return mr_fail(err, bad->error.status, "%s; it is one more than the %llu bad samples allowed", bad->error.text,
                       (unsigned long long)limit);
    if (!MR_GROW(l->met, l->met_count, l->met_room))
        return mr_fail_memory(err, "noting a bad sample");
    memmove(l->met + at + 1, l->met + at, (l->met_count - at) * sizeof *l->met);
    l->met[at] = bad->sample;
    l->met_count++;
    return MR_OK;
}

static mr_status give(mr_loader *l, mr_loading *b, const mr_batch **out, mr_error *err)
{
    if (b->status != MR_OK)
        return end(l, b->status, &b->error, err);
    for (size_t i = 0; i < b->bad_count; i++) {
        mr_error why;
        mr_status status = meet(l, &b->bad[i], &why);
        if (status != MR_OK)
            return end(l, status, &why, err);
    }
    l->cursor = mr_cursor_after(&l->flow, b->lent.epoch, b->lent.step);
    mr_batch_queue_lend_head(&l->flow);
    pthread_cond_signal(&l->flow.to_do);
    *out = &b->lent;
    return MR_OK;
}

/* Under the lock.  Without threads one caller at a time does the work, the others wait. */
static mr_status next(mr_loader *l, const mr_batch **out, mr_error *err)
{
    mr_batch_queue *f = &l->flow;
    for (;;) {
        if (f->work.stop)
            return MR_END;
        if (l->status != MR_OK)
            return end(l, l->status, &l->error, err);
        mr_loading *head = mr_batch_queue_head(f);
        if (head)
            return give(l, head, out, err);
        if (mr_batch_queue_ended(f))
            return end(l, MR_END, &l->error, err);
        if (l->started || f->busy || !mr_batch_queue_step(f, &l->worker[0].worker))
            mr_batch_queue_wait(f, &f->ready);
        else if (l->callers > 1)
            f->wake_callers = true;
    }
}

mr_status mr_loader_next(mr_loader *l, const mr_batch **out, mr_error *err)
{
    if (forked(l))
        return mr_fail(err, MR_MISUSE,
                       "this loader was opened before a fork: its threads stayed in the other process; "
                       "open a loader in each process, or one without threads");
    pthread_mutex_lock(&l->flow.lock);
    l->callers++;
    mr_status status = next(l, out, err);
    l->callers--;
    /* Under the lock: behind it the loader may be gone. */
    pthread_cond_broadcast(&l->flow.ready);
    pthread_mutex_unlock(&l->flow.lock);
    return status;
}

void mr_batch_release(mr_loader *l, const mr_batch *batch)
{
    if (!batch || forked(l))
        return;
    pthread_mutex_lock(&l->flow.lock);
    mr_batch_queue_take_back(&l->flow, (mr_loading *)(uintptr_t)batch);
    pthread_cond_signal(&l->flow.to_do);
    /* Without threads a caller may be waiting for it. */
    if (!l->started)
        pthread_cond_broadcast(&l->flow.ready);
    pthread_mutex_unlock(&l->flow.lock);
}

uint64_t mr_loader_steps(const mr_loader *l)
{
    return l->flow.work.schedule.steps;
}

mr_cursor mr_loader_cursor(const mr_loader *l)
{
    mr_loader *unlocked = (mr_loader *)(uintptr_t)l;
    pthread_mutex_lock(&unlocked->flow.lock);
    mr_cursor cursor = l->cursor;
    pthread_mutex_unlock(&unlocked->flow.lock);
    return cursor;
}

void mr_loader_settle(mr_loader *l)
{
    pthread_mutex_lock(&l->flow.lock);
    l->settling = true;
    while (l->started && !l->flow.work.stop && !mr_batch_queue_at_rest(&l->flow))
        mr_batch_queue_wait(&l->flow, &l->flow.ready);
    l->settling = false;
    pthread_mutex_unlock(&l->flow.lock);
}

mr_loader_spent mr_loader_time(const mr_loader *l)
{
    const mr_work *w = &l->flow.work;
    return (mr_loader_spent){(double)w->reading * 1e-9, (double)w->decoding * 1e-9};
}
