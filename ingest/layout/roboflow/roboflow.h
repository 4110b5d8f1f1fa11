/* roboflow.h - the exports of Roboflow, one file per supported export.
 * Invariant: images are named by paths below the folder of their split. */
#ifndef MR_ROBOFLOW_H
#define MR_ROBOFLOW_H

#include "ingest/layout/common/roboflow_files.h"
#include "ingest/layout/image_names.h"

/* The image that a table next to the images names, "./a.jpg" like "a.jpg", or the only one of its name in a folder
 * below; MR_NO_ENTRY: it does not exist, or not in this split's folder, or it is unknown which: *rival is another.
 * `names`: those of this split folder, kept for the next call. */
mr_status mr_rf_image(const mr_tree *t, const mr_split_dir *dir, const char *name, size_t len, mr_image_names *names,
                      mr_name_match *found, mr_error *err);
/* That path, for notes on a file that may not exist. */
const char *mr_rf_path(const mr_split_dir *dir, const char *name, mr_buf *out);

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
