/* checkpoint.h - a run's state on disk: written and published by checkpoint.c, read by read.c, kept or removed by
 * keep.c. Invariant: a directory named step-NNNNNNNN is complete: it was written under another name, synced and
 * renamed, and is renamed before it is removed.  Of its files only state.json is ever replaced, by one rename.
 *
 *      OUTPUT/step-00000200/weights.npz     the parameters by name, as in the model's pretrained files; for a model of
 * the hub (mr_model_iface.describe) instead: model.safetensors config.json     from describe() optimizer.npz
 * "momentum/NAME", or "m/NAME" and "v/NAME"; with a mean of the weights "weights/NAME" tokenizer.json  if there is one
 * state.json      everything else, and bytes and XXH3-128 of the others; sealed like a manifest .step-00000300.tmp-PID/
 * being written by that process */
#ifndef MR_CHECKPOINT_H
#define MR_CHECKPOINT_H

#include <dirent.h>

#include "base/ranks/ranks.h"
#include "base/json/json.h"
#include "train/model/model.h"
#include "train/model/optimizer.h"

enum { MR_VERSION_TEXT = 32, MR_CHECKPOINT_STATES = 3 };

typedef struct mr_checkpoint {
    mr_model_config model;
    mr_params params;
    float *values; /* [params.total], host */
    mr_optimizer_kind optimizer;
    double ema; /* 0: none; otherwise `values` are the mean of the weights with this decay, and the last of `state`
                 * the weights themselves */
    unsigned slots;
    float *state[MR_CHECKPOINT_STATES]; /* [params.total], host; NULL if only weights were asked for */
    uint64_t update;                    /* updates done */
    mr_cursor cursor;                   /* the next sample */
    uint64_t seed;
    double accuracy, best_accuracy; /* accuracy in the last and in the best evaluation, 0 to 1; -1: none yet */
    double threshold; /* with several labels, the probability from which a class counts as found; 0: none */
    uint64_t best_update;
    bool evaluation_due;           /* these weights have yet to be evaluated */
    json_t *facts;                 /* an object: "classes" (names in order), "transform", "options", "dataset", ... */
    char version[MR_VERSION_TEXT]; /* version of the millrace that wrote it; "?": not stated */
    mr_buf tokenizer;              /* the bytes of tokenizer.json; empty: none */
    DIR *claim;                    /* to write: the caller's claim on OUTPUT; NULL: none */
} mr_checkpoint;

/* Releases the contents, not the struct, which may be zeroed. */
void mr_checkpoint_release(mr_checkpoint *c);

/* Keeps other runs out of OUTPUT until closedir(*claim) or the end of the process.  NULL: OUTPUT does not exist.  A
 * file system without locks keeps no run out.  MR_MISUSE: another run is at work in it; with `fresh`, also: it holds
 * checkpoints. */
mr_status mr_checkpoint_claim(const char *output, bool fresh, DIR **claim, mr_error *err);
/* MR_SYSTEM: OUTPUT is no longer the folder of the claim (NULL: always MR_OK).  Each of the following checks that
 * first, and then works in the claimed folder. */
mr_status mr_checkpoint_held(DIR *claim, const char *output, mr_error *err);

/* Removes what killed runs left in OUTPUT (created if missing), publishes OUTPUT/step-NNNNNNNN (replacing one of that
 * name), then removes all but the newest `keep` up to this one (0: removes nothing) and the best one; a removal that
 * fails is repeated next time.  *bytes: written, may be NULL.
 * MR_SYSTEM: not written (the disk is full ...); older checkpoints are untouched.  MR_MISUSE: an inconsistent state:
 * the number of slots is not the optimizer's, an accuracy is not within 0 to 1 ... */
mr_status mr_checkpoint_write(const mr_checkpoint *c, const char *output, unsigned keep, uint64_t *bytes,
                              mr_error *err);

/* Records the result of an evaluation (accuracy, best_accuracy, best_update) in the checkpoint of c->update, which was
 * written with evaluation_due, then removes as above. */
mr_status mr_checkpoint_evaluated(const mr_checkpoint *c, const char *output, unsigned keep, mr_error *err);

/* Removes all checkpoints of OUTPUT, and nothing else.  MR_SYSTEM: one is still there. */
mr_status mr_checkpoint_clear(DIR *claim, const char *output, mr_error *err);

/* Only removes, as above, after a run that had nothing to do; reads c->update, best_accuracy, best_update and claim.
 * OUTPUT may be absent. */
mr_status mr_checkpoint_sweep(const mr_checkpoint *c, const char *output, unsigned keep, mr_error *err);

/* `path`: a step-NNNNNNNN directory, or an OUTPUT: its newest checkpoint, or with `best` the best.  If a run in
 * progress removes it in the meantime, the next is read. Digests are checked; names and shapes must be the model's own.
 * Without `with_state` optimizer.npz is ignored and may be missing.  config.json is for other programs: the model is
 * described by state.json.  *found: the directory, even if it is damaged; NULL: none; caller frees; may be NULL.
 * MR_MISUSE: there is none.  MR_BAD_DATA: damaged; the message names the file, the caller adds what to do. */
mr_status mr_checkpoint_read(const char *path, bool best, bool with_state, mr_checkpoint *out, char **found,
                             mr_error *err);

/* As mr_checkpoint_read(), but only state.json: no arrays, no tokenizer, and no digest of them is checked. */
mr_status mr_checkpoint_look(const char *path, bool best, mr_checkpoint *out, char **found, mr_error *err);

/* Collective.  Makes *c of every rank that of rank 0; zeroed on the others.  What is NULL or empty on rank 0 stays so:
 * optimizer state, values, tokenizer.  All ranks fail together. */
mr_status mr_checkpoint_share(mr_ranks *ranks, mr_checkpoint *c, mr_error *err);

/* Buffers besides the weights: those that this optimizer keeps, and with a mean one more. */
unsigned mr_checkpoint_slots(mr_optimizer_kind kind, bool ema);

/* Whether mr_checkpoint_read() takes `path` for a checkpoint, not an OUTPUT; it need not exist. */
bool mr_checkpoint_is(const char *path);
bool mr_checkpoint_has_weights(const char *path); /* for any kind of model */

#endif
