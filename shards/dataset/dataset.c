/* dataset.c - a dataset opened for reading single samples: mr_dataset_* of millrace.h.
 *
 *   open:  manifest.json, then of each shard, unless there are very many: both sizes, and the header of the .idx
 *   read:  the shard's .idx against the manifest's digest, the first time -> the sample's 64-byte row -> bounds against
 * the manifest -> image and meta by pread -> their hashes (only the meta, if that is asked for)
 *
 * Invariant: nothing but stamps (index_trust.c) changes after opening, so threads share a dataset without locks; files
 * are opened for each read, so a dataset of thousands of shards costs one descriptor. */
#include "shards/dataset/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/supply.h"
#include "base/hash.h"
#include "base/scope.h"
#include "shards/dataset/parts.h"
#include "shards/format/index.h"
#include "shards/format/meta.h"
#include "shards/format/record.h"
#include "shards/seek/seek.h"

/* The shards of larger datasets are looked at when they are first read: on a disk that hosts share, opening two files
 * for each of hundreds of thousands takes minutes. */
enum { SHARDS_AT_ONCE = 10000 };

const mr_manifest *mr_dataset_manifest(const mr_dataset *ds)
{
    return ds->seen ? ds->seen : ds->manifest;
}

const uint8_t *mr_dataset_digest(const mr_dataset *ds)
{
    return ds->digest;
}

const char *mr_dataset_sha256(const mr_dataset *ds)
{
    return ds->sha256;
}

const char *mr_dataset_folder(const mr_dataset *ds)
{
    return mr_supply_folder(ds->path);
}

static mr_status fail_replaced(const mr_dataset *ds, mr_error *err)
{
    errno = ESTALE;
    return mr_fail(err, MR_SYSTEM, "%s: was replaced, moved or removed while it was read; run the command again",
                   ds->path);
}

/* Its path now leads to another dataset or to nothing: `ingest --force` replaced it. */
static bool is_replaced(const mr_dataset *ds)
{
    return ds->place && !mr_file_is_at(ds->dir, AT_FDCWD, ds->place, false);
}

static mr_status check_header(int idx, const mr_shard *shard, mr_error *err)
{
    uint8_t header[MR_INDEX_HEADER];
    MR_TRY(mr_file_pread(idx, header, sizeof header, 0, shard->name, err));
    return mr_index_check_header(header, shard->idx.bytes, shard, err);
}

mr_status mr_dataset_open_file(const mr_dataset *ds, const mr_shard *shard, const char *suffix, int *fd, mr_error *err)
{
    int opened = -1;
    ds = mr_dataset_owner(ds, &shard);
    mr_status status = mr_index_open_file(ds->dir, shard, suffix, &opened, err);
    if (status == MR_OK && !ds->checked && strcmp(suffix, "idx") == 0)
        status = check_header(opened, shard, err);
    if (status == MR_OK && strcmp(suffix, "idx") == 0)
        status = mr_index_trust_check(ds->trust, shard, opened, err);
    if (status == MR_OK)
        *fd = opened;
    else if (opened >= 0)
        close(opened);
    return status == MR_BAD_DATA && is_replaced(ds) ? fail_replaced(ds, err) : status;
}

mr_status mr_dataset_open_seek(const mr_dataset *ds, const mr_shard *shard, int *fd, uint64_t *size, mr_error *err)
{
    mr_seek_header header;
    ds = mr_dataset_owner(ds, &shard);
    return mr_seek_open(ds->dir, shard, fd, size, &header, err);
}

static mr_status check_shard(const mr_dataset *ds, const mr_shard *shard, mr_error *err)
{
    MR_AUTO(mr_scope_close) int mdb = -1;
    MR_AUTO(mr_scope_close) int idx = -1;
    MR_TRY(mr_index_open_file(ds->dir, shard, "mdb", &mdb, err));
    MR_TRY(mr_index_open_file(ds->dir, shard, "idx", &idx, err));
    return check_header(idx, shard, err);
}

