/* cub.h - the lists of CUB-200-2011 as one table.
 * Invariant: the table has the columns image_id, file, class, with train_test_split.txt split, and with
 * bounding_boxes.txt x, y, width and height. */
#ifndef MR_LAYOUT_CUB_H
#define MR_LAYOUT_CUB_H

#include "ingest/layout/table/table.h"

/* Whether images.txt and image_class_labels.txt are under the root. */
bool mr_cub_is(const mr_tree *t);
/* MR_BAD_DATA, naming list and line: not a list, a number twice, an image without class or split. */
mr_status mr_cub_read(const mr_tree *t, mr_plan *plan, mr_sheet *out, mr_error *err);

#endif
