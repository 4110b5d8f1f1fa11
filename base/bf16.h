/* bf16.h - the upper half of a float32: its sign, its exponent, 7 of its 23 fraction bits.
 * Invariant: narrowing rounds to nearest, ties to even; a NaN stays one.  Both go through integers, so they mean the
 * same under -ffast-math. */
#ifndef MR_BF16_H
#define MR_BF16_H

#include <stdint.h>
#include <string.h>

static inline uint16_t mr_bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded); /* quiet, never infinity */
}

static inline float mr_bf16_float(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
