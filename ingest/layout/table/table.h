/* table.h - what the files of the layout table share: table.c (bid, meta), pictures.c (which picture a cell names),
 * sheet.c (one CSV or TSV), columns.c (which column is what), classes.c (labels), rows.c (samples), plan.c, and lists
 * of other forms: cub.c, names.c and sidecars.c. Invariant: nothing of the state changes after plan(), so meta() may
 * run on many threads. */
#ifndef MR_LAYOUT_TABLE_H
#define MR_LAYOUT_TABLE_H

#include "base/string_map.h"
#include "layout/folders.h"
#include "layout/label_census.h"
#include "tables/csv.h"

/* ---- pictures.c ----------------------------------------------------------------------------------------------- */

typedef struct mr_picture_index { /* the pictures of a tree by their names without folder and ending */
    const mr_tree *tree;
    uint32_t *entries; /* the pictures, ascending */
    size_t count, room;
    uint32_t *first; /* by stem: a picture, as a place in entries */
    uint32_t *next;  /* by picture: another one of this stem; MR_NO_ENTRY: none */
    mr_string_map stems;
} mr_picture_index;

mr_status mr_picture_index_make(const mr_tree *t, mr_picture_index *out, mr_error *err);
void mr_picture_index_free(mr_picture_index *index);

typedef enum mr_picture_match {
    MR_PICTURE_NONE,
    MR_PICTURE_ONE,
    MR_PICTURE_SEVERAL, /* they are in different folders, or have different endings */
    MR_PICTURE_OUTSIDE, /* an absolute path, or one with ".." */
} mr_picture_match;

/* The picture that a cell names: by its path under the root, by the end of that path ("b/1.jpg" for a/b/1.jpg), with or
 * without the ending.  `split`: of several, the one in a folder of this split counts; NULL: none is preferred.
 * found[0] is a place in index->entries; SEVERAL: found[1] is another one. */
mr_picture_match mr_picture_find(const mr_picture_index *index, const char *cell, const char *split, uint32_t found[2]);

/* Whether a folder's name says nothing of what pictures show: a split's name, or images, photos ... */
bool mr_folder_word(const char *name, size_t len);
/* Whether the root is itself a split's folder. */
bool mr_root_is_split(const mr_tree *t);
/* The split that a folder of the path names: static text; NULL: none. */
const char *mr_picture_split(const mr_tree *t, uint32_t entry);

/* ---- sheet.c, columns.c --------------------------------------------------------------------------------------- */

enum { MR_SHEETS_MAX = 64, MR_SHEET_LABELS_MAX = 4096, MR_SHEET_HEAD = 64 << 10 };

typedef struct mr_sheet {
    uint32_t entry;
    const char *name; /* its path under the root */
    mr_csv csv;
    const char *word;            /* the split that its name stands for; NULL: none */
    int path, split, text;       /* columns; -1: none */
    size_t *labels, label_count; /* columns */
    bool flags;                  /* the labels are columns of 0 and 1, each a class */
    bool beside;                 /* paths are relative to the file's own folder, and complete */
    uint64_t *at;                /* rows of JSON lines: where each begins in the file; NULL: a CSV */
    uint32_t *len;               /* ... and its length */
    const char *text_name;       /* ... and the member that is a text; NULL: none */
    bool objects;                /* ... and whether some may have objects */
} mr_sheet;

typedef struct mr_sheet_list {
    uint32_t entries[MR_SHEETS_MAX];
    size_t count;
    bool more; /* there are more */
} mr_sheet_list;

/* The CSV and TSV files directly under the root or, if it has none, in its split folders; hidden files and the example
 * of a submission are not among them. */
void mr_sheet_find(const mr_tree *t, mr_sheet_list *out);
/* Reads a table: all of it, or, for a bid, whole rows of its first MR_SHEET_HEAD bytes. */
mr_status mr_sheet_read(const mr_tree *t, uint32_t entry, bool head, mr_sheet *out, mr_error *err);
void mr_sheet_free(mr_sheet *sheet);
/* Where rows are counted as people do: the first below the header is row 1. */
const char *mr_sheet_cell(const mr_sheet *sheet, size_t row, size_t column);

/* Finds the column of paths, by its name if one is given, else by looking: -1: no column names pictures.
 * MR_MISUSE: there is no such column, or several name different pictures: the message lists them. */
mr_status mr_sheet_find_path(mr_sheet *sheet, const mr_picture_index *index, const char *asked, mr_error *err);
/* Whether the header names files, although no row does. */
bool mr_sheet_claims(const mr_sheet *sheet);
/* The columns of labels, split and texts.  MR_MISUSE: a given column is missing, or several look like labels. */
mr_status mr_sheet_find_others(mr_sheet *sheet, const mr_layout_options *o, mr_notes *notes, mr_error *err);

/* ---- classes.c ------------------------------------------------------------------------------------------------ */

typedef struct mr_table_labels { /* the classes that a row names, one after the other */
    const mr_sheet *sheet;
    size_t row, column;
    const char *at;
    const char *separators; /* bytes that stand between two classes of a cell; "": none */
} mr_table_labels;

bool mr_table_label(mr_table_labels *l, const char **text, size_t *len);

/* ---- rows.c, plan.c
 * --------------------------------------------------------------------------------------------------- */

typedef struct mr_table_state {
    mr_sheet sheets[MR_SHEETS_MAX];
    size_t sheet_count;
    char separators[8];
    mr_label_census census; /* of all labels */
    bool sidecars;          /* there are no sheets: texts beside the pictures are their captions */
} mr_table_state;

mr_status mr_table_classes(mr_table_state *st, const mr_layout_options *o, mr_plan *plan, mr_error *err);
/* The row's labels: int32_t, ascending, each once; replaces out's contents. */
mr_status mr_table_row_labels(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row,
                              mr_buf *out, mr_error *err);
/* Sets label, labels, flags and meta_bytes from the row. */
mr_status mr_table_judge(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row, mr_sample *s,
                         mr_buf *scratch, mr_error *err);
int32_t mr_table_class(const mr_table_state *st, const mr_plan *plan, const char *text, size_t len);

/* Classes and samples of the state's sheets, whose columns are known. */
mr_status mr_table_rows(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                        mr_error *err);
mr_status mr_table_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);
mr_status mr_table_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err);
void mr_table_free(void *state);

/* ---- folder_splits.c ------------------------------------------------------------------------------------------ */

typedef struct mr_folder_splits { /* in plan->splits; MR_NO_ENTRY: left out, or without pictures */
    uint32_t split[3];
} mr_folder_splits;

mr_status mr_folder_splits_open(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index,
                                mr_plan *plan, mr_folder_splits *out, mr_error *err);
/* False: --split-map leaves the picture out, which is then marked. */
bool mr_folder_splits_get(const mr_tree *t, const mr_folder_splits *splits, uint32_t entry, mr_plan *plan,
                          uint32_t *split);

/* ---- names.c -------------------------------------------------------------------------------------------------- */

/* MR_MISUSE: it has not exactly one {class}. */
mr_status mr_class_pattern_check(const char *pattern, mr_error *err);
/* The class in a name without folder and ending: "Abyssinian_12" by "{class}_#" is Abyssinian.  '#' stands for digits,
 * '*' for anything; {class} is as long as possible.  False: the name does not fit. */
bool mr_class_pattern_match(const char *pattern, const char *name, size_t len, size_t *class_at, size_t *class_len);
mr_status mr_table_by_name(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                           mr_error *err);

#endif
