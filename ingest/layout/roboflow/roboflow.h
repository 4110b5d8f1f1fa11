/* roboflow.h - the exports of Roboflow: which one is under a root; one file per supported export.
 * Invariant: marks are names only, so a bid reads no file. */
#ifndef MR_ROBOFLOW_H
#define MR_ROBOFLOW_H

#include "ingest/layout/folders.h"
#include "ingest/layout/image_names.h"

typedef enum mr_rf_kind {
    MR_RF_NONE,
    MR_RF_FOLDER,      /* SPLIT/CLASS/IMAGE */
    MR_RF_MULTI_CLASS, /* SPLIT/_classes.csv */
    MR_RF_COCO,        /* SPLIT/_annotations.coco.json */
    MR_RF_CLIP,        /* SPLIT/_tokenization.txt and SPLIT/CLASS/IMAGE */
    MR_RF_FOREIGN      /* an unsupported export: `format` names it */
} mr_rf_kind;

typedef struct mr_rf_marks {
    mr_rf_kind kind;
    const char *format; /* MR_RF_FOREIGN: "YOLO", "Pascal VOC" ... */
    const char *layout; /* the other layout that reads it; NULL: none */
    mr_split_dirs dirs;
    bool readme;    /* README.roboflow.txt or README.dataset.txt */
    bool names;     /* an image is named STEM.rf.HASH.jpg */
    bool valid;     /* a split folder is named valid */
    char seen[120]; /* the mark that decided, for messages: "train/_classes.csv" */
} mr_rf_marks;

#define MR_RF_CLASSES_CSV   "_classes.csv"
#define MR_RF_COCO_JSON     "_annotations.coco.json"
#define MR_RF_CREATEML_JSON "_annotations.createml.json"
#define MR_RF_TOKENS        "_tokenization.txt"
#define MR_RF_README        "README.roboflow.txt"
#define MR_RF_README_DATA   "README.dataset.txt"

void mr_rf_look(const mr_tree *t, const mr_layout_options *o, mr_rf_marks *marks); /* marks.c */

/* Copies of one image are named STEM.rf.HASH.jpg: the stem is their group. */
void mr_rf_group(const mr_tree *t, mr_sample *sample);

/* SPLIT/NAME; MR_NO_ENTRY if it does not exist. */
uint32_t mr_rf_find(const mr_tree *t, const mr_split_dir *dir, const char *name, size_t len);
/* The image that a table next to the images names, "./a.jpg" like "a.jpg", or the only one of its name in a folder
 * below; MR_NO_ENTRY: it does not exist, or not in this split's folder, or it is unknown which: *rival is another.
 * `names`: of this split folder, for the next call. */
mr_status mr_rf_image(const mr_tree *t, const mr_split_dir *dir, const char *name, size_t len, mr_image_names *names,
                      mr_name_match *found, mr_error *err);
/* That path, for notes on a file that may not exist. */
const char *mr_rf_path(const mr_split_dir *dir, const char *name, mr_buf *out);

/* Marks the READMEs of an export as used, and takes the licence from them unless the plan has one. */
mr_status mr_rf_readmes(const mr_tree *t, mr_plan *plan, mr_error *err);

/* plan->state, of any kind. */
typedef struct mr_rf_state {
    mr_rf_kind kind;
    struct mr_rf_table *table; /* MR_RF_MULTI_CLASS */
    struct mr_rf_coco *coco;   /* MR_RF_COCO */
    struct mr_rf_clip *clip;   /* MR_RF_CLIP */
} mr_rf_state;

typedef mr_status mr_rf_plan_fn(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_split_dirs *dirs,
                                mr_rf_state *state, mr_error *err);
typedef mr_status mr_rf_meta_fn(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out,
                                mr_error *err);

mr_rf_plan_fn mr_rf_table_plan, mr_rf_coco_plan, mr_rf_clip_plan; /* table.c, coco.c, clip.c */
mr_rf_meta_fn mr_rf_table_meta, mr_rf_coco_meta, mr_rf_clip_meta;
mr_status mr_rf_coco_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_objects *out,
                             mr_error *err);
void mr_rf_table_free(struct mr_rf_table *table);
void mr_rf_coco_free(struct mr_rf_coco *coco);
void mr_rf_clip_free(struct mr_rf_clip *clip);

#endif