/* `why` names a shard, and not where it is. */
static mr_status check_shards(mr_dataset *ds, bool looked, mr_error *why)
{
    const mr_manifest *m = ds->manifest;
    size_t shards = 0;
    for (size_t i = 0; i < m->split_count; i++)
        shards += m->splits[i].shard_count;
    ds->checked = shards <= SHARDS_AT_ONCE;
    if (ds->remote)
        ds->checked = false; /* looking would fetch each */
    for (size_t i = 0; ds->checked && !looked && i < m->split_count; i++)
        for (size_t k = 0; k < m->splits[i].shard_count; k++)
            MR_TRY(check_shard(ds, &m->splits[i].shards[k], why));
    return MR_OK;
}

mr_status mr_dataset_begin(const char *path, mr_dataset **out, mr_error *err)
{
    MR_TRY(mr_remote_open(path, err));
    mr_dataset *ds = mr_alloc(1, sizeof *ds);
    if (!ds)
        return mr_fail_memory(err, "opening a dataset");
    ds->dir = mr_supply_open_folder(path);
    ds->unopened = errno;
    pthread_mutex_init(&ds->lock, NULL);
    ds->path = strdup(path);
    ds->place = realpath(mr_supply_folder(path), NULL);
    ds->remote = mr_remote_of(ds->dir);
    if (ds->path) {
        *out = ds;
        return MR_OK;
    }
    mr_dataset_free(ds);
    return mr_fail_memory(err, "opening a dataset");
}

mr_status mr_dataset_end(mr_dataset *ds, const mr_dataset_source *read, mr_dataset **out, mr_error *err)
{
    mr_error why = {.status = MR_OK};
    mr_status status = read->status;
    ds->manifest = read->manifest;
    memcpy(ds->digest, read->digest, sizeof ds->digest);
    mr_hex(ds->digest, sizeof ds->digest, ds->sha256);
    if (status == MR_OK && ds->dir < 0)
        status = mr_fail_errno(err, ds->unopened, "%s", ds->path);
    if (status == MR_OK)
        status = mr_index_trust_new(ds->manifest, &ds->trust, err);
    if (status == MR_OK)
        status = check_shards(ds, read->looked, &why);
    if (why.status != MR_OK)
        mr_fail(err, status, "%s: %s", ds->path, why.text);
    if (ds->dir >= 0 && (status == MR_OK || status == MR_BAD_DATA) && is_replaced(ds))
        status = fail_replaced(ds, err);
    if (status == MR_OK)
        *out = ds;
    else
        mr_dataset_free(ds);
    return status;
}

mr_status mr_dataset_open(const char *path, mr_dataset **out, mr_error *err)
{
    mr_dataset *ds = NULL;
    mr_dataset_source read = {.manifest = NULL};
    if (mr_view_is_at(path))
        return mr_dataset_open_view(path, NULL, out, err);
    MR_TRY(mr_dataset_begin(path, &ds, err));
    read.status = mr_manifest_open(path, &read.manifest, read.digest, err);
    return mr_dataset_end(ds, &read, out, err);
}

void mr_dataset_free(mr_dataset *ds)
{
    if (!ds)
        return;
    mr_ahead_close(ds->ahead);
    mr_local_close(ds->local);
    mr_index_trust_free(ds->trust);
    if (ds->dir >= 0)
        close(ds->dir);
    pthread_mutex_destroy(&ds->lock);
    mr_dataset_free_seen(ds);
    mr_manifest_free(ds->manifest);
    free(ds->place);
    free(ds->path);
    free(ds);
}

uint64_t mr_dataset_samples(const mr_dataset *ds, const char *split)
{
    const mr_split *s = mr_manifest_split(mr_dataset_manifest(ds), split);
    return s ? s->samples : 0;
}

/* Whether sample n comes before, in or after a shard. */
static int by_sample(const void *key, const void *item)
{
    uint64_t n = *(const uint64_t *)key; /* as stored */
    const mr_shard *shard = item;
    return n < mr_shard_begin(shard) ? -1 : n - mr_shard_begin(shard) >= shard->samples;
}

