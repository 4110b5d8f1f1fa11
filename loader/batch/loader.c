/* loader.c - mr_loader_*: the threads that work on a queue of batches, and the callers that wait for them.
 * Invariant: a failure is kept and returned again; no thread is inside a loader when it is freed.
 *
 *   threads          step, step, step ...    until `stop`; they wait on `to_do`
 *   mr_loader_next   the head of the queue   as soon as it is done; waits on `ready`
 *
 * With threads = 0 the caller's own thread takes the same steps in mr_loader_next(). */
#include "batch/loader.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/scope.h"
#include "batch/batch_queue.h"

typedef struct worker_thread {
    mr_loader *loader;
    mr_worker worker;
    pthread_t thread;
} worker_thread;

struct mr_loader {
    mr_batch_queue queue; /* its lock guards everything here */
    pid_t process;
    worker_thread *threads;
    unsigned started, thread_count; /* running; all (one, not started, for a loader without threads) */
    unsigned callers;               /* inside mr_loader_next() */
    mr_worker *decoder;             /* of mr_batch_decode(); NULL: not used yet */
    bool settling;
    uint64_t *bad; /* bad samples of the batches handed out, ascending; kept only if there is a limit */
    size_t bad_count, bad_room;
    mr_cursor cursor;
    mr_loader_stats given; /* except reading and decoding, which `queue.work` counts */
    mr_status status;      /* does not change once it is not MR_OK */
    mr_error error;
};

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void *work(void *arg)
{
    worker_thread *t = arg;
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
        worker_thread *t = &l->threads[l->thread_count];
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
        worker_thread *t = &l->threads[l->started];
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

/* After fork() the child has none of the threads. */
static bool forked(const mr_loader *l)
{
    return l->started && l->process != getpid();
}

/* Stops the threads, then waits until the last caller has left. */
static void stop(mr_loader *l)
{
    mr_batch_queue *q = &l->queue;
    pthread_mutex_lock(&q->lock);
    q->work.stop = true;
    q->wake_workers = q->wake_callers = true;
    mr_batch_queue_unlock(q);
    for (unsigned i = 0; i < l->started; i++)
        pthread_join(l->threads[i].thread, NULL);
    pthread_mutex_lock(&q->lock);
    while (l->callers)
        mr_batch_queue_wait(q, &q->ready);
    pthread_mutex_unlock(&q->lock);
}

/* A child of fork() frees nothing: the threads may have been in the middle of an allocation or waiting for a shard, and
 * their locks are never released there. */
void mr_loader_free(mr_loader *l)
{
    if (!l || forked(l))
        return;
    stop(l);
    for (unsigned i = 0; i < l->thread_count; i++)
        mr_worker_free(&l->threads[i].worker);
    free(l->threads);
    if (l->decoder)
        mr_worker_free(l->decoder);
    free(l->decoder);
    free(l->bad);
    mr_batch_queue_close(&l->queue);
    free(l);
}

/* ---- handing out ------------------------------------------------------------------------------------------------- */

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

/* The index of a sample in `bad`, or where to insert it. */
static size_t bad_index(const mr_loader *l, uint64_t sample)
{
    size_t low = 0, high = l->bad_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->bad[middle] < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A sample counts once, however many epochs it occurs in; as padding, it counts only on the rank that owns it. */
static mr_status count_bad(mr_loader *l, const mr_bad_slot *bad, mr_error *err)
{
    uint64_t limit = l->queue.work.o.max_bad;
    if (!limit || bad->padding)
        return MR_OK;
    size_t at = bad_index(l, bad->sample);
    if (at < l->bad_count && l->bad[at] == bad->sample)
        return MR_OK;
    if (l->bad_count == limit)
        return mr_fail(err, bad->error.status, "%s; exceeds the %llu bad samples allowed", bad->error.text,
                       (unsigned long long)limit);
    if (!MR_GROW(l->bad, l->bad_count, l->bad_room))
        return mr_fail_memory(err, "noting a bad sample");
    memmove(l->bad + at + 1, l->bad + at, (l->bad_count - at) * sizeof *l->bad);
    l->bad[at] = bad->sample;
    l->bad_count++;
    return MR_OK;
}

static mr_status hand_out(mr_loader *l, mr_loading *b, const mr_batch **out, mr_error *err)
{
    if (b->status != MR_OK)
        return end(l, b->status, &b->error, err);
    for (size_t i = 0; i < b->bad_count; i++) {
        mr_error why;
        mr_status status = count_bad(l, &b->bad[i], &why);
        if (status != MR_OK)
            return end(l, status, &why, err);
    }
    l->given.batches++;
    l->given.samples += b->lent.count;
    l->given.replaced += b->lent.replaced;
    l->cursor = mr_cursor_after(&l->queue, b->lent.epoch, b->lent.step);
    mr_batch_queue_lend_head(&l->queue);
    pthread_cond_signal(&l->queue.to_do);
    *out = &b->lent;
    return MR_OK;
}

static bool is_past(const struct timespec *deadline)
{
    struct timespec now;
    if (!deadline)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec != deadline->tv_sec ? now.tv_sec > deadline->tv_sec : now.tv_nsec >= deadline->tv_nsec;
}

/* With the lock held.  Without threads one caller at a time does the work, the others wait.  `deadline` may be NULL. */
static mr_status next(mr_loader *l, const struct timespec *deadline, const mr_batch **out, mr_error *err)
{
    mr_batch_queue *q = &l->queue;
    for (;;) {
        if (q->work.stop)
            return MR_END;
        if (l->status != MR_OK)
            return end(l, l->status, &l->error, err);
        mr_loading *head = mr_batch_queue_head(q);
        if (head)
            return hand_out(l, head, out, err);
        if (mr_batch_queue_ended(q))
            return end(l, MR_END, &l->error, err);
        if (is_past(deadline))
            return MR_AGAIN;
        if (l->started || q->busy || !mr_batch_queue_step(q, &l->threads[0].worker))
            mr_batch_queue_wait_until(q, &q->ready, deadline);
        else if (l->callers > 1)
            q->wake_callers = true;
    }
}

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
    return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) * 1e-9;
}

