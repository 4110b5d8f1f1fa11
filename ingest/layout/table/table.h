/* table.h - what the files of the layout table share: table.c (bid, meta), pictures.c (which image a cell names),
 * sheet.c (one CSV or TSV), header.c, columns.c, label_columns.c, boxes.c (which column is what), classes.c (labels),
 * place.c (which rows are an image's), rows.c (samples), plan.c, and lists of other forms: cub.c, names.c, sidecars.c.
 * Invariant: nothing of the state changes after plan(), so meta() may run on many threads. */
#ifndef MR_LAYOUT_TABLE_H
#define MR_LAYOUT_TABLE_H

#include "base/string_map.h"
#include "ingest/layout/folders/folders.h"
#include "ingest/layout/common/label_census.h"
#include "ingest/layout/texts.h"
#include "ingest/tables/csv.h"

/* ---- pictures.c ----------------------------------------------------------------------------------------------- */

typedef struct mr_picture_index { /* the images of a tree by their names without folder and ending */
    const mr_tree *tree;
    uint32_t *entries; /* the images but for masks of others, ascending */
    size_t count, capacity;
    size_t masks;    /* images in folders of masks */
    bool tokens;     /* folders such as cars_train and cars_test are of splits */
    uint32_t *first; /* by stem: an image, as a place in entries */
    uint32_t *next;  /* by image: another of this stem; MR_NO_ENTRY: none */
    mr_string_map stems;
} mr_picture_index;

mr_status mr_picture_index_make(const mr_tree *t, mr_picture_index *out, mr_error *err);
void mr_picture_index_free(mr_picture_index *index);
/* The place of an image in index->entries; index->count: it is not there. */
size_t mr_picture_place(const mr_picture_index *index, uint32_t entry);

typedef enum mr_picture_match {
    MR_PICTURE_NONE,
    MR_PICTURE_ONE,
    MR_PICTURE_SEVERAL, /* they are in different folders, or have different endings */
    MR_PICTURE_OUTSIDE, /* a path with "..", unless what follows "../" is an image's */
} mr_picture_match;

/* The image that a cell names: by its path under the root, by the end of that path ("b/1.jpg" for a/b/1.jpg), with or
 * without the ending; for an absolute path, or one with backslashes, by the longest end that fits; for one that begins
 * above the root, without what mr_picture_above() says.  `split`: among several, the one in a folder of this split
 * counts; NULL: none is preferred.  found[0] is a place in index->entries; SEVERAL: found[1] is another. */
mr_picture_match mr_picture_find(const mr_picture_index *index, const char *cell, const char *split, uint32_t found[2]);
/* The length of "chexpert/" in "chexpert/train/1.jpg", where the root is that folder, and holds train/1.jpg; 0: nothing
 * is above the root.  A folder that the root has, or one of a split or of images, is never taken for its name. */
size_t mr_picture_above(const mr_picture_index *index, const char *cell);

/* Whether a cell has the ending of an image; Flickr8k's tokens add "#0", the number of a caption. */
bool mr_cell_is_image(const char *cell);
/* Whether a folder's name says nothing of what images show: a split's name, or images, photos ... */
bool mr_folder_word(const char *name, size_t len);
/* Whether the root is itself a split's folder. */
bool mr_root_is_split(const mr_tree *t);

/* ---- sheet.c, columns.c, label_columns.c
 * --------------------------------------------------------------------------------------- */

enum { MR_SHEETS_MAX = 64, MR_SHEET_LABELS_MAX = 4096, MR_SHEET_HEAD = 64 << 10 };

typedef enum mr_box_form {
    MR_BOX_NONE,
    MR_BOX_CORNERS, /* x and y of two corners */
    MR_BOX_SIZE,    /* x, y, width, height */
    MR_BOX_MIDDLE,  /* x and y of the middle, width, height */
    MR_BOX_TEXT,    /* one column: "[x, y, width, height]" */
    MR_BOX_VIA,     /* two columns of JSON: shape, and attributes or -1; via.c */
} mr_box_form;

typedef struct mr_box_columns {
    mr_box_form form;
    int at[4];                /* columns */
    int width, height, crowd; /* columns of the image's size, and of a 1 for a crowd; -1: none */
    bool parts;               /* in parts of the image's width and height */
} mr_box_columns;

#define MR_LABEL_END "\x1F" /* between the labels of a list, in a cell of JSON lines */

typedef struct mr_sheet_fault {
    size_t row;
    char *why; /* with file and line */
} mr_sheet_fault;

