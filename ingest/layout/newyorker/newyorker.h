/* newyorker.h - what newyorker.c (bid, meta), configs.c and rows.c (plan) share.
 * Invariant: nothing of the state changes after plan(), so meta() may run on many threads. */
#ifndef MR_LAYOUT_NEWYORKER_H
#define MR_LAYOUT_NEWYORKER_H

#include "ingest/layout/layout.h"
#include "ingest/tables/jsonl.h"

/* What a source has to have. */
#define MR_NEWYORKER_NEEDS                                                                                             \
    "all_contest_images/NUMBER.jpeg (or all_contest_images.zip) and train.jsonl, val.jsonl, test.jsonl in one "        \
    "folder per config (or matching.zip ...), rows with contest_number"

#define MR_NEWYORKER_IMAGES "all_contest_images"

enum { MR_NEWYORKER_FILES = 4 };
extern const char *const mr_newyorker_stems[MR_NEWYORKER_FILES]; /* train, val, validation, test */

typedef struct mr_newyorker_row {
    uint64_t at;
    uint32_t len, file; /* the jsonl's entry */
} mr_newyorker_row;

typedef struct mr_newyorker_state {
    mr_newyorker_row *rows; /* a sample's aux is a place in it */
    size_t count, capacity;
} mr_newyorker_state;

typedef struct mr_newyorker_config {
    char name[128];                     /* "matching"; "default" for files in the root itself */
    uint32_t files[MR_NEWYORKER_FILES]; /* by stem; MR_NO_ENTRY: none */
} mr_newyorker_config;

typedef struct mr_newyorker_configs { /* all zero first; free items */
    mr_newyorker_config *items;
    size_t count, capacity;
} mr_newyorker_configs;

mr_status mr_newyorker_list_configs(const mr_tree *t, mr_newyorker_configs *list, mr_error *err);
void mr_newyorker_list_names(const mr_newyorker_configs *list, mr_buf *out); /* "matching, ranking" */
/* The config to read: the one named, or the only one. MR_MISUSE lists the existing ones. */
mr_status mr_newyorker_choose(const mr_tree *t, const char *wanted, mr_newyorker_config *out, mr_error *err);
mr_status mr_newyorker_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);

#endif
