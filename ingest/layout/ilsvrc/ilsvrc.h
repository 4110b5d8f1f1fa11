/* ilsvrc.h - what the files of the layout ilsvrc share: ImageNet's ILSVRC2012 and Tiny ImageNet.
 *
 *      n01440764/...JPEG, or n01440764.tar   ILSVRC2012_val_00000001.JPEG ...       as image-net.org hands them out
 *      ILSVRC/Data/CLS-LOC/{train,val,test}   LOC_val_solution.csv ...             Kaggle's
 *      train/n01443537/images   val/images, val/val_annotations.txt   test/images   Tiny ImageNet
 *
 * Invariant: a class is a synset (n and 8 digits), from the image's folder or else from a table; nothing of the state
 * changes after plan(). */
#ifndef MR_ILSVRC_H
#define MR_ILSVRC_H

#include "ingest/layout/folders/folders.h"

/* What a source has to have. */
#define MR_ILSVRC_NEEDS                                                                                                \
    "class folders or tars named by synset (n01440764), and ILSVRC2012_val_*.JPEG with LOC_val_solution.csv "          \
    "or the devkit's tables; or Tiny ImageNet's train/ and val/val_annotations.txt"

enum { MR_SYNSET_LEN = 9, MR_ILSVRC_IDS_MAX = 100000 };

typedef struct mr_ilsvrc_row { /* what a table says about an image */
    const char *key;           /* the image's name without its extension */
    size_t key_len;
    const char *synset; /* MR_SYNSET_LEN bytes; NULL: the table has boxes only */
    const char *boxes;  /* as written, for mr_ilsvrc_boxes() */
    size_t boxes_len;
    size_t order;       /* the first row of an image counts */
    const char *file;   /* the table */
    const char *rival;  /* another row for the image contradicts it: its synset, NULL: it has other boxes */
    const char *rivals; /* that row's table; NULL: there is none */
} mr_ilsvrc_row;

typedef struct mr_ilsvrc_synset {
    const char *name;  /* MR_SYNSET_LEN bytes */
    const char *words; /* "tench, Tinca tinca" */
    size_t words_len;
    size_t order; /* the first words of a synset count */
} mr_ilsvrc_synset;

typedef struct mr_ilsvrc_state {
    mr_buf *texts; /* what the rest points into */
    size_t text_count, text_capacity;
    mr_ilsvrc_row *rows; /* sorted by key, one per key */
    size_t row_count, row_capacity;
    mr_ilsvrc_synset *synsets; /* sorted by name, one per name */
    size_t synset_count, synset_capacity;
    const char **by_id; /* [id_count]: the synset of each ILSVRC2012_ID, NULL: none; itself NULL: ids are unknown */
    size_t id_count;
    size_t mat_budget; /* what files of MATLAB may still unpack to */
} mr_ilsvrc_state;

typedef struct mr_ilsvrc_places { /* where the images are, by names */
    const char *data;             /* the folder below the root: "" or "ILSVRC/Data/CLS-LOC/" */
    size_t classes;               /* class folders in `data` itself */
    size_t split_classes;         /* most class folders of a split folder */
    size_t flat;                  /* images in no class folder that are named ILSVRC2012_val_ or _test_; at most 1 */
    bool others;                  /* `data` has folders that are neither classes nor splits */
    bool own_names;               /* the first image of a class folder is named after it */
    bool tiny;                    /* Tiny ImageNet's tables */
    const char *table;            /* the first table of labels or words that was found; NULL: none */
} mr_ilsvrc_places;

/* ---- places.c ---------------------------------------------------------------------------------------------------- */

typedef enum mr_ilsvrc_kind { MR_ILSVRC_TRAIN, MR_ILSVRC_VAL, MR_ILSVRC_TEST, MR_ILSVRC_OTHER } mr_ilsvrc_kind;

void mr_ilsvrc_look(const mr_tree *t, const mr_layout_options *o, mr_ilsvrc_places *places);
/* A file of this name, where the downloads and the usual ways to unpack them put it; MR_NO_ENTRY. */
uint32_t mr_ilsvrc_find(const mr_tree *t, const mr_ilsvrc_places *places, const char *name);
/* The same file first, then each other one of the tree with this name, wherever it is: `entry` is the last one,
 * MR_NO_ENTRY before the first and after the last. */
uint32_t mr_ilsvrc_next(const mr_tree *t, const mr_ilsvrc_places *places, const char *name, uint32_t entry);
/* Whether a folder is a split, and which; the name to store it by is *name, *len. */
bool mr_ilsvrc_split(const mr_layout_options *o, const char **name, size_t *len, mr_ilsvrc_kind *kind);
/* MR_ILSVRC_VAL or _TEST for the name of such an image, else MR_ILSVRC_OTHER. */
mr_ilsvrc_kind mr_ilsvrc_image_kind(const char *name, size_t len);

/* ---- tables.c, synsets.c ----------------------------------------------------------------------------------------- */

/* Reads every table of the tree into the state, and marks it used.  MR_BAD_DATA: a table is not what its name says. */
mr_status mr_ilsvrc_tables(const mr_tree *t, const mr_ilsvrc_places *places, mr_plan *plan, mr_ilsvrc_state *st,
                           mr_error *err);
mr_status mr_ilsvrc_synsets(const mr_tree *t, const mr_ilsvrc_places *places, mr_plan *plan, mr_ilsvrc_state *st,
                            mr_error *err);
/* The row of an image's path; NULL. */
const mr_ilsvrc_row *mr_ilsvrc_row_of(const mr_ilsvrc_state *st, const char *path, size_t len);
const mr_ilsvrc_synset *mr_ilsvrc_words(const mr_ilsvrc_state *st, const char *synset, size_t len);

/* The bytes of a table, kept in the state.  MR_BAD_DATA: it is too large, or not text. */
mr_status mr_ilsvrc_text(const mr_tree *t, uint32_t entry, mr_ilsvrc_state *st, mr_buf *lent, mr_error *err);
mr_status mr_ilsvrc_keep(mr_ilsvrc_state *st, mr_buf *text, mr_error *err); /* takes the buffer over */

/* The boxes of a row as objects: "x1 y1 x2 y2" of class `label`, or a synset before each.  What cannot be read is
 * counted. */
void mr_ilsvrc_boxes(const mr_ilsvrc_row *row, const mr_plan *plan, int32_t label, mr_objects *out);

typedef struct mr_ilsvrc_counts {
    uint64_t *labeled;   /* samples [split][class] */
    uint64_t *unlabeled; /* [split]: samples without a label */
} mr_ilsvrc_counts;

/* notes.c: adds the notes on a plan with all its samples. */
mr_status mr_ilsvrc_notes(const mr_tree *t, const mr_ilsvrc_places *places, mr_plan *plan,
                          const mr_ilsvrc_counts *counts, mr_error *err);

mr_status mr_ilsvrc_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err); /* plan.c */

#endif
