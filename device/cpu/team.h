/* team.h - threads that wait for many short jobs (base/system/pool.h starts threads for one long job).
 * Invariant: no thread spins: a member without work sleeps, so that more ranks than processors can share a host.
 * Any thread may run any task, so results must depend on the task's number alone. */
#ifndef MR_TEAM_H
#define MR_TEAM_H

#include "base/buf.h"

typedef struct mr_team mr_team;
typedef void (*mr_team_fn)(void *ctx, size_t task, unsigned member); /* member: 0 .. threads - 1, for scratch */

/* threads 0 or 1: no thread is started, and the caller does all work. */
mr_status mr_team_open(unsigned threads, mr_team **out, mr_error *err);
void mr_team_close(mr_team *t); /* NULL is fine */
unsigned mr_team_threads(const mr_team *t);
/* Runs fn for tasks 0 .. tasks - 1, also on the caller's thread, and returns when all are done.  One call at a time. */
void mr_team_run(mr_team *t, size_t tasks, mr_team_fn fn, void *ctx);

#endif
