/* operations.h - what a device computes: the arguments of each operation, and the table of all of them.
 * Invariant: its row of MR_OPERATIONS is all that anything else knows about an operation: devices, measuring and tests
 * are loops over the table.
 *
 * Types: activations are of `type` (MR_F32, or MR_BF16 if the interface's `types` includes it); parameters, gradients,
 * statistics (mean, rstd), losses and the sums inside every operation are float32.  All matrices are row-major.
 * A stride of 0 means dense.  Operations do not allocate: what one needs beyond its arguments is reserved when it is
 * planned.  The same arguments on the same device give bit-identical results with any number of threads. */
#ifndef MR_OPERATIONS_H
#define MR_OPERATIONS_H

#include "base/buf.h"

typedef enum mr_type { MR_F32 = 0, MR_BF16 = 1 } mr_type;
/* Bytes of one element. */
static inline size_t mr_type_size(mr_type type)
{
    return type == MR_BF16 ? 2 : sizeof(float);
}

/* "float32", "bf16", as for --precision. */
const char *mr_type_word(mr_type type);

typedef enum mr_activation { MR_GELU = 0, MR_QUICK_GELU, MR_TANH } mr_activation; /* x Phi(x); x sigmoid(1.702 x) */

/* Repeatable dropout: element e (row within its sample * width + column) of sample b at place `site` of the model is
 * dropped if a hash of (keys[b], site, e) is below `rate`; the others are divided by 1 - rate.  So a sample's mask
 * depends neither on its batch nor on its rank.  rate 0: `keys` is not read. */
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

/* total = x + residual (residual NULL: x alone, and total may be NULL), then
 * y = (total - mean) * rstd * gain + bias, with mean and rstd = 1 / sqrt(variance + eps) of each row, saved for the
 * backward pass.  Dropout is applied to `x` first; `total` may be x or residual itself.  y NULL: only the sum. */
typedef struct mr_norm {
    mr_type type;
    size_t rows, width;
    size_t sample_rows;       /* rows per sample, for dropout */
    const void *x, *residual; /* [rows, width], dense */
    void *total, *y;
    const float *gain, *bias;
    float *mean, *rstd; /* [rows] */
    float eps;
    mr_dropout dropout; /* applied to x, before the sum */
} mr_norm;

/* Backward pass of y: d_total = gradient of `total` through the norm, + d_residual if not NULL (the path around it; may
 * be d_total itself); accumulates d_gain and d_bias. */
typedef struct mr_norm_back {
    mr_type type;
    size_t rows, width;
    const void *d_y, *total;
    const float *gain, *mean, *rstd;
    const void *d_residual;
    void *d_total;
    float *d_gain, *d_bias;
} mr_norm_back;

/* y = f(x), then dropout; backward: d_x = d_y * mask / (1 - rate) * f'(x).  In place (y == x, d_x == d_y) is fine. */
typedef struct mr_activate {
    mr_type type;
    mr_activation kind;
    size_t rows, width, sample_rows;
    const void *x;
    void *y;         /* forward */
    const void *d_y; /* backward: d_y and d_x are set, y is not used */
    void *d_x;
    mr_dropout dropout;
} mr_activate;

/* softmax(scale q k^T + mask) v for each sample and head; dropout acts on the probabilities.
 * Row r of sample b of q starts at q + (b * queries + r) * q_stride, head h at h * head_dim in it; k and v have `keys`
 * rows per sample. */
typedef struct mr_attention {
    mr_type type;
    size_t batch, heads, head_dim, queries, keys;
    const void *q, *k, *v;
    size_t q_stride, k_stride, v_stride, out_stride; /* elements from row to row; 0: heads * head_dim */
    const uint8_t *key_mask; /* [batch, keys], 0: masked; NULL: no mask; if all are masked the result is 0 */
    float scale;
    mr_dropout dropout;
    void *saved; /* for the backward pass: as many bytes as plan_attention() returns */
    void *out;
} mr_attention;

