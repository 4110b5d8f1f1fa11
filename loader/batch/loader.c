/* loader.c - mr_loader_*: the threads that work on a queue of batches: started, stopped, repositioned.
 * Invariant: no thread is inside a loader when it is freed.
 *
 *   threads          step, step, step ...    until `stop`; they wait on `to_do`
 *   mr_loader_next   the head of the queue   as soon as it is done; waits on `ready`
 *
 * With threads = 0 the caller's own thread takes the same steps in mr_loader_next(). */
#include "loader/batch/loader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/pool.h"
#include "base/scope.h"
#include "loader/batch/loader_state.h"

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void *work(void *arg)
{
    mr_loader_thread *t = arg;
    mr_loader *l = t->loader;
    pthread_mutex_lock(&l->queue.lock);
    while (!l->queue.work.stop) {
        if (mr_batch_queue_step(&l->queue, &t->worker))
            continue;
        if (l->settling && l->queue.busy == 0)
            l->queue.wake_callers = true;
        mr_batch_queue_wait(&l->queue, &l->queue.to_do);
    }
    mr_batch_queue_unlock(&l->queue);
    return NULL;
}

static mr_status make_threads(mr_loader *l, mr_error *err)
{
    l->threads = mr_alloc(l->queue.workers, sizeof *l->threads);
    if (!l->threads)
        return mr_fail_memory(err, "opening a loader");
    for (; l->thread_count < l->queue.workers; l->thread_count++) {
        mr_loader_thread *t = &l->threads[l->thread_count];
        t->loader = l;
        MR_TRY(mr_worker_init(&t->worker, &l->queue.work, err));
    }
    return MR_OK;
}

/* If a thread cannot be started, the others do its work, unless it is the first. */
static mr_status start(mr_loader *l, mr_error *err)
{
    unsigned threads = l->queue.work.o.threads;
    int why = 0;
    while (why == 0 && l->started < threads) {
        mr_loader_thread *t = &l->threads[l->started];
        why = mr_thread_start(&t->thread, work, t);
        if (why == 0)
            l->started++;
    }
    if (l->started || threads == 0)
        return MR_OK;
    return mr_fail_errno(err, why, "a loader's thread cannot be started, " MR_NO_THREAD);
}

static mr_status open_loader(mr_loader *l, const mr_loader *first, const mr_dataset *ds,
                             const mr_loader_options *options, mr_error *err)
{
    mr_work *w = &l->queue.work;
    MR_TRY(mr_batch_queue_open(&l->queue, ds, options, err));
    if (first) { /* no shard is open yet */
        mr_shard_files_free(w->files);
        w->files = mr_shard_files_share(first->queue.work.files);
    }
    l->cursor = (mr_cursor){l->queue.epoch, mr_schedule_position(&w->schedule, l->queue.step)};
    MR_TRY(make_threads(l, err));
    return start(l, err);
}