typedef struct mr_sheet {
    uint32_t entry;
    const char *name; /* its path under the root */
    mr_csv csv;
    const char *word;            /* the split that its name stands for; NULL: none */
    int path, split, text;       /* columns; -1: none */
    const char *flagged[3];      /* the splits of rows with 0, 1 and 2 in that column; NULL: it names splits */
    int confidence;              /* Open Images: a label of 0 is one that the image does not have; 0: none */
    size_t *labels, label_count; /* columns */
    bool flags;                  /* the labels are columns of 0 and 1, each a class */
    bool listed;                 /* a list names its classes: they are those of images, beside boxes too */
    bool bare;                   /* it has no header */
    bool utf8;                   /* all of it is UTF-8 */
    mr_box_columns boxes;        /* a row is a box */
    uint32_t *next;              /* by row: another of its image, counted from 1; 0: the last; NULL: each is alone */
    bool beside;                 /* paths are relative to the file's own folder, and complete */
    uint64_t *at;                /* rows of JSON lines: where each begins in the file; NULL: a CSV */
    uint32_t *len;               /* ... and its length */
    const char *text_name;       /* ... and the member that is a text; NULL: none */
    mr_sheet_fault *faults;      /* ... and rows that are damaged, ascending */
    size_t fault_count;
    bool objects; /* ... and whether some may have objects */
} mr_sheet;

typedef struct mr_sheet_list {
    uint32_t entries[MR_SHEETS_MAX];
    size_t count;
    bool more;  /* there are more */
    bool texts; /* they are .txt */
} mr_sheet_list;

/* The CSV and TSV files directly under the root or, if it has none, in its split folders or, without these, in its
 * annotations/, labels/ or the like, else tables that are .txt under the root; hidden files and the example of a
 * submission are not among them. */
void mr_sheet_find(const mr_tree *t, mr_sheet_list *out);
bool mr_sheet_is_example(const mr_child *child); /* sample_submission.csv, sampleSubmission.csv ... */
/* Reads a table: all of it, or, for a bid, whole rows of its first MR_SHEET_HEAD bytes. */
mr_status mr_sheet_read(const mr_tree *t, uint32_t entry, bool head, mr_sheet *out, mr_error *err);
void mr_sheet_free(mr_sheet *sheet);
/* Where rows are counted as people do: the first below the header is row 1. */
const char *mr_sheet_cell(const mr_sheet *sheet, size_t row, size_t column);
enum { MR_SHEET_FAULT = 400 };
/* What is wrong with a row, so that its image is rejected; false: nothing. */
bool mr_sheet_fault_of(const mr_sheet *sheet, size_t row, char why[MR_SHEET_FAULT]);
/* The next row of a row's image, both counted from 1; 0: there are no more. */
size_t mr_sheet_next_row(const mr_sheet *sheet, size_t row);

/* header.c: gives names to the columns of a table without a header.  MR_BAD_DATA: two columns have one name. */
mr_status mr_sheet_settle_header(mr_sheet *sheet, const mr_picture_index *index, mr_error *err);
/* Whether a header says that its column names files, or labels. */
bool mr_header_names_path(const char *name);
bool mr_header_names_label(const char *name);
/* Whether a header is one of the words, in lower case with _ for spaces and hyphens, which end with NULL. */
bool mr_header_among(const char *name, const char *const *words);
/* The first column, other than that of paths, whose header is one of the words, which end with NULL; -1: none. */
int mr_sheet_column_among(const mr_sheet *sheet, const char *const *words);

/* Whether the row says that its label is not that of the image. */
bool mr_sheet_denies(const mr_sheet *sheet, size_t row);

/* boxes.c: finds the columns of boxes.  MR_BAD_DATA: it has shapes that are not read. */
mr_status mr_sheet_find_boxes(mr_sheet *sheet, const mr_layout_options *o, mr_error *err);
bool mr_sheet_is_side(const mr_sheet *sheet, size_t column);
typedef enum mr_box_row { MR_BOX_ABSENT, MR_BOX_THERE, MR_BOX_BAD } mr_box_row;
/* The numbers of a row's box as they are in the table. */
mr_box_row mr_sheet_box(const mr_sheet *sheet, size_t row, double out[4]);

/* Finds the column of paths, by its name if one is given, else by looking: -1: no column names images.
 * MR_MISUSE: there is no such column, or several name different images: the message lists them. */
mr_status mr_sheet_find_path(mr_sheet *sheet, const mr_picture_index *index, const char *asked, mr_error *err);
/* Whether the header names files, although no row does. */
bool mr_sheet_claims(const mr_sheet *sheet);
/* The columns of labels, split and texts.  MR_MISUSE: a given column is missing, or several look like labels. */
mr_status mr_sheet_find_others(mr_sheet *sheet, const mr_layout_options *o, mr_notes *notes, mr_error *err);

/* ---- split_column.c ------------------------------------------------------------------------------------------- */

/* Sets sheet->split: the column named "split" or the like whose cells are words for splits, or partition and whose are
 * 0, 1 and 2, or one of flags, such as is_valid; the latter two are noted.  MR_MISUSE: several flag splits. */
