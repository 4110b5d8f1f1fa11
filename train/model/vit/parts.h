/* parts.h - what the files vit*.c share: where parameters stand, what a block keeps, the model itself.
 * Invariant: every pointer of a block lies in one piece of device memory, which plan.c alone divides.
 *
 *      stream ──┬─> norm0 ─> q, k, v ─> attention ─> out ──+──┬─> norm2 ─> Dense_0 ─> GELU ─> Dense_1 ──+─> next
 *      total_a  └──────────────────────────────────────────┘  └─────────────────── total_b ─────────────┘   total_a
 *
 * The sum behind a branch is taken by the norm that reads it, so `total_a` of block i + 1 is the output of block i.
 * In the last block only the first token of each sample is looked at: queries, out and MLP have `kept` = 1 row a sample
 * there, keys and values have all rows. */
#ifndef MR_VIT_PARTS_H
#define MR_VIT_PARTS_H

#include "model/memory_plan.h"
#include "vit/vit.h"

/* Offsets in the flat buffers. */
typedef struct mr_vit_dense { /* y = x kernel + bias */
    uint64_t kernel, bias;
    size_t in, out;
} mr_vit_dense;

typedef struct mr_vit_norm {
    uint64_t scale, bias;
} mr_vit_norm;

/* The members of the card that are no part of a pass (shape.c, load.c). */
mr_status mr_vit_check(const mr_model_config *c, mr_error *err);
mr_status mr_vit_params(const mr_model_config *c, mr_params *out, mr_error *err);
void mr_vit_costs(const mr_model_config *c, size_t batch, bool training, mr_model_costs *out);
void mr_vit_start(const mr_model_config *c, const mr_params *p, uint64_t seed, float *values);
mr_status mr_vit_load(const mr_model_config *c, const mr_params *p, const char *path, float *values, mr_buf *said,
                      mr_error *err);

typedef struct mr_vit_places {
    uint64_t first; /* of the block's parameters */
    mr_vit_norm norm0, norm2;
    mr_vit_dense query, key, value, out, dense0, dense1;
} mr_vit_places;

typedef struct mr_vit_layout {
    uint64_t cls, position;
    mr_vit_dense embedding, head;
    mr_vit_norm norm;
    mr_vit_places *blocks; /* [layers] */
} mr_vit_layout;

/* Adds the model's parameters to an empty `p`, and says where they stand; release both, also after a failure. */
mr_status mr_vit_lay_out(const mr_model_config *c, mr_params *p, mr_vit_layout *out, mr_error *err);
void mr_vit_layout_release(mr_vit_layout *l);

/* What one block keeps for its way back.  rows = batch * tokens; few = batch * kept. */
typedef struct mr_vit_block {
    size_t kept;               /* tokens a sample that queries, out and MLP see */
    void *total_a, *y_a;       /* [rows, hidden] */
    void *seen_total, *seen_y; /* [few, hidden]: the same two, or their first tokens */
    void *q, *k, *v;           /* [few, hidden], [rows, hidden] twice */
    void *attended;            /* [few, hidden] */
    void *total_b, *y_b;       /* [few, hidden] */
    void *wide, *active;       /* [few, mlp]: before and after the GELU */
    float *mean_a, *rstd_a;    /* [rows] */
    float *mean_b, *rstd_b;    /* [few] */
    mr_attention attention;    /* as it was run; its `saved` is planned too */
} mr_vit_block;

typedef struct mr_vit {
    mr_model base;
    mr_model_config config;
    mr_device *device;
    mr_vit_layout layout;
    size_t batch;        /* planned for */
    size_t grid, tokens; /* patches a side; 1 + grid * grid */
    bool training;       /* a way back was planned: blocks do not share their memory */
    mr_model_input in;   /* of the last forward pass */
    void *memory;
    size_t bytes;
    mr_vit_block *blocks;      /* [layers] */
    void *pixels;              /* [batch * grid * grid, patch * patch * 3] */
    void *last_total;          /* [few of the last block, hidden]: its output */
    void *cls_total, *encoded; /* [batch, hidden]: its first tokens; behind the last norm */
    float *mean, *rstd;        /* [batch] */
    float *logits, *losses;    /* [batch, classes], [batch] */
    void *d_logits;            /* [batch, classes] */
    int32_t *best;             /* [batch] */
    void *branch;              /* [rows, hidden]: what a branch adds; its gradient on the way back */
    void *d_stream;            /* [rows, hidden]: gradient of the stream */
    void *d_few;               /* [batch, hidden]: of the first tokens, where a block sees only these */
    void *d_wide;              /* [rows, max(mlp, 3 hidden)]: inside the MLP, or of q, k and v */
} mr_vit;

/* Sets all pointers of the model into m->memory; with memory NULL it only counts m->bytes.  saved_all, saved_first:
 * bytes that attention keeps where it has all queries, and one a sample.  False: more bytes than there are addresses.
 */
bool mr_vit_plan(mr_vit *m, size_t saved_all, size_t saved_first);
/* The shape of block i's attention for `count` samples, without pointers. */
mr_attention mr_vit_attention(const mr_vit *m, size_t i, size_t count);

/* Places of dropout. */
static inline uint32_t mr_vit_site_embed(void)
{
    return 0;
}
static inline uint32_t mr_vit_site_gelu(size_t block)
{
    return 1 + 2 * (uint32_t)block;
}
static inline uint32_t mr_vit_site_dense1(size_t block)
{
    return 2 + 2 * (uint32_t)block;
}
mr_dropout mr_vit_dropout(const mr_vit *m, uint32_t site);

/* x [rows, l->in] to y [rows, l->out]. */
void mr_vit_dense_forward(mr_vit *m, const float *values, const mr_vit_dense *l, size_t rows, const void *x, void *y,
                          mr_type y_type);
/* Adds to the gradients of kernel and bias; d_x NULL: not wanted; `accumulate`: added to d_x. */
void mr_vit_dense_back(mr_vit *m, const float *values, float *gradients, const mr_vit_dense *l, size_t rows,
                       const void *x, const void *d_y, void *d_x, bool accumulate);
/* A norm of rows without dropout or sum, and its way back. */
mr_norm mr_vit_norm_of(const mr_vit *m, const float *values, const mr_vit_norm *at, size_t rows);

/* Block i: reads m->branch (the branch of the block before; block 0: its total_a is set), leaves its own there. */
void mr_vit_block_forward(mr_vit *m, const float *values, size_t i);
/* d_stream [few, hidden] (of the last block: d_few, if it sees only first tokens) to d_stream [rows, hidden]. */
void mr_vit_block_back(mr_vit *m, const float *values, float *gradients, size_t i);

#endif
