/* coco_classes.h - the categories of a dataset's COCO annotation files as its classes, whatever the layout.
 * Invariant: a class keeps the id that the source gave it, and ids rise with the class numbers. */
#ifndef MR_COCO_CLASSES_H
#define MR_COCO_CLASSES_H

#include "ingest/layout/layout.h"
#include "ingest/tables/coco_json.h"

/* The union over all files (NULL: none) by id: ids have gaps, class numbers have none.  `project`: the category with
 * id 0 that no annotation uses names the project and is not a class.  MR_BAD_DATA: two names of one id. */
mr_status mr_coco_classes(const mr_tree *t, mr_coco_file *const *files, size_t count, bool project, mr_plan *plan,
                          mr_error *err);

/* The class of a category id; -1: none. */
int32_t mr_coco_label(const mr_plan *plan, int64_t id);

/* The path of an annotation file in its tree, for messages. */
const char *mr_coco_name(const mr_tree *t, const mr_coco_file *f);

/* Notes the annotations of a file that cannot be assigned: to a category that is not a class (kept in the meta), or to
 * an image that the file does not list (left out). */
void mr_coco_note_unknown(const mr_tree *t, const mr_coco_file *f, mr_plan *plan);

/* Rejects the image at `entry` (MR_NO_ENTRY: its file, which is then named itself) for a bad value. */
void mr_coco_reject(const mr_tree *t, const mr_coco_file *f, const mr_coco_bad *bad, uint32_t entry, mr_plan *plan);

/* The licences that the files (NULL: none) name become the plan's, unless it has one. */
mr_status mr_coco_licences(mr_coco_file *const *files, size_t count, mr_plan *plan, mr_error *err);

#endif
