/* run_facts.h - the facts on a page about a training run, read from the run's folder.
 * Invariant: what the folder does not have is absent, not guessed; a dataset other than the run's is not used. */
#ifndef MR_REPORT_RUN_FACTS_H
#define MR_REPORT_RUN_FACTS_H

#include "train/checkpoint/checkpoint.h"
#include "shards/dataset/dataset.h"
#include "train/evaluate/outcomes.h"

typedef enum mr_curve_kind {
    MR_CURVE_LOSS,
    MR_CURVE_EVAL_LOSS,
    MR_CURVE_EVAL,   /* accuracy, or recall at 1 */
    MR_CURVE_EVAL_5, /* for images and text: texts that find an image among the first 5 */
    MR_CURVE_LR,
    MR_CURVE_RATE, /* images per second */
    MR_CURVE_WAIT, /* for data, in ms per update */
    MR_CURVES
} mr_curve_kind;

typedef struct mr_point {
    uint64_t step;
    float value; /* finite */
} mr_point;

typedef struct mr_curve {
    mr_point *points; /* points in ascending order of steps */
    size_t count, capacity;
    uint64_t left_out; /* values that are not finite */
} mr_curve;

typedef struct mr_run_facts { /* a zeroed one is empty */
    mr_checkpoint checkpoint; /* the newest one's state.json; without weights */
    const json_t *classes, *options;
    json_t *results; /* train_results.json; NULL: none */
    mr_curve curves[MR_CURVES];
    mr_outcomes outcomes;
    mr_dataset *ds;        /* NULL: not there, or another */
    mr_buf no_dataset;     /* why, in a sentence */
    const mr_split *split; /* the split of ds that the outcomes are for */
} mr_run_facts;

/* Whether it is a run's folder, or a checkpoint, and not a dataset's; false where nothing is there. */
mr_status mr_run_is(const char *path, bool *out, mr_error *err);

/* `dataset`: where it is; NULL: where the run says.  MR_MISUSE: no checkpoint there; MR_BAD_DATA: a file is damaged. */
mr_status mr_run_facts_read(const char *run, const char *dataset, mr_run_facts *out, mr_error *err);
void mr_run_facts_free(mr_run_facts *f);

#endif
