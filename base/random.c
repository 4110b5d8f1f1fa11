/* random.c - repeatable random numbers.
 * Invariant: whole numbers come from integer arithmetic alone, and reals from one exact division. */
#include "base/random.h"

#include <string.h>

uint64_t mr_random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t splitmix64(uint64_t *state)
{
    return mr_random_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

void mr_random_seed(mr_random *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix64(&seed);
}

void mr_random_stream(mr_random *r, uint64_t seed, uint64_t stream)
{
    /* The seed is mixed before the stream is added, so that (1, 2) and (2, 1) are unrelated. */
    uint64_t mixed = splitmix64(&seed) + stream;
    mr_random_seed(r, splitmix64(&mixed));
}

static uint64_t rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

uint64_t mr_random_u64(mr_random *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t mr_random_below(mr_random *r, uint64_t bound)
{
    if (bound < 2)
        return 0;
    /* The high half of the product maps 2^64 numbers onto `bound` values.  Numbers with a low half below `uneven` would
     * make some values more likely than others, and are redrawn. */
    uint64_t uneven = -bound % bound;
    for (;;) {
        __extension__ unsigned __int128 product = (unsigned __int128)mr_random_u64(r) * bound;
        if ((uint64_t)product >= uneven)
            return (uint64_t)(product >> 64);
    }
}

uint64_t mr_random_between(mr_random *r, uint64_t low, uint64_t high)
{
    if (high <= low)
        return low;
    uint64_t span = high - low + 1; /* 0: all 2^64 numbers */
    return span ? low + mr_random_below(r, span) : mr_random_u64(r);
}

double mr_random_unit(mr_random *r)
{
    return (double)(mr_random_u64(r) >> 11) * 0x1p-53;
}

double mr_random_real(mr_random *r, double low, double high)
{
    return low + (high - low) * mr_random_unit(r);
}

void mr_random_bytes(mr_random *r, void *bytes, size_t len)
{
    uint8_t *out = bytes;
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = mr_random_u64(r);
        for (size_t k = 0; k < 8 && i + k < len; k++)
            out[i + k] = (uint8_t)(word >> (8 * k));
    }
}

void mr_random_shuffle(mr_random *r, void *items, size_t count, size_t size)
{
    uint8_t *base = items;
    for (size_t i = count; i > 1; i--) {
        uint8_t *a = base + (i - 1) * size, *b = base + mr_random_below(r, i) * size;
        for (size_t k = 0; a != b && k < size; k++) {
            uint8_t byte = a[k];
            a[k] = b[k];
            b[k] = byte;
        }
    }
}
