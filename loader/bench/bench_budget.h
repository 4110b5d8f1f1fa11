/* bench_budget.h - how a benchmark divides its time budget.
 * Invariant: pure arithmetic on the times passed in, so tests need no clock.
 *
 *   | open, probe | first batches, warm turn | turn | turn | ... | decoder stages |      all of it: `seconds`
 *                                                              ^ turns end
 *
 * A batch that has begun is finished, so a benchmark may end that much later; batches of slow images are smaller. */
#ifndef MR_BENCH_BUDGET_H
#define MR_BENCH_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mr_bench_budget {
    double begin;   /* mr_seconds() when the command began */
    double seconds; /* it may take */
} mr_bench_budget;

enum { MR_BENCH_MIN_TURNS = 3, MR_BENCH_PREFETCH = 2, MR_BENCH_MAX_BATCHES = 1000 };

/* When all of it ends, and when the turns end, by mr_seconds(). */
double mr_bench_end(const mr_bench_budget *b);
double mr_bench_turns_end(const mr_bench_budget *b);

/* Wall seconds of the product's steps and of the limit for `images` images, on all threads. */
typedef struct mr_bench_probe {
    size_t images;
    double steps, limit;
} mr_bench_probe;

/* Whether there is time for another probe. */
bool mr_bench_again(const mr_bench_budget *b, double now, const mr_bench_probe *last);
/* Images per batch, 1 to `max`: as many as leave time for the first batches, the warm turn and MR_BENCH_MIN_TURNS. */
uint64_t mr_bench_batch(const mr_bench_budget *b, double now, uint64_t max, const mr_bench_probe *probe);

/* Batches per turn, at least 1, after a warm turn of one batch that took `turn` seconds, its longest pass `longest`. */
size_t mr_bench_batches(const mr_bench_budget *b, double now, double turn, double longest);

/* Whether there is time for another turn of `turn` seconds. */
bool mr_bench_another(const mr_bench_budget *b, double now, double turn);

/* Seconds for the stages of the decoder; 0: none. */
double mr_bench_stages_seconds(const mr_bench_budget *b, double now);

#endif
