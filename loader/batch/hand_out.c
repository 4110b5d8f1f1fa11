/* hand_out.c - batches to callers: mr_loader_next(), and what may be done with a batch.
 * Invariant: batches are handed out in order, each to one caller; a failure is kept and returned again. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "loader/batch/loader.h"
#include "loader/batch/loader_state.h"

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
    if (!MR_GROW(l->bad, l->bad_count, l->bad_capacity))
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

static mr_status next_until(mr_loader *l, const struct timespec *begun, const struct timespec *deadline,
                            const mr_batch **out, mr_error *err)
{
    struct timespec ended;
    if (mr_loader_forked(l))
        return mr_loader_fail_forked(err);
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
    mr_time_add(&deadline, milliseconds);
    return next_until(l, &begun, &deadline, out, err);
}

mr_status mr_batch_detach(mr_loader *l, const mr_batch *batch, mr_batch **out, mr_error *err)
{
    if (mr_loader_forked(l))
        return mr_loader_fail_forked(err);
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
        return mr_fail_memory(err, "decoding an image");
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
    if (mr_loader_forked(l))
        return mr_loader_fail_forked(err);
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
    if (!batch || mr_loader_forked(l))
        return;
    pthread_mutex_lock(&l->queue.lock);
    mr_batch_queue_take_back(&l->queue, (mr_loading *)(uintptr_t)batch);
    pthread_cond_signal(&l->queue.to_do);
    /* Without threads a caller may be waiting for it. */
    if (!l->started)
        pthread_cond_broadcast(&l->queue.ready);
    pthread_mutex_unlock(&l->queue.lock);
}
