/* coco_rle.h - run-length masks of COCO: do their runs fill the image exactly?
 * Source: the description in pycocotools' mask.py: runs of zeros and ones in turn, column by column; in a string, each
 * as a number of 5 bits a character from '0', with 0x20 for "more follows" and the sign in the last one's 0x10, from
 * the third on as the difference to the one before the last. Invariant: no mask is ever decoded: a huge count costs
 * nothing. */
#ifndef MR_COCO_RLE_H
#define MR_COCO_RLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mr_coco_rle { /* a zeroed one is empty */
    uint64_t pixels;         /* sum of all runs */
    int64_t last[2];         /* the latest run, and the one before it */
    uint64_t size[2];        /* height and width */
    size_t sizes;            /* numbers of "size" seen */
    bool any, bad;
} mr_coco_rle;

void mr_coco_rle_run(mr_coco_rle *r, int64_t run);
void mr_coco_rle_text(mr_coco_rle *r, const char *text, size_t len); /* all runs at once */
void mr_coco_rle_size(mr_coco_rle *r, int64_t side);
/* Whether the runs fill height x width; `width` and `height` of the image as the source states them, 0: it does not. */
bool mr_coco_rle_fits(const mr_coco_rle *r, uint32_t width, uint32_t height);

#endif
