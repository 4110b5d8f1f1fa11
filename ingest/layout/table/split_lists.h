/* split_lists.h - splits that text files list, whatever the layout: --split-list meta/train.txt=train.
 * Invariant: an image is in one split at most. */
#ifndef MR_SPLIT_LISTS_H
#define MR_SPLIT_LISTS_H

#include "ingest/layout/layout.h"

/* After plan(): gives the samples the splits of the lists, in the order train, val, test, others.  A line names an
 * image as a cell of a table does, with or without its ending; what follows it on the line (a label) is not read.
 * Samples in no list are noted as unlisted, and stay in their split with keep_unlisted.  MR_MISUSE: there is no such
 * file.  MR_BAD_DATA, naming list and line: an image in the lists of two splits, a line that fits several images, a
 * list that names none. */
mr_status mr_split_lists_apply(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err);

#endif
