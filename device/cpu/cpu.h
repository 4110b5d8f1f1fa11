/* cpu.h - private to this room: the CPU device.
 * Invariant: an operation divides its work by the arguments' shape alone, never by the number of threads; every task
 * writes its own part, and partial sums are added in order.  So any number of threads gives the same bits.
 *
 * This room: cpu.c is the card.  gemm, attention, norm, elements, tokens, loss, pairs and decode are its operations;
 * they use the inner loops of kernels.c on the rows of lines.h, the threads of team.c, OpenBLAS through gemm.c and
 * oneDNN through onednn.c; bf16.c converts operands of products. */
#ifndef MR_CPU_H
#define MR_CPU_H

#include <stdatomic.h>

#include "base/slab.h"
#include "cpu/kernels.h"
#include "cpu/team.h"

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
    size_t count, room;
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
    mr_slab scratch;                /* of attention: `member_floats` per thread */
    size_t member_floats;
} mr_cpu;

static inline mr_cpu *mr_cpu_of(mr_device *device)
{
    return (mr_cpu *)(void *)device;
}

/* cpu.c.  Rows per task, so that it has at least `work` elements; waking a thread costs about 10 us. */
size_t mr_cpu_rows_per_task(size_t rows, size_t width, size_t work);
mr_cpu_mask mr_cpu_mask_of(const mr_dropout *d, size_t sample);

/* gemm.c.  Loads OpenBLAS.  MR_SYSTEM: not found; the message tells how to install it. */
mr_status mr_cpu_blas_open(mr_cpu_blas *blas, mr_error *err);
void mr_cpu_blas_close(mr_cpu_blas *blas);
/* Whether so many bytes of address space can be had: libraries that lack them end the program, or retry forever. */
bool mr_cpu_has_room(size_t bytes);
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
void mr_cpu_gemm(mr_device *device, const mr_gemm *g);

/* onednn.c.  Loads oneDNN if this processor's products are faster by it; otherwise `out` is without functions. */
void mr_cpu_onednn_open(mr_cpu_onednn *out);
/* Lets oneDNN generate its code now.  MR_SYSTEM: there may not be enough memory for that. */
mr_status mr_cpu_onednn_reserve(const mr_cpu_onednn *o, mr_error *err);
void mr_cpu_onednn_close(mr_cpu_onednn *o);
/* On the calling thread; from any thread.  false: not computed, for lack of the function or of memory. */
bool mr_cpu_onednn_multiply(const mr_cpu_onednn *o, const mr_cpu_product *p);

/* norm.c */
void mr_cpu_sum_rows(mr_device *device, mr_type type, size_t rows, size_t width, const void *x, float *sums);
void mr_cpu_norm(mr_device *device, const mr_norm *n);
void mr_cpu_norm_back(mr_device *device, const mr_norm_back *n);

/* elements.c */
void mr_cpu_drop(mr_device *device, mr_type type, size_t rows, size_t width, size_t sample_rows,
                 const mr_dropout *dropout, const void *d_y, void *d_x);
void mr_cpu_activate(mr_device *device, const mr_activate *a);
void mr_cpu_activate_back(mr_device *device, const mr_activate *a);
void mr_cpu_add(mr_device *device, mr_type type, size_t count, const void *a, const void *b, void *sum);
double mr_cpu_sum_squares(mr_device *device, size_t count, const float *x);
void mr_cpu_sgd(mr_device *device, const mr_update *u);
void mr_cpu_adamw(mr_device *device, const mr_update *u);

/* attention.c */
mr_status mr_cpu_plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err);
void mr_cpu_attention(mr_device *device, const mr_attention *a);
void mr_cpu_attention_back(mr_device *device, const mr_attention_back *a);

/* tokens.c */
void mr_cpu_patches(mr_device *device, const mr_patches *p);
void mr_cpu_tokens(mr_device *device, const mr_tokens *t);
void mr_cpu_tokens_back(mr_device *device, const mr_tokens *t);
void mr_cpu_rows(mr_device *device, const mr_rows *r);

/* loss.c */
void mr_cpu_cross_entropy(mr_device *device, const mr_cross_entropy *c);
void mr_cpu_sigmoid_loss(mr_device *device, const mr_sigmoid_loss *l);

/* pairs.c */
void mr_cpu_lookup(mr_device *device, const mr_lookup *l);
void mr_cpu_lookup_back(mr_device *device, const mr_lookup *l);
void mr_cpu_unit(mr_device *device, const mr_unit *u);
void mr_cpu_unit_back(mr_device *device, const mr_unit *u);
void mr_cpu_scale(mr_device *device, const mr_scale *s);
void mr_cpu_scale_back(mr_device *device, const mr_scale *s);

/* decode.c */
void mr_cpu_decode(mr_device *device, const mr_decode *x);

#endif
