/* view_maker.h - a view from its datasets, or views, and the conditions.
 * Invariant: what is made opens as it was made: a view of views names the datasets that they are of. */
#ifndef MR_VIEW_MAKER_H
#define MR_VIEW_MAKER_H

#include "shards/view/view.h"

typedef struct mr_view_request {
    const char *out;         /* where the file will be: paths are relative to its folder */
    const char *const *from; /* DATASET or VIEW, each with :SPLIT for one of its splits */
    size_t from_count;
    const char *const *arguments; /* arguments of the conditions, parallel to mr_condition_kinds; NULL: not asked for */
    const char *const *renames;   /* "A=B" */
    size_t rename_count;
    const char *const *splits; /* "NEW=OLD": the split is called NEW in the view */
    size_t split_count;
    const char *const *places; /* "DIGEST=PATH": where a dataset of a view that is named in `from` is now */
    size_t place_count;
    const char *const *weights; /* "DATASET=W", the dataset as in `from` */
    size_t weight_count;
    uint64_t repeat;
    bool balance;
} mr_view_request;

/* MR_MISUSE: no such dataset, split, class or sample, or datasets whose classes cannot be joined. */
mr_status mr_view_make(const mr_view_request *q, mr_view_file **out, mr_error *err);

#endif
