/* loader_state.h - mr_loader inside: loader.c opens, stops and seeks it, hand_out.c gives its batches to callers.
 * Invariant: the queue's lock guards everything unless stated otherwise. */
#ifndef MR_LOADER_STATE_H
#define MR_LOADER_STATE_H

#include <pthread.h>
#include <sys/types.h>

#include "loader/batch/batch_queue.h"

typedef struct mr_loader_thread {
    mr_loader *loader;
    mr_worker worker;
    pthread_t thread;
} mr_loader_thread;

struct mr_loader {
    mr_batch_queue queue;
    _Atomic pid_t process;    /* that may call it */
    pthread_mutex_t adoption; /* held by a child of fork() while it finds out whether it may continue */
    mr_loader_thread *threads;
    unsigned started, thread_count; /* running; all (one, not started, for a loader without threads) */
    unsigned callers;               /* inside mr_loader_next() */
    mr_worker *decoder;             /* the worker of mr_batch_decode(); NULL: not used yet */
    bool settling, stopping, stopped;
    uint64_t *bad; /* bad samples of the batches handed out, ascending; kept only if there is a limit */
    size_t bad_count, bad_capacity;
    mr_cursor cursor;
    mr_loader_stats given; /* except reading and decoding, which `queue.work` counts */
    mr_status status;      /* does not change once it is not MR_OK */
    mr_error error;
};

/* A child of fork() has none of the threads, neither the loader's nor those that were in a call: there a loader without
 * threads can continue if no call was in progress, and every other one can only be freed. */
bool mr_loader_forked(const mr_loader *l);
mr_status mr_loader_fail_forked(mr_error *err);

#endif
