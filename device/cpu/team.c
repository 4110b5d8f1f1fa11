/* team.c - threads that wait for many short jobs.
 * Invariant: a job is over once its tasks are taken and no member works on it; a member that wakes up too late finds
 * the job closed and goes back to sleep, so the caller waits for work but never for a thread that was not scheduled.
 *
 *      caller    run: opens a job, wakes as many as there are tasks    | works | closes the job | waits: inside == 0
 *      member    sleeps | job open and not seen yet: inside + 1        | works | inside - 1     | sleeps */
#include "device/cpu/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/system/pool.h"

typedef struct member {
    mr_team *team;
    unsigned number;
    pthread_t thread;
} member;

struct mr_team {
    pthread_mutex_t lock; /* guards everything except `next` */
    pthread_cond_t work, done;
    member *members; /* [threads]; the first one is the caller */
    unsigned threads, started;
    unsigned inside; /* members working on the job */
    uint64_t job;    /* number of the job */
    bool open, quit;
    mr_team_fn fn;
    void *ctx;
    size_t tasks;
    atomic_size_t next; /* task */
};

static void do_tasks(mr_team *t, unsigned number)
{
    for (size_t task; (task = atomic_fetch_add_explicit(&t->next, 1, memory_order_relaxed)) < t->tasks;)
        t->fn(t->ctx, task, number);
}

static void *run_member(void *arg)
{
    member *m = arg;
    mr_team *t = m->team;
    uint64_t seen = 0;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!t->quit && (!t->open || t->job == seen))
            pthread_cond_wait(&t->work, &t->lock);
        if (t->quit)
            break;
        seen = t->job;
        t->inside++;
        pthread_mutex_unlock(&t->lock);
        do_tasks(t, m->number);
        pthread_mutex_lock(&t->lock);
        if (--t->inside == 0)
            pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

mr_status mr_team_open(unsigned threads, mr_team **out, mr_error *err)
{
    if (threads == 0)
        threads = 1;
    mr_team *t = mr_alloc(1, sizeof *t);
    member *members = mr_alloc(threads, sizeof *members);
    if (!t || !members) {
        free(members);
        free(t);
        return mr_fail_memory(err, "starting threads");
    }
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, NULL);
    pthread_cond_init(&t->done, NULL);
    atomic_init(&t->next, 0);
    t->members = members;
    t->threads = threads;
    for (unsigned i = 1; i < threads; i++, t->started++) {
        members[i] = (member){.team = t, .number = i};
        int failed = mr_thread_start(&members[i].thread, run_member, &members[i]);
        if (failed) {
            mr_status status =
                mr_fail_errno(err, failed, "--threads: thread %u of %u cannot be started, " MR_NO_THREAD "; fewer may",
                              i + 1, threads);
            mr_team_close(t);
            return status;
        }
    }
    *out = t;
    return MR_OK;
}

void mr_team_close(mr_team *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->quit = true;
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    for (unsigned i = 1; i <= t->started; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    free(t->members);
    free(t);
}

unsigned mr_team_threads(const mr_team *t)
{
    return t->threads;
}

void mr_team_run(mr_team *t, size_t tasks, mr_team_fn fn, void *ctx)
{
    if (t->threads == 1 || tasks <= 1) {
        for (size_t task = 0; task < tasks; task++)
            fn(ctx, task, 0);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->fn = fn;
    t->ctx = ctx;
    t->tasks = tasks;
    atomic_store_explicit(&t->next, 0, memory_order_relaxed);
    t->job++;
    t->open = true;
    for (size_t i = 1; i < tasks && i < t->threads; i++)
        pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->lock);
    do_tasks(t, 0);
    pthread_mutex_lock(&t->lock);
    t->open = false;
    while (t->inside)
        pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
}
