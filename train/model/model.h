/* model.h - what a model is to the trainer: one interface per model.
 *
 *      model_shape, params, memory_plan <- transformer <- vit/, bridgetower/ <- model (the table)
 *      optimizer; contrast: losses of pairs, over all ranks (exchange/peers.h)
 *
 * Invariant: a model owns its activations (planned once for the largest micro-batch; no step allocates) and knows
 * nothing of ranks, checkpoints or optimizers; parameters and gradients are the caller's flat buffers. */
#ifndef MR_MODEL_H
#define MR_MODEL_H

#include "device/device.h"
#include "train/files/npz.h"
#include "train/model/params.h"

typedef struct mr_model_iface mr_model_iface;

/* What a model is built from; kept in every checkpoint. */
typedef struct mr_model_config {
    const mr_model_iface *iface;
    char name[32];         /* "ViT-B_16", or the interface's word for a custom shape */
    uint32_t image, patch; /* pixels per side */
    uint32_t hidden, layers, heads, mlp, classes;
    double dropout;   /* 0 <= dropout < 1 */
    mr_type compute;  /* type of the activations */
    bool every_token; /* also compute what no output needs, for tests; off: 7 % less work */
    bool recompute;   /* keep only the inputs of blocks; the backward pass computes the rest again.  Not part of the
                       * shape, and not in a checkpoint: the results have the same bits */
    /* For models of images and text; 0 in others. */
    uint32_t cross_layers, vocab, positions, embed; /* positions: rows of the table of text positions */
    uint32_t text;                                  /* most tokens of a text */
    double attention_dropout;                       /* dropout of attention's probabilities */
    double norm_eps, logit_scale;                   /* logit_scale: the start value */
    unsigned frozen;                                /* bits of mr_frozen: these parameters are not trained */
    /* For models of images alone. N: the embedding and the first N blocks are not trained; layers + 1: nothing but the
     * head is. */
    uint32_t frozen_layers;
} mr_model_config;

enum mr_frozen { MR_FROZEN_IMAGES = 1, MR_FROZEN_TEXT = 2 };

/* One micro-batch, on the device.  count may be less than the batch planned for, but not 0. */
typedef struct mr_model_input {
    size_t count;
    bool training;         /* dropout acts, and a backward pass may follow */
    const float *images;   /* [count, 3, image, image] */
    const int32_t *labels; /* [count] */
    const float *weights;  /* [count]; NULL: all 1 */
    const float *targets;  /* [count, classes], 0 to 1: several labels; NULL: one, in labels */
    const float *positive; /* [classes]: weights of positives, with targets; NULL: all 1 */
    float smoothing;       /* smoothing of a single label */
    /* Images mixed of two: the other's label, and its weight (that of labels is then the rest's); a label below 0 has
     * weight 0.  NULL: none is mixed. */
    const int32_t *other_labels; /* [count] */
    const float *other_weights;  /* [count] */
    const uint64_t *keys;        /* [count]: seeds of dropout; needed when training with dropout */
    /* For models of images and text, which do not read labels. */
    const int32_t *tokens, *places; /* [count, length]: ids below vocab; rows of the table of positions */
    const uint8_t *seen;            /* [count, length]: 1 a token, 0 padding */
    size_t length;                  /* length of the batch's longest text, 1 <= length <= config.text */
    const int32_t *groups;          /* [count]: images of one group are not negatives of one another; NULL: all are */
    struct mr_peers *peers;         /* the negatives are those of all ranks; NULL: of this batch */
} mr_model_input;

/* Lent by the model until its next forward pass, on the device. */
typedef struct mr_model_output {
    const float *losses;        /* [count], times weight; the loss of a batch is their sum over the sum of weights */
    const float *logits;        /* [count, classes]; NULL: the model has no classes */
    const int32_t *best;        /* [count]: the class with the largest logit; NULL */
    const float *embeddings[3]; /* [count, embed] each, of length 1: for the text, the image, and both; NULL: none */
} mr_model_output;

