/* stream.h - a stream of random numbers for one sample of one epoch.
 * Invariant: the numbers depend on seed, epoch, sample and purpose alone: the same for any world and any start. */
#ifndef MR_STREAM_H
#define MR_STREAM_H

#include "loader/order/mix.h"

typedef struct mr_stream {
    uint64_t state;
} mr_stream;

/* `purpose`: a constant that makes these numbers independent of others that have the same seed. */
static inline mr_stream mr_stream_of(uint64_t purpose, uint64_t seed, uint64_t epoch, uint64_t sample)
{
    return (mr_stream){mr_mix(mr_mix(mr_mix(seed ^ purpose) + epoch) + sample)};
}

static inline uint64_t mr_stream_next(mr_stream *s)
{
    uint64_t x = mr_mix(s->state);
    s->state += MR_MIX_STEP;
    return x;
}

static inline double mr_stream_unit(mr_stream *s)
{
    return (double)(mr_stream_next(s) >> 11) * 0x1p-53;
}

static inline double mr_stream_between(mr_stream *s, double low, double high)
{
    return low + (high - low) * mr_stream_unit(s);
}

/* 0 .. last: the high half of a product, with a bias below 2^-32 of last + 1. */
static inline uint32_t mr_stream_upto(mr_stream *s, uint32_t last)
{
    return (uint32_t)((mr_stream_next(s) >> 32) * ((uint64_t)last + 1) >> 32);
}

#endif
