/* flow.h - batches on their way: planned, loaded slot by slot by any number of hands, given out in order.
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

typedef struct mr_flow {
    mr_work work;
    pthread_mutex_t lock;
    pthread_cond_t to_do, ready;          /* for hands; for callers */
    bool wake_hands, wake_callers;        /* when the lock is next given up */
    unsigned hands;                       /* that work on it, at most: so large are their shares */
    mr_loading *batches, **queue, **idle; /* `total` each; queue[0] is the next to be given, idle is a stack */
    unsigned total, queued, idles;
    mr_slab *slabs; /* a stack as high as there are batches without one */
    unsigned slab_count;
    unsigned busy; /* hands outside of the lock */
    bool planning, planned_all;
    uint64_t epoch, step, last_epoch; /* to be planned next; epochs end before last_epoch */
} mr_flow;

/* `f` zeroed.  After a failure too it must be closed. */
mr_status mr_flow_open(mr_flow *f, const mr_dataset *ds, const mr_loader_options *options, mr_error *err);
void mr_flow_close(mr_flow *f);

/* Whoever is to be woken is woken when the lock is free: a thread that wakes to a lock that is taken sleeps again. */
void mr_flow_unlock(mr_flow *f);
void mr_flow_wait(mr_flow *f, pthread_cond_t *cond);

/* All of these under the lock.  One thing that is to be done; false if there is nothing. */
bool mr_flow_step(mr_flow *f, mr_hands *h);
bool mr_flow_at_rest(const mr_flow *f); /* nothing is done, nothing can be */
mr_loading *mr_flow_head(mr_flow *f);   /* the next batch, if it is done; NULL */
bool mr_flow_ended(const mr_flow *f);   /* no batch is left, none will come */
void mr_flow_lend_head(mr_flow *f);
void mr_flow_take_back(mr_flow *f, mr_loading *b); /* a batch that is not lent: nothing */
/* Where a run would go on that has seen all batches up to this one. */
mr_cursor mr_flow_behind(const mr_flow *f, uint64_t epoch, uint64_t step);

#endif
