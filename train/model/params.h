/* params.h - the parameters of a model by name: shapes, and their offsets in one flat buffer.
 * Invariant: parameters are in the order of the forward pass, each at a multiple of 16 elements, with zeros between;
 * values, gradients and optimizer state are buffers of `total` float32 each, laid out alike.  So one call updates,
 * reduces or saves them all, and in the backward pass all gradients from some offset on are complete.
 *
 *      values: | cls | 0 | embedding/kernel | embedding/bias | 0 | ... | head/bias | 0 | */
#ifndef MR_PARAMS_H
#define MR_PARAMS_H

#include "base/string_map.h"

enum { MR_PARAM_NAME = 128, MR_PARAM_DIMS = 5 };

typedef struct mr_param {
    char name[MR_PARAM_NAME]; /* the checkpoint's key: "Transformer/encoderblock_0/LayerNorm_0/scale" */
    unsigned dims;
    uint64_t shape[MR_PARAM_DIMS]; /* as in the checkpoint, C order */
    uint64_t offset, count;        /* elements in the flat buffer */
    bool decays;                   /* weight decay acts on it */
} mr_param;

typedef struct mr_params {
    mr_param *items;
    size_t count, capacity;
    mr_string_map by_name;
    uint64_t total;    /* elements of a flat buffer, with the gaps */
    uint64_t elements; /* without them: the usual number of parameters */
} mr_params;

/* Adds a parameter after the others; *offset (may be NULL): its place.  MR_MISUSE: a name twice or too long, a size of
 * 0. */
mr_status mr_params_add(mr_params *p, const char *name, unsigned dims, const uint64_t *shape, bool decays,
                        uint64_t *offset, mr_error *err);
const mr_param *mr_params_find(const mr_params *p, const char *name); /* NULL: none */
void mr_params_release(mr_params *p);
/* A shape as "[3, 4]", for messages. */
void mr_shape_text(unsigned dims, const uint64_t *shape, char *text, size_t size);

/* What loading weights from the file `path` checks; MR_BAD_DATA. */
bool mr_param_fits(const mr_param *p, unsigned dims, const uint64_t *shape);
/* `have`: the shape of the file's array of this name; `advice`: what to do, after a semicolon. */
mr_status mr_param_misfit(const mr_param *p, const char *path, unsigned dims, const uint64_t *have, const char *advice,
                          mr_error *err);
mr_status mr_param_check_finite(const mr_param *p, const char *path, const float *values, mr_error *err);
/* `count` parameters are missing, `first` being the first in the order of the model; MR_OK if 0.  `advice`: with its
 * punctuation. */
mr_status mr_param_missing(const mr_param *first, size_t count, const char *path, const char *advice, mr_error *err);

#endif
