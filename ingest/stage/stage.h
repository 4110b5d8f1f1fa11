/* stage.h - DATASET.partial, the folder where a dataset grows until it is complete.
 * Invariant: what is at DATASET changes by the one rename of mr_stage_publish(), or not at all. */
#ifndef MR_STAGE_H
#define MR_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/ranks/ranks.h"

typedef struct mr_stage mr_stage;

char *mr_stage_name(const char *target); /* DATASET.partial, to be freed; NULL: no memory */
/* On rank 0 first, which makes the folder and owns it; then on the other ranks. */
mr_status mr_stage_open(const char *target, bool force, mr_ranks *ranks, mr_stage **out, mr_error *err);
/* Collective, between these: whether all hosts see that folder; `stage` is rank 0's, NULL on the others. */
mr_status mr_stage_seen(const mr_stage *stage, const char *target, mr_ranks *ranks, mr_error *err);
const char *mr_stage_path(const mr_stage *s);
int mr_stage_dir(const mr_stage *s);
mr_status mr_stage_held(const mr_stage *s,
                        mr_error *err); /* MR_SYSTEM: its name is gone, or another folder has it now */
mr_status mr_stage_spool(mr_stage *s, int *fd, mr_error *err); /* an empty file, named until unlinked */
void mr_stage_spool_unlink(mr_stage *s);
/* The same for one thread of one rank: creates rows-NUMBER.spool, and sets its path. */
mr_status mr_stage_rows(const mr_stage *s, unsigned number, int *fd, char path[4096], mr_error *err);
void mr_stage_rows_unlink(const mr_stage *s, unsigned number);
/* Removes millrace's files except the .mdb, .idx and .done of these shards, whose names are sorted.  MR_MISUSE: there
 * are other files. */
mr_status mr_stage_sweep(mr_stage *s, const char *const *shards, size_t count, mr_error *err);
/* The rename, after checking the target again.  On failure nothing has changed unless *published. */
mr_status mr_stage_publish(mr_stage *s, atomic_bool *published, mr_error *err);
void mr_stage_close(mr_stage *s); /* removes the folder if it is empty */

#endif
