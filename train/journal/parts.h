/* parts.h - what the files journal*.c share.
 * Invariant: text is made here, and only journal.c writes it anywhere. */
#ifndef MR_JOURNAL_PARTS_H
#define MR_JOURNAL_PARTS_H

#include "journal/journal.h"

enum { MR_RUN_NAME = 9 };

typedef struct mr_journal_sums {
    uint64_t updates, samples;
    double seconds, wait, exchange;
} mr_journal_sums;

struct mr_journal {
    mr_journal_options options; /* its paths are the journal's own */
    char *log_path, *results_path;
    int log;                          /* -1: none */
    char run[MR_RUN_NAME];            /* what tells its lines from those of other runs; "": nothing */
    mr_events *events;                /* NULL: none */
    mr_buf text;                      /* of one line */
    mr_journal_sums all, warmup;      /* of this run; warmup is part of all */
    mr_journal_sums line;             /* since the last lasting line */
    double losses;                    /* sum over updates */
    double evaluating;                /* seconds */
    uint64_t last;                    /* update done last */
    mr_journal_evaluation evaluation; /* the last one; update 0: none */
    double drawn;                     /* when the line on the terminal was; 0: there is none */
};

/* ---- line.c --------------------------------------------------------------------------------------------- */

typedef struct mr_memory_use { /* of this process, resident bytes; 0: not known */
    uint64_t now, most;
} mr_memory_use;
mr_memory_use mr_memory_in_use(void);

/* Without a line's end. */
void mr_line_training(mr_buf *out, const mr_journal *j, const mr_journal_update *u);
void mr_line_validation(mr_buf *out, const mr_journal_evaluation *e);
/* One JSON object and the line's end; `run` as in mr_journal. */
void mr_line_update_json(mr_buf *out, const mr_journal_update *u, const char *run);
void mr_line_evaluation_json(mr_buf *out, const mr_journal_evaluation *e, const char *run);

/* The members of a JSON object, each with what stands before it: "{" before the first, ", " before the others. */
typedef struct mr_members {
    mr_buf *out;
    const char *before, *between;
} mr_members;
void mr_member_count(mr_members *m, const char *key, uint64_t value);
void mr_member_real(mr_members *m, const char *key, double value);      /* its shortest digits; not finite: null */
void mr_member_time(mr_members *m, const char *key, double value);      /* 7 digits: a clock has no more to say */
void mr_member_text(mr_members *m, const char *key, const char *bytes); /* in path text */
/* eval_accuracy; of pictures and words eval_text_to_image_recall_at_1 and its kin. */
void mr_member_judgement(mr_members *m, const mr_journal_evaluation *e);

/* Samples a second, 0 where there was no time. */
double mr_per_second(double count, double seconds);

/* ---- log.c ---------------------------------------------------------------------------------------------- */

/* What a run is called in logs: eight hex digits that follow from its first TensorBoard file, name and time.
 * That file is there before the first line, and goes with OUTPUT wherever that is moved.  "": there is none in the
 * folder `events`. */
mr_status mr_log_run(const char *events, char run[MR_RUN_NAME], mr_error *err);
/* Opens the log to append to it.  MR_MISUSE: a FIFO that nobody reads. */
mr_status mr_log_open(const char *path, int *fd, mr_error *err);
/* What it needs before its next line.  `resume`: lines of `run` that it ends with and that tell of updates beyond
 * `first` are cut off, and so is a line after them that was not written whole; with `judges_first` the evaluation of
 * `first` too.  What stands before a line of another run, or of nobody, stays: better twice than not at all. */
mr_status mr_log_go_on(int fd, const char *path, const char *run, bool resume, uint64_t first, bool judges_first,
                       mr_error *err);

/* ---- results.c ------------------------------------------------------------------------------------------ */

enum { MR_SHARES = 5 }; /* read, decode, data, compute, exchange */

typedef struct mr_journal_results {
    mr_journal_sums counted; /* all updates without those of the warm-up, or all if there are no more */
    mr_journal_sums left_out;
    double samples_per_second, steps_per_second;
    double shares[MR_SHARES]; /* of counted.seconds; -1: not known */
    int bottleneck;           /* the largest share; -1: no time was spent */
} mr_journal_results;

extern const char *const mr_share_names[MR_SHARES];

void mr_results_make(const mr_journal *j, const mr_journal_end *end, mr_journal_results *out);
/* The file's text, and the last lines for people. */
void mr_results_json(mr_buf *out, const mr_journal *j, const mr_journal_end *end, const mr_journal_results *r);
void mr_results_lines(mr_buf *out, const mr_journal *j, const mr_journal_end *end, const mr_journal_results *r);

#endif
