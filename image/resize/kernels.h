/* kernels.h - for this module and image/coded: coefficients of an axis, and sets of inner loops.
 * Invariant: every set of kernels gives the same bytes; sums are exact in 32 bits, so their order does not matter.
 *
 * Coefficients are stored in pairs of taps, each 22-bit number split in two for pmaddwd: K = high * 2^15 + low.
 *
 *      output o:  start[o], then `pairs` times  { low of tap 2q, low of 2q + 1, high of 2q, high of 2q + 1 }   int16
 *
 * sum K p = (sum high p << 15) + sum low p; intermediate sums may wrap, the total does not. */
#ifndef MR_RESIZE_KERNELS_H
#define MR_RESIZE_KERNELS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/system/processor.h"
#include "image/resize/resize.h"

enum {
    MR_RESIZE_BITS = 22, /* of a coefficient's fraction */
    MR_RESIZE_SPLIT = 15,
    MR_RESIZE_SLACK = 64, /* bytes that kernels may read or write past a row */
};

typedef struct mr_resize_axis {
    uint32_t *start; /* first input of each output; start + taps is within the inputs held ... */
    int16_t *k;      /* ... unless those are fewer than 2 * pairs */
    size_t outputs, pairs;
    size_t start_capacity, k_capacity; /* of the allocations */
} mr_resize_axis;

/* The same weights as floats, before conversion to fixed point: output o is the sum of k[o * taps + t] *
 * input[start[o] + t] over t < count[o]. */
typedef struct mr_resize_floats {
    uint32_t *start, *count;
    float *k;
    size_t outputs, taps;
    size_t capacity, k_capacity; /* of the allocations */
} mr_resize_floats;

/* The normalised value of each byte.  x / d is also  fma(x, inverse, x * rest)  with inverse + rest = 1 / d to twice
 * the precision; `quick`: that gives the same bits as the tables, which is tested when they are built. */
typedef struct mr_resize_norm {
    float mean[3], std[3];
    float inverse[3], rest[3]; /* of std */
    bool set, quick;
    float f32[3][256];
    uint16_t bf16[3][256], f16[3][256];
} mr_resize_norm;

/* MR_MISUSE: mean or std is not finite, or std is 0. */
mr_status mr_resize_norm_set(mr_resize_norm *n, const float mean[3], const float std[3], mr_error *err);
/* Three planes of values, about 0..1, become (value - mean) / std. */
void mr_resize_norm_planes(const mr_resize_norm *n, float *values, size_t plane);
/* Three planes of a row, each byte by its channel's table. */
void mr_resize_spread_halves(const uint16_t table[3][256], const uint8_t *rgb, size_t pixels, uint16_t *out,
                             size_t plane);
/* 1 / x in two parts. */
void mr_resize_inverse(float x, float *inverse, float *rest);

/* Rows aligned to cache lines are best written with non-temporal stores: they are not read before the batch is
 * complete, and until then would evict what is. */
static inline bool mr_resize_past_caches(const void *out, size_t row_bytes, size_t plane_bytes)
{
    return (((uintptr_t)out | row_bytes | plane_bytes) & 63) == 0;
}

/* After non-temporal stores: makes them visible to other threads. */
static inline void mr_resize_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

struct mr_resize_kernels {
    const char *name;
    mr_processor_set needs;
    /* Four input rows (not NULL; repeat one if there are fewer) become four output rows of axis->outputs pixels. */
    void (*across)(const mr_resize_axis *axis, const uint8_t *const rows[4], uint8_t *const out[4]);
    /* 2 * pairs rows of `len` bytes become one. */
    void (*down)(const int16_t *k, size_t pairs, const uint8_t *const *rows, size_t len, uint8_t *out);
    /* A row of RGB pixels becomes a row in each of three planes. */
    void (*spread_f32)(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, float *out, size_t plane);
    void (*spread_bf16)(const mr_resize_norm *n, const uint8_t *rgb, size_t pixels, uint16_t *out, size_t plane);
};

extern const mr_resize_kernels mr_resize_plain;
extern const mr_resize_kernels mr_resize_avx2, mr_resize_avx512; /* x86-64 only */
extern const mr_resize_kernels mr_resize_neon;                   /* aarch64 only */
extern const mr_resize_kernels *const mr_resize_kernels_all[];   /* best first; NULL after the last */
const mr_resize_kernels *mr_resize_kernels_best(void);           /* that this machine supports */

/* One side of a job: outputs [first, first + count) of `in` pixels scaled to `out`, last one first if `mirrored`. */
typedef struct mr_resize_side {
    uint32_t in, out, first, count;
    mr_resize_span held; /* the inputs in memory; not empty */
    bool bicubic, mirrored;
} mr_resize_side;

mr_resize_side mr_resize_across(const mr_resize_job *job);
mr_resize_side mr_resize_down(const mr_resize_job *job);
mr_resize_span mr_resize_side_needs(const mr_resize_side *side);

/* `start` counts from the first input held.  MR_SYSTEM: out of memory. */
mr_status mr_resize_axis_set(mr_resize_axis *axis, const mr_resize_side *side, mr_error *err);
void mr_resize_axis_free(mr_resize_axis *axis);
mr_status mr_resize_floats_set(mr_resize_floats *axis, const mr_resize_side *side, mr_error *err);
void mr_resize_floats_free(mr_resize_floats *axis);

/* float.c: a job without rounding.  `values` gets the planes before normalisation. */
typedef struct mr_resize_unrounded {
    mr_resize_floats columns, rows;
    float *memory;          /* an input row, then the same row resampled across */
    size_t memory_capacity; /* floats */
} mr_resize_unrounded;

mr_status mr_resize_unrounded_run(mr_resize_unrounded *u, const mr_resize_job *job, const _Atomic bool *stop,
                                  float *values, mr_error *err);
void mr_resize_unrounded_free(mr_resize_unrounded *u);

#endif
