/* transformer.h - what Vision Transformer and BridgeTower are made of: patches, dense layers, norms, attention and
 * MLPs, each with its backward pass, and the memory and parameters that an open model has.
 * Invariant: a backward pass reads only what its forward pass kept, and only masks of dropout, which are hashes, are
 * computed twice.  A pass allocates nothing.
 *
 * With config.recompute, the parts of a model share the memory for all but their inputs.  Their forward pass then runs
 * again before their backward pass, except that of the last part, whose results are still there.  The operations and
 * their arguments are the same as before, and so are the bits.
 *
 * `*_forward` of a branch leaves its output in t->branch; the norm that reads it takes the sum with the residual. */
#ifndef MR_TRANSFORMER_H
#define MR_TRANSFORMER_H

#include "train/model/memory_plan.h"
#include "train/model/model.h"
#include "train/model/model_shape.h"

typedef struct mr_transformer { /* the first member of each model's own struct */
    mr_model base;
    mr_model_config config;
    mr_device *device;
    size_t batch;        /* samples planned for */
    bool training;       /* a backward pass was planned */
    float eps;           /* epsilon of every norm */
    mr_model_input in;   /* input of the last forward pass */
    const float *values; /* values of the current pass */
    float *gradients;    /* gradients of the current backward pass */
    void *memory;        /* every pointer of the model points into it */
    size_t bytes;
    void *branch; /* [most rows, hidden]: what a branch adds; in the backward pass its gradient */
    void *d_wide; /* [most rows, the widest]: gradients inside an MLP or an attention */
} mr_transformer;

/* Fills in the fields that are known before memory is planned. */
void mr_transformer_init(mr_transformer *t, const mr_model_config *c, size_t batch, bool training);
/* Plans, allocates and plans again.  plan(): sets all pointers of the model into t->memory, or with memory NULL only
 * counts t->bytes; false: more bytes than there are addresses.  `own`: the model's parameters.  MR_MISUSE: `given` has
 * another shape; the batch is too large. */
mr_status mr_transformer_open(mr_transformer *t, const mr_params *own, const mr_params *given,
                              bool (*plan)(mr_transformer *t), mr_error *err);
/* Frees the memory. */
void mr_transformer_close(mr_transformer *t);
/* Keeps what a forward pass reads. */
void mr_transformer_begin(mr_transformer *t, const float *values, const mr_model_input *in);

mr_dropout mr_dropout_at(const mr_transformer *t, double rate, uint32_t site);

/* x [rows, at->in] to y [rows, at->out]. */
void mr_dense_forward(const mr_transformer *t, const mr_dense *at, size_t rows, const void *x, void *y, mr_type y_type);
/* Adds to the gradients of kernel and bias; d_x NULL: not wanted; `accumulate`: added to d_x. */
void mr_dense_backward(const mr_transformer *t, const mr_dense *at, size_t rows, const void *x, const void *d_y,
                       void *d_x, bool accumulate);

typedef struct mr_normed { /* what a norm reads and writes */
    void *total, *y;       /* [rows, hidden] */
    float *mean, *rstd;    /* [rows] */
} mr_normed;

/* A given total or y is already elsewhere. */
void mr_normed_plan(const mr_transformer *t, mr_memory_plan *p, mr_normed *k, size_t rows, bool has_total, bool has_y);
/* k->y = norm of (x after dropout + residual), which is kept as k->total; x may be k->total, without residual.
 * sample_rows: rows per sample. */
void mr_norm_forward(const mr_transformer *t, const mr_norm_at *at, const mr_normed *k, size_t sample_rows,
                     const void *x, const void *residual, mr_dropout dropout);
/* d_total = gradient of k->total, + d_residual unless NULL (it may be d_total). */
void mr_norm_backward(const mr_transformer *t, const mr_norm_at *at, const mr_normed *k, size_t rows, const void *d_y,
                      const void *d_residual, void *d_total);

typedef struct mr_attended { /* an attention with its projections */
    const void *x, *from;    /* rows of the queries, and of keys and values, in the last pass */
    void *q, *k, *v, *out;
    void *saved;
    mr_attention attention; /* as it was run */
} mr_attended;

/* The shape for `count` samples, without pointers. */
mr_attention mr_attention_shape(const mr_transformer *t, size_t count, size_t heads, size_t queries, size_t keys);
/* Reserves memory for `shape`; `saved`: bytes that the device keeps for its backward pass. */
void mr_attended_plan(const mr_transformer *t, mr_memory_plan *p, mr_attended *k, const mr_attention *shape,
                      size_t saved);
/* Projects k->x and k->from and attends; `shape`: with mask and dropout. */
void mr_attended_forward(const mr_transformer *t, const mr_attention_at *at, mr_attended *k, const mr_attention *shape);

typedef struct mr_mlp_kept {
    const void *x;          /* input of the last pass */
    void *wide, *active;    /* before and after the activation */
    mr_activate activation; /* as it was run */
} mr_mlp_kept;

void mr_mlp_plan(const mr_transformer *t, mr_memory_plan *p, mr_mlp_kept *k, size_t rows, size_t width, bool keeps);
/* `f`: kind, rows, sample_rows and dropout of the activation. */
void mr_mlp_forward(const mr_transformer *t, const mr_mlp_at *at, mr_mlp_kept *k, const void *x, const mr_activate *f);
/* The same without the second dense layer, whose output no backward pass reads. */
void mr_mlp_widen(const mr_transformer *t, const mr_mlp_at *at, mr_mlp_kept *k, const void *x, const mr_activate *f);
void mr_mlp_backward(const mr_transformer *t, const mr_mlp_at *at, const mr_mlp_kept *k, const void *d_y, void *d_x,
                     bool accumulate);

/* The gradient d of a sum as its branch gets it: through the branch's dropout (then in t->branch), or d itself. */
const void *mr_branch_gradient(const mr_transformer *t, size_t sample_rows, mr_dropout dropout, const void *d);

/* t->in.images to y [count * (1 + grid * grid), hidden]; pixels [count * grid * grid, 3 * patch * patch] is kept. */
void mr_image_forward(const mr_transformer *t, const mr_image_at *at, void *pixels, void *y, mr_dropout dropout);
void mr_image_backward(const mr_transformer *t, const mr_image_at *at, const void *pixels, const void *d_y,
                       mr_dropout dropout);

/* The first row of each sample: out of `from_rows` rows per sample, to where there are `to_rows`. */
void mr_first_rows(const mr_transformer *t, const void *from, size_t from_rows, void *to, size_t to_rows,
                   bool accumulate);

#endif
