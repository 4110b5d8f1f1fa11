/* cost.h - bounds on what work costs, as ratios to other work of the same run.
 * Invariant: a slower or busier machine makes both sides of a ratio larger, and a bound that is missed is measured
 * again before it fails a test: no machine fails for its speed. */
#ifndef MR_SUPPORT_COST_H
#define MR_SUPPORT_COST_H

#include "tests/support/support.h"

/* CPU seconds that this process has used, all its threads together. */
double support_cpu(void);

/* As support_assert_cheap() of support.h, but a command that measures, or does a lot whatever it is given, may also
 * cost some times what the same costs where nothing is odd. */
void support_assert_cheap_like(const support_result *r, const support_result *like);

/* Does work of size n; the CPU seconds that it took. */
typedef double support_cost(size_t n, void *ctx);

/* Fails unless work of size `n` costs at most `times` as much as work of size `base`: the least of a few tries each. */
void support_assert_ratio(const char *what, support_cost *cost, void *ctx, size_t n, size_t base, double times);

/* The same for work that has to grow with n and not with its square: four times the size costs 4 times as much if it
 * does, and 16 if not. */
void support_assert_linear(const char *what, support_cost *cost, void *ctx, size_t n);

/* The CPU seconds of a command that has to fail with these words, which may be more than is cheap; frees the result. */
double support_refusal_cost(support_result r, const char *words);

#endif
