/* pass.h - what BridgeTower's passes share: what each part keeps for its backward pass, and the model itself.
 * Invariant: every pointer below points into one piece of device memory, which plan.c alone divides; rows are
 * dense, sample after sample, so those of texts depend on the length of the batch.
 *
 *      layer     x ──┬─> q, k, v ─> attention ─> out ─> + ─> norm ──┬─> wide ─> GELU ─> narrow ─> + ─> norm ─> next x
 *      (text)        └──────────────────────────────────┘           └──────────────────────────────┘
 *      in cross layers the same again between the two, with k and v of the other side
 *
 *      block     stream ──┬─> norm1 ─> qkv ─> attention ─> out ─> + ──┬─> norm2 ─> wide ─> quick GELU ─> narrow ─> + ─>
 *      (vision)           └───────────────────────────────────────┘   └────────────────────────────────────────────┘
 *
 *      bridge    T ─────────────> transform ─> + type of the side ─> + cross stream ─> norm ─> cross layer, both sides
 *                V ─> norm_post ─> ...                              (not the first)
 *
 * The sum after a block is taken by the norm that reads it: norm1 of the next one, or norm_post at a bridge. */
#ifndef MR_BRIDGETOWER_PASS_H
#define MR_BRIDGETOWER_PASS_H

#include "train/model/bridgetower/parts.h"
#include "train/model/contrast.h"
#include "train/model/transformer.h"

typedef struct mr_bt_attended { /* an attention of a layer, and the norm after it */
    mr_attended attended;
    mr_normed norm;
} mr_bt_attended;

typedef struct mr_bt_kept_layer {
    unsigned side;              /* whose rows go through it */
    bool first_only;            /* only the first token of each sample is read of its output */
    uint32_t site;              /* the first of its sites of dropout */
    void *first;                /* [count, hidden]: first tokens of x, if first_only */
    mr_bt_attended self, cross; /* text layers have no cross */
    mr_mlp_kept mlp;
    mr_normed norm;
} mr_bt_kept_layer;

typedef struct mr_bt_kept_block {
    mr_normed norm1, norm2; /* norm1.total: the stream that enters the block */
    void *qkv, *out;        /* [rows, 3 hidden], [rows, hidden] */
    mr_mlp_kept mlp;
    mr_attention attention;
} mr_bt_kept_block;

typedef struct mr_bt_bridge { /* the bridge of one side */
    const void *x;            /* what the transform read */
    mr_normed post, norm;     /* post: images only */
} mr_bt_bridge;

/* Bytes that attention keeps: [side of the queries][side of the keys][first tokens only], and in a block of vision. */
typedef struct mr_bt_saved {
    size_t cross[2][2][2], vision;
} mr_bt_saved;

typedef struct mr_bt {
    mr_transformer t;
    mr_bt_layout layout;
    mr_contrast *contrast;
    unsigned world; /* ranks that the contrast is planned for */
    size_t split;   /* layers of a tower before the first bridge */
    mr_bt_saved saved;
    bool learns[2];             /* the tower of this side has a backward pass */
    bool keeps[2], keeps_cross; /* layers do not share their memory */
    bool again[2];              /* layers of this tower share it, but for their inputs, and run again (recompute) */
    size_t tokens[2];           /* rows per sample: for the texts of the batch, for images */
    mr_model_output out;

    mr_normed words, pre;             /* embeddings and their norms */
    void *pixels;                     /* [batch * grid * grid, 3 * patch * patch] */
    void *last_total;                 /* the stream after the last block */
    mr_bt_kept_layer *text;           /* [layers] */
    mr_bt_kept_block *vision;         /* [layers] */
    mr_bt_bridge *bridge[2];          /* [cross_layers] */
    mr_bt_kept_layer *cross[2];       /* [cross_layers] */
    void *first[2], *pooler, *pooled; /* [batch, hidden]; [batch, 2 hidden]: before and after the tanh */
    void *head_x[2];                  /* [batch, hidden]: what the heads of text and image read */
    float *head_y[3];                 /* [batch, embed] */

    void *d_stream[2], *d_cross[2]; /* [rows, hidden]: gradients of the towers' streams, of the cross streams */
    void *d_spare[2], *d_other[2];  /* [rows, hidden]: they change places with the ones above */
    void *d_head_y[3], *d_head_x[2], *d_pooled, *d_few[2]; /* d_few: [batch, hidden] */
    float *d_scale;
} mr_bt;

