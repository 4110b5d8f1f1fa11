/* folders.h - split folders that hold class folders that hold images, as imagenette and roboflow have them.
 * Invariant: a class is a folder that holds at least one image in some split, so neither an empty folder nor a hidden
 * one moves the number of another class; what starts with '.', at any depth, is never looked at.
 *
 *      train/n01440764/n01440764_11.JPEG       valid/daisy/sub/a_jpg.rf.0123.jpg
 *      split class     image                   split class     image                                              */
#ifndef MR_FOLDERS_H
#define MR_FOLDERS_H

#include "layout.h"

typedef struct mr_split_dir {
    const char *name;               /* not NUL-terminated; len 0: the root itself stands for a split "train" */
    size_t len;
    uint32_t begin, end;            /* its entries */
    uint32_t split;                 /* in plan->splits, after mr_split_dirs_open() */
} mr_split_dir;

typedef struct mr_split_dirs {
    mr_split_dir items[5];          /* in order of name; of train, val, valid, validation, test those that are there */
    size_t count;
} mr_split_dirs;

/* Names only, for bids. */
void mr_split_dirs_find(const mr_tree *t, mr_split_dirs *dirs);
bool mr_split_dirs_has(const mr_split_dirs *dirs, const char *name);

/* Gives each folder its stored split (train, val, test in this order); takes out, with a note, the folders that
 * --split-map leaves out.  MR_MISUSE: --split-map names a split that is not there. */
mr_status mr_split_dirs_open(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_split_dirs *dirs,
                             mr_error *err);

/* An image by its name, with no hidden part in its path behind the first `skip` bytes (under the root). */
bool mr_folder_image(const mr_tree *t, uint32_t entry, size_t skip);
/* Is the child a folder, not hidden, with an image in it?  Looks at no more than `most` entries (0: all). */
bool mr_folder_is_class(const mr_tree *t, const mr_child *child, uint32_t most);
/* The number of class folders in a split folder. */
size_t mr_folder_count(const mr_tree *t, const mr_split_dir *dir, uint32_t most);

/* Classes of all folders, sorted, then their samples in order of path, with a note for each class that a split lacks
 * and for each image that lies outside a class folder.  `group` (may be NULL) sets a sample's group. */
mr_status mr_folder_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, const mr_split_dirs *dirs,
                         void (*group)(const mr_tree *t, mr_sample *sample), mr_error *err);

/* An image without annotation: noted, and kept with label -1 if that was asked for. */
mr_status mr_folder_unlisted(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, uint32_t split,
                             uint32_t entry, const char *why, void (*group)(const mr_tree *t, mr_sample *sample),
                             mr_error *err);

#endif
