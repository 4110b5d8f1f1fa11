/* checkpoint.h - a run's state on disk, whole or absent.
 * Invariant: a directory named step-NNNNNNNN is complete: it was written under another name, synced and renamed, and is
 * renamed away before it is removed.  Of its files only state.json is ever replaced, by one rename.
 *
 *      OUTPUT/step-00000200/weights.npz     the parameters by name, as the model's foreign files have them; of a model
 *                                           that the hub knows (mr_model_card.describe) these two in its place:
 *                           model.safetensors
 *                           config.json     what describe() says
 *                           optimizer.npz   "momentum/NAME", or "m/NAME" and "v/NAME"
 *                           tokenizer.json  if there is one
 *                           state.json      everything else, and bytes and XXH3-128 of the others; sealed as a manifest
 *             .step-00000300.tmp-PID/     being written by that process
 */
#ifndef MR_CHECKPOINT_H
#define MR_CHECKPOINT_H

#include <dirent.h>

#include "base/ranks.h"
#include "json/json.h"
#include "model/model.h"
#include "model/optimizer.h"

typedef struct mr_checkpoint {
    mr_model_config model;
    mr_params params;
    float *values; /* [params.total], host */
    mr_optimizer_kind optimizer;
    unsigned slots;
    float *state[2];  /* [params.total], host; NULL if only weights were asked for */
    uint64_t update;  /* updates done */
    mr_cursor cursor; /* the next sample to come */
    uint64_t seed;
    double accuracy, best_accuracy; /* of the last evaluation and of the best one, 0 to 1; -1: none yet */
    uint64_t best_update;
    bool evaluation_due; /* these weights are to be judged, and have not been */
    json_t *facts;       /* an object: "classes" (names in order), "transform", "options", "dataset", ... */
    mr_buf tokenizer;    /* tokenizer.json, its bytes as they are; empty: there is none */
    DIR *claim;          /* of the caller, who writes: on the only folder that OUTPUT may be; NULL: any */
} mr_checkpoint;

/* Contents, not the struct; a zeroed one is fine. */
void mr_checkpoint_release(mr_checkpoint *c);

/* Keeps other runs out of OUTPUT as long as *claim is open: closedir(), or the process's end however it comes.  NULL:
 * OUTPUT is not there.  A file system without locks lets everybody in.  MR_MISUSE: another run is at work in it; with
 * `fresh`, for a run that is to be its first, also: it holds checkpoints. */
mr_status mr_checkpoint_claim(const char *output, bool fresh, DIR **claim, mr_error *err);
/* Whether OUTPUT still is the folder of the claim (NULL: nothing was claimed).  MR_SYSTEM: another is, or none; what is
 * there belongs to others.  All that follows looks at it first, and then works in the folder that was claimed. */
mr_status mr_checkpoint_held(DIR *claim, const char *output, mr_error *err);

/* Removes what killed runs left in OUTPUT (made if it is not there), publishes OUTPUT/step-NNNNNNNN (replacing one of
 * that name), then removes what is older than the newest `keep` up to this one (0: nothing is removed) but never the
 * best one; what cannot be removed is tried again next time.  *bytes: written, may be NULL.
 * MR_SYSTEM: not written (the disk is full ...); what was there before is untouched.  MR_MISUSE: the state makes no
 * sense: another number of slots than the optimizer's, an accuracy outside of 0 to 1, a model that cannot be
 * described ... */
mr_status mr_checkpoint_write(const mr_checkpoint *c, const char *output, unsigned keep, uint64_t *bytes,
                              mr_error *err);

/* Enters what an evaluation said, accuracy, best_accuracy and best_update, into the checkpoint of c->update that lies
 * in OUTPUT with evaluation_due, then removes as above. */
mr_status mr_checkpoint_judge(const mr_checkpoint *c, const char *output, unsigned keep, mr_error *err);

/* All of that but the writing, where the newest checkpoint is there: of it `update` and what is best are looked at.
 * OUTPUT may be absent. */
mr_status mr_checkpoint_sweep(const mr_checkpoint *c, const char *output, unsigned keep, mr_error *err);

/* `path`: a step-NNNNNNNN directory, or an OUTPUT with some: the newest of them, or with `best` the best.  A run may go
 * on in OUTPUT: for one that it removes meanwhile, the next is read.
 * Digests are checked; names and shapes must be the model's own.  Without `with_state` optimizer.npz is not looked at
 * and may be missing.  config.json is for others: what this reader believes of the model stands in state.json.  *found:
 * the directory, also of one that is damaged, NULL if there is none; caller frees; may be NULL.
 * MR_MISUSE: there is none.  MR_BAD_DATA: damaged, the message names the file; the way around it is the caller's. */
mr_status mr_checkpoint_read(const char *path, bool best, bool with_state, mr_checkpoint *out, char **found,
                             mr_error *err);

/* Collective.  Makes *c of every rank that of rank 0; zeroed on the others.  What is NULL or empty on rank 0 stays so:
 * optimizer state, values, tokenizer.  All ranks fail together. */
mr_status mr_checkpoint_share(mr_ranks *ranks, mr_checkpoint *c, mr_error *err);

/* Buffers that this optimizer keeps. */
unsigned mr_checkpoint_slots(mr_optimizer_kind kind);

/* Whether `path`, which need not be there, is a checkpoint itself to mr_checkpoint_read(), and not an OUTPUT. */
bool mr_checkpoint_is(const char *path);
bool mr_checkpoint_has_weights(const char *path); /* of whatever kind of model */

#endif
