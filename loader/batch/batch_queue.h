/* batch_queue.h - batches on their way: planned, loaded slot by slot by any number of workers, given out in order.
 *
 *   free -> planning -> planned -> binding -> loading -> finishing -> done -> lent -> free
 *           1 thread               1 thread   all        the last            caller
 *           |---------------------- queue, in plan order -------------|
 *
 * Invariant: one lock guards all of it; plan, load and finish run outside of the lock on a batch that the state gives
 * them.  Hands take slots of the earliest batch that has some, so a batch is done as soon as it can be. */
#ifndef MR_LOADER_FLOW_H
#define MR_LOADER_FLOW_H

#include <pthread.h>

#include "batch/batch.h"

typedef struct mr_batch_queue {
    mr_work work;
    pthread_mutex_t lock;
    pthread_cond_t to_do, ready;          /* for workers; for callers */
    bool wake_workers, wake_callers;      /* when the lock is next given up */
    unsigned workers;                     /* that work on it, at most: so large are their shares */
    mr_loading *batches, **queue, **idle; /* `total` each; queue[0] is the next to be given, idle is a stack */
    unsigned total, queued, idles;
    mr_slab *slabs; /* a stack as high as there are batches without one */
    unsigned slab_count;
    unsigned busy; /* hands outside of the lock */
    bool planning, planned_all;
    uint64_t epoch, step, last_epoch; /* to be planned next; epochs end before last_epoch */
} mr_batch_queue;

/* `f` zeroed.  After a failure too it must be closed. */
mr_status mr_batch_queue_open(mr_batch_queue *f, const mr_dataset *ds, const mr_loader_options *options, mr_error *err);
void mr_batch_queue_close(mr_batch_queue *f);

/* Whoever is to be woken is woken when the lock is free: a thread that wakes to a lock that is taken sleeps again. */
void mr_batch_queue_unlock(mr_batch_queue *f);
void mr_batch_queue_wait(mr_batch_queue *f, pthread_cond_t *cond);

/* All of these under the lock.  One thing that is to be done; false if there is nothing. */
bool mr_batch_queue_step(mr_batch_queue *f, mr_worker *h);
bool mr_batch_queue_at_rest(const mr_batch_queue *f); /* nothing is done, nothing can be */
mr_loading *mr_batch_queue_head(mr_batch_queue *f);   /* the next batch, if it is done; NULL */
bool mr_batch_queue_ended(const mr_batch_queue *f);   /* no batch is left, none will come */
void mr_batch_queue_lend_head(mr_batch_queue *f);
void mr_batch_queue_take_back(mr_batch_queue *f, mr_loading *b); /* a batch that is not lent: nothing */
/* Where a run would go on that has seen all batches up to this one. */
mr_cursor mr_cursor_after(const mr_batch_queue *f, uint64_t epoch, uint64_t step);

#endif
