/* halves.h - gradients between hosts in bf16: half the bytes of float32, summed in float32.
 * Invariant: every host gets the same bits, as the sum is rounded once, by the host that took it.
 *
 *      each host narrows its piece    | slice 0 | slice 1 | slice 2 |
 *      scatter                        slice k of every host goes to host k, which adds them up in float32, in order
 *      spread                         each host's slice of the sum, rounded, goes to all
 *
 * Source: the reduce-scatter and all-gather of Rabenseifner, Optimization of Collective Reduction Operations, 2004. */
#ifndef MR_EXCHANGE_HALVES_H
#define MR_EXCHANGE_HALVES_H

#include "base/ranks/ranks.h"

typedef struct mr_halves mr_halves;

/* Collective in `leaders`, the first ranks of the hosts.  For `slots` pieces at once of at most `largest` elements. */
mr_status mr_halves_open(mr_ranks *leaders, uint64_t largest, unsigned slots, mr_halves **out, mr_error *err);
void mr_halves_free(mr_halves *h); /* NULL is fine */

/* The three steps of one piece; each of the first two is begun in the same order of pieces on all hosts, and is done
 * when mr_ranks_reduce_test() says so of its request. */
mr_status mr_halves_scatter(mr_halves *h, unsigned slot, const float *values, uint64_t count, void **request,
                            mr_error *err);
mr_status mr_halves_spread(mr_halves *h, unsigned slot, uint64_t count, void **request, mr_error *err);
void mr_halves_take(const mr_halves *h, unsigned slot, float *values, uint64_t count); /* the sum */

#endif
