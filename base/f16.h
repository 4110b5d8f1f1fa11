/* f16.h - IEEE 754's half precision: a sign, 5 bits of exponent, 10 of fraction.
 * Invariant: narrowing rounds to nearest, ties to even, beyond 65,504 to infinity; a NaN stays one; widening is exact.
 * Both go through integers, but for a sum that normalises what is subnormal. */
#ifndef MR_F16_H
#define MR_F16_H

#include <stdint.h>
#include <string.h>

/* The bits of a float32.  Without a branch: normal numbers get the wider exponent; adding 2^-14 to a subnormal number
 * puts its digits in place, and subtracting it again normalizes; infinities and NaNs get the largest exponent. */
static inline uint32_t mr_f16_bits(uint16_t half)
{
    const uint32_t smallest = 113u << 23; /* 2^-14 */
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7FFF) << 13;
    uint32_t moved = rest + (112u << 23), small = rest + smallest;
    float shifted, least;
    memcpy(&shifted, &small, sizeof shifted);
    memcpy(&least, &smallest, sizeof least);
    shifted -= least;
    memcpy(&small, &shifted, sizeof small);
    uint32_t bits = rest < 1u << 23 ? small : moved;
    bits |= rest >= 31u << 23 ? 0xFFu << 23 : 0;
    return bits | sign;
}

static inline float mr_f16_float(uint16_t half)
{
    uint32_t bits = mr_f16_bits(half);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint16_t mr_f16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7FFFFFFF;
    if (rest > 255u << 23)
        return (uint16_t)(sign | 0x7E00 | (rest >> 13 & 0x3FF));
    if (rest < 113u << 23) { /* subnormal: in units of 2^-24, of which the last half a unit rounds */
        uint32_t shift = 126 - (rest >> 23), digits = (rest & 0x7FFFFF) | 0x800000;
        if (shift > 24)
            return (uint16_t)sign;
        uint32_t kept = digits >> shift, lost = digits & ((1u << shift) - 1), middle = 1u << (shift - 1);
        return (uint16_t)(sign | (kept + (lost > middle || (lost == middle && kept & 1))));
    }
    uint32_t rounded = (rest - (112u << 23) + 0xFFF + (rest >> 13 & 1)) >> 13;
    return (uint16_t)(sign | (rounded < 0x7C00 ? rounded : 0x7C00));
}

#endif
