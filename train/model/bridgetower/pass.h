/* pass.h - what BridgeTower's passes share: what each part keeps for its way back, and the model itself.
 * Invariant: every pointer below lies in one piece of device memory, which plan.c alone divides; rows are
 * dense, sample after sample, so those of texts follow the length of the batch at hand.
 *
 *      layer     x ──┬─> q, k, v ─> attention ─> out ─> + ─> norm ──┬─> wide ─> GELU ─> narrow ─> + ─> norm ─> next x
 *      (text)        └──────────────────────────────────┘           └──────────────────────────────┘
 *      of cross layers the same again between the two, with k and v of the other side
 *
 *      block     stream ──┬─> norm1 ─> qkv ─> attention ─> out ─> + ──┬─> norm2 ─> wide ─> quick GELU ─> narrow ─> + ─>
 *      (vision)           └───────────────────────────────────────┘   └────────────────────────────────────────────┘
 *
 *      bridge    T ─────────────> transform ─> + type of the side ─> + cross stream ─> norm ─> cross layer, both sides
 *                V ─> norm_post ─> ...                              (not the first)
 *
 * The sum behind a block is taken by the norm that reads it: norm1 of the next one, or norm_post at a bridge. */
#ifndef MR_BRIDGETOWER_PASS_H
#define MR_BRIDGETOWER_PASS_H

#include "bridgetower/parts.h"
#include "model/contrast.h"
#include "model/memory_plan.h"

typedef struct mr_bt_normed { /* a norm: what went in, what came out */
    void *total, *y;          /* [rows, hidden] */
    float *mean, *rstd;       /* [rows] */
} mr_bt_normed;

typedef struct mr_bt_attended { /* an attention of a layer, and the norm behind it */
    const void *x, *from;       /* of the last pass: the rows that ask, and those that answer */
    void *q, *k, *v, *out;
    mr_bt_normed norm;
    mr_attention attention;
} mr_bt_attended;

typedef struct mr_bt_kept_layer {
    unsigned side;              /* whose rows go through it */
    bool first_only;            /* nothing reads its output but the first token of each sample */
    uint32_t site;              /* the first of its places of dropout */
    void *first;                /* [count, hidden]: first tokens of x, if first_only */
    mr_bt_attended self, cross; /* text layers have no cross */
    void *wide, *active;        /* before and after the GELU */
    mr_bt_normed norm;
} mr_bt_kept_layer;

typedef struct mr_bt_kept_block {
    mr_bt_normed norm1, norm2; /* norm1.total: the stream that enters the block */
    void *qkv, *out;           /* [rows, 3 hidden], [rows, hidden] */
    void *wide, *active;
    mr_attention attention;
} mr_bt_kept_block;

typedef struct mr_bt_bridge { /* of one side */
    const void *x;            /* what the transform read */
    mr_bt_normed post, norm;  /* post: pictures only */
} mr_bt_bridge;

typedef struct mr_bt {
    mr_model base;
    mr_model_config config;
    mr_device *device;
    mr_bt_layout layout;
    mr_contrast *contrast;
    unsigned world;             /* ranks that the contrast is planned for */
    size_t batch;               /* planned for */
    size_t grid, split;         /* patches a side; layers of a tower before the first bridge */
    bool training;              /* a way back was planned */
    bool learns[2];             /* the tower of this side has a way back */
    bool keeps[2], keeps_cross; /* layers do not share their memory */
    size_t tokens[2];           /* rows a sample: of the texts at hand, of pictures */
    mr_model_input in;          /* of the last forward pass */
    mr_model_output out;
    const float *values; /* of the pass that runs */
    float *gradients;
    void *memory;
    size_t bytes;

    mr_bt_normed words, pre;          /* embeddings and their norms */
    void *pixels;                     /* [pictures * grid * grid, 3 * patch * patch] */
    void *last_total;                 /* the stream behind the last block */
    mr_bt_kept_layer *text;           /* [layers] */
    mr_bt_kept_block *vision;         /* [layers] */
    mr_bt_bridge *bridge[2];          /* [cross_layers] */
    mr_bt_kept_layer *cross[2];       /* [cross_layers] */
    void *first[2], *pooler, *pooled; /* [batch, hidden]; [batch, 2 hidden]: before and after the tanh */
    void *head_x[2];                  /* [batch, hidden]: what the heads of text and picture read */
    float *head_y[3];                 /* [batch, embed] */

    void *branch;                   /* [most rows, hidden]: what a branch adds; its gradient on the way back */
    void *d_wide;                   /* [most rows, max(mlp, 4 hidden)]: inside of an MLP or an attention */
    void *d_stream[2], *d_cross[2]; /* [rows, hidden]: gradients of the towers' streams, of the cross streams */
    void *d_spare[2], *d_other[2];  /* [rows, hidden]: they change places with the ones above */
    void *d_head_y[3], *d_head_x[2], *d_pooled, *d_few[2]; /* d_few: [batch, hidden] */
    float *d_scale;
} mr_bt;

/* ---- plan.c --------------------------------------------------------------------------------------- */

/* Bytes that attention keeps: [asking side][answering side][first tokens only], and in a block of vision. */
typedef struct mr_bt_saved {
    size_t cross[2][2][2], vision;
} mr_bt_saved;

