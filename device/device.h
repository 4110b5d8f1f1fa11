/* device.h - where tensors are and what can be done with them: one card per device; the CPU's is the reference.
 * Invariant: models, optimizer and trainer use device memory only through this card and never ask which device it is.
 * Work may be queued: only `wait` reports that it is done, and whether it succeeded.
 *
 * Types: activations are of `type` (MR_F32, or MR_BF16 if the card's `types` includes it); parameters, gradients,
 * statistics (mean, rstd), losses and the sums inside every operation are float32.  All matrices are row-major.
 * A stride of 0 means dense.  Operations do not allocate: what one needs beyond its arguments is reserved when it is
 * planned.  The same arguments on the same device give bit-identical results with any number of threads. */
#ifndef MR_DEVICE_H
#define MR_DEVICE_H

#include "base/buf.h"

typedef struct mr_device mr_device;

typedef enum mr_type { MR_F32 = 0, MR_BF16 = 1 } mr_type;
/* Bytes of one element. */
static inline size_t mr_type_size(mr_type type)
{
    return type == MR_BF16 ? 2 : sizeof(float);
}

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
    mr_dropout dropout; /* of x, before the sum */
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
    mr_type type; /* of the rows; images are float32 */
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
    const float *columns;  /* [classes]: 0: the column is excluded; NULL: all are used */
    const int32_t *groups; /* [classes]: excludes the other columns of the label's group; NULL: no groups */
    float smoothing;       /* 0 <= smoothing < 1 */
} mr_cross_entropy;

/* Several labels per row: losses[r] = weights[r] / classes * the sum over the columns c of
 *      (1 - t) x + (1 + (p - 1) t) log(1 + exp(-x)),   x = logits[r, c], t = targets[r, c], p = positive[c]
 * which is the binary cross entropy of sigmoid(x) with p as the weight of a positive (PyTorch's BCEWithLogitsLoss with
 * pos_weight, mean over a row).  d_logits: its derivative, if not NULL; best as above. */
