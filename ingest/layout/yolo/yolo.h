/* yolo.h - what the files of the YOLO layout share.
 *
 *      data.yaml  train/images/1.jpg  train/labels/1.txt  valid/images ...     Roboflow's exports
 *      NAME.yaml  images/train/1.jpg  labels/train/1.txt  images/val ...       Ultralytics' trees
 *      classes.txt  notes.json  images/1.jpg  labels/1.txt                     Label Studio's exports
 *      train/images/1.png  train/labelTxt/1.txt  val/images ...                DOTA
 *      train/images/1.jpg  train/masks/1.png, or train/labels/1.png            masks, as for U-Net
 *      train/_darknet.labels  train/1.jpg  train/1.txt  valid/1.jpg ...        Roboflow's exports for Darknet
 *      obj.data  obj.names  train.txt  obj_train_data/1.jpg  .../1.txt         Darknet, CVAT's exports for it
 *      classes.txt  1.jpg  1.txt                                               LabelImg
 *
 * dirs.c finds folders, labels.c the label file of an image, settings.c reads data.yaml or what stands for it, names.c
 * and name_lists.c the classes, splits.c the images of each split, label.c lines; shape.c tells polygons from
 * keypoints.
 * Invariant: nothing of the state changes after plan(), so that metas and objects may be made on many threads. */
#ifndef MR_YOLO_H
#define MR_YOLO_H

#include "ingest/layout/layout.h"
#include "ingest/layout/texts.h"
#include "ingest/tables/yaml_file.h"
#include "ingest/layout/yolo/label.h"
#include "ingest/layout/yolo/shape.h"

/* ---- settings.c -------------------------------------------------------------------------------------------------- */

typedef struct mr_yolo_settings { /* a zeroed one is empty */
    uint32_t entry;               /* MR_NO_ENTRY: there is no such file, and `yaml` is empty or made from lists */
    const char *name;             /* name of the file, lent by the source; "" without one */
    mr_yaml yaml;                 /* data.yaml; for a Darknet *.data, its lines as YAML: nc, names, train, val */
    bool lists;                   /* train.txt and the like at the root are the splits */
} mr_yolo_settings;

/* Reads data.yaml, else the root's only other YAML file with settings of a dataset, else its only Darknet *.data, else
 * image lists.  MR_BAD_DATA: not readable, or several with equal claims, all named. */
mr_status mr_yolo_settings_read(const mr_tree *t, mr_yolo_settings *out, mr_error *err);
/* Whether one of these is there, by names and the first bytes of files. */
bool mr_yolo_settings_found(const mr_tree *t, const char **name, size_t *len);

/* The path in the tree that `value` means: its first form that exists.  Empty: none does; out->failed: no memory. */
void mr_yolo_resolve(const mr_tree *t, const mr_yaml *yaml, const char *value, mr_buf *out);
/* The file that a line of a list means, a path from the list's folder or from the root; MR_NO_ENTRY. */
uint32_t mr_yolo_find_listed(const mr_tree *t, uint32_t list, const char *line, size_t len, mr_buf *path);

/* ---- dirs.c ------------------------------------------------------------------------------------------------------ */

typedef struct mr_yolo_dir { /* a folder of images */
    const char *path;        /* under the root: "train/images", "images/train", "images"; not NUL-terminated */
    size_t len;
    const char *name; /* its split's name in the source, a part of the path; NULL: it has none, and is train */
    size_t name_len;
} mr_yolo_dir;

enum { MR_YOLO_DIRS_MAX = 64 };
#define MR_YOLO_DARKNET "_darknet.labels" /* one name per line */

typedef struct mr_yolo_dirs {
    mr_yolo_dir items[MR_YOLO_DIRS_MAX];
    size_t count;
    bool labels;    /* label files belong to one of them */
    bool masks;     /* PNGs of the images' names do */
    bool deep;      /* images are in folders below one that the settings name: it may be that of classes */
    char seen[120]; /* for messages: "train/images with labels" */
} mr_yolo_dirs;

