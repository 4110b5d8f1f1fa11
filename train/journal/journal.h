/* journal.h - what a run says of itself: progress lines, a JSON line an update, TensorBoard, results.
 * Invariant: only rank 0 has one (the others hold NULL, every call takes it); nothing here changes the run.  A failing
 * log file is a failure of the run's, said at once: silent logs are worse than none. */
#ifndef MR_JOURNAL_H
#define MR_JOURNAL_H

#include <stdio.h>

#include "evaluate/retrieval.h"
#include "journal/events.h"
#include "json/json.h"

typedef struct mr_journal_options {
    FILE *stream;           /* where people look; NULL: nowhere */
    const char *log;        /* --log FILE, appended to; NULL: none.  Folders that are missing are made */
    const char *events;     /* directory of the TensorBoard files; NULL: none */
    const char *results;    /* train_results.json; NULL: none */
    bool resume;            /* this run goes on where another ended, at `first` or the start: what that one said
                             * of later updates is cut off the log's end, and TensorBoard drops it */
    bool judges_first;      /* this run begins with the evaluation of update `first`: what the log may say of
                             * one is cut off too */
    uint64_t steps;         /* the run's updates in all */
    uint64_t first;         /* updates done before this run (resume) */
    uint64_t logging_steps; /* a line so often; 0: 10 */
    uint64_t warmup_steps;  /* --throughput-warmup-steps: first updates of this run that do not count */
} mr_journal_options;

typedef struct mr_journal_update { /* one update, all ranks together */
    uint64_t update;               /* number, from 1 */
    double loss, lr, grad_norm;
    uint64_t samples;
    double seconds;        /* wall time since the update before it, evaluation and checkpoints left out */
    double wait, exchange; /* seconds of it that this rank waited for data, and for other ranks' gradients */
} mr_journal_update;

typedef struct mr_journal_evaluation {
    uint64_t update;
    double loss, accuracy;
    uint64_t samples;
    double seconds;
    bool pairs; /* of pictures and words: recall instead of accuracy */
    mr_recall recall;
} mr_journal_evaluation;

typedef struct mr_journal mr_journal;

/* MR_MISUSE: a file is there, and cannot be a log. */
mr_status mr_log_check(const char *path, mr_error *err);

mr_status mr_journal_open(const mr_journal_options *options, mr_journal **out, mr_error *err);
/* "Training (X / Y Steps) (loss=... images/sec=...) ETA ... lr=... wait_ms=... memory=... max=..." every logging_steps
 * and at the end, and on a terminal redrawn in place in between.  images/sec: of the updates since the last
 * lasting line. */
mr_status mr_journal_update_done(mr_journal *j, const mr_journal_update *u, mr_error *err);
mr_status mr_journal_evaluated(mr_journal *j, const mr_journal_evaluation *e, mr_error *err);

typedef struct mr_journal_end {
    const char *dataset;
    double read_share, decode_share; /* how the loader's work divides, of 1; both 0: not known */
    bool pairs;                      /* accuracy is the mean of both recalls at 1 */
    double best_accuracy;            /* -1: never evaluated */
    uint64_t best_update;
    uint64_t damaged, judged_damaged; /* samples passed over, all ranks: in training, in the last evaluation */
} mr_journal_end;

/* Writes the results and the last lines: throughput and the sentence that names the bottleneck with its share:
 *      train_samples_per_second = (samples - those of the warm-up updates) / (runtime - that of the warm-up updates),
 * data wait included, evaluation and checkpoints left out, of the updates of this run alone; where there are none
 * beside the warm-up, all count.  A run without an update leaves the results of the run before, if there are any. */
mr_status mr_journal_finish(mr_journal *j, const mr_journal_end *end, mr_error *err);
void mr_journal_free(mr_journal *j); /* NULL is fine */

#endif
