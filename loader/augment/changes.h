/* changes.h - what happens to the colours of a sample after it was resized, and which part of it is erased.
 * Invariant: what is drawn depends on the seed, the epoch, the sample and the options alone.
 *
 *   mr_augment -> mr_changes of one sample -> colour jitter, in a drawn order -> grey -> erasing      bytes, in place
 * Source: torchvision's transforms v2: ColorJitter, RandomGrayscale, RandomErasing, with other random numbers.  */
#ifndef MR_CHANGES_H
#define MR_CHANGES_H

#include <stdbool.h>

#include "millrace.h"

enum { MR_BRIGHTNESS, MR_CONTRAST, MR_SATURATION, MR_HUE, MR_JITTERS };

typedef struct mr_changes {
    uint8_t order[MR_JITTERS]; /* of the four, those that change anything first: jitters of them */
    unsigned jitters;
    float amount[MR_JITTERS]; /* factors; of the hue a share of the circle */
    bool grey;
    uint32_t left, top, width, height; /* erased; width 0: nothing */
    uint8_t fill[3];
} mr_changes;

/* False: the options change nothing. */
bool mr_augment_is_set(const mr_augment *a);

/* `mean`: of pixel / 255, the colour of what is erased. */
mr_changes mr_changes_draw(const mr_augment *a, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t width,
                           uint32_t height, const float mean[3]);

/* `pixels` pixels of three bytes, in place. */
void mr_jitter(int what, float amount, uint8_t *rgb, size_t pixels);
void mr_grey(uint8_t *rgb, size_t pixels);
/* All of it. */
void mr_changes_apply(const mr_changes *c, uint8_t *rgb, uint32_t width, uint32_t height);

#endif
