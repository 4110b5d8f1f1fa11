/* shrink.h - for codecs: turns rows of grey pixels, from top to bottom, into the small image of an mr_alike.
 * Invariant: memory does not grow with the image. */
#ifndef MR_SHRINK_H
#define MR_SHRINK_H

#include "image/similar/alike.h"

typedef struct mr_shrink_span { /* the pixels of a row that a cell covers */
    uint32_t first, last;
    uint32_t head, tail; /* how much of the first and the last, in 64ths of a pixel; tail 0: they are one */
} mr_shrink_span;

typedef struct mr_shrink {
    uint32_t width, height;                       /* of the image; not 0 */
    uint64_t sums[MR_ALIKE_SIDE * MR_ALIKE_SIDE]; /* zero before the first row, as is the rest */
    mr_shrink_span spans[MR_ALIKE_SIDE];
    bool divided; /* spans are made: by the first row */
} mr_shrink;

/* `grey`: the `width` pixels of row y. */
void mr_shrink_row(mr_shrink *s, uint32_t y, const uint8_t *grey);
void mr_shrink_end(const mr_shrink *s, mr_alike *out);

/* Each of side x side cells becomes the mean of itself and its neighbours. */
void mr_soften(const float *from, int side, float *to);

static inline uint8_t mr_grey_of(unsigned red, unsigned green, unsigned blue)
{
    return (uint8_t)((77 * red + 150 * green + 29 * blue + 128) >> 8); /* ITU-R BT.601, as JPEG's Y */
}

/* Transparent pixels are blended over middle grey: drawings in black and in white both stay visible. */
static inline uint8_t mr_grey_over(unsigned grey, unsigned alpha)
{
    return (uint8_t)((grey * alpha + 128 * (255 - alpha) + 127) / 255);
}

#endif
