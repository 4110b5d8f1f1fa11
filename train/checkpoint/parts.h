/* parts.h - what the files of this module share: state.json, the arrays, the directories of an OUTPUT.
 * Invariant: a name of a directory says what it is:
 *
 *      step-00000200               a checkpoint
 *      .step-00000200.tmp-PID      being written by that process, or left by a killed one
 *      .step-00000200.old-PID      a complete one, moved aside while another takes its place
 *      .step-00000200.gone-PID     being removed */
#ifndef MR_CHECKPOINT_PARTS_H
#define MR_CHECKPOINT_PARTS_H

#include "base/hash.h"
#include "train/checkpoint/checkpoint.h"

enum { MR_CHECKPOINT_FORMAT = 1, MR_STATE_MAX = 256 << 20, MR_TOKENIZER_MAX = 64 << 20, MR_STEP_NAME = 64 };

enum { MR_FILE_WEIGHTS, MR_FILE_OPTIMIZER, MR_FILE_CONFIG, MR_FILE_TOKENIZER, MR_FILES };

/* The name of a file in checkpoints of this model; NULL: they have no such file.  Without a tokenizer its file is
 * absent and its digest has 0 bytes. */
const char *mr_checkpoint_file(const mr_model_iface *iface, size_t file);

/* How the names of a buffer's arrays begin: the optimizer's "momentum/", or "m/" and "v/"; with a mean, "weights/". */
const char *mr_checkpoint_prefix(mr_optimizer_kind kind, unsigned slot);

/* Writes the arrays of MR_FILE_WEIGHTS or MR_FILE_OPTIMIZER to an empty open file, or reads them from one whose digest
 * was checked, allocating no more than fits in `bytes`.  `name`: the file's, for messages. */
mr_status mr_arrays_write(const mr_checkpoint *c, size_t file, int fd, const char *name, mr_digest *digest,
                          mr_error *err);
mr_status mr_arrays_read(mr_checkpoint *c, size_t file, int fd, uint64_t bytes, const char *name, mr_error *err);

/* "model" of state.json; NULL: out of memory, or a text is not UTF-8.  Parsing: MR_BAD_DATA names `name` and the key;
 * members that older versions did not write are 0. */
json_t *mr_state_model(const mr_model_config *m);
mr_status mr_state_model_parse(const json_t *doc, const char *name, mr_model_config *m, mr_error *err);
/* A member that must be one of these words. */
mr_status mr_state_word(const json_t *obj, const char *key, const char *name, const char *const *words, size_t count,
                        unsigned *out, mr_error *err);

/* state.json, sealed.  Writing: MR_MISUSE as mr_checkpoint_write().  Reading fills all but parameters, values,
 * state and tokenizer; MR_BAD_DATA names `name` and the key.  Caller: mr_checkpoint_release(). */
mr_status mr_state_write(const mr_checkpoint *c, const mr_digest digests[MR_FILES], mr_buf *out, mr_error *err);
mr_status mr_state_parse(const void *bytes, size_t len, const char *name, mr_checkpoint *out,
                         mr_digest digests[MR_FILES], mr_error *err);

/* state.json of the checkpoint in `dirfd`, called `dir`; the rest as mr_state_parse(). */
mr_status mr_state_read(const char *dir, int dirfd, mr_checkpoint *out, mr_digest digests[MR_FILES], mr_error *err);

typedef struct mr_step {
    uint64_t update;
    char name[MR_STEP_NAME]; /* name of the directory; ".step-N.old-PID" if only that exists */
} mr_step;

typedef struct mr_steps {
    mr_step *items; /* ascending, each update once */
    size_t count, capacity;
} mr_steps;

void mr_step_name(uint64_t update, char name[MR_STEP_NAME]);
void mr_step_hidden(uint64_t update, const char *kind, char name[MR_STEP_NAME]); /* "tmp", "old", "gone" */
bool mr_step_parse(const char *name, uint64_t *update);                          /* false: not step-NNNNNNNN */

/* The checkpoints in a directory, by name only.  Caller frees items. */
mr_status mr_steps_list(int dirfd, const char *output, mr_steps *out, mr_error *err);
/* Removes what processes that have ended left; brings back what one of them had moved aside. */
mr_status mr_steps_sweep(int dirfd, const char *output, mr_error *err);
/* Removes a directory of OUTPUT that is not needed any more: first from sight, then from disk. */
void mr_step_remove(int dirfd, const mr_step *step);

#endif
