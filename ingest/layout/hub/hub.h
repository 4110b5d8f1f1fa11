/* hub.h - what the files of the layout hub share: hub.c (bid, open, meta), files.c (names), configs.c
 * (README.md), reader.c (the program that reads them), rows.c (plan).
 * Invariant: nothing of the state changes after plan(), so meta() may run on many threads. */
#ifndef MR_LAYOUT_HUB_H
#define MR_LAYOUT_HUB_H

#include "base/json/json.h"
#include "ingest/layout/layout.h"

/* What a source has to have. */
#define MR_HUB_NEEDS                                                                                                   \
    "[CONFIG/ or data/]SPLIT-00000-of-00001.parquet, SPLIT.parquet, or one .parquet file, with a column of "           \
    "images (struct<bytes, path>)"

#define MR_HUB_END    ".parquet"
#define MR_HUB_READER "MILLRACE_PARQUET_READER" /* environment: a program to run in place of parquet_rows.py */

typedef struct mr_hub_part { /* a part of a file's path; not NUL-terminated */
    const char *text;
    size_t len;
} mr_hub_part;

typedef struct mr_hub_file {
    uint32_t entry;      /* the file's entry, before the tree grows */
    mr_hub_part path;    /* under the root */
    mr_hub_part config;  /* len 0: "default" */
    mr_hub_part split;   /* as the source names it; len 0: none in the name */
    uint32_t number, of; /* part 2 of 7, from 0; of 0: not numbered */
    mr_hub_part stem;    /* its name without the extension */
    mr_hub_part series;  /* the name of a numbered file without the number */
    bool several;        /* its name has words of more than one split */
    bool by_card;        /* config and split are README.md's */
} mr_hub_file;

typedef struct mr_hub_files {
    mr_hub_file *items; /* in order of path */
    size_t count, capacity;
} mr_hub_files;

typedef struct mr_hub_configs mr_hub_configs; /* configs.h */

typedef struct mr_hub_state {
    mr_hub_files files;   /* those that are opened */
    mr_hub_configs *card; /* has the texts of splits and configs */
    char *text_column;    /* NULL: none */
    char *list;           /* the label's column, if it holds lists of classes; NULL */
    bool numbered;        /* the plan's classes are those of the column "objects" */
} mr_hub_state;

/* Splits a path under the root into config, split and number:
 *      data/train-00000-of-00002.parquet       CONFIG/test-00000-of-00001-0123456789abcdef.parquet
 *      CONFIG/train/0000.parquet               train.parquet          anything.parquet
 *      partial-train-00000-of-00001.parquet    my_train_data.parquet                                                */
mr_hub_file mr_hub_file_at(const char *path, size_t len);

/* All Parquet files under the root except hidden ones.  free(out->items). */
mr_status mr_hub_list(const mr_tree *t, mr_hub_files *out, mr_error *err);

/* A file whose name names no split, or several, gets the split that --split-map gives to its name. */
void mr_hub_map_splits(mr_hub_files *files, const mr_layout_options *o);

/* Keeps the files of the requested config, or of the only one.  MR_MISUSE: lists the configs.  MR_BAD_DATA: a file
 * whose split is not known, where those of others are. */
mr_status mr_hub_choose(mr_hub_files *files, const char *wanted, mr_error *err);

/* In plan(): a file that was not opened is of a config other than the requested one, or of a split that is left out. */
void mr_hub_mark_left_out(const mr_tree *t, mr_plan *plan);

/* MR_BAD_DATA: a split lacks one of its numbered files, or has one twice; names it. */
mr_status mr_hub_complete(const mr_hub_files *files, mr_error *err);

/* "default", or the config's name as path text. */
void mr_hub_config_name(const mr_hub_file *f, mr_buf *out);

/* argv of the program that turns a Parquet file into rows, with the requested columns. */
mr_status mr_hub_reader(const mr_layout_options *o, mr_layout_files *out, mr_error *err);

/* ---- schema.json ---------------------------------------------------------------------------------------------- */

typedef enum mr_hub_kind { MR_HUB_NO_LABEL, MR_HUB_NAMES, MR_HUB_NUMBERS, MR_HUB_TEXTS } mr_hub_kind;

typedef struct mr_hub_schema {
    uint64_t rows;
    mr_hub_kind kind;
    char *column;    /* the label's column; NULL: there is none; with NO_LABEL: it holds no labels */
    json_t *names;   /* NAMES: a list of different strings, by label */
    bool list;       /* NAMES: values are lists of labels */
    bool captions;   /* a column "captions" holds lists of texts */
    json_t *objects; /* the same of the column "objects"; NULL: none are known */
    mr_buf columns;  /* "a, b, c", for messages */
} mr_hub_schema;

/* Marks the entry as used. Begin with a zeroed struct; mr_hub_schema_free() in any case. */
mr_status mr_hub_schema_read(const mr_tree *t, const mr_hub_file *file, mr_plan *plan, mr_hub_schema *s, mr_error *err);
void mr_hub_schema_free(mr_hub_schema *s);
/* Notes columns that may mean more than what is read of them: a split, or a label of another name. */
mr_status mr_hub_schema_note(mr_hub_schema *s, const mr_hub_file *file, mr_notes *notes, mr_error *err);
/* MR_BAD_DATA: the labels of `file` differ in meaning from those of the first one. */
mr_status mr_hub_schema_agree(const mr_hub_schema *first, const mr_hub_schema *s, const mr_hub_file *file,
                              mr_error *err);

/* ---- labels.c -------------------------------------------------------------------------------------------- */

typedef enum mr_hub_listed { MR_HUB_LIST_NONE, MR_HUB_LIST_THERE, MR_HUB_LIST_BAD } mr_hub_listed;

/* The labels of a row in this column, settled (label_list.h); replaces out's contents.  NONE: it is null; BAD: not a
 * list of numbers below `classes`. */
mr_hub_listed mr_hub_list_read(const mr_buf *row, const char *column, size_t classes, mr_buf *out);

mr_status mr_hub_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);

#endif
