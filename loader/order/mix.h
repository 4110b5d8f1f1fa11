/* mix.h - random numbers from counters: no state, so each can be computed independently.
 * Invariant: the same on every machine; a change of any input bit changes half of the output bits.
 * Source: splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
#ifndef MR_MIX_H
#define MR_MIX_H

#include <stdint.h>

#define MR_MIX_STEP UINT64_C(0x9E3779B97F4A7C15)

/* The generator's output for state `x`: a bijection of the 64-bit numbers. */
static inline uint64_t mr_mix(uint64_t x)
{
    x += MR_MIX_STEP;
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

#endif
