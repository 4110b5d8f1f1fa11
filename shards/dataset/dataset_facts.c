/* dataset_facts.c - what an open dataset says about itself: layout, splits, classes, labels, sizes.
 * Invariant: nothing here reads an image or a meta. */
#include <stdlib.h>
#include <string.h>

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

/* ---- a number or two of each sample ----------------------------------------------------------------------------- */

typedef struct column {
    size_t bytes; /* bytes of an item */
    void (*take)(void *item, const mr_row *row);
} column;

static void take_label(void *item, const mr_row *row)
{
    memcpy(item, &row->label, sizeof row->label);
}

static void take_size(void *item, const mr_row *row)
{
    memcpy(item, (const uint32_t[2]){row->width, row->height}, 2 * sizeof(uint32_t));
}

static void take_seen_size(void *item, const mr_row *row)
{
    const bool turned = row->orientation > 4; /* by a quarter */
    const uint32_t size[2] = {turned ? row->height : row->width, turned ? row->width : row->height};
    memcpy(item, size, sizeof size);
}

static mr_status read_shard(const mr_dataset *ds, const mr_shard *shard, const column *c, uint8_t *items, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    MR_AUTO(mr_scope_free) uint8_t *rows = mr_alloc(ROWS_AT_ONCE, MR_INDEX_ROW);
    if (!rows)
        return mr_fail_memory(err, "reading an index");
    MR_TRY(mr_dataset_open_file(ds, shard, "idx", &fd, err));
    for (uint64_t at = 0; at < shard->samples; at += ROWS_AT_ONCE) {
        uint64_t left = shard->samples - at, count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        MR_TRY(mr_file_pread(fd, rows, count * MR_INDEX_ROW, MR_INDEX_HEADER + at * MR_INDEX_ROW, shard->name, err));
        for (uint64_t i = 0; i < count; i++) {
            mr_row row;
            MR_TRY(mr_dataset_row_from(rows + i * MR_INDEX_ROW, shard, at + i, &row, err));
            c->take(items + (at + i) * c->bytes, &row);
        }
    }
    return MR_OK;
}

static mr_status read_split(const mr_dataset *ds, const char *split, const column *c, uint8_t *items, mr_error *err)
{
    const mr_split *s;
    MR_TRY(mr_manifest_find_split(mr_dataset_manifest(ds), NULL, split, &s, err));
    if (!s->seen) {
        for (size_t i = 0; i < s->shard_count; i++)
            MR_TRY(read_shard(ds, &s->shards[i], c, items + mr_shard_begin(&s->shards[i]) * c->bytes, err));
        return MR_OK;
    }
    for (uint64_t n = 0; n < s->samples;) { /* in order: those of a shard follow one another */
        const mr_shard *shard = mr_dataset_shard(s, n);
        MR_AUTO(mr_scope_free) uint8_t *all = mr_alloc(shard->samples, c->bytes);
        if (!all)
            return mr_fail_memory(err, "reading an index");
        MR_TRY(read_shard(ds, shard, c, all, err));
        for (; n < s->samples && s->seen[n] - mr_shard_begin(shard) < shard->samples; n++)
            memcpy(items + n * c->bytes, all + (s->seen[n] - mr_shard_begin(shard)) * c->bytes, c->bytes);
    }
    return MR_OK;
}

mr_status mr_dataset_labels(const mr_dataset *ds, const char *split, int32_t *labels, mr_error *err)
{
    const column c = {sizeof *labels, take_label};
    return read_split(ds, split, &c, (uint8_t *)labels, err);
}

mr_status mr_dataset_sizes(const mr_dataset *ds, const char *split, int apply_orientation, uint32_t *sizes,
                           mr_error *err)
{
    const column c = {2 * sizeof *sizes, apply_orientation ? take_seen_size : take_size};
    return read_split(ds, split, &c, (uint8_t *)sizes, err);
}
