/* coco_head.h - is a JSON a COCO annotation file, by what its beginning says.
 * Invariant: at most MR_COCO_HEAD bytes are read. */
#ifndef MR_COCO_HEAD_H
#define MR_COCO_HEAD_H

#include "ingest/source/source.h"

enum { MR_COCO_HEAD = 64 << 10 };

typedef enum mr_coco_sign {
    MR_COCO_SIGN_NONE,
    MR_COCO_SIGN_FILE,   /* an object with images that have file names, or annotations that have image ids ... */
    MR_COCO_SIGN_RESULT, /* a list: what a model found, if it is COCO's at all */
} mr_coco_sign;

/* MR_COCO_SIGN_NONE where it cannot be read. */
mr_coco_sign mr_coco_head(const mr_source *s, uint32_t entry);

#endif
