/* roboflow_files.h - which export of Roboflow is under a root, and what every export has, whichever layout reads it.
 * Invariant: marks are names only, so a bid reads no file. */
#ifndef MR_ROBOFLOW_FILES_H
#define MR_ROBOFLOW_FILES_H

#include "ingest/layout/folders/folders.h"

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

void mr_rf_look(const mr_tree *t, const mr_layout_options *o, mr_rf_marks *marks);

/* Copies of one image are named STEM.rf.HASH.jpg: the stem is their group. */
void mr_rf_group(const mr_tree *t, mr_sample *sample);

/* SPLIT/NAME; MR_NO_ENTRY if it does not exist. */
uint32_t mr_rf_find(const mr_tree *t, const mr_split_dir *dir, const char *name, size_t len);
/* Marks the READMEs of an export as used, and takes the licence from them unless the plan has one. */
mr_status mr_rf_readmes(const mr_tree *t, mr_plan *plan, mr_error *err);

#endif