/* For bids: names, and the beginnings of a few text files beside images. */
void mr_yolo_dirs_find(const mr_tree *t, mr_yolo_dirs *dirs);
/* Where it finds none: the folders that the settings name. */
void mr_yolo_dirs_named(const mr_tree *t, const mr_yolo_settings *s, mr_yolo_dirs *dirs);

/* ---- labels.c ---------------------------------------------------------------------------------------------------- */

extern const char *const mr_yolo_label_folders[]; /* that stand for a folder "images"; ends with NULL */
/* Appends a folder's name in the case of another, "images": "Labels" beside "Images". */
void mr_yolo_add_folder(mr_buf *out, const char *word, const char *like);

typedef struct mr_yolo_claim {
    uint32_t label;  /* MR_NO_ENTRY: the image has none */
    uint32_t second; /* another; MR_NO_ENTRY: there is none */
    bool text;       /* in labelTxt */
} mr_yolo_claim;

/* The label file of an image.  `path` is scratch; path->failed: no memory. */
mr_yolo_claim mr_yolo_label_of(const mr_tree *t, uint32_t image, mr_buf *path);
/* Its masks: PNGs of its name in the folders "labels", "masks" and "annotations", as of trees for U-Net and of ADE20K.
 */
size_t mr_yolo_masks(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_mask out[MR_MASKS_MAX]);
/* Whether the folder holds text files that may be labels, at any depth. */
bool mr_yolo_has_labels(const mr_tree *t, const char *dir, size_t len);
/* Whether the texts beside the folder's images are lines of labels: those of the first few that have one. */
bool mr_yolo_has_labels_beside(const mr_tree *t, const char *dir, size_t len);

/* ---- plan -------------------------------------------------------------------------------------------------------- */

typedef struct mr_yolo_item { /* an image of a split */
    uint32_t split, entry;
} mr_yolo_item;

typedef enum mr_yolo_task { MR_YOLO_ANY, MR_YOLO_DETECT, MR_YOLO_SEGMENT, MR_YOLO_OBB, MR_YOLO_KEYPOINTS } mr_yolo_task;

typedef struct mr_yolo_state {
    unsigned keypoints, dims;  /* kpt_shape */
    mr_yolo_task task;         /* as data.yaml has it */
    bool oriented;             /* lines of four points are oriented boxes */
    bool known[MR_SPLITS_MAX]; /* the split has labels */
    uint64_t lines[4];         /* lines of each mr_yolo_kind */
    uint64_t quads;            /* polygons of four points */
    uint64_t masks;            /* samples with one */
    mr_yolo_shape shape;
    mr_texts texts;   /* label files */
    uint32_t classes; /* in label files, where nothing names the classes: the highest plus one */
} mr_yolo_state;

typedef struct mr_yolo_build { /* while plan() runs */
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_yolo_state *st;
    mr_yolo_settings settings;
    const char *named_by; /* the file that names the classes; NULL: none does */
    bool chosen;          /* settings name a list: Darknet's data/ has those of other datasets, too */
    mr_yolo_dirs dirs;
    mr_yolo_item *items;
    size_t count, capacity;
    bool lists; /* images are named by lists: other images in the folders have no split */
    mr_error *err;
} mr_yolo_build;

mr_status mr_yolo_names(mr_yolo_build *b);      /* names.c: classes, kpt_shape and licence */
mr_status mr_yolo_name_lists(mr_yolo_build *b); /* name_lists.c: classes.txt and the like, which all must agree */
mr_status mr_yolo_name_list(mr_yolo_build *b, uint32_t entry); /* one of them */
/* Such a file, or one of settings, in a folder above the root, which nothing reads; MR_NO_ENTRY. */
uint32_t mr_yolo_names_above(const mr_tree *t);
mr_status mr_yolo_splits(mr_yolo_build *b); /* splits.c: the images of each split, sorted */
mr_status mr_yolo_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err); /* plan.c */

/* A sample's aux: its label file, and whether its lines are of labelTxt. */
#define MR_YOLO_NO_LABEL UINT64_MAX
static inline uint64_t mr_yolo_aux(uint32_t entry, bool text)
{
    return entry == MR_NO_ENTRY ? MR_YOLO_NO_LABEL : (uint64_t)entry << 1 | text;
}

#endif
