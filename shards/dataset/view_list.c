/* view_list.c - which samples of a dataset a part of a view sees, by its conditions.
 * Invariant: rows are compared with the manifest before they are used, and metas with their hashes. */
#include "shards/dataset/view_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/dataset/parts.h"
#include "shards/format/record.h"

enum { ROWS = 512 }; /* rows of an index read at a time */

typedef struct asking { /* a part's conditions, of the samples of a shard */
    const mr_dataset *ds;
    mr_view_part *part;
    const mr_shard *shard;
    int mdb; /* for metas; -1: they are not needed, or are elsewhere */
    bool metas, labels_only;
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

/* Only the label of an index row is renumbered, not the classes in a meta. */
static mr_status check_classes(const asking *a, const mr_row *row, const mr_candidate *c, mr_error *err)
{
    static const char objects[] = "\"objects\":[{";
    if (!(row->flags & MR_FLAG_MULTI_LABEL) && !memmem(c->meta, c->meta_len, objects, sizeof objects - 1))
        return MR_OK;
    return mr_fail(err, MR_MISUSE,
                   "%s: sample %llu of %s has %s; datasets whose samples have objects or several labels join only if "
                   "they list the same classes in the same order",
                   a->ds->path, (unsigned long long)c->number, a->part->split,
                   row->flags & MR_FLAG_MULTI_LABEL ? "several labels" : "objects");
}

static mr_status ask(asking *a, const mr_row *row, uint64_t n, mr_error *err)
{
    mr_candidate c = {.number = n, .row = row, .class_is = NULL};
    if (row->label >= 0)
        c.class_is = mr_dataset_class_name(a->ds, (size_t)row->label);
    if (a->metas)
        MR_TRY(read_meta(a, row, &c, err));
    if (a->labels_only)
        MR_TRY(check_classes(a, row, &c, err));
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

/* The hash of 0, 1, 2 ... */
static mr_status hash_all(uint64_t samples, uint8_t hash[16], mr_error *err)
{
    enum { AT_ONCE = 4096 };
    uint64_t numbers[AT_ONCE];
    mr_hasher *h;
    mr_digest digest;
    MR_TRY(mr_hasher_begin(false, &h, err));
    for (uint64_t n = 0; n < samples;) {
        size_t count = 0;
        for (; count < AT_ONCE && n < samples; n++)
            numbers[count++] = n;
        mr_hasher_add(h, numbers, count * sizeof *numbers);
    }
    MR_TRY(mr_hasher_end(h, &digest, err));
    memcpy(hash, digest.xxh3_128, 16);
    return MR_OK;
}

mr_status mr_view_list_make(const mr_dataset *ds, mr_view_part *p, bool labels_only, mr_view_list *out, mr_error *err)
{
    const mr_split *s;
    MR_AUTO(free_asking)
    asking a = {.ds = ds,
                .part = p,
                .out = out,
                .metas = labels_only || mr_conditions_need_meta(p->conditions, p->condition_count),
                .labels_only = labels_only};
    MR_TRY(mr_manifest_find_split(ds->manifest, ds->path, p->split, &s, err));
    if (!p->condition_count && !labels_only) {
        *out = (mr_view_list){.all = true, .samples = s->samples, .images = s->images, .image_bytes = s->image_bytes};
        return hash_all(s->samples, out->hash, err);
    }
    mr_conditions_restart(p->conditions, p->condition_count);
    for (size_t i = 0; i < s->shard_count; i++) {
        a.shard = &s->shards[i];
        MR_TRY(ask_shard(&a, err));
    }
    out->samples = out->images = out->numbers.len / sizeof(uint64_t);
    mr_hash128(out->numbers.data, out->numbers.len, out->hash);
    return MR_OK;
}
