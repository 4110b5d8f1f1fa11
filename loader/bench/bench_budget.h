/* bench_budget.h - how the seconds that a benchmark may take are shared out.
 * Invariant: arithmetic on what a clock has said, so that a test needs none.
 *
 *   | open, probe | first batches, warm turn | turn | turn | ... | decoder stages |      all of it: `seconds`
 *                                                              ^ turns end
 *
 * What has begun is finished: it may end later by the work of a batch, which is made small where pictures are slow. */
#ifndef MR_BENCH_BUDGET_H
#define MR_BENCH_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mr_bench_budget {
    double begin;   /* mr_seconds() when the command began */
    double seconds; /* that it may take */
} mr_bench_budget;

enum { MR_BENCH_MIN_TURNS = 3, MR_BENCH_PREFETCH = 2, MR_BENCH_MOST_BATCHES = 1000 };

/* When all is to be done, and when the turns are, by mr_seconds(). */
double mr_bench_end(const mr_bench_budget *b);
double mr_bench_turns_end(const mr_bench_budget *b);

/* Wall seconds of the product's steps and of the limit for so many images, on all threads. */
typedef struct mr_bench_probe {
    size_t images;
    double steps, limit;
} mr_bench_probe;

/* Is there time for the probe once more? */
bool mr_bench_again(const mr_bench_budget *b, double now, const mr_bench_probe *last);
/* Images in a batch, 1 to `most`: as many as let the first batches, the warm turn and MR_BENCH_MIN_TURNS fit. */
uint64_t mr_bench_batch(const mr_bench_budget *b, double now, uint64_t most, const mr_bench_probe *probe);

/* Batches in a turn, at least 1, after a warm turn of one batch: `turn` seconds in all, `longest` for its longest pass.
 */
size_t mr_bench_batches(const mr_bench_budget *b, double now, double turn, double longest);

/* Is there time for another turn of so many seconds? */
bool mr_bench_another(const mr_bench_budget *b, double now, double turn);

/* Seconds for the stages of the decoder; 0: none. */
double mr_bench_stages_seconds(const mr_bench_budget *b, double now);

#endif
