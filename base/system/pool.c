/* pool.c - many items, a few threads: a shared counter assigns the next item. */
#include "base/system/pool.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct pool {
    pthread_mutex_t lock;
    size_t next, count, failed_item;
    mr_status status;
    mr_error error;
    mr_pool_fn fn;
    void *ctx;
} pool;

typedef struct worker {
    pool *pool;
    unsigned number;
    pthread_t thread;
} worker;

static bool take(pool *p, size_t *item)
{
    pthread_mutex_lock(&p->lock);
    bool got = p->status == MR_OK && p->next < p->count;
    if (got)
        *item = p->next++;
    pthread_mutex_unlock(&p->lock);
    return got;
}

static void *work(void *arg)
{
    worker *w = arg;
    pool *p = w->pool;
    mr_error error;
    for (size_t item; take(p, &item);) {
        mr_status status = p->fn(p->ctx, item, w->number, &error);
        if (status == MR_OK)
            continue;
        pthread_mutex_lock(&p->lock);
        if (p->status == MR_OK || item < p->failed_item) {
            p->status = status;
            p->failed_item = item;
            p->error = error;
        }
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

mr_status mr_pool_run(size_t count, unsigned jobs, mr_pool_fn fn, void *ctx, mr_error *err)
{
    if (jobs > count)
        jobs = (unsigned)count;
    if (jobs == 0)
        jobs = 1;
    pool p = {.count = count, .fn = fn, .ctx = ctx};
    worker *workers = mr_alloc(jobs, sizeof *workers);
    if (!workers)
        return mr_fail_memory(err, "starting threads");
    pthread_mutex_init(&p.lock, NULL);
    unsigned started = 0;
    for (unsigned i = 0; i < jobs; i++)
        workers[i] = (worker){.pool = &p, .number = i};
    /* The caller is worker 0; if a thread cannot be started, the others do its share. */
    for (unsigned i = 1; i < jobs; i++, started++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            break;
    work(&workers[0]);
    for (unsigned i = 1; i <= started; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_mutex_destroy(&p.lock);
    free(workers);
    if (p.status != MR_OK && err)
        *err = p.error;
    return p.status;
}

int mr_thread_start(pthread_t *out, void *(*run)(void *), void *ctx)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(out, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

void mr_time_add(struct timespec *t, unsigned milliseconds)
{
    enum { SECOND = 1000000000 };
    t->tv_sec += milliseconds / 1000;
    t->tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (t->tv_nsec >= SECOND) {
        t->tv_sec++;
        t->tv_nsec -= SECOND;
    }
}

unsigned mr_pool_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (unsigned)n : 1;
}
