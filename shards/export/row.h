/* row.h - a sample as a row of the hub: members of a JSON object beside the image.
 * Invariant: the members of a dataset's rows are the same in all of them, and each has one type.
 *
 *      "label":"cat"  "labels":["cat"]  "captions":["a cat"]  "columns":"{...}"
 *      "objects":{"bbox":[[x,y,w,h]],"categories":["cat"],"polygons":[[[x,y,...]]],"oriented":[[...]],
 *                 "keypoints":[[x,y,v,...]],"crowd":[false]}           one item in each list for each object        */
#ifndef MR_EXPORT_ROW_H
#define MR_EXPORT_ROW_H

#include "shards/export/format.h"

typedef struct mr_export_row_kind { /* which members the rows have */
    bool label, labels, captions, columns, objects, polygons, oriented, keypoints;
    bool numbers; /* classes by number, not by name */
} mr_export_row_kind;

#define MR_EXPORT_ROW_HOLDS                                                                                            \
    (MR_HOLDS(UNLABELLED) | MR_HOLDS(LABEL) | MR_HOLDS(LABELS) | MR_HOLDS(CAPTIONS) | MR_HOLDS(COLUMNS) |              \
     MR_HOLDS(OBJECTS) | MR_HOLDS(CLASSLESS) | MR_HOLDS(BOXLESS) | MR_HOLDS(BOXES) | MR_HOLDS(POLYGONS) |              \
     MR_HOLDS(RINGS) | MR_HOLDS(ORIENTED) | MR_HOLDS(KEYPOINTS) | MR_HOLDS(CROWDS) | MR_HOLDS(OUTSIDE))

/* By the survey. */
mr_export_row_kind mr_export_row_kind_of(const mr_export_run *run);
/* Appends the members, each with a comma before it. */
void mr_export_row_add(const mr_export_run *run, const mr_export_sample *s, mr_export_row_kind kind, mr_buf *out);

#endif