const mr_shard *mr_dataset_shard(const mr_split *split, uint64_t n)
{
    n = mr_split_stored(split, n);
    return bsearch(&n, split->shards, split->shard_count, sizeof *split->shards, by_sample);
}

mr_status mr_dataset_row_from(const uint8_t packed[MR_INDEX_ROW], const mr_shard *shard, uint64_t i, mr_row *row,
                              mr_error *err)
{
    mr_error why;
    mr_row read;
    mr_row_unpack(packed, &read);
    if (mr_index_check_row(&read, i, shard, &why) != MR_OK)
        return mr_fail(err, MR_BAD_SAMPLE, "%s", why.text);
    read.label = mr_shard_label(shard, read.label);
    *row = read;
    return MR_OK;
}

mr_status mr_dataset_row(int idx, const mr_shard *shard, uint64_t i, mr_row *row, mr_error *err)
{
    uint8_t packed[MR_INDEX_ROW];
    MR_TRY(mr_file_pread(idx, packed, sizeof packed, MR_INDEX_HEADER + i * MR_INDEX_ROW, shard->name, err));
    return mr_dataset_row_from(packed, shard, i, row, err);
}

/* All rows of the shard, `samples` of them; caller: free.  MR_BAD_DATA: an index that the manifest does not name. */
static mr_status read_rows(const mr_dataset *ds, const mr_shard *shard, mr_row **rows, mr_error *err)
{
    const mr_shard *stored = shard;
    const mr_dataset *owner = mr_dataset_owner(ds, &stored);
    MR_TRY(mr_index_read(owner->dir, stored, rows, err));
    for (uint64_t i = 0; i < shard->samples; i++)
        (*rows)[i].label = mr_shard_label(shard, (*rows)[i].label);
    return MR_OK;
}

mr_status mr_dataset_each_row(const mr_dataset *ds, const mr_split *split, mr_row_visitor visit, void *ctx,
                              mr_error *err)
{
    uint64_t next = 0;
    for (size_t k = 0; k < split->shard_count; k++) {
        const mr_shard *shard = &split->shards[k];
        uint64_t begin = mr_shard_begin(shard);
        MR_AUTO(mr_scope_free) mr_row *rows = NULL;
        if (next == split->samples || mr_split_stored(split, next) - begin >= shard->samples)
            continue;
        MR_TRY(read_rows(ds, shard, &rows, err));
        for (; next < split->samples && mr_split_stored(split, next) - begin < shard->samples; next++)
            MR_TRY(visit(ctx, next, &rows[mr_split_stored(split, next) - begin], err));
    }
    return MR_OK;
}

static mr_status read_row(const mr_dataset *ds, const mr_shard *shard, uint64_t i, mr_row *row, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    MR_TRY(mr_dataset_open_file(ds, shard, "idx", &fd, err));
    return mr_dataset_row(fd, shard, i, row, err);
}

static mr_status make_room(mr_sample_view *view, size_t need, mr_error *err)
{
    if (need <= view->storage_len)
        return MR_OK;
    uint8_t *storage = realloc(view->storage, need);
    if (!storage)
        return mr_fail_memory(err, "reading a sample");
    view->storage = storage;
    view->storage_len = need;
    return MR_OK;
}

/* `fd`: the shard's .mdb; -1: it is read where it is, and once more if a bit flipped on the way. */
static mr_status read_record(const mr_dataset *ds, int fd, const mr_shard *shard, uint64_t n, mr_record record,
                             uint8_t *out, mr_error *err)
{
    if (fd >= 0)
        return mr_record_read(fd, shard, n, record, out, err);
    MR_TRY(mr_remote_read(ds->remote, shard, record.offset, out, record.len, NULL, err));
    if (mr_record_check(shard, n, record, out, NULL) == MR_OK)
        return MR_OK;
    MR_TRY(mr_remote_read(ds->remote, shard, record.offset, out, record.len, NULL, err));
    return mr_record_check(shard, n, record, out, err);
}