static mr_status fail_forked(mr_error *err)
{
    return mr_fail(
        err, MR_MISUSE,
        "this loader was opened before a fork, and its threads run only in the parent process; open a loader "
        "in each process, or one without threads");
}

static mr_status next_until(mr_loader *l, const struct timespec *begun, const struct timespec *deadline,
                            const mr_batch **out, mr_error *err)
{
    struct timespec ended;
    if (forked(l))
        return fail_forked(err);
    pthread_mutex_lock(&l->queue.lock);
    l->callers++;
    mr_status status = next(l, deadline, out, err);
    l->callers--;
    clock_gettime(CLOCK_MONOTONIC, &ended);
    l->given.waited += seconds_between(begun, &ended);
    /* With the lock held: once it is released, the loader may be freed. */
    pthread_cond_broadcast(&l->queue.ready);
    pthread_mutex_unlock(&l->queue.lock);
    return status;
}

mr_status mr_loader_next(mr_loader *l, const mr_batch **out, mr_error *err)
{
    struct timespec begun;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    return next_until(l, &begun, NULL, out, err);
}

mr_status mr_loader_next_for(mr_loader *l, unsigned milliseconds, const mr_batch **out, mr_error *err)
{
    struct timespec begun, deadline;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    deadline = begun;
    deadline.tv_sec += milliseconds / 1000;
    deadline.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    return next_until(l, &begun, &deadline, out, err);
}

mr_status mr_batch_detach(mr_loader *l, const mr_batch *batch, mr_batch **out, mr_error *err)
{
    if (forked(l))
        return fail_forked(err);
    MR_TRY(mr_batch_queue_detach(&l->queue, (mr_loading *)(uintptr_t)batch, out, err));
    pthread_cond_signal(&l->queue.to_do);
    if (!l->started) /* a caller may be waiting for the batch */
        pthread_cond_broadcast(&l->queue.ready);
    return MR_OK;
}

static mr_status open_decoder(mr_loader *l, mr_error *err)
{
    if (l->decoder)
        return MR_OK;
    mr_worker *w = mr_alloc(1, sizeof *w);
    if (!w)
        return mr_fail_memory(err, "decoding a picture");
    mr_status status = mr_worker_init(w, &l->queue.work, err);
    if (status == MR_OK)
        l->decoder = w;
    else
        free(w);
    return status;
}

mr_status mr_batch_decode(mr_loader *l, const mr_batch *batch, uint64_t slot, float *out, mr_error *err)
{
    mr_loading *b = (mr_loading *)(uintptr_t)batch;
    uint64_t sample, noted = batch->replaced;
    if (forked(l))
        return fail_forked(err);
    if (!b->coded.slots || slot >= batch->count)
        return mr_fail(err, MR_MISUSE, "slot %llu cannot be decoded: the batch has %llu slots%s",
                       (unsigned long long)slot, (unsigned long long)batch->count,
                       b->coded.slots ? "" : ", and is not a lent coded one");
    sample = batch->samples[slot].sample;
    MR_TRY(open_decoder(l, err));
    MR_TRY(mr_loading_decode(b, &l->queue.work, l->decoder, slot, out, err));
    mr_status status = MR_OK;
    pthread_mutex_lock(&l->queue.lock);
    l->given.replaced += batch->replaced - noted;
    for (size_t i = 0; i < b->bad_count && batch->replaced > noted && status == MR_OK; i++)
        if (b->bad[i].slot == slot && b->bad[i].sample == sample)
            status = count_bad(l, &b->bad[i], err);
    pthread_mutex_unlock(&l->queue.lock);
    return status;
}

void mr_batch_release(mr_loader *l, const mr_batch *batch)
{
    if (!batch || forked(l))
        return;
    pthread_mutex_lock(&l->queue.lock);
    mr_batch_queue_take_back(&l->queue, (mr_loading *)(uintptr_t)batch);
    pthread_cond_signal(&l->queue.to_do);
    /* Without threads a caller may be waiting for it. */
    if (!l->started)
        pthread_cond_broadcast(&l->queue.ready);
    pthread_mutex_unlock(&l->queue.lock);
}

uint64_t mr_loader_steps(const mr_loader *l)
{
    return l->queue.work.schedule.steps;
}

mr_cursor mr_loader_cursor(const mr_loader *l)
{
    mr_loader *unlocked = (mr_loader *)(uintptr_t)l;
    pthread_mutex_lock(&unlocked->queue.lock);
    mr_cursor cursor = l->cursor;
    pthread_mutex_unlock(&unlocked->queue.lock);
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
    if (forked(l))
        return fail_forked(err);
    pthread_mutex_lock(&q->lock);
    q->paused = l->settling = true;
    while (q->busy && !l->callers)
        mr_batch_queue_wait(q, &q->ready);
    if (l->callers)
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
    mr_loader *unlocked = (mr_loader *)(uintptr_t)l;
    size_t size = stats->struct_size;
    pthread_mutex_lock(&unlocked->queue.lock);
    mr_loader_stats now = l->given;
    pthread_mutex_unlock(&unlocked->queue.lock);
    mr_loader_spent spent = mr_loader_time(l);
    now.struct_size = size;
    now.reading = spent.reading;
    now.decoding = spent.decoding;
    memcpy(stats, &now, size < sizeof now ? size : sizeof now);
}
