/* bench_limits.h - what a program without a loader would do with the records of a turn.
 * Invariant: each pass goes through the records in order, on the same number of threads as the product. */
#ifndef MR_BENCH_LIMITS_H
#define MR_BENCH_LIMITS_H

#include "loader/batch/work.h"

typedef struct mr_bench_record {
    uint64_t epoch, sample;
    mr_row row;
} mr_bench_record;

typedef enum mr_bench_pass {
    MR_PASS_PREAD,  /* into one batch per thread, refilled over and over */
    MR_PASS_COPY,   /* as many bytes by memcpy, from memory */
    MR_PASS_DECODE, /* pread, then the codec's library decodes the whole image */
    MR_PASS_STEPS,  /* the product's steps, each timed */
} mr_bench_pass;

typedef struct mr_bench_times {
    double wall, cpu;                  /* seconds of the pass */
    double read, hash, decode, resize; /* CPU of the steps, MR_PASS_STEPS only */
    bool cut;                          /* time ran out before all records were begun */
} mr_bench_times;

typedef struct mr_bench_passes mr_bench_passes; /* the threads' memory */
mr_status mr_bench_passes_new(mr_work *w, unsigned threads, mr_bench_passes **out, mr_error *err);
void mr_bench_passes_free(mr_bench_passes *b);

/* `until`: the mr_bench_stage up to which MR_PASS_STEPS goes. */
mr_status mr_bench_passes_run(mr_bench_passes *b, mr_bench_pass pass, int until, const mr_bench_record *records,
                              size_t count, mr_bench_times *times, mr_error *err);

/* Passes begin no record after `end`, by mr_seconds(); INFINITY, the initial value: no end. */
void mr_bench_passes_until(mr_bench_passes *b, double end);

/* Over all MR_PASS_STEPS so far. */
mr_pixels_counts mr_bench_passes_counts(const mr_bench_passes *b);

double mr_bench_cpu(void);        /* CPU seconds of this process */
double mr_bench_thread_cpu(void); /* CPU seconds of this thread */

#endif