mr_status mr_sheet_find_split(mr_sheet *sheet, mr_notes *notes, mr_error *err);
bool mr_header_is_partition(const char *header);
int mr_sheet_flag(const char *cell); /* 1, 1.0 or true: 1; 0, 0.0 or false: 0; else -1 */
/* The row's split in that column, as the source calls it; empty: none. */
const char *mr_sheet_split(const mr_sheet *sheet, size_t row);

/* ---- via.c ---------------------------------------------------------------------------------------------------- */

/* Sheets of MR_BOX_VIA: the box of a rectangle, or around a polygon. */
mr_box_row mr_via_box(const mr_sheet *sheet, size_t row, double out[4]);
/* Adds the polygon, if it is one, to the last object. */
void mr_via_polygon(const mr_sheet *sheet, size_t row, mr_objects *out);
/* The class; false: its attributes say none, or several. */
bool mr_via_label(const mr_sheet *sheet, size_t row, char *text, size_t capacity);

/* ---- classes.c ------------------------------------------------------------------------------------------------ */

typedef struct mr_table_labels { /* the classes that a row names, one after another */
    const mr_sheet *sheet;
    size_t row, column;
    const char *at;
    const char *separators; /* bytes between two classes of a cell; "": none */
    char own[256];          /* the class in a cell that holds more than that */
} mr_table_labels;

bool mr_table_label(mr_table_labels *l, const char **text, size_t *len);

/* ---- rows.c, plan.c ---------------------------------------------------------------------------------------------- */

typedef struct mr_table_state {
    mr_sheet sheets[MR_SHEETS_MAX];
    size_t sheet_count;
    size_t division; /* 1 + the sheet that only gives the images of the others their splits; 0: none */
    char separators[8];
    mr_label_census census; /* counts all labels */
    mr_texts texts;         /* captions beside the images */
    bool sidecars;          /* there are no sheets: texts beside the images are their captions */
} mr_table_state;

mr_status mr_table_classes(mr_table_state *st, const mr_layout_options *o, mr_plan *plan, mr_error *err);
/* The row's labels, or with `all` those of all rows of its image: int32_t, ascending, each once; replaces out's
 * contents. */
mr_status mr_table_row_labels(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row,
                              bool all, mr_buf *out, mr_error *err);
/* Sets label, labels, flags and meta_bytes from the rows of an image, of which `row` is the first. */
mr_status mr_table_judge(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row, mr_sample *s,
                         mr_buf *scratch, mr_error *err);
int32_t mr_table_class(const mr_table_state *st, const mr_plan *plan, const char *text, size_t len);

/* Classes and samples of the state's sheets, whose columns are known. */
mr_status mr_table_rows(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                        mr_error *err);
mr_status mr_table_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);
mr_status mr_table_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err);
mr_status mr_table_objects(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, const mr_stored *picture,
                           mr_objects *out, mr_error *err);
/* The members of a meta that name the labels of an image with several. */
mr_status mr_table_add_labels(const mr_plan *plan, const mr_sheet *sheet, size_t row, mr_buf *out, mr_error *err);
void mr_table_free(void *state);

/* ---- folder_splits.c ------------------------------------------------------------------------------------------ */

/* The split that is the whole name of a folder of the path: static text; NULL: none. */
const char *mr_folder_split(const mr_tree *t, uint32_t entry);
/* The same, or a split in a longer name where such folders divide the images: cars_train and cars_test. */
const char *mr_picture_split(const mr_picture_index *index, uint32_t entry);
/* Names the folders of splits that have longer names, and those in a folder of another split. */
void mr_picture_note_splits(const mr_picture_index *index, mr_notes *notes);
/* Whether folders name the split train, and others another split by one word of a longer name. */
bool mr_folder_tokens(const mr_picture_index *index);

typedef struct mr_folder_splits {
    const mr_picture_index *index;
    uint32_t split[3]; /* in plan->splits; MR_NO_ENTRY: left out, or without images */
} mr_folder_splits;

mr_status mr_folder_splits_open(const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                                mr_folder_splits *out, mr_error *err);
/* False: --split-map leaves the image out, which is then marked. */
bool mr_folder_splits_get(const mr_folder_splits *splits, uint32_t entry, mr_plan *plan, uint32_t *split);

/* ---- names.c -------------------------------------------------------------------------------------------------- */

/* The class in a name without folder and ending: "Abyssinian_12" by "{class}_#" is Abyssinian.  '#' stands for digits,
 * '*' for anything; {class} is as long as possible.  False: the name does not fit. */
bool mr_class_pattern_match(const char *pattern, const char *name, size_t len, size_t *class_at, size_t *class_len);
mr_status mr_table_by_name(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                           mr_error *err);

#endif
