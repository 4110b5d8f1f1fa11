/* yolo.h - what the files of the YOLO layout share.
 *
 *      data.yaml  train/images/1.jpg  train/labels/1.txt  valid/images ...     Roboflow's exports
 *      NAME.yaml  images/train/1.jpg  labels/train/1.txt  images/val ...       Ultralytics' trees
 *      images/1.jpg  labels/1.txt                                              one split
 *      train/_darknet.labels  train/1.jpg  train/1.txt  valid/1.jpg ...        Roboflow's exports for Darknet
 *
 * Invariant: nothing of the state changes after plan(), so that metas and objects may be made on many threads. */
#ifndef MR_YOLO_H
#define MR_YOLO_H

#include "layout/layout.h"
#include "tables/yaml_file.h"
#include "layout/texts.h"
#include "yolo/label.h"

typedef struct mr_yolo_dir { /* a folder of images, found by its name */
    const char *path;        /* under the root: "train/images", "images/train", "images"; not NUL-terminated */
    size_t len;
    const char *name; /* of its split in the source, a part of the path; NULL: it has none, and is train */
    size_t name_len;
} mr_yolo_dir;

enum { MR_YOLO_DIRS_MAX = 64 };
#define MR_YOLO_DARKNET "_darknet.labels" /* one name per line */

typedef struct mr_yolo_dirs {
    mr_yolo_dir items[MR_YOLO_DIRS_MAX];
    size_t count;
    bool labels;    /* one of them has a folder of labels */
    bool text;      /* the labels are labelTxt */
    bool darknet;   /* labels are beside the images, and their classes in MR_YOLO_DARKNET */
    char seen[120]; /* for messages: "train/images and train/labels" */
} mr_yolo_dirs;

/* dirs.c: names alone, for bids. */
void mr_yolo_dirs_find(const mr_tree *t, mr_yolo_dirs *dirs);
/* data.yaml, or the only other .yaml of the root; MR_NO_ENTRY. */
uint32_t mr_yolo_find_yaml(const mr_tree *t);
/* The label file of an image; MR_NO_ENTRY.  *text: in labelTxt. */
uint32_t mr_yolo_label_of(const mr_tree *t, uint32_t image, bool *text, mr_buf *path);

typedef struct mr_yolo_item { /* an image of a split */
    uint32_t split, entry;
} mr_yolo_item;

typedef struct mr_yolo_state {
    unsigned keypoints, dims; /* kpt_shape */
    bool oriented;            /* lines of four points are oriented boxes */
    bool told[MR_SPLITS_MAX]; /* the split has labels */
    uint64_t lines[4];        /* of each mr_yolo_kind */
    uint64_t quads;           /* polygons of four points */
    mr_texts texts;           /* label files */
    uint32_t classes;         /* in label files, where data.yaml has no names: the highest plus one */
} mr_yolo_state;

typedef struct mr_yolo_build { /* while plan() runs */
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_yolo_state *st;
    mr_yaml yaml;
    const char *yaml_name; /* "" without one */
    mr_yolo_dirs dirs;
    mr_yolo_item *items;
    size_t count, room;
    bool lists; /* data.yaml names images by lists: other images in the folders have no split */
    mr_error *err;
} mr_yolo_build;

void mr_yolo_state_free(void *state);
mr_status mr_yolo_names(mr_yolo_build *b);  /* names.c: classes, kpt_shape and licence of data.yaml */
mr_status mr_yolo_splits(mr_yolo_build *b); /* splits.c: the images of each split, sorted */
mr_status mr_yolo_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err); /* plan.c */

/* A sample's aux: its label file, and whether that is of labelTxt. */
#define MR_YOLO_NO_LABEL UINT64_MAX
static inline uint64_t mr_yolo_aux(uint32_t entry, bool text)
{
    return entry == MR_NO_ENTRY ? MR_YOLO_NO_LABEL : (uint64_t)entry << 1 | text;
}

#endif
