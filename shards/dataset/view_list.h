/* view_list.h - which samples of an open dataset a part of a view sees.
 * Invariant: a function of the dataset and the part's conditions, which name classes as the dataset does. */
#ifndef MR_VIEW_LIST_H
#define MR_VIEW_LIST_H

#include "shards/dataset/dataset.h"
#include "shards/view/view.h"

typedef struct mr_view_list {
    mr_buf numbers; /* uint64_t each, of the dataset's split, ascending; empty if `all` */
    bool all;       /* the part has no condition: the numbers are 0, 1, 2 ..., and no row was read */
    uint64_t samples, images, image_bytes;
    uint8_t hash[16]; /* XXH3-128 of the numbers */
} mr_view_list;

static inline void mr_view_list_free(mr_view_list *l)
{
    mr_buf_free(&l->numbers);
}

/* Reads every index row of the part's split of the dataset, which is not a view, and metas if a condition asks for
 * them. `labels_only`: MR_MISUSE if a meta has class numbers, too, where only labels can be renumbered. MR_MISUSE:
 * no such split. */
mr_status mr_view_list_make(const mr_dataset *ds, mr_view_part *p, bool labels_only, mr_view_list *out, mr_error *err);

/* The classes of all datasets by name, in order: those of the first, then what each of the others adds.  labels[i]: the
 * class of each class of dataset i, NULL: the same; both are the caller's to free, each of labels[] too, also after a
 * failure.  MR_MISUSE: a dataset that needs renumbering has two classes of one name. */
mr_status mr_view_join_classes(mr_dataset *const *datasets, size_t count, const mr_view_file *v, mr_class **classes,
                               size_t *class_count, int32_t **labels, mr_error *err);
void mr_view_free_classes(mr_class *classes, size_t count);

#endif
