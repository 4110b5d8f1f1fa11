/* parts.h - what the files of this module share: journal.c writes what line.c and results.c format, to the stream, to
 * log.c's file and to events.c's.
 * Invariant: only journal.c writes. */
#ifndef MR_JOURNAL_PARTS_H
#define MR_JOURNAL_PARTS_H

#include "train/journal/journal.h"
#include "train/journal/memory.h"

typedef struct mr_journal_sums {
    uint64_t updates, samples;
    double seconds, wait, exchange;
} mr_journal_sums;

struct mr_journal {
    mr_journal_options options; /* its paths are the journal's own */
    char *log_path, *results_path;
    int log;                          /* -1: none */
    mr_events *events;                /* NULL: none */
    mr_buf text;                      /* one line */
    mr_journal_sums all, warmup;      /* sums of this run; warmup is part of all */
    mr_journal_sums line;             /* since the last permanent line */
    mr_rank_uses uses;                /* as of the last permanent line; its own */
    double losses;                    /* sum over updates */
    double evaluating;                /* seconds */
    uint64_t last;                    /* the last update done */
    mr_journal_evaluation evaluation; /* the last one; update 0: none */
    double drawn;                     /* when the line on the terminal was drawn; 0: there is none */
};

/* ---- line.c --------------------------------------------------------------------------------------------- */

/* Whether the line of this update stays: every logging_steps, and the last. */
bool mr_line_stays(const mr_journal *j, const mr_journal_update *u);
/* Without a newline. */
void mr_line_training(mr_buf *out, const mr_journal *j, const mr_journal_update *u);
void mr_line_validation(mr_buf *out, const mr_journal_evaluation *e);
/* One JSON object and a newline. */
void mr_line_update_json(mr_buf *out, const mr_journal *j, const mr_journal_update *u);
void mr_line_evaluation_json(mr_buf *out, const mr_journal_evaluation *e);

/* Appends members to a JSON object: `before` precedes the next one, `between` those after it. */
typedef struct mr_members {
    mr_buf *out;
    const char *before, *between;
} mr_members;
void mr_member_count(mr_members *m, const char *key, uint64_t value);
void mr_member_real(mr_members *m, const char *key,
                    double value); /* shortest digits that read back; not finite: null */
void mr_member_time(mr_members *m, const char *key, double value);      /* 7 digits */
void mr_member_begin(mr_members *m, const char *key);                   /* its value comes next */
void mr_member_text(mr_members *m, const char *key, const char *bytes); /* as path text */
/* eval_accuracy, or eval_text_to_image_recall_at_1 and so on. */
void mr_member_metrics(mr_members *m, const mr_journal_evaluation *e);

/* 0 if there was no time. */
double mr_per_second(double count, double seconds);

/* ---- log.c ---------------------------------------------------------------------------------------------- */

/* Opens the log to append to it.  `resume`: first cuts off an unfinished last line of a run; any other one is ended.
 * MR_MISUSE: a FIFO without a reader. */
mr_status mr_log_open(const char *path, bool resume, int *fd, mr_error *err);

/* ---- results.c ------------------------------------------------------------------------------------------ */

enum { MR_SHARES = 5 }; /* read, decode, data, compute, exchange */

typedef struct mr_journal_results {
    mr_journal_sums counted; /* all updates but those of the warm-up, or all if there are no others */
    mr_journal_sums left_out;
    double samples_per_second, steps_per_second;
    double shares[MR_SHARES]; /* shares of counted.seconds; -1: not known */
    int bottleneck;           /* the largest share; -1: no time was spent */
} mr_journal_results;

void mr_results_make(const mr_journal *j, const mr_journal_end *end, mr_journal_results *out);
/* The file, and the last lines for users. */
void mr_results_json(mr_buf *out, const mr_journal *j, const mr_journal_end *end, const mr_journal_results *r);
void mr_results_lines(mr_buf *out, const mr_journal *j, const mr_journal_end *end, const mr_journal_results *r);

#endif