typedef struct mr_attention_back {
    const mr_attention *forward; /* the forward call, unchanged */
    const void *d_out;           /* out_stride */
    void *d_q, *d_k, *d_v;       /* written; strides of q, k, v */
} mr_attention_back;

/* Images [batch, 3, side, side] to rows of pixels [batch * grid * grid, patch * patch * 3], grid = side / patch rounded
 * down (the remainder at the right and the bottom is ignored).  Order within a row: (row, column, channel), or
 * (channel, row, column) if channel_first. */
typedef struct mr_patches {
    mr_type type; /* the type of the rows; images are float32 */
    size_t batch, side, patch;
    bool channel_first;
    const float *images;
    void *rows;
} mr_patches;

/* y[b, 0] = first + position[0]; y[b, 1 + i] = x[b, i] + position[1 + i]; then dropout.  x has rows - 1 rows per
 * sample. Backward: writes d_x, accumulates d_first and d_position. */
typedef struct mr_tokens {
    mr_type type;
    size_t batch, rows, width; /* rows: of y, per sample */
    const void *x;
    const float *first, *position; /* [width], [rows, width] */
    void *y;
    const void *d_y;
    void *d_x;
    float *d_first, *d_position;
    mr_dropout dropout;
} mr_tokens;

/* Copies `rows` rows of `width` elements from one stride to another, or adds them if `accumulate`: picks one token per
 * sample, or scatters its gradient. */
typedef struct mr_rows {
    mr_type type;
    size_t rows, width, from_stride, to_stride;
    const void *from;
    void *to;
    bool accumulate;
} mr_rows;

/* losses[r] = weights[r] * (log sum exp logits[r] - logits[r, labels[r]]); d_logits[r] = weights[r] * (softmax -
 * onehot) if not NULL; best[r] = the column of the largest logit (the first of equals) if not NULL.  A label outside
 * 0 .. classes - 1 counts as weight 0.  Excluded columns count as -infinity (d_logits 0).
 * smoothing e, without excluded columns: the label counts 1 - e, and e is spread evenly over all classes (Szegedy et
 * al., Rethinking the Inception Architecture for Computer Vision, 2016, section 7). */
typedef struct mr_cross_entropy {
    mr_type type; /* the type of d_logits; logits are float32 */
    size_t rows, classes;
    const float *logits; /* [rows, classes] */
    const int32_t *labels;
    const float *weights; /* NULL: all 1 */
    float *losses;
    void *d_logits;
    int32_t *best;
    float share;           /* factor of losses and d_logits; 0: 1 */
    bool add_losses;       /* losses[r] += */
    const float *columns;  /* [classes]: 0: the column is excluded; NULL: all are used */
    const int32_t *groups; /* [classes]: excludes the other columns of the label's group; NULL: no groups */
    float smoothing;       /* 0 <= smoothing < 1 */
} mr_cross_entropy;

/* Several labels per row: losses[r] = weights[r] / classes * the sum over the columns c of
 *      (1 - t) x + (1 + (p - 1) t) log(1 + exp(-x)),   x = logits[r, c], t = targets[r, c], p = positive[c]
 * which is the binary cross entropy of sigmoid(x) with p as the weight of a positive (PyTorch's BCEWithLogitsLoss with
 * pos_weight, mean over a row).  d_logits: its derivative, if not NULL; best as above. */
typedef struct mr_sigmoid_loss {
    mr_type type; /* the type of d_logits; logits are float32 */
    size_t rows, classes;
    const float *logits, *targets; /* [rows, classes]; targets: 0 to 1 */
    const float *positive;         /* [classes]; NULL: all 1 */
    const float *weights;          /* [rows]; NULL: all 1 */
    float *losses;
    void *d_logits;
    int32_t *best;
} mr_sigmoid_loss;

/* y[r] = table[ids[r]], or y[r] += table[ids[r]]; ids NULL: row 0 for every r.  The caller checks the ids; one outside
 * of 0 .. entries - 1 stands for a row of zeros, whose gradient is left out. Backward (d_y, d_table set, y not used):
 * d_table[ids[r]] += d_y[r], bit-identical on every run; rows whose id is `skip` contribute nothing (-1: no id is
 * skipped). */
