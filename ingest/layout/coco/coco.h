/* coco.h - what coco.c (bid, meta) and its plan (plan.c, images.c, place.c, labels.c) share.
 *
 *   parts    instances_train2017  captions_train2017 | instances_val2017 ...      annotation files by split, kind
 *   groups   0: parts 0..1                           | 1: parts 2..           one a split of the source
 *   where    0, 17, 12 | 0, 18, NONE | ...      a sample's aux is a place in it: its group, then its image's number in
 *                                               each part of the group
 * Invariant: nothing of this changes after plan(), so meta() may run on many threads. */
#ifndef MR_LAYOUT_COCO_H
#define MR_LAYOUT_COCO_H

#include "shards/manifest/format.h"
#include "ingest/layout/image_names.h"
#include "ingest/layout/layout.h"
#include "ingest/tables/coco_json.h"

/* What a source has to have. */
#define MR_COCO_NEEDS                                                                                                  \
    "annotations/{instances,captions,person_keypoints,image_info,panoptic,stuff}_SPLIT.json or another JSON "          \
    "with images and annotations, and the images in SPLIT/, images/SPLIT/, images/, data/ or beside the JSON"

enum mr_coco_kind {
    MR_COCO_UNKNOWN = -1, /* until it is parsed */
    MR_COCO_INSTANCES,
    MR_COCO_CAPTIONS,
    MR_COCO_KEYPOINTS,
    MR_COCO_IMAGE_INFO,
    MR_COCO_PANOPTIC,
    MR_COCO_STUFF,
    MR_COCO_KINDS
};
extern const char *const mr_coco_kinds[MR_COCO_KINDS]; /* what precedes _SPLIT.json, in the order of the meta */

#define MR_COCO_NONE     UINT32_MAX
#define MR_COCO_UNLISTED UINT64_MAX /* a sample's aux: in no annotation file */

typedef struct mr_coco_part {
    uint32_t entry;
    int kind;
    bool unnamed;      /* nothing in its path names its split */
    const char *split; /* "train2017", points into the entry's path */
    size_t split_len;
    mr_coco_file *file;     /* NULL until parsed, or if left out */
    uint8_t *classes;       /* 1: its categories have the class; NULL: no panoptic annotations are beside it */
    uint64_t pngs, no_pngs; /* samples with and without one, of panoptic and stuff */
    uint32_t no_png;        /* the first of those without: an image's number */
} mr_coco_part;

typedef struct mr_coco_group {
    size_t first, count; /* parts, one a kind at most */
    char folder[256];    /* where its images are, at the root or in images/: "train2017", or "train" if that exists */
    bool left_out;       /* by --split-map */
    bool by_folder;      /* its files name no split, and all of its images are in folders that do */
    bool by_token;       /* ... in folders such as cars_train and cars_test */
    bool any;            /* an image that its files list exists */
    bool anywhere;       /* ... in none of the usual places: images are found by their names alone */
    uint64_t found[3];   /* images whose names have no folder: in its folder, in images/, elsewhere */
    bool flat[4];        /* has images directly in the root, in images/, in annotations/, in data/ */
    const char *beside;  /* the folder of its first JSON, with a slash; not NUL-terminated */
    size_t beside_len;
    uint32_t split; /* in plan->splits; MR_NO_ENTRY until its first sample */
} mr_coco_group;

typedef struct mr_coco_state {
    mr_coco_ids ids; /* the string ids of all files */
    mr_coco_part *parts;
    size_t part_count, part_capacity;
    mr_coco_group *groups;
    size_t group_count, group_capacity;
    uint32_t *where;
    size_t where_count, where_capacity;
    mr_image_names images; /* once a name needs them */
    size_t results;        /* result files seen (bare lists) */
    const char *result;    /* the path of one */
    const char *dir;       /* "annotations" or "" */
    const char *absent;    /* a file of --annotations that is not there; NULL: none */
    bool named;            /* parts have COCO's own names */
    bool labels;           /* annotations have categories and mark nothing in the image: these are its labels */
} mr_coco_state;

typedef struct mr_coco_build { /* while plan() runs */
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_coco_state *st;
    mr_buf name; /* name of the current image: "./a/../b.jpg" is "b.jpg" */
    mr_error *err;
} mr_coco_build;

enum mr_coco_claim {
    MR_COCO_CLAIM_OWN,
    MR_COCO_CLAIM_NAMED,
    MR_COCO_CLAIM_LOOSE,
    MR_COCO_CLAIM_NONE
}; /* see place.c */

