/* device.h - where tensors live and what can be done to them: one card a device, and the CPU's is the reference.
 * Invariant: models, optimizer and trainer work on memory of the device only through this card and never ask which
 * device it is.  Work may be queued: only mr_device_wait() says that it is done, and whether it was done well.
 *
 * Types: activations are of `type` (MR_F32, or MR_BF16 where the card's `types` has it); parameters, gradients,
 * statistics (mean, rstd), losses and the sums inside every operation are float32.  All matrices are row-major.
 * A stride of 0 means dense.  Nothing is allocated by an operation: what one needs beside its arguments was reserved
 * when it was planned.  Every result is the same, to the bit, for the same arguments on the same device, with any
 * number of threads. */
#ifndef MR_DEVICE_H
#define MR_DEVICE_H

#include "base/buf.h"

typedef struct mr_device mr_device;

typedef enum mr_type { MR_F32 = 0, MR_BF16 = 1 } mr_type;
typedef enum mr_activation { MR_GELU = 0, MR_QUICK_GELU, MR_TANH } mr_activation; /* x Phi(x); x sigmoid(1.702 x) */

/* Chance that can be repeated: element e (row within its sample * width + column) of sample b at place `site` of the
 * model is dropped if a hash of (keys[b], site, e) falls below `rate`; the others are divided by 1 - rate.  So a
 * sample's mask depends neither on its batch nor on its rank.  rate 0: `keys` is not looked at. */
typedef struct mr_dropout {
    float rate; /* 0 <= rate < 1 */
    uint32_t site;
    const uint64_t *keys; /* [samples], on the device */
} mr_dropout;

/* c[m,n] = a[m,k] b[k,n], + c if `accumulate`, + bias[n] on each row if not NULL.
 * A transposed operand is stored as [k,m] or [n,k]; lda, ldb, ldc: elements from stored row to stored row. */
typedef struct mr_gemm {
    mr_type a_type, b_type, c_type;
    size_t m, n, k;
    const void *a, *b;
    void *c;
    size_t lda, ldb, ldc;
    bool transpose_a, transpose_b, accumulate;
    const float *bias;
} mr_gemm;

/* total = x + residual (residual NULL: x is used as it is and total may be NULL), then
 * y = (total - mean) * rstd * gain + bias, mean and rstd = 1 / sqrt(variance + eps) of each row, kept for the way back.
 * `x` goes through dropout first; `total` may be x or residual itself.  y NULL: only the sum. */
typedef struct mr_norm {
    mr_type type;
    size_t rows, width;
    size_t sample_rows;       /* rows that belong to one sample, for dropout */
    const void *x, *residual; /* [rows, width], dense */
    void *total, *y;
    const float *gain, *bias;
    float *mean, *rstd; /* [rows] */
    float eps;
    mr_dropout dropout; /* of x, before the sum */
} mr_norm;

/* The way back of y: d_total = gradient of `total` through the norm, + d_residual if not NULL (the path that went
 * around it; it may be d_total itself); d_gain and d_bias are added to. */
typedef struct mr_norm_back {
    mr_type type;
    size_t rows, width;
    const void *d_y, *total;
    const float *gain, *mean, *rstd;
    const void *d_residual;
    void *d_total;
    float *d_gain, *d_bias;
} mr_norm_back;

/* y = f(x), then dropout; the way back: d_x = d_y * mask / (1 - rate) * f'(x).  In place (y == x, d_x == d_y) is fine.
 */
typedef struct mr_activate {
    mr_type type;
    mr_activation kind;
    size_t rows, width, sample_rows;
    const void *x;
    void *y;         /* forward */
    const void *d_y; /* way back: d_y and d_x set, y not looked at */
    void *d_x;
    mr_dropout dropout;
} mr_activate;

/* softmax(scale q k^T + mask) v for each sample and head; dropout acts on the probabilities.
 * Row r of sample b of q starts at q + (b * queries + r) * q_stride, head h at h * head_dim in it; k and v have `keys`
 * rows a sample. */
typedef struct mr_attention {
    mr_type type;
    size_t batch, heads, head_dim, queries, keys;
    const void *q, *k, *v;
    size_t q_stride, k_stride, v_stride, out_stride; /* elements from row to row; 0: heads * head_dim */
    const uint8_t *key_mask; /* [batch, keys], 0: not to be seen; NULL: all are; without any the result is 0 */
    float scale;
    mr_dropout dropout;
    void *saved; /* for the way back: as many bytes as plan_attention() said */
    void *out;
} mr_attention;

