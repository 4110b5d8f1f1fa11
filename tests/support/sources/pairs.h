/* pairs.h - a small model of pictures and words on a device, for tests: what support/model.h is to labels.
 * Invariant: everything goes to and from the device by its iface; a text's places follow from what of it is seen. */
#ifndef MR_SUPPORT_PAIRS_H
#define MR_SUPPORT_PAIRS_H

#include "tests/support/training/model.h"

typedef struct support_pairs {
    support_model *model;
    int32_t *tokens, *places, *groups; /* on the device, room for the batch */
    uint8_t *seen;
} support_pairs;

support_pairs *support_pairs_open(const mr_model_config *config, size_t batch, bool training, unsigned threads);
void support_pairs_close(support_pairs *s); /* NULL is fine */

/* Host memory; weights, groups, peers NULL: none; keys NULL: 0, 1, 2, ...  Text i is at tokens + i * stride. */
typedef struct support_pairs_input {
    size_t count, length, stride;
    bool training;
    const float *images;
    const int32_t *tokens;
    const uint8_t *seen;
    const float *weights;
    const uint64_t *keys;
    const int32_t *groups;
    struct mr_peers *peers;
} support_pairs_input;

/* The smallest shape that has everything, with dropout. */
mr_model_config support_pairs_small(void);
/* The sum of losses, in double. */
double support_pairs_forward(support_pairs *s, const support_pairs_input *in);
float *support_pairs_embeddings(const support_pairs *s, int which); /* on the heap: 0 text, 1 picture, 2 both */

/* The gradients of one pass forward and backward, on the heap. */
float *support_pairs_gradients(support_pairs *s, const support_pairs_input *in);
/* A model with drawn values as large as trained ones, nothing zero. */
support_pairs *support_pairs_model(const mr_model_config *config, size_t batch, bool training, unsigned threads);

/* Drawn pairs: texts of 2 tokens to all but `spare`, then padding up to config.text. */
enum { SUPPORT_PAIRS = 4 };
typedef struct support_pairs_batch {
    float *images;
    int32_t *tokens;
    uint8_t *seen;
    float weights[SUPPORT_PAIRS];
    uint64_t keys[SUPPORT_PAIRS];
    int32_t groups[SUPPORT_PAIRS]; /* the last two are of one group */
    size_t pixels, text, length;   /* length: up to which some text goes */
} support_pairs_batch;
support_pairs_batch support_pairs_draw(const mr_model_config *config, size_t spare);
void support_pairs_batch_free(support_pairs_batch *b);
/* Pairs [first, first + count) for training, with all there is. */
support_pairs_input support_pairs_of(const support_pairs_batch *b, size_t first, size_t count);

/* Numbers alone: a shape without an interface, and its parameters; the caller releases them. */
mr_model_config support_pairs_shape(void);
mr_params support_pairs_params(const mr_model_config *config);

#endif
