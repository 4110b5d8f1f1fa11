/* rows_state.h - the rows of opened Parquet files while they are planned: what rows.c and labels.c share.
 * Invariant: the first file's schema stays; those of all others agree with it. */
#ifndef MR_HUB_ROWS_STATE_H
#define MR_HUB_ROWS_STATE_H

#include "ingest/layout/hub/hub.h"
#include "ingest/layout/common/hub_objects.h"
#include "ingest/layout/common/labels.h"

typedef struct mr_hub_build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    const mr_hub_file *file; /* the current one */
    mr_hub_schema first;     /* the first file's schema, with which the others must agree */
    mr_labels labels;        /* texts */
    mr_label_census numbers;
    mr_class_set classes; /* the objects' classes */
    mr_label_gaps gaps;
    mr_buf list;          /* the labels of a row with several */
    mr_jsonl_field field; /* the label's column */
    mr_jsonl row;
    mr_note *left_out; /* what the listing left out, sorted by path; the texts belong to the notes */
    size_t left_out_count;
    size_t only_counted; /* images rejected by the listing of which no note was kept */
    mr_buf path, scratch;
    mr_error *err;
} mr_hub_build;

/* The path of the current file, as text; until the next call. */
const char *mr_hub_file_name(mr_hub_build *b);

/* labels.c.  The classes that the column of labels lists, before its rows; and the columns of which metas need more. */
mr_status mr_hub_add_names(mr_hub_build *b);
/* The class of a row, or its classes, by their list; false: it lacks one. */
bool mr_hub_take_classes(mr_hub_build *b, const mr_buf *row, mr_sample *s);
/* Keeps the label that is a number or a text. */
mr_status mr_hub_take_label(mr_hub_build *b, uint64_t row);
/* Whether objects name the classes: by the numbers or texts of the rows, where no list does. */
bool mr_hub_objects_name_classes(const mr_hub_build *b);
/* After all rows: the classes that they name, and the samples' labels. */
mr_status mr_hub_plan_labels(mr_hub_build *b);

#endif