typedef struct mr_attention_back {
    const mr_attention *forward; /* as it was run */
    const void *d_out;           /* out_stride */
    void *d_q, *d_k, *d_v;       /* written; strides of q, k, v */
} mr_attention_back;

/* Images [batch, 3, side, side] to rows of pixels [batch * grid * grid, patch * patch * 3], grid = side / patch rounded
 * down (what is left at the right and the bottom is not seen).  Order within a row: (row, column, channel), or
 * (channel, row, column) if channel_first. */
typedef struct mr_patches {
    mr_type type; /* of the rows; images are float32 */
    size_t batch, side, patch;
    bool channel_first;
    const float *images;
    void *rows;
} mr_patches;

/* y[b, 0] = first + position[0]; y[b, 1 + i] = x[b, i] + position[1 + i]; then dropout.  x has rows - 1 rows a sample.
 * The way back: d_x written, d_first and d_position added to. */
typedef struct mr_tokens {
    mr_type type;
    size_t batch, rows, width; /* rows: of y, a sample */
    const void *x;
    const float *first, *position; /* [width], [rows, width] */
    void *y;
    const void *d_y;
    void *d_x;
    float *d_first, *d_position;
    mr_dropout dropout;
} mr_tokens;

/* `rows` rows of `width` elements from one stride to another, added if `accumulate`: picks a token of each sample, and
 * puts its gradient back. */
typedef struct mr_rows {
    mr_type type;
    size_t rows, width, from_stride, to_stride;
    const void *from;
    void *to;
    bool accumulate;
} mr_rows;

/* losses[r] = weights[r] * (log sum exp logits[r] - logits[r, labels[r]]); d_logits[r] = weights[r] * (softmax -
 * onehot) if not NULL; best[r] = the column of the largest logit (the first of equals) if not NULL.  A label outside of
 * 0 .. classes - 1 counts as weight 0.  Columns that are not looked at count as -infinity (d_logits 0). */
typedef struct mr_cross_entropy {
    mr_type type; /* of d_logits; logits are float32 */
    size_t rows, classes;
    const float *logits; /* [rows, classes] */
    const int32_t *labels;
    const float *weights; /* NULL: all 1 */
    float *losses;
    void *d_logits;
    int32_t *best;
    float share;           /* factor of losses and d_logits; 0: 1 */
    bool add_losses;       /* losses[r] += */
    const float *columns;  /* [classes]: a column of 0 is not looked at; NULL: all are */
    const int32_t *groups; /* [classes]: nor is a column of the label's own group, but the label; NULL: no groups */
} mr_cross_entropy;

/* y[r] = table[ids[r]], or y[r] += table[ids[r]]; ids NULL: row 0 for every r.  ids are the caller's to check.
 * The way back (d_y, d_table set, y not looked at): d_table[ids[r]] += d_y[r], the same bits on every run; rows whose
 * id is `skip` give nothing (-1: there is none such). */
typedef struct mr_lookup {
    mr_type type;                /* of y and d_y */
    size_t rows, width, entries; /* entries: rows of the table */
    const int32_t *ids;
    const float *table; /* [entries, width] */
    void *y;            /* [rows, width] */
    bool accumulate;
    const void *d_y;
    float *d_table;
    int32_t skip;
} mr_lookup;

/* y[r] = x[r] / max(|x[r]|, eps); lengths[r] = max(|x[r]|, eps) is kept.  The way back: d_x = (d_y - y (y d_y)) /
 * length, and d_y / eps where the length was below eps.  In place (d_x == d_y) is fine.  All float32, but d_x of
 * `type`. */
typedef struct mr_unit {
    mr_type type;
    size_t rows, width;
    const float *x;
    float *y, *lengths;
    float eps;
    const float *d_y;
    void *d_x;
} mr_unit;

/* y[i] = x[i] * exp(*log_scale).  The way back: d_x[i] = d_y[i] * exp(*log_scale) (in place is fine),
 * *d_log_scale += sum of d_y[i] * y[i]. */
typedef struct mr_scale {
    size_t count;
    const float *log_scale; /* on the device */
    const float *x;
    float *y;
    const float *d_y;
    float *d_x, *d_log_scale;
} mr_scale;

/* One update of `count` parameters w from gradients g * g_scale (accumulation, mean and clipping in one factor).
 * sgd:   g += decay w; m = momentum m + g; w -= lr m.
 * adamw: w -= lr decay w; m, v of g; w -= lr (m / correction1) / (sqrt(v / correction2) + eps). */
