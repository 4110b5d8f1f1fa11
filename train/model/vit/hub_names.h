/* hub_names.h - a parameter of ours as a tensor of transformers or timm: its name, its shape, its elements.
 * Invariant: elements are moved, never computed, and writing is the reverse of reading.
 *
 *      ours, as vit_jax: kernels [in, out], patches [y, x, colour, out]
 *      theirs:           weights [out, in], patches [out, colour, y, x] */
#ifndef MR_VIT_HUB_NAMES_H
#define MR_VIT_HUB_NAMES_H

#include "train/model/params.h"

typedef enum mr_vit_dialect {
    MR_VIT_TRANSFORMERS = 0, /* ViTForImageClassification */
    MR_VIT_BARE,             /* ViTModel: without "vit." */
    MR_VIT_TIMM,
    MR_VIT_DIALECTS
} mr_vit_dialect;

typedef struct mr_vit_tensor { /* where a parameter is in the file */
    char name[160];
    unsigned parts, part; /* which part of the tensor's first dimension: 1, 0; timm's query, key and value: 3, 0 to 2 */
} mr_vit_tensor;
void mr_vit_theirs(mr_vit_dialect d, const mr_param *p, mr_vit_tensor *out);

/* The shape of the whole tensor that has `parts` parts like `p`; returns its dimensions. */
unsigned mr_vit_tensor_shape(const mr_param *p, unsigned parts, uint64_t shape[4]);
/* The elements of one part, p->count, to ours or to theirs. */
void mr_vit_convert(const mr_param *p, const float *from, float *to, bool to_ours);
/* to[rows, columns] of from[columns, rows]. */
void mr_vit_transpose(const float *from, float *to, uint64_t rows, uint64_t columns);

#endif