/* Called in the backward pass: all gradients from offset `from` on are complete on the device's queue.  The last call,
 * after all operations, is with 0. */
typedef void (*mr_gradients_ready)(void *ctx, uint64_t from);

typedef struct mr_model_costs {
    uint64_t parameters;
    double forward_flops, training_flops; /* per sample; matmuls only, 2 per multiply-add, no recomputation */
    uint64_t activation_bytes;            /* for this batch, without what a device's attention keeps */
} mr_model_costs;

typedef struct mr_model mr_model;

struct mr_model_iface {
    const char *name; /* "vit" */
    const char *what;
    bool text;                      /* learns from pairs of image and text; else from labels */
    const mr_model_config *presets; /* shapes with a name; after the last, one without a name */
    /* The hub's config.json: sizes and rates into *c, and the other way.  NULL: checkpoints are not in the hub's
     * format; otherwise weights are kept as there, model.safetensors beside config.json.  configure: MR_BAD_DATA names
     * the file and a value that this model does not support. */
    mr_status (*configure)(const char *path, mr_model_config *c, mr_error *err);
    mr_status (*describe)(const mr_model_config *c, mr_buf *out, mr_error *err);
    /* MR_MISUSE names the option that does not fit and the nearest value that does. */
    mr_status (*check)(const mr_model_config *c, mr_error *err);
    /* The parameters, in forward order; nothing large is allocated. */
    mr_status (*params)(const mr_model_config *c, mr_params *out, mr_error *err);
    void (*costs)(const mr_model_config *c, size_t batch, bool training, mr_model_costs *out);
    /* Start values: random by `seed` (kernels by Glorot's rule, zeros for biases and head, ones for norms),
     * written to values[p->total] on the host. */
    void (*start)(const mr_model_config *c, const mr_params *p, uint64_t seed, float *values);
    /* Pretrained weights: writes all of values[p->total], so that start() need not have run.  `said` gets one line per
     * remark ("head left out: 21,843 classes, ...").  MR_BAD_DATA names the file, the key and both shapes. */
    mr_status (*load)(const mr_model_config *c, const mr_params *p, const char *path, float *values, mr_buf *said,
                      mr_error *err);
    const struct mr_model_hub *hub; /* files of the hub, for a model whose checkpoints differ; NULL: not known */
    mr_status (*open)(const mr_model_config *c, const mr_params *p, mr_device *d, size_t batch, bool training,
                      mr_model **out, mr_error *err);
    void (*close)(mr_model *m);
    void (*forward)(mr_model *m, const float *values, const mr_model_input *in, mr_model_output *out);
    /* After a forward pass with training set: adds the gradients of the SUM of losses to gradients[total].
     * `ready` may be NULL. */
    void (*backward)(mr_model *m, const float *values, float *gradients, mr_gradients_ready ready, void *ctx);
    /* An activation of the last forward pass by name, for tests: "embed", "block_0", "encoded_cls"; NULL: not kept.
     * *count: elements.  On the device, of the type that the model computes in. */
    const void *(*look)(const mr_model *m, const char *name, size_t *count);
};

struct mr_model { /* the first member of every model's own struct */
    const mr_model_iface *iface;
};

/* All models, one word each (train/model/model.c). */
#define MR_MODELS(X) X(vit) X(bridgetower)
#define X(word)      extern const mr_model_iface mr_model_##word;
MR_MODELS(X)
#undef X

/* "ViT-B_16" or "vit": the interface, and a preset's shape with an image size of 224 (classes, dropout, types
 * untouched). An interface's own word has no shape: its sizes become 0, for the caller to give.  MR_MISUSE: no such
 * model, with the nearest word. */
mr_status mr_model_find(const char *word, mr_model_config *out, mr_error *err);

/* What open() of every model checks first: the model's check(), a batch, a type that the device computes.
 * MR_MISUSE. */
mr_status mr_model_fits(const mr_model_config *c, const mr_device *d, size_t batch, mr_error *err);

#endif
