/* parts.h - what the files of bridgetower/ share: where parameters are.
 * Invariant: names and shapes are those of transformers' BridgeTowerForContrastiveLearning without text_model.pooler,
 * in the order of the forward pass; a dense layer's kernel is stored [out, in]: y = x kernel^T + bias.
 *
 *      images ─> vision 0 .. split-1 ──┬─> split ──┬─> ...            split = layers - cross_layers + 1
 *      text   ─> text   0 .. split-1 ──┤           ├─> ...
 *                                   cross 0 ──> cross 1 ──> ... ──> poolers ─> head of both */
#ifndef MR_BRIDGETOWER_PARTS_H
#define MR_BRIDGETOWER_PARTS_H

#include "train/model/model_shape.h"
#include "train/model/model.h"

enum { MR_BT_HEAD = 64 };                 /* width of a head of the vision tower: it has hidden / 64 of them */
enum { MR_BT_TEXT = 0, MR_BT_IMAGE = 1 }; /* the two sides of the cross layers */
enum { MR_BT_PAD = 1, MR_BT_FIRST = 2 };  /* padding's id and row of positions; the row of a text's first token */

/* Offsets in the flat buffers. */
typedef struct mr_bt_attention { /* RoBERTa's: an attention, and the norm after the sum */
    mr_attention_at attention;
    mr_norm_at norm;
} mr_bt_attention;

typedef struct mr_bt_layer { /* a layer of text, or a cross layer, which has `cross` as well */
    uint64_t first;          /* the first of its parameters */
    mr_bt_attention self, cross;
    mr_mlp_at mlp;
    mr_norm_at norm;
} mr_bt_layer;

typedef struct mr_bt_block { /* a block of vision */
    uint64_t first;
    mr_norm_at norm1, norm2;
    mr_dense qkv; /* [3 hidden, hidden]: q, k, v stacked */
    mr_dense out;
    mr_mlp_at mlp;
} mr_bt_block;

typedef struct mr_bt_layout {
    uint64_t words, positions, word_type; /* tables [vocab, hidden], [positions, hidden], [1, hidden] */
    mr_norm_at word_norm;
    mr_image_at image; /* its kernel: [hidden, 3, patch, patch] */
    mr_norm_at norm_pre, norm_post;
    mr_bt_layer *text;   /* [layers] */
    mr_bt_block *vision; /* [layers] */
    mr_dense transform[2];
    uint64_t side_type; /* [2, hidden]: token_type_embeddings, row 0 text, row 1 image */
    mr_norm_at cross_norm[2];
    mr_bt_layer *cross[2]; /* [cross_layers] each */
    mr_norm_at *link[2];   /* [cross_layers - 1] each */
    mr_dense pooler[2];
    mr_dense head[3];     /* text, image, both [embed, 2 hidden] */
    uint64_t logit_scale; /* a scalar */
} mr_bt_layout;

/* Adds the model's parameters to an empty `p`, and fills in their offsets; release both, also after a failure.
 * Forward order: text embeddings and layers 0 .. split-1, vision likewise, bridge, then for each j the text layer, the
 * vision block, the links and the cross layers; poolers, heads and logit_scale last. */
mr_status mr_bt_lay_out(const mr_model_config *c, mr_params *p, mr_bt_layout *out, mr_error *err);
void mr_bt_layout_release(mr_bt_layout *l);

/* The members of the interface that take no part in a pass (config.c, shape.c, costs.c, load.c). */
extern const mr_model_config mr_bt_presets[];
mr_status mr_bt_configure(const char *path, mr_model_config *c, mr_error *err);
mr_status mr_bt_describe(const mr_model_config *c, mr_buf *out, mr_error *err);
mr_status mr_bt_check(const mr_model_config *c, mr_error *err);
mr_status mr_bt_params(const mr_model_config *c, mr_params *out, mr_error *err);
void mr_bt_start(const mr_model_config *c, const mr_params *p, uint64_t seed, float *values);
mr_status mr_bt_load(const mr_model_config *c, const mr_params *p, const char *path, float *values, mr_buf *said,
                     mr_error *err);
/* FLOPs and parameters; activation_bytes is counted by plan.c. */
void mr_bt_costs(const mr_model_config *c, size_t batch, bool training, mr_model_costs *out);
uint64_t mr_bt_activation_bytes(const mr_model_config *c, size_t batch, bool training);

#endif
