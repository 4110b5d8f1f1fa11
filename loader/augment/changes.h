/* changes.h - what happens to the pixels of a sample after it was resized.
 * Invariant: what is drawn depends on the seed, the epoch, the sample and the options alone.
 *
 *   mr_augment -> mr_changes of one sample -> operations of a policy -> colour jitter, in a drawn order -> grey -> blur
 *              -> erasing                                                                          bytes, in place
 * Source: torchvision's transforms v2: ColorJitter, RandomGrayscale, GaussianBlur, RandomErasing, with other random
 * numbers. */
#ifndef MR_CHANGES_H
#define MR_CHANGES_H

#include <stdbool.h>

#include "loader/augment/policy.h"
#include "millrace.h"

enum { MR_BLUR_SIGMA_MOST = 10 };
enum { MR_BRIGHTNESS, MR_CONTRAST, MR_SATURATION, MR_HUE, MR_JITTERS };

typedef struct mr_changes {
    uint8_t order[MR_JITTERS]; /* the order of the four; the first `jitters` of them change anything */
    unsigned jitters;
    float amount[MR_JITTERS]; /* factors; for the hue, a share of the circle */
    bool grey;
    float sigma; /* the blur's sigma; 0: none */
    unsigned op_count;
    mr_policy_op ops[MR_POLICY_MOST];
    uint32_t left, top, width, height; /* erased; width 0: nothing */
    uint8_t fill[3];
} mr_changes;

/* False: the options change nothing. */
bool mr_augment_is_set(const mr_augment *a);

/* `mean`: the colour of what is erased, as pixel / 255. */
mr_changes mr_changes_draw(const mr_augment *a, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t width,
                           uint32_t height, const float mean[3]);

/* `pixels` pixels of three bytes, in place. */
void mr_jitter(int what, float amount, uint8_t *rgb, size_t pixels);
void mr_grey(uint8_t *rgb, size_t pixels);
/* `scratch`: as many floats as the image has bytes. */
void mr_blur(float sigma, uint8_t *rgb, uint32_t width, uint32_t height, float *scratch);
/* All of it; `scratch`: mr_changes_scratch() bytes, aligned for floats. */
void mr_changes_apply(const mr_changes *c, uint8_t *rgb, uint32_t width, uint32_t height, void *scratch);
size_t mr_changes_scratch(const mr_changes *c, uint32_t width, uint32_t height);

#endif
