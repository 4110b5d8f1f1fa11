/* bench_budget.c - how a benchmark divides its time budget. */
#include "loader/bench/bench_budget.h"

static const double longest_pass = 0.5; /* seconds: longer passes would only mean fewer turns */
static const double stages_share = 0.2, stages_min = 0.1, stages_max = 2, probe_share = 0.2, used = 0.75, half = 0.5;
static const double grace = 1; /* seconds over the budget, accepted to measure a few more images */

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

double mr_bench_end(const mr_bench_budget *b)
{
    return b->begin + b->seconds;
}

static double stages_seconds(const mr_bench_budget *b)
{
    double share = stages_share * b->seconds;
    return share < stages_min ? stages_min : lesser(share, stages_max);
}

double mr_bench_turns_end(const mr_bench_budget *b)
{
    return mr_bench_end(b) - stages_seconds(b);
}

bool mr_bench_again(const mr_bench_budget *b, double now, const mr_bench_probe *last)
{
    return now - b->begin + last->steps + last->limit <= probe_share * (b->seconds + grace);
}

/* The loader fills its prefetch and hands out one batch; then come the warm turn and those that count, each with the
 * product, its steps and the limit.  A reserve is kept for images slower than those of the probe. */
uint64_t mr_bench_batch(const mr_bench_budget *b, double now, uint64_t max, const mr_bench_probe *probe)
{
    const double turns = 1 + MR_BENCH_MIN_TURNS, first = MR_BENCH_PREFETCH + 1;
    double one =
        ((first + 2 * turns) * probe->steps + turns * probe->limit) / (double)(probe->images ? probe->images : 1);
    double left = mr_bench_end(b) - now, least = half * (left + grace);
    double images = one > 0 ? (used * left > least ? used * left : least) / one : (double)max;
    return images >= (double)max ? max : images >= 1 ? (uint64_t)images : 1;
}

size_t mr_bench_batches(const mr_bench_budget *b, double now, double turn, double longest)
{
    double left = mr_bench_turns_end(b) - now, batches = MR_BENCH_MAX_BATCHES;
    if (longest > 0)
        batches = lesser(batches, lesser(longest_pass, b->seconds / 12) / longest);
    if (turn > 0)
        batches = lesser(batches, left / (MR_BENCH_MIN_TURNS * turn));
    return batches >= 1 ? (size_t)batches : 1;
}

bool mr_bench_another(const mr_bench_budget *b, double now, double turn)
{
    return now + turn <= mr_bench_turns_end(b);
}

double mr_bench_stages_seconds(const mr_bench_budget *b, double now)
{
    double left = lesser(mr_bench_end(b) + grace - now, stages_seconds(b));
    return left > 0 ? left : 0;
}
