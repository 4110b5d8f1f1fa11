/* cpu.h - private to this module: the CPU device.
 * Invariant: an operation divides its work by the arguments' shape alone, never by the number of threads; every task
 * writes its own part, and partial sums are added in order.  So any number of threads gives the same bits.
 *
 * This module: cpu.c is the interface; gemm, attention, norm, elements, tokens, loss, pairs and decode are its
 * operations, they share share.c, and use the inner loops of kernels.c on the rows of lines.h, the threads of team.c,
 * OpenBLAS through gemm.c and oneDNN through onednn.c; bf16.c converts operands of products. */
#ifndef MR_CPU_H
#define MR_CPU_H

#include <stdatomic.h>

#include "base/system/slab.h"
#include "device/cpu/kernels.h"
#include "device/cpu/team.h"

enum {
    MR_CPU_PARTS = 32,            /* maximum partial sums of an operation */
    MR_CPU_SQUARES = 1024,        /* the same, over a whole buffer's elements */
    MR_CPU_PART_FLOATS = 1 << 20, /* room for partial sums; untouched memory costs nothing */
    MR_CPU_LINES = 4,             /* per thread, of MR_CPU_LINE floats: the widest row of a model */
    MR_CPU_LINE = 1 << 20,
};

typedef struct mr_cpu_blas {
    void *library;
    const char *core;    /* the kernels it chose: "SkylakeX" */
    void (*sgemm)(void); /* cblas_sgemm; gemm.c casts it to its type */
} mr_cpu_blas;

typedef struct mr_cpu_onednn {
    void *library;                              /* NULL: not found, or of no use on this processor */
    void (*gemm_f32)(void), (*gemm_bf16)(void); /* onednn.c casts them to their types; NULL: not used */
    int (*threads)(void);                       /* OpenMP's */
    void (*set_threads)(int);
} mr_cpu_onednn;

typedef struct mr_cpu_bf16 {
    mr_slab operands[2]; /* converted */
    mr_slab chunks;      /* results in float32, one chunk per thread */
} mr_cpu_bf16;

typedef struct mr_cpu_memory {
    mr_slab *items;
    size_t count, capacity;
} mr_cpu_memory;

typedef struct mr_cpu {
    mr_device device;
    mr_team *team;
    mr_cpu_blas blas;
    mr_cpu_onednn onednn;
    mr_cpu_bf16 bf16;
    atomic_bool no_memory; /* for a product: results are missing, and wait() reports it */
    const mr_cpu_kernels *kernels;
    char text[96];
    mr_cpu_memory memory;           /* handed out by alloc() */
    mr_slab parts;                  /* float[MR_CPU_PART_FLOATS] */
    double squares[MR_CPU_SQUARES]; /* partial sums in double, of whole buffers */
    mr_slab lines;                  /* lines.h */
    mr_slab scratch;                /* for attention: `member_floats` per thread */
    size_t member_floats;
} mr_cpu;

static inline mr_cpu *mr_cpu_of(mr_device *device)
{
    return (mr_cpu *)(void *)device;
}

/* share.c.  Rows per task, so that it has at least `work` elements; waking a thread costs about 10 us. */
size_t mr_cpu_rows_per_task(size_t rows, size_t width, size_t work);
mr_cpu_mask mr_cpu_mask_of(const mr_dropout *d, size_t sample);
/* Whether this many bytes of address space can be had: libraries that lack them end the program, or retry forever. */
bool mr_cpu_can_map(size_t bytes);

/* gemm.c.  Loads OpenBLAS.  MR_SYSTEM: not found; the message tells how to install it. */
mr_status mr_cpu_blas_open(mr_cpu_blas *blas, mr_error *err);
void mr_cpu_blas_close(mr_cpu_blas *blas);
/* Makes OpenBLAS allocate, and keep, the buffers that `threads` threads need at once.  MR_SYSTEM: out of memory. */
mr_status mr_cpu_blas_reserve(const mr_cpu_blas *blas, unsigned threads, mr_error *err);
/* c[m,n] = alpha a b + beta c. */
typedef struct mr_cpu_product {
    mr_type type; /* of a and b */
    bool transpose_a, transpose_b;
    size_t m, n, k;
    const void *a, *b;
    float *c;
    size_t lda, ldb, ldc;
    float alpha, beta;
} mr_cpu_product;
/* On the calling thread; from any thread. */
void mr_cpu_multiply(mr_cpu *d, const mr_cpu_product *p);

/* onednn.c.  Loads oneDNN if this processor's products are faster by it; otherwise `out` is without functions. */
void mr_cpu_onednn_open(mr_cpu_onednn *out);
/* Lets oneDNN generate its code now.  MR_SYSTEM: there may not be enough memory for that. */
mr_status mr_cpu_onednn_reserve(const mr_cpu_onednn *o, mr_error *err);
void mr_cpu_onednn_close(mr_cpu_onednn *o);
/* On the calling thread; from any thread.  false: not computed, for lack of the function or of memory. */
bool mr_cpu_onednn_multiply(const mr_cpu_onednn *o, const mr_cpu_product *p);

mr_status mr_cpu_plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err);

/* mr_cpu_NAME(), for each operation. */
#define X(name, arguments, ...) void mr_cpu_##name(mr_device *device, const arguments *x);
MR_OPERATIONS(X)
#undef X

#endif
