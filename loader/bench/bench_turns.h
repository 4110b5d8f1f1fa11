/* bench_turns.h - one turn of a benchmark, and the medians over several.
 * Invariant: a turn's passes went through the same records; a turn that was cut short does not count. */
#ifndef MR_BENCH_TURNS_H
#define MR_BENCH_TURNS_H

#include "loader/bench/bench.h"
#include "loader/bench/bench_limits.h"

typedef struct mr_bench_turn {
    mr_bench_times warm, product, limit, copy, steps;
    double wall; /* seconds of the whole turn */
    uint64_t images;
    bool cut; /* time ran out before its end */
} mr_bench_turn;

/* Sets the rates, ratios and steps of `out`, as medians over at least one turn, and counts turns and images. */
mr_status mr_bench_turns_sum(const mr_bench_turn *turns, size_t count, mr_bench_result *out, mr_error *err);

#endif
