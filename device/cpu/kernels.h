/* kernels.h - private to this module: the inner loops of the CPU device, one table per instruction set.
 * Invariant: a kernel's result for an element depends on its position in the row and on the row's width, not on the
 * row's address: so a sample's results depend neither on its batch nor on the number of threads.
 *
 * kernels.c is compiled once per table with -ffast-math: nothing in it may test whether a number is finite. */
#ifndef MR_CPU_KERNELS_H
#define MR_CPU_KERNELS_H

#include "device/device.h"

/* Dropout of one sample at one site of the model.  Element e is dropped if hash(key, e) >> 8 < threshold, otherwise
 * multiplied by `scale`; threshold 0: nothing is dropped.  The hash is triple32 of
 * https://github.com/skeeto/hash-prospector (public domain) with a key before its first and before its second product;
 * e counts modulo 2^32. */
typedef struct mr_cpu_mask {
    uint32_t key[2];
    uint32_t threshold; /* out of 2^24 */
    float scale;
} mr_cpu_mask;

typedef struct mr_cpu_norm_row {
    const float *x, *residual; /* residual, total, y: may be NULL as in mr_norm */
    float *total, *y;
    const float *gain, *bias;
    float eps;
    float mean, rstd; /* out of norm, into norm_back */
} mr_cpu_norm_row;

typedef struct mr_cpu_adam { /* mr_update, with what all elements share precomputed */
    float g_scale, eps;
    float keep;                       /* 1 - lr decay */
    float beta1, rest1, beta2, rest2; /* rest = 1 - beta */
    float step, root;                 /* lr / correction1, 1 / sqrt(correction2) */
} mr_cpu_adam;

/* Rows of n elements; `e`: number of the row's first element within its sample. */
typedef struct mr_cpu_kernels {
    const char *name; /* "plain", "avx2", "avx512" */
    void (*mask)(size_t n, const mr_cpu_mask *mask, uint32_t e, const float *x, float *y);
    void (*norm)(size_t n, mr_cpu_norm_row *r, const mr_cpu_mask *mask, uint32_t e);
    /* Accumulates d_gain and d_bias. */
    void (*norm_back)(size_t n, const mr_cpu_norm_row *r, const float *d_y, const float *d_residual, float *d_total,
                      float *d_gain, float *d_bias);
    void (*activate)(size_t n, mr_activation kind, const float *x, float *y);
    void (*activate_back)(size_t n, mr_activation kind, const float *x, const float *d_y, float *d_x);
    /* s becomes softmax(s) over the unmasked keys (NULL: all; at least one); returns log sum exp. */
    float (*softmax)(size_t n, float *s, const uint8_t *seen);
    /* The same from a known log sum exp. */
    void (*softmax_again)(size_t n, float *s, const uint8_t *seen, float log_sum);
    /* d_p becomes p (d_p - sum p d_p). */
    void (*softmax_back)(size_t n, const float *p, float *d_p);
    /* From and to bf16 (base/bf16.h). */
    void (*widen)(size_t n, const uint16_t *x, float *y);
    void (*narrow)(size_t n, const float *x, uint16_t *y);
    void (*add)(size_t n, const float *a, const float *b, float *sum);
    double (*sum_squares)(size_t n, const float *x);
    void (*sgd)(size_t n, float *w, const float *g, float *m, float g_scale, float lr, float decay, float momentum);
    void (*adamw)(size_t n, float *w, const float *g, float *m, float *v, const mr_cpu_adam *k);
} mr_cpu_kernels;

extern const mr_cpu_kernels mr_cpu_kernels_plain;
#ifdef MR_CPU_X86
extern const mr_cpu_kernels mr_cpu_kernels_avx2, mr_cpu_kernels_avx512;
#endif

#endif