typedef struct mr_lookup {
    mr_type type;                /* the type of y and d_y */
    size_t rows, width, entries; /* entries: rows of the table */
    const int32_t *ids;
    const float *table; /* [entries, width] */
    void *y;            /* [rows, width] */
    bool accumulate;
    const void *d_y;
    float *d_table;
    int32_t skip;
} mr_lookup;

/* y[r] = x[r] / max(|x[r]|, eps); lengths[r] = max(|x[r]|, eps) is saved.  Backward: d_x = (d_y - y (y d_y)) / length,
 * or d_y / eps if the length was below eps.  In place (d_x == d_y) is fine.  All float32, except d_x of `type`. */
typedef struct mr_unit {
    mr_type type;
    size_t rows, width;
    const float *x;
    float *y, *lengths;
    float eps;
    const float *d_y;
    void *d_x;
} mr_unit;

/* y[i] = x[i] * exp(*log_scale).  Backward: d_x[i] = d_y[i] * exp(*log_scale) (in place is fine),
 * *d_log_scale += sum of d_y[i] * y[i]. */
typedef struct mr_scale {
    size_t count;
    const float *log_scale; /* on the device */
    const float *x;
    float *y;
    const float *d_y;
    float *d_x, *d_log_scale;
} mr_scale;

/* sums[column] += sum of the rows of x[rows, width]: the gradient of a bias. */
typedef struct mr_sum_rows {
    mr_type type;
    size_t rows, width;
    const void *x;
    float *sums;
} mr_sum_rows;

/* d_x = d_y with dropout's mask: the complete backward pass of a sum; in place is fine. */
typedef struct mr_drop {
    mr_type type;
    size_t rows, width, sample_rows;
    mr_dropout dropout;
    const void *d_y;
    void *d_x;
} mr_drop;

/* sum[i] = a[i] + b[i]; in place is fine. */
typedef struct mr_add {
    mr_type type;
    size_t count;
    const void *a, *b;
    void *sum;
} mr_add;

/* *sum, on the host: the sum of the squares of x[count], in double, once the call returns. */
typedef struct mr_sum_squares {
    size_t count;
    const float *x;
    double *sum;
} mr_sum_squares;

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

/* Images of one piece of a coded batch (mr_coded in millrace.h): out[slot, 3, size, size] of each.  `coef` is zeroed
 * before.  failed[i] becomes 1 where image i of the batch cannot be decoded; its result is then undefined. */
typedef struct mr_decode {
    mr_coded_piece piece;
    uint32_t size;
    const void *records, *images, *parts, *codes, *quants, *weights, *starts, *norm; /* of the whole batch */
    void *coef, *samples, *rgb, *lines;                                              /* as the piece says */
    float *out;
    uint32_t *failed;
} mr_decode;

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* What operations are counted as.  X(word, what, whether its rate is in FLOPs; else in bytes) */
#define MR_FAMILIES(X)                                                                                                 \
    X(matrix, "matrix products", true)                                                                                 \
    X(attention, "attention", true)                                                                                    \
    X(norm, "layer norms", false)                                                                                      \
    X(elements, "activations, dropout, sums", false)                                                                   \
    X(bias, "gradients of biases", false)                                                                              \
    X(rows, "patches, tokens, rows of tables", false)                                                                  \
    X(loss, "losses, unit vectors", false)                                                                             \
    X(update, "clipping, updates", false)                                                                              \
    X(copies, "zeroing, copying", false)                                                                               \
    X(decode, "decoding JPEGs", false)

typedef enum mr_family {
#define X(word, ...) MR_FAMILY_##word,
    MR_FAMILIES(X)
#undef X
        MR_FAMILY_COUNT
} mr_family;

