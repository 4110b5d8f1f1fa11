/* overlay.h - private to alike.c: one small grey image laid over another, and how well they agree.
 * Invariant: brightness and contrast change nothing.
 *
 * What is measured is, over blocks, the correlation between both images' details in a block.  Computing it per block
 * limits the effect of a square that was cut out or of a black corner in a rotated copy; each block's slope is removed
 * because all shading looks alike. */
#ifndef MR_OVERLAY_H
#define MR_OVERLAY_H

#include "image/similar/alike.h"

enum { MR_ACROSS_MAX = 6, MR_BLOCKS_MAX = MR_ACROSS_MAX * MR_ACROSS_MAX }; /* blocks of a row; of a level */

typedef struct mr_level {
    int side, margin; /* side of the images; width of the border, which is not compared, as a copy may lack it */
    int block, step;  /* side of a block; every step-th cell and row is used */
    bool slopes;      /* a block's slope counts as a detail */
} mr_level;

typedef struct mr_warp { /* maps a point of one image, relative to its middle, to the other */
    float m[4];          /* row by row */
    float x, y;          /* in sides */
} mr_warp;

typedef struct mr_block_sums { /* sums over a block of values, their squares, and their products with the coordinates */
    float v, vv, x, y;
} mr_block_sums;

typedef struct mr_overlay { /* two images at one level */
    const mr_level *at;
    const float *a;                         /* [side, side]; the image that is warped */
    float b[MR_ALIKE_SIDE * MR_ALIKE_SIDE]; /* what is compared of the other one */
    int across;                             /* blocks of a row, and of a column */
    mr_block_sums of_b[MR_BLOCKS_MAX];
} mr_overlay;

/* `a` and the level must outlive it. */
void mr_overlay_make(mr_overlay *v, const mr_level *at, const float *a, const float *b);
/* The correlation of every block with details, at least 0; returns their number. */
int mr_overlay_each(const mr_overlay *v, const mr_warp *w, float each[MR_BLOCKS_MAX]);
/* The mean over the blocks, 0 if there are fewer than `least`. */
float mr_overlay_agreement(const mr_overlay *v, const mr_warp *w, int least);
/* Likewise the lower median: unlike the mean, it ignores the few blocks that were cut out. */
float mr_overlay_common(const mr_overlay *v, const mr_warp *w, int least);

#endif
