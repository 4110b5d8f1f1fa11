/* objects.h - the objects of an image of a COCO annotation file.
 * Invariant: an annotation makes one object at most, in the file's order. */
#ifndef MR_COCO_OBJECTS_H
#define MR_COCO_OBJECTS_H

#include "layout/layout.h"
#include "tables/coco_json.h"

/* Adds the objects of image number `n` of the file, and the size that it states.  An annotation whose id an object has
 * that is there already adds its keypoints to that one.  Thread-safe. */
mr_status mr_coco_objects(const mr_source *s, const mr_coco_file *f, size_t n, const mr_plan *plan, mr_objects *out,
                          mr_error *err);

#endif