mr_status mr_loader_open_beside(const mr_loader *first, const mr_dataset *ds, const mr_loader_options *options,
                                mr_loader **out, mr_error *err)
{
    mr_loader *l = mr_alloc(1, sizeof *l);
    if (!l)
        return mr_fail_memory(err, "opening a loader");
    l->process = getpid();
    pthread_mutex_init(&l->adoption, NULL);
    mr_status status = open_loader(l, first, ds, options, err);
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

/* Makes a loader without threads this process's own, unless a thread that does not exist here holds its lock or was at
 * work. */
static bool adopt(mr_loader *l, pid_t self)
{
    pthread_mutex_lock(&l->adoption);
    if (l->process != self && pthread_mutex_trylock(&l->queue.lock) == 0) {
        if (!l->callers && !l->queue.busy)
            l->process = self;
        pthread_mutex_unlock(&l->queue.lock);
    }
    pthread_mutex_unlock(&l->adoption);
    return l->process == self;
}

bool mr_loader_forked(const mr_loader *l)
{
    pid_t self = getpid();
    return l->process != self && (l->started || !adopt((mr_loader *)(uintptr_t)l, self));
}

mr_status mr_loader_fail_forked(mr_error *err)
{
    return mr_fail(err, MR_MISUSE,
                   "this loader was opened before a fork, and the threads that work in it run only in the parent "
                   "process; open a loader in each process");
}

/* The first to stop it joins the threads and waits until the last caller has left; others wait for that. */
void mr_loader_stop(mr_loader *l)
{
    if (mr_loader_forked(l))
        return;
    mr_batch_queue *q = &l->queue;
    pthread_mutex_lock(&q->lock);
    bool first = !l->stopping;
    l->stopping = true;
    q->work.stop = true;
    q->wake_workers = q->wake_callers = true;
    mr_batch_queue_unlock(q);
    for (unsigned i = 0; first && i < l->started; i++)
        pthread_join(l->threads[i].thread, NULL);
    pthread_mutex_lock(&q->lock);
    while (first ? l->callers > 0 : !l->stopped)
        mr_batch_queue_wait(q, &q->ready);
    l->stopped = true;
    pthread_cond_broadcast(&q->ready);
    pthread_mutex_unlock(&q->lock);
}

/* A child of fork() frees nothing: the threads may have been in the middle of an allocation or waiting for a shard, and
 * their locks are never released there. */
void mr_loader_free(mr_loader *l)
{
    if (!l || mr_loader_forked(l))
        return;
    mr_loader_stop(l);
    for (unsigned i = 0; i < l->thread_count; i++)
        mr_worker_free(&l->threads[i].worker);
    free(l->threads);
    if (l->decoder)
        mr_worker_free(l->decoder);
    free(l->decoder);
    free(l->bad);
    mr_batch_queue_close(&l->queue);
    pthread_mutex_destroy(&l->adoption);
    free(l);
}

uint64_t mr_loader_steps(const mr_loader *l)
{
    return l->queue.work.schedule.steps;
}

/* Where another thread may have held the lock at a fork, nobody changes anything any more. */
static pthread_mutex_t *lock_to_read(const mr_loader *l)
{
    pthread_mutex_t *lock = mr_loader_forked(l) ? NULL : &((mr_loader *)(uintptr_t)l)->queue.lock;
    if (lock)
        pthread_mutex_lock(lock);
    return lock;
}

mr_cursor mr_loader_cursor(const mr_loader *l)
{
    pthread_mutex_t *lock = lock_to_read(l);
    mr_cursor cursor = l->cursor;
    if (lock)
        pthread_mutex_unlock(lock);
    return cursor;
}

void mr_loader_settle(mr_loader *l)
{
    pthread_mutex_lock(&l->queue.lock);
    l->settling = true;
    while (l->started && !l->queue.work.stop && !mr_batch_queue_idle(&l->queue))
        mr_batch_queue_wait(&l->queue, &l->queue.ready);
    l->settling = false;
    pthread_mutex_unlock(&l->queue.lock);
}

mr_loader_spent mr_loader_time(const mr_loader *l)
{
    const mr_work *w = &l->queue.work;
    return (mr_loader_spent){(double)w->reading * 1e-9, (double)w->decoding * 1e-9};
}

mr_status mr_loader_seek(mr_loader *l, const mr_cursor *cursor, mr_error *err)
{
    mr_batch_queue *q = &l->queue;
    mr_status status;
    if (mr_loader_forked(l))
        return mr_loader_fail_forked(err);
    pthread_mutex_lock(&q->lock);
    q->paused = l->settling = true;
    while (q->busy && !l->callers)
        mr_batch_queue_wait(q, &q->ready);
    if (q->work.stop)
        status = mr_fail(err, MR_MISUSE, "a loader that is stopped cannot seek; open another");
    else if (l->callers)
        status = mr_fail(err, MR_MISUSE, "a loader cannot seek while another thread waits for its next batch");
    else
        status = mr_batch_queue_seek(q, cursor, err);
    if (status == MR_OK) {
        l->status = MR_OK;
        l->cursor = (mr_cursor){q->epoch, mr_schedule_position(&q->work.schedule, q->step)};
    }
    q->paused = l->settling = false;
    q->wake_workers = true;
    mr_batch_queue_unlock(q);
    return status;
}

void mr_loader_get_stats(const mr_loader *l, mr_loader_stats *stats)
{
    size_t size = stats->struct_size;
    pthread_mutex_t *lock = lock_to_read(l);
    mr_loader_stats now = l->given;
    if (lock)
        pthread_mutex_unlock(lock);
    mr_loader_spent spent = mr_loader_time(l);
    now.struct_size = size;
    now.reading = spent.reading;
    now.decoding = spent.decoding;
    memcpy(stats, &now, size < sizeof now ? size : sizeof now);
}
