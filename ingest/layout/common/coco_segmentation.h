/* coco_segmentation.h - the member "segmentation" of an annotation of COCO, token by token.
 * Invariant: every polygon that is kept has three points or more; a mask is checked, and makes no polygon.
 *
 *      [[1,2, 3,4, 5,6], ...]           COCO: a list of numbers for each polygon
 *      [1,2, 3,4, 5,6]                  one polygon
 *      [[1,2], [3,4], [5,6]]            one polygon of points
 *      [[[1,2], [3,4], [5,6]], ...]     polygons of points
 *      {"size": ..., "counts": ...}     a mask; or a list of them                                                    */
#ifndef MR_COCO_SEGMENTATION_H
#define MR_COCO_SEGMENTATION_H

#include "ingest/layout/common/coco_rle.h"
#include "shards/format/objects.h"
#include "base/json/json_stream.h"

typedef struct mr_coco_segmentation {
    bool polygons, mask; /* what is open; neither: nothing is */
    bool bad;            /* some part of it is not valid; until the caller resets it */
    bool flat;           /* one list of numbers */
    size_t lists, pairs; /* lists so far; those among them of two numbers, which make one polygon */
    size_t numbers;      /* numbers in the current list */
    mr_milli point[2];
    bool bad_ring;
    unsigned mask_depth; /* depth of the mask's object: 2, or 3 in a list */
    bool counts, size;   /* the mask's current member */
    mr_coco_rle rle;
} mr_coco_segmentation;

/* Its first token, a list or an object, at depth 2. */
void mr_coco_segmentation_begin(mr_coco_segmentation *s, const mr_json_token *t);
/* The next one, while something is open; polygons are added to the last object of `out`. */
void mr_coco_segmentation_take(mr_coco_segmentation *s, const mr_json_token *t, mr_objects *out);

/* The number of a token; false: not a number. */
bool mr_coco_number(const mr_json_token *t, double *out);

#endif