/* X(name, its arguments, its family, FLOPs of its products, its operands ...), for arguments x, in the words of
 * operations.c; all other files look at the names alone.  An operand is a pointer of the arguments to device memory:
 *
 *      ALL(member, use, size, count)               all of it: `count` elements of `size` bytes; T: of x->type,
 *                                                  F: of a float
 *      WITHIN(member, use, size, count, capacity)  so many of `capacity` elements; count 0: how many follows from data
 *      IDS(member, use, count, entries)            int32 numbers from 0 to entries - 1
 *      HEADS, KEYS                                 rows of all heads of attention; the keys of dropout
 *      use                                         IN, OUT, ADD (both), SET(adds) (OUT or ADD); MAYBE: or NULL */
#define MR_OPERATIONS(X)                                                                                               \
    X(gemm, mr_gemm, matrix, 2.0 * (double)x->m * (double)x->n * (double)x->k,                                         \
      WITHIN(a, IN, mr_type_size(x->a_type), x->m * x->k, x->n ? LINES(x->transpose_a, x->m, x->k, x->lda) : 0),       \
      WITHIN(b, IN, mr_type_size(x->b_type), x->k * x->n, x->m ? LINES(x->transpose_b, x->k, x->n, x->ldb) : 0),       \
      WITHIN(c, SET(x->accumulate), mr_type_size(x->c_type), x->m * x->n, span(x->m, x->n, x->ldc)),                   \
      ALL(bias, IN | MAYBE, F, x->n))                                                                                  \
    X(sum_rows, mr_sum_rows, bias, 0, ALL(x, IN, T, x->rows * x->width), ALL(sums, ADD, F, x->width))                  \
    X(norm, mr_norm, norm, 0, ALL(x, IN, T, x->rows * x->width), ALL(residual, IN | MAYBE, T, x->rows * x->width),     \
      ALL(total, OUT, T, x->rows * x->width), ALL(y, OUT, T, x->rows * x->width), ALL(gain, IN, F, x->width),          \
      ALL(bias, IN, F, x->width), ALL(mean, OUT, F, x->rows), ALL(rstd, OUT, F, x->rows),                              \
      KEYS(x, samples(x->rows, x->sample_rows)))                                                                       \
    X(norm_back, mr_norm_back, norm, 0, ALL(d_y, IN, T, x->rows * x->width), ALL(total, IN, T, x->rows * x->width),    \
      ALL(gain, IN, F, x->width), ALL(mean, IN, F, x->rows), ALL(rstd, IN, F, x->rows),                                \
      ALL(d_residual, IN | MAYBE, T, x->rows * x->width), ALL(d_total, OUT, T, x->rows * x->width),                    \
      ALL(d_gain, ADD, F, x->width), ALL(d_bias, ADD, F, x->width))                                                    \
    X(drop, mr_drop, elements, 0, ALL(d_y, IN, T, x->rows * x->width), ALL(d_x, OUT, T, x->rows * x->width),           \
      KEYS(x, samples(x->rows, x->sample_rows)))                                                                       \
    X(activate, mr_activate, elements, 0, ALL(x, IN, T, x->rows * x->width), ALL(y, OUT, T, x->rows * x->width),       \
      KEYS(x, samples(x->rows, x->sample_rows)))                                                                       \
    X(activate_back, mr_activate, elements, 0, ALL(x, IN, T, x->rows * x->width), ALL(d_y, IN, T, x->rows * x->width), \
      ALL(d_x, OUT, T, x->rows * x->width), KEYS(x, samples(x->rows, x->sample_rows)))                                 \
    X(attention, mr_attention, attention, 2 * scores(x), HEADS(x, q, IN, queries, q_stride),                           \
      HEADS(x, k, IN, keys, k_stride), HEADS(x, v, IN, keys, v_stride),                                                \
      ALL(key_mask, IN | MAYBE, 1, x->batch * x->keys), ALL(saved, OUT, F, x->batch * x->heads * x->queries),          \
      HEADS(x, out, OUT, queries, out_stride), KEYS(x, x->batch))                                                      \
    X(attention_back, mr_attention_back, attention, 5 * scores(x->forward),                                            \
      HEADS(x->forward, forward->q, IN, queries, q_stride), HEADS(x->forward, forward->k, IN, keys, k_stride),         \
      HEADS(x->forward, forward->v, IN, keys, v_stride),                                                               \
      ALL(forward->key_mask, IN | MAYBE, 1, x->forward->batch * x->forward->keys),                                     \
      ALL(forward->saved, ADD, F, x->forward->batch * x->forward->heads * x->forward->queries),                        \
      HEADS(x->forward, forward->out, IN, queries, out_stride), KEYS(x->forward, x->forward->batch),                   \
      HEADS(x->forward, d_out, IN, queries, out_stride), HEADS(x->forward, d_q, OUT, queries, q_stride),               \
      HEADS(x->forward, d_k, OUT, keys, k_stride), HEADS(x->forward, d_v, OUT, keys, v_stride))                        \
    X(patches, mr_patches, rows, 0, ALL(images, IN, F, 3 * x->batch * x->side * x->side),                              \
      ALL(rows, OUT, T, x->batch *patches(x->side, x->patch) * 3 * x->patch * x->patch))                               \
    X(tokens, mr_tokens, rows, 0, ALL(x, IN, T, x->rows ? x->batch *(x->rows - 1) * x->width : 0),                     \
      ALL(first, IN, F, x->width), ALL(position, IN, F, x->rows * x->width),                                           \
      ALL(y, OUT, T, x->batch * x->rows * x->width), KEYS(x, x->batch))                                                \
    X(tokens_back, mr_tokens, rows, 0, ALL(d_y, IN, T, x->batch * x->rows * x->width),                                 \
      ALL(d_x, OUT, T, x->rows ? x->batch *(x->rows - 1) * x->width : 0), ALL(d_first, ADD, F, x->width),              \
      ALL(d_position, ADD, F, x->rows * x->width), KEYS(x, x->batch))                                                  \
    X(rows, mr_rows, rows, 0, WITHIN(from, IN, T, x->rows * x->width, span(x->rows, x->width, x->from_stride)),        \
      WITHIN(to, SET(x->accumulate), T, x->rows * x->width, span(x->rows, x->width, x->to_stride)))                    \
    X(add, mr_add, elements, 0, ALL(a, IN, T, x->count), ALL(b, IN, T, x->count), ALL(sum, OUT, T, x->count))          \
    X(cross_entropy, mr_cross_entropy, loss, 0, ALL(logits, IN, F, x->rows * x->classes),                              \
      IDS(labels, IN, x->rows, x->classes), ALL(weights, IN | MAYBE, F, x->rows),                                      \
      ALL(losses, SET(x->add_losses), F, x->rows), ALL(d_logits, OUT | MAYBE, T, x->rows * x->classes),                \
      ALL(best, OUT | MAYBE, F, x->rows), ALL(columns, IN | MAYBE, F, x->classes),                                     \
      IDS(groups, IN | MAYBE, x->classes, 3))                                                                          \
    X(sigmoid_loss, mr_sigmoid_loss, loss, 0, ALL(logits, IN, F, x->rows * x->classes),                                \
      ALL(targets, IN, F, x->rows * x->classes), ALL(positive, IN | MAYBE, F, x->classes),                             \
      ALL(weights, IN | MAYBE, F, x->rows), ALL(losses, OUT, F, x->rows),                                              \
      ALL(d_logits, OUT | MAYBE, T, x->rows * x->classes), ALL(best, OUT | MAYBE, F, x->rows))                         \
    X(lookup, mr_lookup, rows, 0, IDS(ids, IN | MAYBE, x->rows, x->entries),                                           \
      WITHIN(table, IN, F, x->rows * x->width, (x->ids ? x->entries : 1) * x->width),                                  \
      ALL(y, SET(x->accumulate), T, x->rows * x->width))                                                               \
    X(lookup_back, mr_lookup, rows, 0, IDS(ids, IN | MAYBE, x->rows, x->entries), ALL(d_y, IN, T, x->rows * x->width), \
      WITHIN(d_table, ADD, F, x->rows * x->width, (x->ids ? x->entries : 1) * x->width))                               \
    X(unit, mr_unit, loss, 0, ALL(x, IN, F, x->rows * x->width), ALL(y, OUT, F, x->rows * x->width),                   \
      ALL(lengths, OUT, F, x->rows))                                                                                   \
    X(unit_back, mr_unit, loss, 0, ALL(y, IN, F, x->rows * x->width), ALL(lengths, IN, F, x->rows),                    \
      ALL(d_y, IN, F, x->rows * x->width), ALL(d_x, OUT, T, x->rows * x->width))                                       \
    X(scale, mr_scale, loss, 0, ALL(log_scale, IN, F, 1), ALL(x, IN, F, x->count), ALL(y, OUT, F, x->count))           \
    X(scale_back, mr_scale, loss, 0, ALL(log_scale, IN, F, 1), ALL(y, IN, F, x->count), ALL(d_y, IN, F, x->count),     \
      ALL(d_x, OUT, F, x->count), ALL(d_log_scale, ADD, F, 1))                                                         \
    X(sum_squares, mr_sum_squares, update, 0, ALL(x, IN, F, x->count))                                                 \
    X(sgd, mr_update, update, 0, ALL(w, ADD, F, x->count), ALL(g, IN, F, x->count), ALL(m, ADD, F, x->count))          \
    X(adamw, mr_update, update, 0, ALL(w, ADD, F, x->count), ALL(g, IN, F, x->count), ALL(m, ADD, F, x->count),        \
      ALL(v, ADD, F, x->count))                                                                                        \
    X(decode, mr_decode, decode, 0, WITHIN(records, IN, 1, 0, 1), WITHIN(images, IN, 1, 0, 1),                         \
      WITHIN(parts, IN, 1, 0, 1), WITHIN(codes, IN, 1, 0, 1), WITHIN(quants, IN, 1, 0, 1),                             \
      WITHIN(weights, IN, 1, 0, 1), WITHIN(starts, IN, 1, 0, 1), WITHIN(norm, IN, 1, 0, 1),                            \
      WITHIN(coef, ADD, 1, 0, 1), WITHIN(samples, OUT, 1, 0, 1), WITHIN(rgb, OUT, 1, 0, 1),                            \
      WITHIN(lines, OUT, 1, 0, 1), WITHIN(out, OUT, F, 0, 1), WITHIN(failed, ADD, F, 0, 1))