/* Sizes and the lists of parts, without memory of the device; mr_bt_unmake() in any case. */
bool mr_bt_make(mr_bt *m, const mr_model_config *c, size_t batch, bool training);
void mr_bt_unmake(mr_bt *m);
/* Asks the device about every shape that a pass may have, for texts of every length. */
mr_status mr_bt_plan_attention(const mr_bt *m, mr_device *d, mr_bt_saved *out, mr_error *err);
/* Sets all pointers into m->memory; with memory NULL it only counts m->bytes.  False: more bytes than addresses. */
bool mr_bt_plan(mr_bt *m, const mr_bt_saved *saved);
/* Attention without pointers, for m->tokens: of a layer, of a block. */
mr_attention mr_bt_layer_attention(const mr_bt *m, size_t count, unsigned side, unsigned from, bool first_only);
mr_attention mr_bt_block_attention(const mr_bt *m, size_t count);

/* ---- dense.c -------------------------------------------------------------------------------------- */

static inline size_t mr_bt_rows(const mr_bt *m, unsigned side)
{
    return m->in.count * m->tokens[side];
}
static inline void mr_bt_swap(void **a, void **b)
{
    void *kept = *a;
    *a = *b;
    *b = kept;
}

/* Places of dropout: 0 is the text's embedding, then five a layer, those of text first. */
enum { MR_BT_SITE_SELF = 0, MR_BT_SITE_SELF_OUT, MR_BT_SITE_CROSS, MR_BT_SITE_CROSS_OUT, MR_BT_SITE_MLP, MR_BT_SITES };
mr_dropout mr_bt_dropout(const mr_bt *m, double rate, uint32_t site);

/* x [rows, l->in] to y [rows, l->out]. */
void mr_bt_dense_forward(const mr_bt *m, const mr_bt_dense *l, size_t rows, const void *x, void *y, mr_type y_type);
/* Adds to the gradients of kernel and bias; d_x NULL: not wanted; `accumulate`: added to d_x. */
void mr_bt_dense_back(const mr_bt *m, const mr_bt_dense *l, size_t rows, const void *x, const void *d_y, void *d_x,
                      bool accumulate);
/* d_kernel [out, in] += d_y^T x. */
void mr_bt_kernel_back(const mr_bt *m, uint64_t kernel, size_t out, size_t in, size_t rows, const void *x,
                       const void *d_y);
/* k->y = norm of (x after dropout + residual), which is kept as k->total; x may be k->total, without residual. */
void mr_bt_norm_forward(const mr_bt *m, const mr_bt_norm *at, const mr_bt_normed *k, size_t rows, const void *x,
                        const void *residual, size_t sample_rows, mr_dropout dropout);
void mr_bt_norm_back(const mr_bt *m, const mr_bt_norm *at, const mr_bt_normed *k, size_t rows, const void *d_y,
                     const void *d_residual, void *d_total);
/* The first row of each sample: out of rows `from_rows` a sample, to where there are `to_rows`. */
void mr_bt_first_rows(const mr_bt *m, const void *from, size_t from_rows, void *to, size_t to_rows, bool accumulate);

/* ---- the parts ------------------------------------------------------------------------------------------------ */

/* layer.c: a layer of text (other NULL), or a cross layer, which reads `other`, rows of the other side. */
void mr_bt_layer_forward(mr_bt *m, const mr_bt_layer *at, mr_bt_kept_layer *k, const void *x, const void *other);
/* *d, the gradient of the output, becomes that of x; it and the side's spare change places.  d_other gets that of
 * `other`, added if `other_more`.  Of a layer of first tokens *d is that of the first token of x alone, and d_x gets
 * what comes by keys and values, added if `x_more`. */
typedef struct mr_bt_layer_way {
    void **d;
    void *d_other, *d_x;
    bool other_more, x_more;
} mr_bt_layer_way;
void mr_bt_layer_back(mr_bt *m, const mr_bt_layer *at, const mr_bt_kept_layer *k, const mr_bt_layer_way *way);

/* text.c, _vision.c: layer or block i; the tower's embedding. */
void mr_bt_words_forward(mr_bt *m);
void mr_bt_text_forward(mr_bt *m, size_t i);
void mr_bt_text_back(mr_bt *m, size_t i);
void mr_bt_words_back(mr_bt *m);
void mr_bt_pictures_forward(mr_bt *m);
void mr_bt_vision_forward(mr_bt *m, size_t i); /* what it adds to its norm2.total is left in m->branch */
void mr_bt_vision_back(mr_bt *m, size_t i);
void mr_bt_pictures_back(mr_bt *m);

/* cross.c: bridge j of one side, right after the layer or block that it reads; cross layers j. */
void mr_bt_bridge_forward(mr_bt *m, unsigned side, size_t j);
void mr_bt_cross_forward(mr_bt *m, size_t j);
void mr_bt_cross_back(mr_bt *m, size_t j);
void mr_bt_bridge_back(mr_bt *m, unsigned side, size_t j);

/* head.c: poolers, heads and losses. */
void mr_bt_head_forward(mr_bt *m);
void mr_bt_head_back(mr_bt *m);

#endif
