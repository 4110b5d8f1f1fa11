/* checkpoint_parts.h - what the files checkpoint*.c share: state.json, and the directories of an OUTPUT.
 * Invariant: a name of a directory says what it is:
 *
 *      step-00000200               a checkpoint
 *      .step-00000200.tmp-PID      being written by that process, or left by a killed one
 *      .step-00000200.old-PID      a whole one, moved aside while another takes its place
 *      .step-00000200.gone-PID     being removed */
#ifndef MR_CHECKPOINT_PARTS_H
#define MR_CHECKPOINT_PARTS_H

#include "checkpoint.h"
#include "hash.h"

enum { MR_CHECKPOINT_FORMAT = 1, MR_STATE_MAX = 256 << 20, MR_STEP_NAME = 64 };

enum { MR_FILE_WEIGHTS, MR_FILE_OPTIMIZER, MR_FILES };
extern const char *const mr_checkpoint_files[MR_FILES];         /* "weights.npz", "optimizer.npz" */

/* How many buffers this optimizer keeps, and how the arrays of one begin: "momentum/"; "m/" and "v/". */
unsigned mr_checkpoint_slots(mr_optimizer_kind kind);
const char *mr_checkpoint_prefix(mr_optimizer_kind kind, unsigned slot);

/* state.json, sealed.  Writing: MR_MISUSE as mr_checkpoint_write().  Reading fills all but parameters, values and
 * state; MR_BAD_DATA names `name` and the key.  Caller: mr_checkpoint_release(). */
mr_status mr_state_write(const mr_checkpoint *c, const mr_digest files[MR_FILES], mr_buf *out, mr_error *err);
mr_status mr_state_parse(const void *bytes, size_t len, const char *name, mr_checkpoint *out, mr_digest files[MR_FILES],
                         mr_error *err);

typedef struct mr_step {
    uint64_t update;
    char name[MR_STEP_NAME];        /* of the directory; ".step-N.old-PID" if only that one is there */
} mr_step;

typedef struct mr_steps {
    mr_step *items;                 /* ascending, each update once */
    size_t count, room;
} mr_steps;

void mr_step_name(uint64_t update, char name[MR_STEP_NAME]);
void mr_step_hidden(uint64_t update, const char *kind, char name[MR_STEP_NAME]);       /* "tmp", "old", "gone" */
bool mr_step_parse(const char *name, uint64_t *update);         /* false: not step-NNNNNNNN */

/* The checkpoints in a directory; names are looked at, not contents.  Caller frees items. */
mr_status mr_steps_list(int dirfd, const char *output, mr_steps *out, mr_error *err);
/* Removes what processes that are no more left; brings back what one of them had moved aside. */
mr_status mr_steps_sweep(int dirfd, const char *output, mr_error *err);
/* Removes a directory of OUTPUT that is no use any more: first from sight, then from disk. */
void mr_step_remove(int dirfd, const mr_step *step);

#endif
