/* folders.h - split folders that hold class folders that hold images, as in imagenette and roboflow.
 * Invariant: a class is a folder that holds at least one image in some split, so neither an empty folder nor a hidden
 * one moves the number of another class; what starts with '.', at any depth, is never looked at.
 *
 *      train/n01440764/n01440764_11.JPEG       valid/daisy/sub/a_jpg.rf.0123.jpg       train/animals/cat/1.jpg
 *      split class     image                   split class     image                   split class (depth 2) image   */
#ifndef MR_FOLDERS_H
#define MR_FOLDERS_H

#include "ingest/layout/layout.h"

typedef struct mr_split_dir {
    const char *name;    /* its path under the root, not NUL-terminated: it contains the class folders */
    size_t len;          /* length of that path; 0: the root itself is a split "train" */
    size_t called;       /* how much of it is the split's name in the source: "seg_test" of two */
    unsigned depth;      /* levels from it to the class folders, 1 or more */
    uint32_t begin, end; /* its entries */
    uint32_t split;      /* in plan->splits, after mr_split_dirs_open() */
} mr_split_dir;

enum { MR_SPLIT_DIRS_MAX = 64 }; /* further folders are not splits, and their images are reported as left out */

typedef struct mr_split_dirs {
    mr_split_dir items[MR_SPLIT_DIRS_MAX]; /* in order of their entries */
    size_t count;
} mr_split_dirs;

/* Names only, for bids: folders under the root with a usual name (mr_split_word), or that --split-map names. */
void mr_split_dirs_find(const mr_tree *t, const mr_layout_options *o, mr_split_dirs *dirs);
/* Whether one of them has this name in the source. */
bool mr_split_dirs_has(const mr_split_dirs *dirs, const char *name);

/* Gives each folder its stored split (train, val, test in this order); takes out, with a note, the folders that
 * --split-map leaves out.  MR_MISUSE: --split-map names a split that does not exist. */
mr_status mr_split_dirs_open(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_split_dirs *dirs,
                             mr_error *err);

/* An image by its name, with no hidden part in its path after the first `skip` bytes (under the root). */
bool mr_folder_image(const mr_tree *t, uint32_t entry, size_t skip);
/* Where the child's own name starts in the paths under the root. */
size_t mr_child_at(const mr_tree *t, const mr_child *child);
/* Whether the child is a folder, not hidden, with an image in it.  Looks at no more than `most` entries (0: all). */
bool mr_folder_is_class(const mr_tree *t, const mr_child *child, uint32_t most);
/* Iterates the class folders of a split folder: those dir->depth levels below it that hold an image.  The child's name
 * is the path below the split folder ("animals/cat" at depth 2).
 *      mr_child c = {0};
 *      while (mr_class_next(&tree, dir, 0, &c)) ... */
bool mr_class_next(const mr_tree *t, const mr_split_dir *dir, uint32_t most, mr_child *child);
/* The number of class folders in a split folder. */
size_t mr_folder_count(const mr_tree *t, const mr_split_dir *dir, uint32_t most);
/* The root itself, as the only split. */
mr_split_dir mr_split_dir_whole(const mr_tree *t, const mr_layout_options *o);

/* Classes of all folders, sorted, then their samples in order of path, with a note for each class that a split lacks
 * and for each image outside the class folders.  `group` (may be NULL) sets a sample's group.  MR_BAD_DATA: there is no
 * class folder, its name is not that of a class (images, masks), or classes seem to be one level deeper. */
mr_status mr_folder_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, const mr_split_dirs *dirs,
                         void (*group)(const mr_tree *t, mr_sample *sample), mr_error *err);
/* Checks that no class folder is named like a container, and that none is a folder of classes; a remark
 * names a class that joins several folders, where others do not. */
mr_status mr_folder_check_classes(const mr_tree *t, const mr_layout_options *o, const mr_split_dirs *dirs,
                                  mr_notes *notes, mr_error *err);

/* An image without annotation: noted, and kept with label -1 if requested. */
mr_status mr_folder_unlisted(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, uint32_t split,
                             uint32_t entry, const char *why, void (*group)(const mr_tree *t, mr_sample *sample),
                             mr_error *err);

#endif
