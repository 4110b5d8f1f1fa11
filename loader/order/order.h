/* order.h - which sample is at which position of an epoch.
 * Invariant: a pure function of (kind, samples, seed, epoch, position): a bijection of 0..samples-1 for every epoch, in
 * O(1) memory and O(1) expected time, the same on every machine.  Any number of samples from 0 to 2^40.
 *
 *   none      position n is sample n
 *   full      a keyed permutation: a balanced Feistel network on the next even number of bits, repeated until the
 *             result is in range (cycle walking)
 *   window    blocks of neighbouring samples in shuffled order, and positions shuffled within windows of several
 *             blocks: reads are sequential runs, and the shuffle gets better with larger windows
 *
 * This module, pure functions without state: mix <- order <- schedule; mix <- augment. */
#ifndef MR_ORDER_H
#define MR_ORDER_H

#include "millrace.h"

typedef struct mr_order {
    mr_shuffle kind;
    uint64_t samples;
    uint64_t seed;
    uint64_t block, window; /* in samples, for MR_SHUFFLE_WINDOW: 1 <= block <= window */
} mr_order;

/* window_bytes and mean_bytes (of a record) are for MR_SHUFFLE_WINDOW only.  MR_MISUSE: more than 2^40 samples, or a
 * window of 0 bytes. */
mr_status mr_order_make(mr_shuffle kind, uint64_t samples, uint64_t seed, uint64_t window_bytes, uint64_t mean_bytes,
                        mr_order *out, mr_error *err);
uint64_t mr_order_at(const mr_order *o, uint64_t epoch, uint64_t position); /* position < samples */

/* The keyed permutation of 0..count-1, and its inverse. */
uint64_t mr_permute(uint64_t count, uint64_t key, uint64_t tweak, uint64_t n);
uint64_t mr_unpermute(uint64_t count, uint64_t key, uint64_t tweak, uint64_t n);

#endif
