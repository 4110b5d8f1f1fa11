/* model_shape.h - how options become numbers: ranges of options, the parameters of layers one after another, random
 * start values.
 * Invariant: the same seed and shape give the same values on every run and device. */
#ifndef MR_MODEL_SHAPE_H
#define MR_MODEL_SHAPE_H

#include "base/random.h"
#include "train/model/params.h"

/* One option's range; MR_MISUSE: "OPTION VALUE: give a number from LEAST to MOST". */
typedef struct mr_range {
    const char *option;
    uint64_t value, least, most;
} mr_range;
mr_status mr_range_check(const mr_range *ranges, size_t count, mr_error *err);
/* MR_MISUSE unless 0 <= value < 1. */
mr_status mr_rate_check(const char *option, double value, mr_error *err);
/* The multiple of `of` that is nearest to `value`, and not 0: for messages. */
uint32_t mr_nearest_multiple(uint32_t value, uint32_t of);

/* ---- layers: offsets in the flat buffers ------------------------------------------------------------------------ */

#define MR_NO_BIAS UINT64_MAX

typedef struct mr_dense { /* y = x kernel + bias */
    uint64_t kernel, bias;
    size_t in, out;
    bool out_first; /* the kernel is stored as [out, in], else as [in, out] */
} mr_dense;

typedef struct mr_norm_at {
    uint64_t gain, bias;
} mr_norm_at;

typedef struct mr_attention_at {
    mr_dense query, key, value, out;
} mr_attention_at;

typedef struct mr_mlp_at {
    mr_dense wide, narrow;
} mr_mlp_at;

typedef struct mr_image_at { /* patches to tokens */
    mr_dense patches;
    uint64_t cls, position; /* [hidden], [1 + grid * grid, hidden] */
    bool channel_first;     /* order of the pixels within a patch */
} mr_image_at;

/* How a file format names and stores the parameters of layers. */
typedef struct mr_param_style {
    const char *gain, *kernel, *bias; /* "/scale": appended to the layer's name */
    bool out_first;
    bool spares_vectors; /* no weight decay of biases and norms */
} mr_param_style;

/* Adds parameters until one fails; its user checks `status` after the last. */
typedef struct mr_adder {
    mr_params *params;
    const mr_param_style *style;
    bool frozen; /* what is added now has no weight decay */
    mr_status status;
    mr_error *err;
} mr_adder;
/* PREFIXNAME; returns its offset, 0 after a failure. */
uint64_t mr_adder_add(mr_adder *a, const char *prefix, const char *name, bool decays, unsigned dims,
                      const uint64_t *shape);
mr_norm_at mr_adder_norm(mr_adder *a, const char *prefix, const char *name, uint64_t width);
mr_dense mr_adder_dense(mr_adder *a, const char *prefix, const char *name, uint64_t in, uint64_t out);

/* ---- start values ----------------------------------------------------------------------------------------------- */

bool mr_param_ends(const char *name, const char *end);
/* Normal with this deviation, cut off at two of them. */
void mr_fill_normal(mr_random *r, double deviation, float *out, uint64_t count);
/* Glorot and Bengio 2010: outputs and gradients keep their size from layer to layer at any width. */
double mr_glorot(uint64_t in, uint64_t out);

#endif
