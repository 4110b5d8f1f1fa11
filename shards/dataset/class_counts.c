/* class_counts.c - how many samples of each split have each label.
 * Invariant: each row is counted once, whatever its label. */
#include "shards/dataset/class_counts.h"

#include "base/scope.h"

typedef struct counting { /* counts a split */
    uint64_t *counts;
    size_t classes;
} counting;

static mr_status count(void *ctx, uint64_t number, const mr_row *row, mr_error *err)
{
    const counting *c = ctx;
    (void)number;
    (void)err;
    if (row->flags & MR_FLAG_MULTI_LABEL)
        c->counts[c->classes + MR_SEVERAL_LABELS]++;
    else if (row->label < 0)
        c->counts[c->classes + MR_NO_LABEL]++;
    else
        c->counts[(size_t)row->label < c->classes ? (size_t)row->label : c->classes + MR_NO_SUCH_CLASS]++;
    return MR_OK;
}

mr_status mr_class_counts_read(const mr_dataset *ds, mr_class_counts *c, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    if (m->split_count && m->class_count > MR_CLASS_COUNTS_MAX / m->split_count)
        return mr_fail(err, MR_MISUSE,
                       "%zu classes in %zu splits exceed the limit of %d counts; omit --classes to see the rest",
                       m->class_count, m->split_count, MR_CLASS_COUNTS_MAX);
    c->width = m->class_count + MR_NOT_CLASSES;
    c->counts = mr_alloc(c->width * (m->split_count ? m->split_count : 1), sizeof *c->counts);
    if (!c->counts)
        return mr_fail_memory(err, "counting classes");
    for (size_t i = 0; i < m->split_count; i++) {
        counting split = {c->counts + i * c->width, m->class_count};
        MR_TRY(mr_dataset_each_row(ds, &m->splits[i], count, &split, err));
    }
    return MR_OK;
}