/* ---- plan.c --------------------------------------------------------------------------------------- */

/* Sizes and the lists of parts, without memory of the device; mr_bt_unmake() in any case. */
bool mr_bt_make(mr_bt *m, const mr_model_config *c, size_t batch, bool training);
void mr_bt_unmake(mr_bt *m);
/* Asks the device about every shape that a pass may have, for texts of every length; sets m->saved. */
mr_status mr_bt_plan_attention(mr_bt *m, mr_error *err);
/* The plan() of mr_transformer_open(). */
bool mr_bt_plan(mr_transformer *t);
/* Attention without pointers, for m->tokens: that of a layer, that of a block. */
mr_attention mr_bt_layer_attention(const mr_bt *m, size_t count, unsigned side, unsigned from, bool first_only);
mr_attention mr_bt_block_attention(const mr_bt *m, size_t count);

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

static inline size_t mr_bt_rows(const mr_bt *m, unsigned side)
{
    return m->t.in.count * m->tokens[side];
}
static inline void mr_bt_swap(void **a, void **b)
{
    void *kept = *a;
    *a = *b;
    *b = kept;
}

/* Sites of dropout: 0 is the text's embedding, then five per layer, those of text first. */
enum { MR_BT_SITE_SELF = 0, MR_BT_SITE_SELF_OUT, MR_BT_SITE_CROSS, MR_BT_SITE_CROSS_OUT, MR_BT_SITE_MLP, MR_BT_SITES };

/* ---- the parts ------------------------------------------------------------------------------------------------ */

/* layer.c: a layer of text (other NULL), or a cross layer, which reads `other`, rows of the other side. */
void mr_bt_layer_forward(mr_bt *m, const mr_bt_layer *at, mr_bt_kept_layer *k, const void *x, const void *other);
/* Where the gradients of one attention go: *d, the gradient of its output, becomes that of its queries' rows (it and
 * the side's spare change places); d_from gets that of the rows of keys and values, added if `from_more`.  NULL: these
 * are the rows of the queries. */
typedef struct mr_bt_layer_gradients {
    void **d, *d_from;
    bool from_more;
} mr_bt_layer_gradients;
/* `self` and `cross` share *d; cross NULL: a layer of text.  In a layer of first tokens *d is that of the first tokens
 * alone, and self->d_from gets what comes through keys and values. */
void mr_bt_layer_backward(mr_bt *m, const mr_bt_layer *at, const mr_bt_kept_layer *k, const mr_bt_layer_gradients *self,
                          const mr_bt_layer_gradients *cross);

/* text.c, vision.c: layer or block i; the tower's embedding. */
void mr_bt_text_embedding_forward(mr_bt *m);
void mr_bt_text_forward(mr_bt *m, size_t i);
void mr_bt_text_backward(mr_bt *m, size_t i); /* with `again`: fills in first what the layer kept */
void mr_bt_text_embedding_backward(mr_bt *m);
void mr_bt_image_embedding_forward(mr_bt *m);
void mr_bt_vision_forward(mr_bt *m, size_t i);  /* what it adds to its norm2.total is left in t.branch */
void mr_bt_vision_backward(mr_bt *m, size_t i); /* the same */
void mr_bt_image_embedding_backward(mr_bt *m);

/* cross.c: bridge j of one side, right after the layer or block that it reads; cross layers j. */
void mr_bt_bridge_forward(mr_bt *m, unsigned side, size_t j);
void mr_bt_cross_forward(mr_bt *m, size_t j);
void mr_bt_cross_backward(mr_bt *m, size_t j);
void mr_bt_bridge_backward(mr_bt *m, unsigned side, size_t j);

/* head.c: poolers, heads and losses. */
void mr_bt_head_forward(mr_bt *m);
void mr_bt_head_backward(mr_bt *m);

#endif
