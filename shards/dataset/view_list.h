/* view_list.h - which samples of an open dataset a part of a view sees.
 * Invariant: a function of the dataset and the part's conditions. */
#ifndef MR_VIEW_LIST_H
#define MR_VIEW_LIST_H

#include "shards/dataset/dataset.h"
#include "shards/view/view.h"

typedef struct mr_view_list {
    mr_buf numbers; /* uint64_t each, in order */
    uint64_t samples, image_bytes;
    uint8_t hash[16]; /* XXH3-128 of the numbers */
} mr_view_list;

static inline void mr_view_list_free(mr_view_list *l)
{
    mr_buf_free(&l->numbers);
}

/* Reads every index row of the part's split, and metas if a condition asks for them.  MR_MISUSE: no such split. */
mr_status mr_view_list_make(const mr_dataset *ds, mr_view_part *p, mr_view_list *out, mr_error *err);

#endif
