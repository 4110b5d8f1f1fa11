/* imagefolder.h - what imagefolder.c (bid, meta), plan.c and lines.c share.
 * Invariant: the state is that of the layout table, with one sheet for each metadata file. */
#ifndef MR_LAYOUT_IMAGEFOLDER_H
#define MR_LAYOUT_IMAGEFOLDER_H

#include "ingest/layout/table/table.h"

/* Whether the entry is named "metadata" with this ending. */
bool mr_imagefolder_is(const mr_tree *t, uint32_t entry, const char *ending);
/* metadata.jsonl as a table. */
mr_status mr_imagefolder_lines(const mr_tree *t, const mr_layout_options *o, uint32_t entry, mr_plan *plan, mr_sheet *s,
                               mr_error *err);
mr_status mr_imagefolder_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);

#endif
