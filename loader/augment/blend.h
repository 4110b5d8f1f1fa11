/* blend.h - two samples of a batch mixed with one another: mixup and cutmix.
 * Invariant: what is drawn depends on seed, epoch and the pair's place in the order alone; both samples of a pair are
 * changed at once, each keeping the same share of itself.
 * Sources: Zhang et al., mixup: Beyond Empirical Risk Minimization, 2018; Yun et al., CutMix, 2019; where both are
 * asked for, each pair gets one of them, as torchvision's RandomChoice of MixUp and CutMix. */
#ifndef MR_BLEND_H
#define MR_BLEND_H

#include "millrace.h"

typedef struct mr_blend {
    float share;                       /* the share of the own image and label, 0 to 1 */
    uint32_t left, top, width, height; /* cutmix: the box that is exchanged, in pixels; may be empty */
    int boxed;                         /* cutmix, otherwise mixup */
} mr_blend;

/* Draws the blend of pair number `pair` of an epoch: share is from Beta(alpha, alpha); with cutmix it is then the area
 * outside the box, which is cut at the borders.  At least one of the alphas is above 0. */
mr_blend mr_blend_draw(float mixup, float cutmix, uint64_t seed, uint64_t epoch, uint64_t pair, uint32_t width,
                       uint32_t height);

/* Both decoded images of a pair, delivered as `deliver` says; 8 bits are rounded to nearest. */
void mr_blend_apply(const mr_blend *b, mr_delivery deliver, void *one, void *other, uint32_t width, uint32_t height);

#endif
