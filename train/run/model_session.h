/* model_session.h - a checkpoint and a dataset brought together, for eval and predict.
 * Invariant: classes meet by name, never by number; pictures are shown as the checkpoint says its model saw them. */
#ifndef MR_SESSION_H
#define MR_SESSION_H

#include "checkpoint/checkpoint.h"
#include "evaluate/evaluation.h"
#include "format/manifest.h"
#include "run/pairs.h"

typedef struct mr_session_request { /* zeroed before parsing */
    const char *dataset, *checkpoint, *split, *device, *text_column;
    uint64_t batch, threads, max_bad, max_pixels;
    bool best, no_labels;
    unsigned args;
} mr_session_request;

typedef struct mr_session {
    mr_checkpoint checkpoint;
    char *path; /* the checkpoint's own directory */
    mr_dataset *ds;
    mr_device *device;
    mr_model *model;
    float *values;    /* on the device */
    int32_t *classes; /* dataset's class -> model's; NULL: it has none */
    mr_pairs pairs;   /* of a model of pictures and words */
    mr_evaluator evaluator;
    mr_damage damage; /* what the evaluator passed over, once it has judged */
} mr_session;

/* Everything but the judging.  Collective: all ranks have the same dataset, weights and samples, or all fail.
 * MR_MISUSE: no such split; a class of the dataset that the model does not have (with no_labels that is fine). */
mr_status mr_session_open(const mr_session_request *q, mr_ranks *ranks, mr_session *out, mr_error *err);
void mr_session_close(mr_session *t); /* a zeroed one is fine */

const char *mr_session_class(const mr_session *t, int32_t class); /* "" for -1 */

/* ---- what the checkpoint's facts are believed for ------------------------------------------------------------------
 */

/* Fills t->classes, one a class of the dataset; -1: the model does not have it, MR_MISUSE without no_labels. */
mr_status mr_session_map(const mr_session_request *q, const mr_manifest *m, mr_session *t, mr_error *err);
/* How pictures were shown.  MR_BAD_DATA: the facts say it in no way that the model could have seen. */
mr_status mr_session_transform(const mr_session *t, mr_transform *out, mr_error *err);

/* ---- the part of the command lines that both share ----------------------------------------------------------------
 */

enum {
    MR_OPT_EVAL_SPLIT = 3072,
    MR_OPT_EVAL_BATCH,
    MR_OPT_EVAL_THREADS,
    MR_OPT_EVAL_DEVICE,
    MR_OPT_EVAL_BEST,
    MR_OPT_EVAL_MAX_BAD,
    MR_OPT_EVAL_MAX_PIXELS,
    MR_OPT_EVAL_TEXT
};

#define MR_SESSION_OPTIONS                                                                                              \
    {"split", MR_OPT_EVAL_SPLIT, "NAME", 0, "split to judge (default: val, else test)", 1},                             \
        {"best", MR_OPT_EVAL_BEST, NULL, 0, "of the checkpoints in RUN the one with the best accuracy, not the newest", \
         1},                                                                                                            \
        {"text-column",                                                                                                 \
         MR_OPT_EVAL_TEXT,                                                                                              \
         "NAME",                                                                                                        \
         0,                                                                                                             \
         "of pictures and words: where the words are (default: as trained)",                                            \
         1},                                                                                                            \
        {"batch", MR_OPT_EVAL_BATCH, "N", 0, "samples a rank and step (default 32)", 1},                                \
        {"threads",                                                                                                     \
         MR_OPT_EVAL_THREADS,                                                                                           \
         "N",                                                                                                           \
         0,                                                                                                             \
         "threads a rank (default: the processors at hand, shared by the ranks)",                                       \
         1},                                                                                                            \
        {"device", MR_OPT_EVAL_DEVICE, "NAME", 0, "where the arithmetic is done (default cpu)", 1},                     \
        {"max-bad", MR_OPT_EVAL_MAX_BAD, "N", 0, "damaged samples a rank may pass over (default 0)", 1},                \
    {                                                                                                                   \
        "max-pixels", MR_OPT_EVAL_MAX_PIXELS, "N", 0, "a larger picture is a damaged sample (default 178956970)", 1     \
    }

struct argp_state;
/* True if `key` was one of the rows above, one of the two arguments or the end. */
bool mr_session_option(int key, char *arg, struct argp_state *state, mr_session_request *q);

#endif