typedef struct mr_update {
    size_t count;
    float *w;
    const float *g;
    float *m, *v; /* v: adamw only */
    double g_scale, lr, decay;
    double momentum;                                    /* sgd */
    double beta1, beta2, eps, correction1, correction2; /* adamw: correction = 1 - beta^k */
} mr_update;

typedef struct mr_device_options {
    unsigned threads; /* CPU: 0: the processors this process may use */
    unsigned index;   /* which one of its kind */
} mr_device_options;

typedef struct mr_device_card {
    const char *name; /* "cpu" */
    const char *what;
    unsigned types; /* bit (1 << mr_type) for each type of activations it can do */
    mr_status (*open)(const mr_device_options *options, mr_device **out, mr_error *err);
    void (*close)(mr_device *d);
    /* "8 threads, AVX-512": for people; lives as long as the device. */
    const char *(*describe)(const mr_device *d);

    /* Memory of the device, zeroed, 64-byte aligned. */
    mr_status (*alloc)(mr_device *d, size_t bytes, void **out, mr_error *err);
    void (*free)(mr_device *d, void *memory); /* NULL is fine */
    void (*upload)(mr_device *d, void *to, const void *from, size_t bytes);
    void (*download)(mr_device *d, void *to, const void *from, size_t bytes); /* done when it returns */
    void (*zero)(mr_device *d, void *memory, size_t bytes);
    mr_status (*wait)(mr_device *d, mr_error *err);
    /* True if host memory can be used by operations as it is (the CPU): then nothing need be uploaded. */
    bool host_memory;

    void (*gemm)(mr_device *d, const mr_gemm *g);
    /* sums[column] += sum of the rows of x[rows, width]: the gradient of a bias. */
    void (*sum_rows)(mr_device *d, mr_type type, size_t rows, size_t width, const void *x, float *sums);
    void (*norm)(mr_device *d, const mr_norm *n);
    void (*norm_back)(mr_device *d, const mr_norm_back *n);
    /* d_x = dropout's mask on d_y, for sums whose way back goes through the mask alone; in place is fine. */
    void (*drop)(mr_device *d, mr_type type, size_t rows, size_t width, size_t sample_rows, const mr_dropout *dropout,
                 const void *d_y, void *d_x);
    void (*activate)(mr_device *d, const mr_activate *a);
    void (*activate_back)(mr_device *d, const mr_activate *a);
    /* Before the first step: reserves what attention of this shape (pointers not looked at) needs inside, and says how
     * many bytes `saved` has to have. */
    mr_status (*plan_attention)(mr_device *d, const mr_attention *a, size_t *saved_bytes, mr_error *err);
    void (*attention)(mr_device *d, const mr_attention *a);
    void (*attention_back)(mr_device *d, const mr_attention_back *a);
    void (*patches)(mr_device *d, const mr_patches *p);
    void (*tokens)(mr_device *d, const mr_tokens *t);
    void (*tokens_back)(mr_device *d, const mr_tokens *t);
    void (*rows)(mr_device *d, const mr_rows *r);
    void (*add)(mr_device *d, mr_type type, size_t count, const void *a, const void *b, void *sum); /* in place ok */
    void (*cross_entropy)(mr_device *d, const mr_cross_entropy *c);
    void (*lookup)(mr_device *d, const mr_lookup *l);
    void (*lookup_back)(mr_device *d, const mr_lookup *l);
    void (*unit)(mr_device *d, const mr_unit *u);
    void (*unit_back)(mr_device *d, const mr_unit *u);
    void (*scale)(mr_device *d, const mr_scale *s);
    void (*scale_back)(mr_device *d, const mr_scale *s);
    /* The sum of squares of x[count], in double, on the host: waits. */
    double (*sum_squares)(mr_device *d, size_t count, const float *x);
    void (*sgd)(mr_device *d, const mr_update *u);
    void (*adamw)(mr_device *d, const mr_update *u);
} mr_device_card;

struct mr_device { /* the first member of every device's own struct */
    const mr_device_card *card;
};

/* All devices, one word each (device/device.c): --device. */
#define MR_DEVICES(X) X(cpu)
#define X(word)       extern const mr_device_card mr_device_##word;
MR_DEVICES(X)
#undef X

/* MR_MISUSE: no such device, with the nearest word; whatever its open() says. */
mr_status mr_device_open(const char *word, const mr_device_options *options, mr_device **out, mr_error *err);
void mr_device_close(mr_device *d); /* NULL is fine */

#endif
