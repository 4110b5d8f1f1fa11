/* batch_queue.h - batches in flight: planned, loaded slot by slot by any number of workers, handed out in order.
 *
 *   free -> planning -> planned -> binding -> loading -> finishing -> done -> lent -> free
 *           1 thread               1 thread   all        the last            caller
 *           |---------------------- queue, in plan order -------------|
 *
 * Invariant: one lock guards everything here; a batch's state determines who may work on it outside the lock.  Workers
 * take slots of the earliest batch that has some left, so each batch is done as early as possible. */
#ifndef MR_LOADER_BATCH_QUEUE_H
#define MR_LOADER_BATCH_QUEUE_H

#include <pthread.h>
#include <time.h>

#include "loader/batch/batch.h"

typedef struct mr_batch_queue {
    mr_work work;
    pthread_mutex_t lock;
    pthread_cond_t to_do, ready;          /* for workers; for callers */
    bool wake_workers, wake_callers;      /* when the lock is next released */
    unsigned workers;                     /* maximum; determines how many slots are taken at once */
    mr_loading *batches, **queue, **idle; /* `total` each; queue[0] is handed out next, idle is a stack */
    unsigned total, queued, idles;
    mr_slab *slabs; /* a stack: one for each batch that has none bound */
    unsigned slab_count;
    unsigned busy;                      /* workers outside the lock */
    bool planning, planned_all, paused; /* paused: no step is started */
    uint64_t epoch, step, last_epoch;   /* to plan next; last_epoch itself is not loaded */
} mr_batch_queue;

/* `q` is zeroed before the call, and must be closed after a failure too. */
mr_status mr_batch_queue_open(mr_batch_queue *q, const mr_dataset *ds, const mr_loader_options *options, mr_error *err);
void mr_batch_queue_close(mr_batch_queue *q);

/* Threads are woken after the lock is released: one that wakes while it is held would sleep again. */
void mr_batch_queue_unlock(mr_batch_queue *q);
void mr_batch_queue_wait(mr_batch_queue *q, pthread_cond_t *cond);
/* False: the deadline (CLOCK_MONOTONIC) has passed; NULL: no deadline. */
bool mr_batch_queue_wait_until(mr_batch_queue *q, pthread_cond_t *cond, const struct timespec *deadline);

/* These are called with the lock held.  Does one piece of work; false if there is nothing to do. */
bool mr_batch_queue_step(mr_batch_queue *q, mr_worker *worker);
bool mr_batch_queue_idle(const mr_batch_queue *q);  /* no work is in progress, and none can start */
mr_loading *mr_batch_queue_head(mr_batch_queue *q); /* the next batch, if it is done; NULL */
bool mr_batch_queue_ended(const mr_batch_queue *q); /* no batch is left, and none will be planned */
void mr_batch_queue_lend_head(mr_batch_queue *q);
void mr_batch_queue_take_back(mr_batch_queue *q, mr_loading *b); /* does nothing unless `b` is lent */
/* Moves a lent batch's contents to *out; the batch becomes free and gets new memory.  Call without the lock.
 * MR_SYSTEM: out of memory; nothing has changed. */
mr_status mr_batch_queue_detach(mr_batch_queue *q, mr_loading *b, mr_batch **out, mr_error *err);
/* Drops all queued batches and plans from `cursor` on.  Call with the lock held while no worker is busy.  MR_MISUSE: no
 * step begins there. */
mr_status mr_batch_queue_seek(mr_batch_queue *q, const mr_cursor *cursor, mr_error *err);
/* Where a run continues after this batch. */
mr_cursor mr_cursor_after(const mr_batch_queue *q, uint64_t epoch, uint64_t step);

#endif