typedef enum mr_op_kind {
#define X(name, ...) MR_OP_##name,
    MR_OPERATIONS(X)
#undef X
        MR_OP_COUNT
} mr_op_kind;

typedef struct mr_op {
    mr_op_kind kind;
    const void *arguments; /* its arguments, the struct in its row */
} mr_op;

/* What an operation does with the memory at one of its pointers; MR_OPTIONAL: the pointer may be NULL. */
enum { MR_IN = 1, MR_OUT = 2, MR_OPTIONAL = 4 };

typedef struct mr_operand {
    void *const *pointer; /* the member of the arguments */
    unsigned use;
    size_t size;     /* bytes of an element */
    size_t count;    /* elements that are read or written; 0: none, or not known */
    size_t capacity; /* elements from the pointer to the end of the last one; 0: it is not used */
    size_t entries;  /* int32 ids of 0 .. entries - 1; 0: numbers */
} mr_operand;

enum { MR_OPERANDS_MAX = 14 };

const char *mr_op_word(mr_op_kind kind); /* "norm_back" */
mr_family mr_op_family(mr_op_kind kind);
double mr_op_flops(const mr_op *op);
/* Fills `out` with the operands of device memory, in the order of the arguments' members; returns their number. */
size_t mr_op_operands(const mr_op *op, mr_operand out[MR_OPERANDS_MAX]);
/* Bytes of its operands, once each, twice if they are read and written: what has to move if nothing is in a cache. */
double mr_op_bytes(const mr_op *op);

#endif
