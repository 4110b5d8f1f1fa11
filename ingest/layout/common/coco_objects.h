/* coco_objects.h - the objects of an image of a COCO annotation file.
 * Invariant: an annotation becomes at most one object, in the file's order. */
#ifndef MR_COCO_OBJECTS_H
#define MR_COCO_OBJECTS_H

#include "ingest/layout/layout.h"
#include "ingest/tables/coco_json.h"

/* Adds the objects of image number `n` of the file, and the size that it states; for a panoptic file, its segments.  An
 * annotation with the id of an existing object adds its keypoints to it.  `shown` (NULL: none) ends with NULL: objects
 * of a class that one of its tables has are left out.  Thread-safe. */
mr_status mr_coco_objects(const mr_source *s, const mr_coco_file *f, size_t n, const mr_plan *plan,
                          const uint8_t *const *shown, mr_objects *out, mr_error *err);

#endif