typedef struct mr_coco_place { /* where the file of an image is */
    enum mr_coco_claim claim;
    mr_name_kind kind;     /* what its name is */
    uint32_t entry, rival; /* MR_NO_ENTRY: missing, or no other file has an equal claim */
    size_t dir, rival_dir; /* in which of the folders that are searched */
} mr_coco_place;

/* files.c: lists the annotation files that --annotations names; or else those in annotations/, in the root or in
 * folders of splits, sorted. */
mr_status mr_coco_list(const mr_tree *t, const mr_layout_options *o, mr_coco_state *st, mr_error *err);
int mr_coco_part_order(const void *a, const void *b); /* by split, then kind; for qsort() */
/* The folder of a split's images, "SPLIT/" or "images/SPLIT/", if there is one; else NULL. */
const char *mr_coco_folder(const mr_tree *t, const char *split, size_t len, char out[300]);
/* How much of "train2017", "train_2017" or "train-2017" is "train". */
size_t mr_coco_without_year(const char *split, size_t len);
/* masks.c: the PNG of image number `n` of a part (MR_COCO_NONE: none), MR_NO_ENTRY; and see mr_layout.masks. */
uint32_t mr_coco_png(const mr_tree *t, const mr_coco_part *part, uint32_t n);
size_t mr_coco_masks(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_mask out[MR_MASKS_MAX]);
mr_status mr_coco_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);
/* names.c: the image whose path shares the most parts with the end of the name; MR_NO_ENTRY: none.  Unless the name is
 * foreign, at least one folder must be equal, or the whole path.  MR_BAD_DATA: several images share as much. */
mr_status mr_coco_look_up(const mr_coco_build *b, const mr_coco_group *g, bool foreign, const char *name, size_t len,
                          uint32_t *found);
/* groups.c: sorts the parts into groups; parses those whose names do not say what they hold. */
mr_status mr_coco_make_groups(mr_coco_build *b);
/* The stored split of an image of the group, added to the plan; MR_NO_ENTRY: --split-map leaves it out. */
mr_status mr_coco_image_split(const mr_coco_build *b, mr_coco_group *g, uint32_t entry, uint32_t *split);
bool mr_coco_same_split(const mr_coco_part *a, const char *split, size_t len);
/* train2017 is stored as train, unless the split map names it in full, or there is train2014, too. */
mr_status mr_coco_get_split(const mr_coco_build *b, mr_plan *plan, const mr_coco_group *g, uint32_t *split);
/* The folder of a path that is named like a split, the outermost one; NULL: none. */
const char *mr_coco_split_folder(const char *path, size_t len, size_t *folder_len);
/* Parses a part, unless that has been done. */
mr_status mr_coco_open_part(const mr_coco_build *b, mr_coco_part *part);
/* Parses the parts of a group and checks whether any of its images exists. */
mr_status mr_coco_open_group(mr_coco_build *b, mr_coco_group *g);
/* place.c: the file of an image. */
mr_status mr_coco_find_place(mr_coco_build *b, mr_coco_group *g, const mr_coco_image *image, mr_coco_place *out);
/* Its entry alone; MR_NO_ENTRY: it is not there. */
mr_status mr_coco_find_image(mr_coco_build *b, mr_coco_group *g, const mr_coco_image *image, uint32_t *entry);
/* Marks the images of a group that --split-map leaves out, after all others are planned; its classes do not count. */
mr_status mr_coco_leave_out(mr_coco_build *b, mr_coco_group *g);
/* Adds the images of group n, after all groups are open: the name of its split depends on them. */
mr_status mr_coco_plan_group(mr_coco_build *b, size_t n);
/* labels.c: whether the annotations of all files say what an image shows, and not where; then sets the labels of the
 * samples.  Needs the classes. */
mr_status mr_coco_label_samples(const mr_coco_build *b);
/* The labels of a sample, int32_t, ascending; replaces out's contents.  Thread-safe. */
mr_status mr_coco_labels(const mr_plan *plan, uint64_t aux, mr_buf *out, mr_error *err);
/* missing.c: all `count` images of the split are missing; `first`: one of them. */
void mr_coco_note_missing(mr_coco_build *b, const mr_coco_group *g, const mr_coco_image *first, uint64_t count);
/* ... or found by their names alone, the first of them in this entry. */
void mr_coco_note_anywhere(const mr_coco_build *b, const mr_coco_group *g, uint32_t first);

#endif