typedef struct mr_sigmoid_loss {
    mr_type type; /* of d_logits; logits are float32 */
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

/* Operations that are always the same, recorded once and replayed, so that the host does not queue each of them again:
 *      begin; operations, without waits, copies or memory; end; replay, replay ...
 * What is replayed reads and writes the memory that it was recorded with, and computes the same bits as if queued. */
typedef struct mr_recording mr_recording;
typedef struct mr_recorder {
    /* Operations are recorded from here on, and not done.  False: this device records nothing, or it has failed. */
    bool (*begin)(mr_device *d);
    mr_recording *(*end)(mr_device *d); /* NULL: the device has failed */
    /* False: memory was freed since, perhaps that of the recording: it must be recorded again. */
    bool (*holds)(const mr_device *d, const mr_recording *r);
    void (*replay)(mr_device *d, const mr_recording *r); /* queued; NULL: nothing */
    void (*free)(mr_device *d, mr_recording *r);         /* NULL is fine */
} mr_recorder;

/* Sums over the devices of several processes, each with a device of its own, without the host.  They are not
 * operations: they wait for what was queued before them, but what is queued after them does not wait.  Every process
 * asks for the same sums in the same order. */
enum { MR_SUMS_ID = 128 };
typedef struct mr_sums_facts { /* all zero first, as it is compared */
    bool can;
    int version;        /* of what sums, equal in all processes */
    uint8_t device[16]; /* which no other device has, on any host */
    char how[160];      /* "NCCL 2.28.9"; if it cannot: why */
} mr_sums_facts;
typedef struct mr_sums_card {
    void (*look)(mr_device *d, mr_sums_facts *out);
    /* The place to meet, made by one process. */
    mr_status (*invite)(mr_device *d, uint8_t id[MR_SUMS_ID], mr_error *err);
    mr_status (*meet)(mr_device *d, const uint8_t id[MR_SUMS_ID], unsigned rank, unsigned world,
                      mr_error *err);                  /* waits for the others */
    void (*add)(mr_device *d, float *x, size_t count); /* x[count] += that of every other process */
    /* Whether all sums are; after a failure, which wait() reports, they are left, and it is true. */
    bool (*done)(mr_device *d);
    void (*leave)(mr_device *d); /* ends sums that wait for a process that does not come; no others follow */
} mr_sums_card;

typedef struct mr_device_options {
    unsigned threads; /* CPU: 0: the processors this process may use */
    unsigned index;   /* which device of this kind, from 0; "opencl:1" is the same with `index` 1 and `local_rank` 0 */
    unsigned local_rank; /* number of this process on its host: processes take turns at the devices from `index` on */
} mr_device_options;

typedef struct mr_device_card {
    const char *name; /* "cpu" */
    const char *what;
    unsigned types; /* bit (1 << mr_type) for each supported type of activations */
    mr_status (*open)(const mr_device_options *options, mr_device **out, mr_error *err);
    void (*close)(mr_device *d);
    /* Human-readable, such as "8 threads, AVX-512"; valid as long as the device. */
    const char *(*describe)(const mr_device *d);
    /* How products of activations of `type` are computed: "oneDNN", and the reason if that is not faster.
     * Valid as long as the device. */
    const char *(*products)(const mr_device *d, mr_type type);

    /* Memory of the device, zeroed, 64-byte aligned.  `purpose`: what it is for, as "activations", in the message when
     * there is too little; the text must outlive the memory. */
    mr_status (*alloc)(mr_device *d, size_t bytes, const char *purpose, void **out, mr_error *err);
    void (*free)(mr_device *d, void *memory);                                 /* NULL is fine */
    void (*upload)(mr_device *d, void *to, const void *from, size_t bytes);   /* `from` may be reused when it returns */
    void (*download)(mr_device *d, void *to, const void *from, size_t bytes); /* done when it returns */
    void (*zero)(mr_device *d, void *memory, size_t bytes);
    mr_status (*wait)(mr_device *d, mr_error *err);
    /* True if operations can use host memory directly (the CPU): no uploads needed. */
    bool host_memory;

    void (*gemm)(mr_device *d, const mr_gemm *g);
    /* sums[column] += sum of the rows of x[rows, width]: the gradient of a bias. */
    void (*sum_rows)(mr_device *d, mr_type type, size_t rows, size_t width, const void *x, float *sums);
    void (*norm)(mr_device *d, const mr_norm *n);
    void (*norm_back)(mr_device *d, const mr_norm_back *n);
    /* d_x = d_y with dropout's mask: the complete backward pass of a sum; in place is fine. */
    void (*drop)(mr_device *d, mr_type type, size_t rows, size_t width, size_t sample_rows, const mr_dropout *dropout,
                 const void *d_y, void *d_x);
    void (*activate)(mr_device *d, const mr_activate *a);
    void (*activate_back)(mr_device *d, const mr_activate *a);
    /* Before the first step: reserves what attention of this shape needs internally (pointers are not used), and sets
     * how many bytes `saved` must have. */
    mr_status (*plan_attention)(mr_device *d, const mr_attention *a, size_t *saved_bytes, mr_error *err);
    void (*attention)(mr_device *d, const mr_attention *a);
    void (*attention_back)(mr_device *d, const mr_attention_back *a);
    void (*patches)(mr_device *d, const mr_patches *p);
    void (*tokens)(mr_device *d, const mr_tokens *t);
    void (*tokens_back)(mr_device *d, const mr_tokens *t);
    void (*rows)(mr_device *d, const mr_rows *r);
    void (*add)(mr_device *d, mr_type type, size_t count, const void *a, const void *b, void *sum); /* in place ok */
    void (*cross_entropy)(mr_device *d, const mr_cross_entropy *c);
    void (*sigmoid_loss)(mr_device *d, const mr_sigmoid_loss *l);
    void (*lookup)(mr_device *d, const mr_lookup *l);
    void (*lookup_back)(mr_device *d, const mr_lookup *l);
    void (*unit)(mr_device *d, const mr_unit *u);
    void (*unit_back)(mr_device *d, const mr_unit *u);
    void (*scale)(mr_device *d, const mr_scale *s);
    void (*scale_back)(mr_device *d, const mr_scale *s);
    /* The sum of squares of x[count], in double, on the host; waits for it. */
    double (*sum_squares)(mr_device *d, size_t count, const float *x);
    void (*sgd)(mr_device *d, const mr_update *u);
    void (*adamw)(mr_device *d, const mr_update *u);
    void (*decode)(mr_device *d, const mr_decode *x);
    /* Memory of the host that is uploaded without another copy, for any thread; frees before the device is closed.
     * NULL: any memory is as good. */
    const mr_allocator *(*slabs)(mr_device *d);
    const mr_recorder *recorder; /* NULL: such devices record nothing */
    const mr_sums_card *sums;    /* NULL: such devices do not sum */
} mr_device_card;

struct mr_device { /* first member of every device's own struct */
    const mr_device_card *card;
};

/* All devices, one word each, as for --device. */
#define MR_DEVICES(X) X(cpu) X(apart) X(opencl) X(cuda)
#define X(word)       extern const mr_device_card mr_device_##word;
MR_DEVICES(X)
#undef X

const mr_device_card *mr_device_card_at(size_t i); /* in their order; NULL: past the last */

/* "float32", "bf16", as for --precision. */
const char *mr_type_word(mr_type type);
mr_type mr_type_of(const char *word); /* a word that is none is float32: options check theirs */
/* Before it is opened: whether the device of this word computes activations of `type`.  MR_MISUSE: it does not, or
 * there is no such device; the message names the way out. */
mr_status mr_device_computes(const char *word, mr_type type, mr_error *err);
/* `word`: a device, or one and a number, as in "opencl:1".  MR_MISUSE: no such device (the message suggests one); or
 * the failure of its open(). */
mr_status mr_device_open(const char *word, const mr_device_options *options, mr_device **out, mr_error *err);
void mr_device_close(mr_device *d); /* NULL is fine */

#endif
