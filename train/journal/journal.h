/* journal.h - what a run reports: progress lines, one JSON line per update, TensorBoard files, results.
 * Invariant: only rank 0 has one (the others hold NULL, which every call accepts); nothing here changes the run.  A
 * file that cannot be written ends the run at once. */
#ifndef MR_JOURNAL_H
#define MR_JOURNAL_H

#include <stdio.h>

#include "train/evaluate/retrieval.h"
#include "device/images/images.h"
#include "train/journal/events.h"
#include "train/journal/rank_use.h"
#include "base/json/json.h"

typedef struct mr_journal_options {
    FILE *stream;           /* progress for users; NULL: none */
    const char *log;        /* --log FILE, appended to; NULL: none.  Missing folders are created */
    const char *events;     /* directory of the TensorBoard files; NULL: none */
    const char *results;    /* train_results.json; NULL: none */
    bool resume;            /* continues a run after update `first`: an unfinished last line of the log is cut off,
                             * and TensorBoard drops later updates of the run before */
    uint64_t steps;         /* updates of the whole run */
    uint64_t first;         /* updates done before this run (resume) */
    uint64_t logging_steps; /* updates per line; 0: 10 */
    uint64_t warmup_steps;  /* --throughput-warmup-steps: first updates of this run, not counted */
} mr_journal_options;

typedef struct mr_journal_update { /* one update, of all ranks */
    uint64_t update;               /* number, from 1 */
    double loss, lr, grad_norm;
    uint64_t samples;
    double seconds;        /* wall time since the update before, without evaluation and checkpoints */
    double wait, exchange; /* the parts of it that this rank waited for data and for other ranks' gradients */
    mr_rank_uses uses;     /* all ranks' use, from the start of the run to the update before; empty: not known */
} mr_journal_update;

typedef struct mr_journal_evaluation {
    uint64_t update;
    double loss, accuracy;
    uint64_t samples;
    double seconds;
    bool pairs;   /* the model is one of images and texts: recall instead of accuracy */
    bool several; /* labels per sample: accuracy is the mean average precision */
    double f1, threshold;
    mr_recall recall;
} mr_journal_evaluation;

typedef struct mr_journal mr_journal;

/* MR_MISUSE: the file exists and is not a log. */
mr_status mr_log_check(const char *path, mr_error *err);

mr_status mr_journal_open(const mr_journal_options *options, mr_journal **out, mr_error *err);
/* Shows on a terminal what is being done, in place of the line that is redrawn, until the next one. */
void mr_journal_doing(mr_journal *j, const char *what);
/* "Training (X / Y Steps) (loss=... images/sec=...) ETA ... lr=... wait_ms=... memory=... max=... compute=...%"
 * every logging_steps and at the end, and on a terminal redrawn in place in between.  images/sec: of the updates since
 * the last permanent line. */
mr_status mr_journal_update_done(mr_journal *j, const mr_journal_update *u, mr_error *err);
mr_status mr_journal_evaluated(mr_journal *j, const mr_journal_evaluation *e, mr_error *err);

typedef struct mr_journal_end {
    const char *dataset;
    const json_t *facts;             /* the checkpoints' facts: from them the results name what was trained on what */
    double read_share, decode_share; /* shares of the loader's work; both 0: not known */
    bool pairs;                      /* accuracy is the mean of both recalls at 1 */
    bool several;                    /* accuracy is the mean average precision */
    double best_accuracy;            /* -1: never evaluated */
    uint64_t best_update;
    uint64_t damaged, eval_damaged; /* samples skipped by all ranks in training, and in the last evaluation */
    const mr_rank_uses *uses;       /* all ranks' use in training; NULL: not known */
    const mr_buf *profile;          /* a JSON object for the results; NULL: none */
    const char *declined;           /* see mr_device_iface; NULL: no product was declined */
} mr_journal_end;

/* Writes the results and the last lines, throughput and bottleneck:
 *      train_samples_per_second = (samples - warm-up samples) / (runtime - warm-up runtime)
 * of this run's updates, with their wait for data, without evaluation and checkpoints; if there are only warm-up
 * updates, all count.  A run without an update keeps the results of the run before, if there are any. */
mr_status mr_journal_finish(mr_journal *j, const mr_journal_end *end, mr_error *err);
void mr_journal_free(mr_journal *j); /* NULL is fine */

#endif
