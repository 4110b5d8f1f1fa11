/* outcomes.h - what an evaluation predicted for single samples, or for single classes where samples have several
 * labels, kept in a run as evaluation.jsonl for `millrace report` and for any reader of JSON lines. Invariant: the file
 * is complete or absent; every line names its update and split.
 *
 *      {"step": 70, "split": "val", "sample": 3, "label": "dog", "predicted": "cat", "probability": 0.93, "loss": 2.41}
 *      {"step": 70, "split": "val", "sample": 3, "words": "two dogs", "found": [[17, 0.61, false], [3, 0.58, true]]}
 *      {"step": 70, "split": "val", "class": "dog", "threshold": 0.34, "samples": 31, "average_precision": 0.71,
 *       "precision": 0.8, "recall": 0.62, "f1": 0.7}
 *
 * The first form is for labels: `probability` is that of the predicted class.  The second is for images and text: the
 * images that the words of a sample found, nearest first, with their cosine, and whether they answer it; only
 * MR_SEARCHES_MOST samples, spread evenly, have a line.  The third, in one line of the file, is of a class that samples
 * may have beside others: scores.h; the average precision is null for a class that no sample has. */
#ifndef MR_OUTCOMES_H
#define MR_OUTCOMES_H

#include "train/evaluate/embeddings.h"
#include "train/evaluate/scores.h"
#include "shards/manifest/manifest.h"

#define MR_RUN_OUTCOMES "evaluation.jsonl" /* in the run's folder */

enum { MR_SEARCHES_MOST = 200, MR_FOUND = 5, MR_OUTCOMES_MAX = 1 << 30 };

typedef struct mr_outcome {
    uint64_t sample;
    int32_t label, predicted; /* classes */
    float probability, loss;  /* probability of the predicted class; loss of the label */
} mr_outcome;

typedef struct mr_search {
    uint64_t sample;
    size_t words, words_len; /* in mr_outcomes.text */
    size_t count;
    uint64_t found[MR_FOUND]; /* samples */
    float scores[MR_FOUND];
    bool right[MR_FOUND]; /* its own image, or one that is as good: retrieval.h */
} mr_search;

typedef struct mr_outcomes { /* a zeroed one is empty */
    uint64_t step;
    char split[64];
    mr_outcome *items; /* outcomes of labels, in the order of the samples */
    size_t count, capacity;
    mr_search *searches; /* outcomes of images and text */
    size_t search_count, search_capacity;
    mr_scores scores; /* with several labels; after reading, a class without a line has no samples */
    mr_buf text;
} mr_outcomes;

void mr_outcomes_release(mr_outcomes *o);

/* Appends the lines to `out`; the classes are those of `m`. */
mr_status mr_outcomes_json(const mr_outcomes *o, const mr_manifest *m, mr_buf *out, mr_error *err);

/* Reads the file.  `classes`: names, to which label and predicted refer; lines for other classes are left out.  MR_END:
 * there is no such file.  MR_BAD_DATA: damaged, with the line's number. */
mr_status mr_outcomes_read(const char *path, const char *const *classes, size_t class_count, mr_outcomes *out,
                           mr_error *err);

/* The same for the text of the file, called `path` in messages. */
mr_status mr_outcomes_parse(const char *text, size_t len, const char *path, const char *const *classes,
                            size_t class_count, mr_outcomes *out, mr_error *err);

#endif
