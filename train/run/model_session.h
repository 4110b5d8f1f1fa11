/* model_session.h - a checkpoint and a dataset, opened together for eval and predict.
 * Invariant: classes are matched by name, never by number; images are prepared as in the training of the checkpoint. */
#ifndef MR_SESSION_H
#define MR_SESSION_H

#include "train/checkpoint/checkpoint.h"
#include "train/evaluate/evaluation.h"
#include "shards/manifest/manifest.h"
#include "train/run/pairs.h"

typedef struct mr_session_request { /* train/cmd_session.h fills it */
    const char *dataset, *checkpoint, *split, *device, *text_column;
    const char *precision; /* NULL: as in the training */
    const char *local;     /* NULL: no copies of shards on this host's disk */
    uint64_t local_size, batch, threads, max_bad, max_pixels, stall;
    double threshold; /* for several labels; 0: the checkpoint's */
    bool best, no_labels;
} mr_session_request;

typedef struct mr_session {
    mr_checkpoint checkpoint;
    char *path; /* the checkpoint's own directory */
    mr_dataset *ds;
    mr_device *device;
    mr_model *model;
    float *values;      /* on the device */
    int32_t *classes;   /* dataset's class -> model's; NULL: no classes */
    bool several;       /* it was trained with several labels per sample */
    double threshold;   /* with several: the probability from which a class counts as found */
    mr_targets targets; /* with several: the classes of the split's samples, as far as their source says */
    mr_pairs pairs;     /* for a model of images and texts */
    mr_evaluator evaluator;
    mr_damage damage; /* what the evaluator skipped */
} mr_session;

/* Everything but the evaluation.  Collective: all ranks have the same dataset, weights and samples, or all fail.
 * MR_MISUSE: a precision that the device does not have; no such split; a class of the dataset that the model does not
 * have (accepted with no_labels); a threshold for a model without one. */
mr_status mr_session_open(const mr_session_request *q, mr_ranks *ranks, mr_session *out, mr_error *err);
void mr_session_close(mr_session *t); /* a zeroed one is fine */

const char *mr_session_trained_on(const mr_session *t); /* the digest of the training's dataset; NULL: not known */
/* Adds the digests of both datasets and the version that trained to a result; `doc` NULL is fine. */
void mr_session_origin_json(const mr_session *t, json_t *doc);
const char *mr_session_class(const mr_session *t, int32_t class); /* "" for -1 */

/* ---- what is read from the checkpoint's facts -------------------------------------------------------------------- */

/* Fills t->classes, one per class of the dataset; -1: the model does not have it, MR_MISUSE without no_labels. */
mr_status mr_session_map(const mr_session_request *q, const mr_manifest *m, mr_session *t, mr_error *err);
/* How images were prepared.  MR_BAD_DATA: in a way that this model does not support. */
mr_status mr_session_transform(const mr_session *t, mr_transform *out, mr_error *err);

#endif
