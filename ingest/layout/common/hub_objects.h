/* hub_objects.h - the column "objects" of a row, as in datasets of the hub.
 * Invariant: lists are parallel; an object lacks what its list lacks, and an object whose box cannot be read
 * is counted. Source: the documents of the datasets library, "Create an image dataset", object detection: bbox is x, y,
 * width and height in pixels.  The further lists are those that `millrace export --to imagefolder` writes.
 *
 *      {"objects":{"bbox":[[302.0,109.0,73.0,52.0]],"categories":["dog"],            categories: names or numbers
 *                  "polygons":[[[x,y,...]]],"oriented":[[x,y, 4
 * times]],"keypoints":[[x,y,visibility,...]],"crowd":[false]}}
 *      {"objects":[{"bbox":[302,109,73,52],"category":"dog"}]}                       the same, object by object */
#ifndef MR_HUB_OBJECTS_H
#define MR_HUB_OBJECTS_H

#include "ingest/layout/common/class_set.h"

/* Adds the classes of a row, one JSON object, to `set`.  `name`: the name of its file.  MR_BAD_DATA: not JSON; too many
 * classes. */
mr_status mr_hub_objects_classes(const void *row, size_t len, const char *name, mr_class_set *set, mr_plan *plan,
                                 mr_error *err);
/* The objects of a row; an object of a class that the plan does not have is without one.  `numbered`: numbers are those
 * of the plan's classes; otherwise they are names. */
mr_status mr_hub_objects_read(const void *row, size_t len, const char *name, const mr_plan *plan, bool numbered,
                              mr_objects *out, mr_error *err);

#endif
