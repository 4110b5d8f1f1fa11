/* dataset_view.c - a view opened as a dataset: the stored one, whose splits are replaced by what is seen of it.
 * Invariant: what is seen is found again from the conditions, and is the list that the view was made of, or it does not
 * open.
 *
 *      stored split   0 1 2 3 4 5 6 7 ...        shards, first numbers, keys: as ever
 *      seen           1 4 5                      sample 0 of the view is sample 1 of the shards */
#include "shards/dataset/view_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/dataset/parts.h"
#include "shards/format/record.h"

enum { ROWS = 512 }; /* of an index, read at a time */

typedef struct asking { /* a part's conditions, of the samples of a shard */
    const mr_dataset *ds;
    mr_view_part *part;
    const mr_shard *shard;
    int mdb; /* for metas; -1: they are not needed, or are elsewhere */
    bool metas;
    mr_buf meta;
    mr_sample_view view;
    mr_view_list *out;
} asking;

static void free_asking(asking *a)
{
    mr_buf_free(&a->meta);
    mr_sample_view_free(&a->view);
}

static mr_status read_meta(asking *a, const mr_row *row, mr_candidate *c, mr_error *err)
{
    c->meta_len = row->meta_len;
    if (a->mdb < 0) {
        MR_TRY(mr_dataset_read_meta(a->ds, a->part->split, c->number, &a->view, err));
        c->meta = a->view.meta;
        return MR_OK;
    }
    mr_buf_clear(&a->meta);
    if (!mr_buf_reserve(&a->meta, row->meta_len))
        return mr_fail_memory(err, "a view");
    MR_TRY(mr_record_read(a->mdb, a->shard, c->number, mr_row_meta(row), a->meta.data, err));
    c->meta = (const char *)a->meta.data;
    return MR_OK;
}

static mr_status ask(asking *a, const mr_row *row, uint64_t n, mr_error *err)
{
    mr_candidate c = {.number = n, .row = row, .class_is = NULL};
    if (row->label >= 0)
        c.class_is = mr_dataset_class_name(a->ds, (size_t)row->label);
    if (a->metas)
        MR_TRY(read_meta(a, row, &c, err));
    if (mr_conditions_meet(a->part->conditions, a->part->condition_count, &c)) {
        mr_buf_add(&a->out->numbers, &n, sizeof n);
        a->out->image_bytes += row->image_len;
    }
    return mr_buf_status(&a->out->numbers, err, "a view");
}

static mr_status ask_shard(asking *a, mr_error *err)
{
    MR_AUTO(mr_scope_close) int idx = -1;
    MR_AUTO(mr_scope_close) int mdb = -1;
    uint8_t rows[ROWS][MR_INDEX_ROW];
    mr_row row;
    MR_TRY(mr_dataset_open_file(a->ds, a->shard, "idx", &idx, err));
    if (a->metas && !a->ds->remote)
        MR_TRY(mr_dataset_open_file(a->ds, a->shard, "mdb", &mdb, err));
    a->mdb = mdb;
    for (uint64_t at = 0; at < a->shard->samples; at += ROWS) {
        size_t count = a->shard->samples - at < ROWS ? (size_t)(a->shard->samples - at) : ROWS;
        uint64_t from = MR_INDEX_HEADER + at * MR_INDEX_ROW;
        MR_TRY(mr_file_pread(idx, rows, count * MR_INDEX_ROW, from, a->shard->name, err));
        for (size_t k = 0; k < count; k++) {
            MR_TRY(mr_dataset_row_from(rows[k], a->shard, at + k, &row, err));
            MR_TRY(ask(a, &row, a->shard->first + at + k, err));
        }
    }
    return MR_OK;
}

mr_status mr_view_list_make(const mr_dataset *ds, mr_view_part *p, mr_view_list *out, mr_error *err)
{
    const mr_split *s;
    MR_AUTO(free_asking)
    asking a = {.ds = ds, .part = p, .out = out, .metas = mr_conditions_need_meta(p->conditions, p->condition_count)};
    MR_TRY(mr_manifest_find_split(ds->manifest, ds->path, p->split, &s, err));
    mr_conditions_restart(p->conditions, p->condition_count);
    for (size_t i = 0; i < s->shard_count; i++) {
        a.shard = &s->shards[i];
        MR_TRY(ask_shard(&a, err));
    }
    out->samples = out->numbers.len / sizeof(uint64_t);
    mr_hash128(out->numbers.data, out->numbers.len, out->hash);
    return MR_OK;
}

