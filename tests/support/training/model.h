/* model.h - a small model on a device with its buffers, for tests of models.
 * Invariant: everything goes to and from the device by its iface, so that any device can be asked:
 * MILLRACE_TEST_DEVICE, "cpu" if it is not set. */
#ifndef MR_SUPPORT_MODEL_H
#define MR_SUPPORT_MODEL_H

#include "train/model/model.h"
#include "tests/support/support.h"

typedef struct support_model {
    mr_model_config config;
    mr_params params;
    mr_device *device;
    mr_model *model;
    size_t batch;
    float *values, *gradients;               /* on the device, [params.total] */
    float *host;                             /* values on the host; support_model_put() sends them */
    float *images, *weights, *other_weights; /* on the device, room for the batch */
    int32_t *labels, *other_labels;
    uint64_t *keys;
    mr_model_output out; /* of the last pass */
    size_t count;
} support_model;

mr_device *support_device(unsigned threads); /* mr_device_close() */

bool support_device_computes(mr_type type);

support_model *support_model_open(const mr_model_config *config, size_t batch, bool training, unsigned threads);
void support_model_close(support_model *s); /* NULL is fine */
void support_model_put(support_model *s);

/* Host memory; weights NULL: all 1; keys NULL: 0, 1, 2, ... */
typedef struct support_input {
    size_t count;
    bool training;
    const float *images;
    const int32_t *labels;
    const float *weights;
    const uint64_t *keys;
    const int32_t *other_labels; /* NULL: no image is mixed */
    const float *other_weights;
} support_input;

/* The sum of losses, in double. */
double support_model_forward(support_model *s, const support_input *in);
/* The gradients of the pass just done, added to what was there. */
void support_model_back(support_model *s, mr_gradients_ready ready, void *ctx);
void support_model_zero(support_model *s); /* the gradients */

/* From the device, on the heap. */
float *support_model_gradients(const support_model *s);
float *support_model_values(const support_model *s);
float *support_model_logits(const support_model *s);
float *support_model_look(const support_model *s, const char *name, size_t *count); /* NULL: not kept */

/* open() takes no batch of 0, none that no memory holds, no type that the device cannot compute, no parameters but its
 * own: those of `other` are of another shape. */
void support_model_refusals(const mr_model_config *config, const mr_model_config *other);

#endif
