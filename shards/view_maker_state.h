/* view_maker_state.h - a view under construction: what view_maker.c and view_maker_names.c share.
 * Invariant: datasets and labels are parallel to the sources of the view. */
#ifndef MR_VIEW_MAKER_STATE_H
#define MR_VIEW_MAKER_STATE_H

#include "shards/dataset/view_list.h"
#include "shards/view_maker.h"

typedef struct mr_view_maker {
    const mr_view_request *q;
    mr_view_file *v;
    mr_dataset *datasets[MR_VIEW_DATASETS]; /* parallel to the sources */
    int32_t *labels[MR_VIEW_DATASETS];
    mr_class *classes;
    size_t class_count, asked; /* conditions of the request */
    const char *weight;        /* weight of what is being added; NULL: none */
    char split[64];            /* the new name of one */
    uint64_t renamed;          /* a bit for each --split that something has */
    uint64_t weighed;          /* a bit for each weight of the request that something has */
} mr_view_maker;

/* view_maker_names.c: what the names of the request stand for, classes, splits and weights.  MR_MISUSE: one of them
 * stands for nothing. */
mr_status mr_maker_add_rename(mr_view_maker *m, const char *from, const char *to, mr_error *err);
mr_status mr_maker_rename_classes(mr_view_maker *m, mr_error *err);
mr_status mr_maker_own_names(const mr_view_maker *m, const char *names, mr_buf *out, mr_error *err);
const char *mr_maker_split_name(mr_view_maker *m, const char *name);
mr_status mr_maker_check_splits(const mr_view_maker *m, bool used, mr_error *err);
mr_status mr_maker_find_weight(mr_view_maker *m, const char *from, const char *place, mr_error *err);
mr_status mr_maker_check_weights(const mr_view_maker *m, mr_error *err);

#endif