static uint64_t *take_numbers(mr_view_list *list)
{
    uint64_t *numbers = (uint64_t *)(void *)list->numbers.data;
    list->numbers = (mr_buf){0};
    return numbers;
}

static mr_status see(const mr_dataset *ds, const char *path, const mr_view_split *from, mr_split *to, mr_error *err)
{
    MR_AUTO(mr_view_list_free) mr_view_list list = {0};
    mr_view_part *p = &from->parts[0];
    if (from->part_count != 1)
        return mr_fail(err, MR_BAD_DATA, "%s: the split %s has %zu parts, and this version reads one", path, from->name,
                       from->part_count);
    MR_TRY(mr_view_list_make(ds, p, &list, err));
    if (list.samples != p->samples || memcmp(list.hash, p->list, sizeof list.hash) != 0)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: the conditions of %s give other samples than those that it was made of; "
                       "make it again by `millrace view`",
                       path, from->name);
    *to = *mr_manifest_split(ds->manifest, p->split);
    memcpy(to->name, from->name, strlen(from->name) + 1); /* mr_split_name_ok() */
    to->samples = to->images = list.samples;
    to->image_bytes = list.image_bytes;
    to->seen = take_numbers(&list);
    return MR_OK;
}

static void free_splits(mr_split *splits, size_t count)
{
    for (size_t i = 0; splits && i < count; i++)
        free(splits[i].seen);
    free(splits);
}

void mr_dataset_free_seen(mr_dataset *ds)
{
    if (!ds->splits)
        return;
    free_splits(ds->manifest->splits, ds->manifest->split_count);
    ds->manifest->splits = ds->splits;
    ds->manifest->split_count = ds->split_count;
    ds->splits = NULL;
}

static mr_status see_all(mr_dataset *ds, const char *path, const mr_view_file *v, mr_error *err)
{
    mr_split *seen = mr_alloc(v->split_count, sizeof *seen);
    mr_status status = seen ? MR_OK : mr_fail_memory(err, path);
    for (size_t i = 0; status == MR_OK && i < v->split_count; i++)
        status = see(ds, path, &v->splits[i], &seen[i], err);
    if (status != MR_OK) {
        free_splits(seen, v->split_count);
        return status;
    }
    ds->splits = ds->manifest->splits;
    ds->split_count = ds->manifest->split_count;
    ds->manifest->splits = seen;
    ds->manifest->split_count = v->split_count;
    memcpy(ds->digest, v->digest, sizeof ds->digest);
    mr_hex(ds->digest, sizeof ds->digest, ds->sha256);
    return MR_OK;
}

mr_status mr_dataset_open_view(const char *path, mr_dataset **out, mr_error *err)
{
    MR_AUTO(mr_view_file_release) mr_view_file *v = NULL;
    MR_AUTO(mr_dataset_release) mr_dataset *ds = NULL;
    char wanted[65];
    mr_error why;
    MR_TRY(mr_view_read(path, &v, err));
    MR_AUTO(mr_scope_free) char *place = mr_view_place(path, &v->sources[0]);
    if (!place)
        return mr_fail_memory(err, path);
    if (v->source_count != 1 || mr_view_is_at(place))
        return mr_fail(err, MR_BAD_DATA, "%s: is not of one dataset, which is what this version reads", path);
    mr_status status = mr_dataset_open(place, &ds, &why);
    if (status != MR_OK)
        return mr_fail(err, status, "%s: %s", path, why.text);
    mr_hex(v->sources[0].digest, 32, wanted);
    if (memcmp(ds->digest, v->sources[0].digest, 32) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: %s is another dataset than the view was made of: %s, not %s", path, place,
                       ds->sha256, wanted);
    MR_TRY(see_all(ds, path, v, err));
    *out = ds;
    ds = NULL;
    return MR_OK;
}
