/* hub.h - what a model can do with files of the hub, where its own checkpoints are kept in another format.
 * Invariant: tensors are moved, never computed: what is written and read again has the same bits. */
#ifndef MR_MODEL_HUB_H
#define MR_MODEL_HUB_H

#include "base/json/json.h"
#include "train/model/model.h"

typedef struct mr_model_hub {
    /* Whether `path` is a .safetensors file, an index of several, or a folder that has one of them. */
    bool (*is)(const char *path);
    /* Sizes and rates of config.json into *c; its other members are untouched.  MR_END: the file describes its model in
     * another way (timm's); nothing is changed.  MR_BAD_DATA: another kind of model, or a variant that this one does
     * not have, by name and value. */
    mr_status (*configure)(const char *path, mr_model_config *c, mr_error *err);
    /* The head of the file alone, kernel [hidden, classes] and bias [classes]; the caller frees both.  MR_END: it has
     * none of this width. */
    mr_status (*head)(const char *path, uint32_t hidden, uint32_t *classes, float **kernel, float **bias,
                      mr_error *err);
    /* Writes model.safetensors to an empty open file, as mr_safetensors_write(), and its config.json and
     * preprocessor_config.json to buffers.  `facts`: those of its checkpoint. */
    mr_status (*write)(const mr_params *p, const float *values, int fd, const char *name, mr_error *err);
    mr_status (*describe)(const mr_model_config *c, const json_t *facts, mr_buf *config, mr_buf *preprocessor,
                          mr_error *err);
} mr_model_hub;

#endif
