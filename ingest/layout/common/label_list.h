/* label_list.h - the labels of one image that may have several: an mr_buf of int32_t, class numbers of the plan.
 * Invariant: once settled, a list is ascending and has each label once. */
#ifndef MR_LABEL_LIST_H
#define MR_LABEL_LIST_H

#include "ingest/layout/layout.h"

void mr_label_list_settle(mr_buf *list);
/* Sets the sample's label, or with several its labels and MR_FLAG_MULTI_LABEL, and adds to meta_bytes.  An empty list
 * leaves it without a label, and with the flags that it has. */
void mr_label_list_judge(const mr_plan *plan, const mr_buf *list, mr_sample *s);
/* The members "labels" and "classes" of a meta.  Thread-safe. */
void mr_label_list_write(const mr_plan *plan, const mr_buf *list, mr_buf *out);

#endif
