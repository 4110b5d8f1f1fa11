/* evaluation.h - a whole split evaluated by all ranks together, every sample once.
 * Invariant: the result does not depend on the number of ranks: samples are evaluated one by one and added up in their
 * order, in double.  Only the loss of a model of images and text depends on the batches, which hold its negatives
 * (as in the reference): it is the loss of batches of `batch` samples, divided as for one rank. */
#ifndef MR_EVALUATION_H
#define MR_EVALUATION_H

#include "train/evaluate/outcomes.h"
#include "train/evaluate/retrieval.h"
#include "train/evaluate/scores.h"
#include "train/feed/feed.h"
#include "shards/manifest/manifest.h"

typedef struct mr_verdict { /* on one sample */
    const mr_sample_facts *facts;
    int32_t label, best; /* numbers of the model's classes */
    float loss;
    const float *logits; /* [classes], host; NULL unless there is a `tell` */
} mr_verdict;

/* Appends the text about a sample to `out`; called on the rank that has it. */
typedef mr_status (*mr_verdict_fn)(void *ctx, const mr_verdict *v, mr_buf *out, mr_error *err);

typedef struct mr_evaluator {
    const mr_dataset *ds;
    mr_ranks *ranks;
    mr_device *device;
    const mr_model_config *config;
    mr_model *model;
    size_t batch;              /* samples per rank and step; the model was planned for as many */
    mr_loader_options loader;  /* split, items, threads, prefetch, transform, on_bad ...; the rest is set here */
    const int32_t *classes;    /* dataset's class -> model's class, -1: the model does not have it; NULL: the same */
    const mr_feed_text *text;  /* for a model of images and text */
    mr_damage *damage;         /* gets the skipped samples of all ranks; the caller releases it.  NULL: not wanted */
    mr_embeddings *gallery;    /* gets its embeddings, all three kinds; the caller releases it.  NULL: not wanted */
    mr_outcomes *outcomes;     /* gets the predictions for single samples, or with targets the scores of classes unless
                                * `scores` does, on rank 0; caller releases.  NULL: not needed */
    const mr_targets *targets; /* the split's targets, if samples have several labels; NULL: one */
    double threshold;          /* with targets: from which probability a class counts as found; 0: the best one here */
    mr_scores *scores;         /* with targets: gets those of each class; caller releases.  NULL: not wanted */
    bool shows;                /* how far it is, on the terminal of rank 0 */
    bool unlabelled;           /* samples without a label are accepted (predict), with weight 0 */
    /* For predict: each sample's text; on rank 0 `take` gets those of a step, in the samples' order. */
    mr_verdict_fn tell;
    mr_status (*take)(void *ctx, const char *text, size_t len, mr_error *err);
    void *ctx;
} mr_evaluator;

typedef struct mr_evaluation {
    uint64_t damaged;        /* skipped samples of all ranks */
    uint64_t samples, right; /* those with a label and a good image; right: for classes only */
    double loss, accuracy;   /* means over them; 0 if there are none.  For images and text, accuracy is the mean of both
                                recalls at 1; for several labels, the mean average precision */
    double f1, threshold;    /* with several labels: see scores.h */
    mr_recall recall;        /* for images and text */
    double seconds;
} mr_evaluation;

/* Searches the gallery's images for the words of some samples, spread evenly.  `e` is for images and text. */
mr_status mr_searches_keep(const mr_evaluator *e, const mr_embeddings *g, mr_outcomes *out, mr_error *err);

/* MR_MISUSE: the dataset has no such split, or the split no samples: a result of no samples would look like a real
 * one. */
mr_status mr_split_check_eval(const mr_manifest *m, const char *dataset, const char *split, mr_error *err);
/* Collective.  The same result on every rank. */
mr_status mr_evaluate(const mr_evaluator *e, const float *values, mr_evaluation *out, mr_error *err);

#endif
