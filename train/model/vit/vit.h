/* vit.h - what is specific to the Vision Transformer, for the files vit*.c and their tests.
 * Invariant: parameter names and shapes are those of Google's .npz files. */
#ifndef MR_VIT_H
#define MR_VIT_H

#include "train/model/model.h"

#define MR_VIT_EPS 1e-6 /* for norms, if the model does not state it: 1e-5 would move the logits by 1e-4 */

/* The preset shapes: word, patch, hidden, layers, heads, mlp. */
#define MR_VIT_SHAPES(X)                                                                                               \
    X("ViT-B_16", 16, 768, 12, 12, 3072)                                                                               \
    X("ViT-B_32", 32, 768, 12, 12, 3072)                                                                               \
    X("ViT-L_16", 16, 1024, 24, 16, 4096)                                                                              \
    X("ViT-L_32", 32, 1024, 24, 16, 4096)                                                                              \
    X("ViT-H_14", 14, 1280, 32, 16, 5120)

/* Position embedding [1 + from*from, width] for another grid, to [1 + to*to, width]: row 0 copied, the rest bilinear
 * with corners aligned, as scipy.ndimage.zoom(order=1) does it: src = i (from - 1) / (to - 1). */
void mr_vit_resize_positions(const float *in, uint32_t from, float *out, uint32_t to, size_t width);

#endif
