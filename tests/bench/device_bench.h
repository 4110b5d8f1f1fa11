/* device_bench.h - what device_bench measures on: a device, the shapes of ViT-B/16, and tensors of that size.
 * Invariant: every operation takes its operands from the same tensors; no result is read, only timed. */
#ifndef DEVICE_BENCH_H
#define DEVICE_BENCH_H

#include <cblas.h>
#include <time.h>

#include "device/device.h"

enum { BATCH = 8, HIDDEN = 768, MLP = 3072, HEADS = 12, PATCH = 16, ROUNDS = 15, PARAMETERS = 86 << 20 };

typedef struct device_bench {
    mr_device *d;
    void (*sgemm)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE a_way, enum CBLAS_TRANSPOSE b_way, blasint m, blasint n,
                  blasint k, float alpha, const float *a, blasint lda, const float *b, blasint ldb, float beta,
                  float *c, blasint ldc);
    unsigned threads;
    size_t image, tokens, rows;
    float *x, *y, *z, *w, *g, *m, *v; /* [rows, MLP] three times; parameters and their company */
    float *gain, *mean, *rstd, *saved;
    uint64_t *keys;
    double rate, copy; /* limits: operations and bytes a second */
} device_bench;

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The attention of a layer, for its plan and its runs. */
mr_attention bench_attention(const device_bench *b);
/* Times and prints all but the products, whose best rate must be known. */
void bench_operations(device_bench *b);

#endif
