/* pool.h - many items, a few threads.
 * Invariant: items are started in order 0, 1, 2 ...; each runs once, on one thread; after a failure no new item starts,
 * and of the items that failed the one with the lowest number is reported. */
#ifndef MR_POOL_H
#define MR_POOL_H

#include <pthread.h>
#include <time.h>

#include "base/error.h"

/* `worker`: the thread's number, 0 to jobs-1, for scratch memory per thread. */
typedef mr_status (*mr_pool_fn)(void *ctx, size_t item, unsigned worker, mr_error *err);

/* Runs fn for items 0 to count-1 on up to `jobs` threads (0 or 1: on the caller's own) and waits for all. */
mr_status mr_pool_run(size_t count, unsigned jobs, mr_pool_fn fn, void *ctx, mr_error *err);

/* Starts a thread with all signals blocked: they are for the thread that the command runs on.  0, or the number of the
 * error, as of pthread_create(). */
int mr_thread_start(pthread_t *out, void *(*run)(void *), void *ctx);

/* Moves a time on, as the deadline of pthread_cond_timedwait(). */
void mr_time_add(struct timespec *t, unsigned milliseconds);

/* The number of processors this process may use, at least 1. */
unsigned mr_pool_processors(void);

#endif
