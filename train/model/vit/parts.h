/* parts.h - what the files of vit/ share: where parameters are, what a block keeps, the model itself.
 * Invariant: every pointer of a block points into one piece of device memory, which plan.c alone divides.
 *
 *      stream ──┬─> norm0 ─> q, k, v ─> attention ─> out ──+──┬─> norm2 ─> Dense_0 ─> GELU ─> Dense_1 ──+─> next
 *      total 0  └──────────────────────────────────────────┘  └──────────────────── total 2 ────────────┘   total 0
 *
 * The sum after a branch is taken by the norm that reads it, so norm0.total of block i + 1 is the output of block i.
 * Only the first token of each sample is read from the last block: queries, out and MLP have `kept` = 1 row per sample
 * there, keys and values have all rows. */
#ifndef MR_VIT_PARTS_H
#define MR_VIT_PARTS_H

#include "train/model/transformer.h"
#include "train/model/vit/vit.h"

/* The members of the interface that take no part in a pass (shape.c, load.c). */
mr_status mr_vit_check(const mr_model_config *c, mr_error *err);
mr_status mr_vit_params(const mr_model_config *c, mr_params *out, mr_error *err);
void mr_vit_costs(const mr_model_config *c, size_t batch, bool training, mr_model_costs *out);
void mr_vit_start(const mr_model_config *c, const mr_params *p, uint64_t seed, float *values);
mr_status mr_vit_load(const mr_model_config *c, const mr_params *p, const char *path, float *values, mr_buf *said,
                      mr_error *err);

typedef struct mr_vit_block_at {
    uint64_t first; /* the first of the block's parameters */
    mr_norm_at norm0, norm2;
    mr_attention_at attention;
    mr_mlp_at mlp;
} mr_vit_block_at;

typedef struct mr_vit_layout {
    mr_image_at image;
    mr_dense head;
    mr_norm_at norm;
    mr_vit_block_at *blocks; /* [layers] */
} mr_vit_layout;

/* Adds the model's parameters to an empty `p` and fills in their offsets; release both, also after a failure. */
mr_status mr_vit_lay_out(const mr_model_config *c, mr_params *p, mr_vit_layout *out, mr_error *err);
void mr_vit_layout_release(mr_vit_layout *l);

/* What one block keeps for its backward pass.  rows = batch * tokens; few = batch * kept. */
typedef struct mr_vit_block {
    size_t kept;                 /* tokens per sample that queries, out and MLP see */
    mr_normed norm0;             /* [rows, hidden] */
    void *first_total, *first_y; /* [few, hidden]: those of norm0, or their first tokens */
    mr_attended attended;        /* q, out: [few, hidden]; k, v: [rows, hidden] */
    mr_normed norm2;             /* [few, hidden] */
    mr_mlp_kept mlp;             /* [few, mlp] */
} mr_vit_block;

typedef struct mr_vit {
    mr_transformer t;
    mr_vit_layout layout;
    size_t tokens;          /* per sample: 1 + patches */
    size_t saved_all;       /* bytes that attention keeps where it has all queries, */
    size_t saved_first;     /* and where it has one per sample */
    mr_vit_block *blocks;   /* [layers]; their memory is apart, or shared (plan.c) */
    void *pixels;           /* [batch * (tokens - 1), patch * patch * 3] */
    void *last_total;       /* [few of the last block, hidden]: its output */
    mr_normed encoded;      /* [batch, hidden]: first tokens of last_total, and after the last norm */
    float *logits, *losses; /* [batch, classes], [batch] */
    void *d_logits;         /* [batch, classes] */
    void *d_other;          /* [batch, classes]: for the other labels of mixed images */
    int32_t *best;          /* [batch] */
    void *d_stream;         /* [rows, hidden]: gradient of the stream */
    void *d_few;            /* [batch, hidden]: gradient of the first tokens, where a block sees only these */
} mr_vit;

/* The plan() of mr_transformer_open(), with saved_all and saved_first set; sets the shapes, too. */
bool mr_vit_plan(mr_transformer *t);
/* The shape of block i's attention for `count` samples, without pointers. */
mr_attention mr_vit_attention(const mr_vit *m, size_t i, size_t count);

/* Sites of dropout; 0 is the embedding. */
static inline mr_dropout mr_vit_gelu_dropout(const mr_vit *m, size_t block)
{
    return mr_dropout_at(&m->t, m->t.config.dropout, 1 + 2 * (uint32_t)block);
}
static inline mr_dropout mr_vit_mlp_dropout(const mr_vit *m, size_t block)
{
    return mr_dropout_at(&m->t, m->t.config.dropout, 2 + 2 * (uint32_t)block);
}

/* Block i: reads t.branch (of the block before; block 0: its norm0.total is set) and leaves its own branch there. */
void mr_vit_block_forward(mr_vit *m, size_t i);
/* Fills in again what block i keeps, from its norm0.total: nothing else of it has to be there. */
void mr_vit_block_again(mr_vit *m, size_t i);
/* d_stream [few, hidden] (of the last block: d_few, if it sees only first tokens) to d_stream [rows, hidden].  `ready`,
 * which may be NULL, is called after each half of the block. */
void mr_vit_block_backward(mr_vit *m, size_t i, mr_gradients_ready ready, void *ctx);

#endif
