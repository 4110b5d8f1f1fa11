/* hub.h - Vision Transformers as transformers and timm keep them: hub.c and hub_config.c.
 * Invariant: names are those of ViTForImageClassification, ViTModel, or timm's VisionTransformer. */
#ifndef MR_VIT_HUB_H
#define MR_VIT_HUB_H

#include "train/model/hub.h"

extern const mr_model_hub mr_vit_hub;

/* All parameters but the head's into values[p->total], zeros for that; as mr_model_iface.load. */
mr_status mr_vit_hub_load(const mr_params *p, const char *path, float *values, mr_buf *said, mr_error *err);

mr_status mr_vit_hub_configure(const char *path, mr_model_config *c, mr_error *err);
mr_status mr_vit_hub_describe(const mr_model_config *c, const json_t *facts, mr_buf *config, mr_buf *preprocessor,
                              mr_error *err);

#endif
