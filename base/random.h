/* random.h - repeatable random numbers: a small seeded generator for sample datasets and tests.
 * Invariant: the same seed gives the same numbers on every machine; nothing here is for secrets.
 * Source: xoshiro256** 1.0 seeded by splitmix64, Blackman and Vigna, https://prng.di.unimi.it (public domain);
 * numbers below a bound: Lemire, "Fast Random Integer Generation in an Interval", 2019. */
#ifndef MR_RANDOM_H
#define MR_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct mr_random {
    uint64_t s[4];
} mr_random;

void mr_random_seed(mr_random *r, uint64_t seed);
/* The streams of a seed are independent: item n of a job can be generated without the others. */
void mr_random_stream(mr_random *r, uint64_t seed, uint64_t stream);

uint64_t mr_random_u64(mr_random *r);
uint64_t mr_random_below(mr_random *r, uint64_t bound);                /* 0 .. bound-1 evenly; 0 for bound 0 */
uint64_t mr_random_between(mr_random *r, uint64_t low, uint64_t high); /* low .. high, both included */
double mr_random_unit(mr_random *r);                                   /* 0 <= x < 1, 53 bits */
double mr_random_real(mr_random *r, double low, double high);
void mr_random_bytes(mr_random *r, void *bytes, size_t len);
void mr_random_shuffle(mr_random *r, void *items, size_t count, size_t size);

/* The output function of splitmix64: z with its bits mixed, one to one. */
uint64_t mr_random_mix(uint64_t z);

#endif
