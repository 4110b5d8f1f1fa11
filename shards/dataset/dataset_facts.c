/* dataset_facts.c - what an open dataset says of itself: layout, splits, classes, labels.
 * Invariant: nothing here reads an image or a meta. */
#include <stdlib.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/dataset/dataset.h"

enum { ROWS_AT_ONCE = 1024 };

const char *mr_dataset_layout(const mr_dataset *ds)
{
    return mr_dataset_manifest(ds)->layout;
}

size_t mr_dataset_split_count(const mr_dataset *ds)
{
    return mr_dataset_manifest(ds)->split_count;
}

const char *mr_dataset_split_name(const mr_dataset *ds, size_t i)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    return i < m->split_count ? m->splits[i].name : NULL;
}

size_t mr_dataset_class_count(const mr_dataset *ds)
{
    return mr_dataset_manifest(ds)->class_count;
}

const char *mr_dataset_class_name(const mr_dataset *ds, size_t label)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    return label < m->class_count ? m->classes[label].name : NULL;
}

static mr_status shard_labels(const mr_dataset *ds, const mr_shard *shard, int32_t *labels, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    MR_AUTO(mr_scope_free) uint8_t *rows = mr_alloc(ROWS_AT_ONCE, MR_INDEX_ROW);
    if (!rows)
        return mr_fail_memory(err, "reading labels");
    MR_TRY(mr_dataset_open_file(ds, shard, "idx", &fd, err));
    for (uint64_t at = 0; at < shard->samples; at += ROWS_AT_ONCE) {
        uint64_t left = shard->samples - at, count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        MR_TRY(mr_file_pread(fd, rows, count * MR_INDEX_ROW, MR_INDEX_HEADER + at * MR_INDEX_ROW, shard->name, err));
        for (uint64_t i = 0; i < count; i++) {
            mr_row row;
            MR_TRY(mr_dataset_row_from(rows + i * MR_INDEX_ROW, shard, at + i, &row, err));
            labels[at + i] = row.label;
        }
    }
    return MR_OK;
}

mr_status mr_dataset_labels(const mr_dataset *ds, const char *split, int32_t *labels, mr_error *err)
{
    const mr_split *s;
    MR_TRY(mr_manifest_find_split(mr_dataset_manifest(ds), NULL, split, &s, err));
    if (!s->seen) {
        for (size_t i = 0; i < s->shard_count; i++)
            MR_TRY(shard_labels(ds, &s->shards[i], labels + mr_shard_begin(&s->shards[i]), err));
        return MR_OK;
    }
    for (uint64_t n = 0; n < s->samples;) { /* in order: those of a shard follow one another */
        const mr_shard *shard = mr_dataset_shard(s, n);
        MR_AUTO(mr_scope_free) int32_t *all = mr_alloc(shard->samples, sizeof *all);
        if (!all)
            return mr_fail_memory(err, "reading labels");
        MR_TRY(shard_labels(ds, shard, all, err));
        for (; n < s->samples && s->seen[n] - mr_shard_begin(shard) < shard->samples; n++)
            labels[n] = all[s->seen[n] - mr_shard_begin(shard)];
    }
    return MR_OK;
}
