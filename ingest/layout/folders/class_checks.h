/* class_checks.h - private to this module: checks that the class folders of a plan look like classes.
 * Invariant: a doubt is an error that names the folders and the options that settle it; nothing is corrected silently.
 */
#ifndef MR_CLASS_CHECKS_H
#define MR_CLASS_CHECKS_H

#include "ingest/layout/folders/folders.h"

enum { MR_CLASSES_NAMED = 4 }; /* in a message */

/* Appends the path of a folder in a split folder, as --exclude accepts it: "data/train/masks". */
void mr_class_path(const mr_tree *t, const mr_split_dir *dir, const char *name, size_t len, mr_buf *out);
/* Looks into the class folders: MR_BAD_DATA if they hold classes, copies of the classes, or masks beside images.  A
 * remark names a class that joins several folders, where others do not. */
mr_status mr_class_check_nesting(const mr_tree *t, const mr_split_dirs *dirs, mr_notes *notes, mr_error *err);

#endif
