/* head_hub.h - the head of a model of the hub, whose classes config.json names, and what else is beside the weights.
 * Invariant: nothing is loaded unless config.json names each of the head's classes. */
#ifndef MR_HEAD_HUB_H
#define MR_HEAD_HUB_H

#include "train/checkpoint/checkpoint.h"
#include "train/model/hub.h"

/* The file `name` in the folder of `weights`, or beside that file; false: there is none. */
bool mr_hub_beside(const char *weights, const char *name, char *found, size_t size);

/* Fills in what mr_head_take() needs of an older model of this width: head/kernel, head/bias, and their classes.  The
 * caller releases in any case.  MR_END: no head of this width, or no names (or as many) of its classes. */
mr_status mr_head_hub_read(const mr_model_hub *hub, const char *weights, uint32_t hidden, mr_checkpoint *out,
                           mr_error *err);

/* A remark if preprocessor_config.json, or timm's config.json, has another mean or deviation of colours than 0.5, which
 * is what images are normalised by. */
mr_status mr_hub_check_colours(const char *weights, mr_buf *said, mr_error *err);

#endif