/* The image (`image_len` is the row's, or 0: not a byte of it) and, after it, the meta into the view's storage. */
static mr_status read_records(const mr_dataset *ds, const mr_shard *shard, const mr_row *row, uint64_t n,
                              size_t image_len, mr_sample_view *view, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    ds = mr_dataset_owner(ds, &shard);
    bool by_range = ds->remote && !mr_remote_find(ds->remote, shard, &fd) && mr_remote_reads_few(ds->remote, shard);
    if (fd < 0 && !by_range)
        MR_TRY(mr_dataset_open_file(ds, shard, "mdb", &fd, err));
    MR_TRY(make_room(view, image_len + row->meta_len, err));
    if (image_len)
        MR_TRY(read_record(ds, fd, shard, n, mr_row_image(row), view->storage, err));
    return read_record(ds, fd, shard, n, mr_row_meta(row), view->storage + image_len, err);
}

static mr_status find_sample(const mr_dataset *ds, const char *split, uint64_t n, const mr_shard **shard, mr_row *row,
                             mr_error *err)
{
    const mr_split *s;
    MR_TRY(mr_manifest_find_split(mr_dataset_manifest(ds), NULL, split, &s, err));
    if (n >= s->samples)
        return mr_fail(err, MR_MISUSE, "%s: no sample %llu; the split has %llu, counted from 0", split,
                       (unsigned long long)n, (unsigned long long)s->samples);
    *shard = mr_dataset_shard(s, n);
    return read_row(ds, *shard, mr_split_stored(s, n) - mr_shard_begin(*shard), row, err);
}

/* The meta says what the view says, as its readers take the class from either. */
static mr_status relabel(const mr_dataset *ds, int32_t label, size_t image_len, mr_sample_view *view, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf meta = {0};
    mr_meta_relabel(&meta, view->meta, view->meta_len, label, mr_dataset_class_name(ds, (size_t)label));
    MR_TRY(mr_buf_status(&meta, err, "a sample"));
    MR_TRY(make_room(view, image_len + meta.len, err));
    memcpy(view->storage + image_len, meta.data, meta.len);
    view->meta = (const char *)view->storage + image_len;
    view->meta_len = meta.len;
    return MR_OK;
}

static mr_status read_sample(const mr_dataset *ds, const char *split, uint64_t n, bool with_image, mr_sample_view *view,
                             mr_error *err)
{
    const mr_shard *shard = NULL;
    mr_row row;
    *view = (mr_sample_view){.storage = view->storage, .storage_len = view->storage_len};
    MR_TRY(find_sample(ds, split, n, &shard, &row, err));
    size_t image_len = with_image ? row.image_len : 0;
    MR_TRY(read_records(ds, shard, &row, n, image_len, view, err));
    view->meta = (const char *)view->storage + image_len;
    view->meta_len = row.meta_len;
    if (shard->labels && row.label >= 0)
        MR_TRY(relabel(ds, row.label, image_len, view, err));
    view->image = with_image ? view->storage : NULL;
    view->image_len = image_len;
    view->width = row.width;
    view->height = row.height;
    view->label = row.label;
    view->codec = row.codec;
    view->orientation = row.orientation;
    view->components = row.components;
    view->bits = row.bits;
    view->flags = row.flags;
    return MR_OK;
}

mr_status mr_dataset_read(const mr_dataset *ds, const char *split, uint64_t n, mr_sample_view *view, mr_error *err)
{
    return read_sample(ds, split, n, true, view, err);
}

mr_status mr_dataset_read_meta(const mr_dataset *ds, const char *split, uint64_t n, mr_sample_view *view, mr_error *err)
{
    return read_sample(ds, split, n, false, view, err);
}

void mr_sample_view_free(mr_sample_view *view)
{
    if (!view)
        return;
    free(view->storage);
    *view = (mr_sample_view){0};
}
