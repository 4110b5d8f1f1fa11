/* shard_rows.c - the rows of open shards and the entries of their seek indexes, read once and kept in memory.
 * Invariant: what is kept is published whole, so that threads read it without the lock; it is freed only with its
 * shard, once nobody borrows that. */
#include <stdlib.h>
#include <sys/uio.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "loader/batch/shard_files_state.h"
#include "shards/format/index.h"

enum { ROWS_ENOUGH = 64 }; /* rows read one by one before all are read: a shard may be opened for one row only */

static size_t table_bytes(const mr_open_shard *s)
{
    return (size_t)(s->shard->samples + 1) * MR_SEEK_OFFSET;
}

void mr_shard_rows_drop(mr_shard_files *f, mr_shard_entry *e)
{
    uint8_t *rows = atomic_exchange(&e->rows, NULL);
    if (rows)
        f->rows_bytes -= e->files.shard->idx.bytes;
    free(rows);
    uint8_t *table = atomic_exchange(&e->table, NULL);
    if (table)
        f->tables_bytes -= table_bytes(&e->files);
    free(table);
    atomic_store(&e->rows_read, 0);
    atomic_store(&e->table_tried, false);
    atomic_store(&e->overwritten, false);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* With the lock held.  If this fails, rows are read one by one as before, which reports what is wrong; but no row is
 * used from an index that was overwritten after it was opened. */
static void keep_rows(mr_shard_files *f, mr_shard_entry *e)
{
    const mr_open_shard *s = &e->files;
    size_t bytes = s->shard->idx.bytes;
    uint8_t found[16];
    if (bytes > MR_SHARD_FILES_ROWS - f->rows_bytes)
        return;
    MR_AUTO(mr_scope_free) uint8_t *rows = malloc(bytes);
    if (!rows || mr_file_pread(s->idx, rows, bytes, 0, s->shard->name, NULL) != MR_OK)
        return;
    mr_hash128(rows, bytes, found);
    if (mr_index_check_digest(s->shard, found, NULL) != MR_OK) {
        atomic_store(&e->overwritten, true);
        return;
    }
    f->rows_bytes += bytes;
    atomic_store_explicit(&e->rows, rows, memory_order_release);
    rows = NULL;
}

static const uint8_t *kept_rows(mr_shard_files *f, mr_shard_entry *e)
{
    const uint8_t *rows = atomic_load_explicit(&e->rows, memory_order_acquire);
    if (rows || atomic_fetch_add(&e->rows_read, 1) + 1 != ROWS_ENOUGH)
        return rows;
    pthread_mutex_lock(&f->lock);
    keep_rows(f, e);
    pthread_mutex_unlock(&f->lock);
    return atomic_load(&e->rows);
}

mr_status mr_shard_files_row(mr_shard_files *f, const mr_open_shard *s, uint64_t n, mr_row *row, mr_error *err)
{
    mr_shard_entry *e = mr_shard_entry_of(s);
    uint64_t i = mr_split_stored(f->split, n) - mr_shard_begin(s->shard);
    const uint8_t *rows = kept_rows(f, e);
    if (rows)
        return mr_dataset_row_from(rows + MR_INDEX_HEADER + i * MR_INDEX_ROW, s->shard, i, row, err);
    if (atomic_load(&e->overwritten))
        return mr_fail(err, MR_BAD_DATA,
                       "%s.idx: was overwritten while it was being read; `millrace reindex` rebuilds it",
                       s->shard->name);
    return mr_dataset_row(s->idx, s->shard, i, row, err);
}

/* ---- entries of seek indexes ------------------------------------------------------------------------------------- */

/* With the lock held.  Once rows are kept: a shard whose rows are read often needs many entries, too. */
static void keep_table(mr_shard_files *f, mr_shard_entry *e)
{
    const mr_open_shard *s = &e->files;
    size_t bytes = table_bytes(s);
    if (bytes > MR_SHARD_FILES_SEEK - f->tables_bytes)
        return;
    uint8_t *table = malloc(bytes);
    if (!table || mr_file_pread(s->seek, table, bytes, MR_SEEK_HEADER, s->shard->name, NULL) != MR_OK) {
        free(table);
        return;
    }
    f->tables_bytes += bytes;
    atomic_store_explicit(&e->table, table, memory_order_release);
}

static const uint8_t *kept_table(mr_shard_files *f, mr_shard_entry *e)
{
    const uint8_t *table = atomic_load_explicit(&e->table, memory_order_acquire);
    if (table || !atomic_load(&e->rows) || atomic_exchange(&e->table_tried, true))
        return table;
    pthread_mutex_lock(&f->lock);
    keep_table(f, e);
    pthread_mutex_unlock(&f->lock);
    return atomic_load(&e->table);
}

typedef enum lookup { NONE, WRONG, FOUND } lookup;

/* Finds the entries of the shard's row i, if it has any. */
static lookup find_entries(mr_shard_files *f, mr_shard_entry *e, uint64_t i, uint64_t image_len, mr_seek_span *span)
{
    const mr_open_shard *s = &e->files;
    uint8_t read[2 * MR_SEEK_OFFSET] = {0};
    const uint8_t *table = kept_table(f, e), *pair = table ? table + i * MR_SEEK_OFFSET : read;
    if (pair == read &&
        mr_file_pread(s->seek, read, sizeof read, MR_SEEK_HEADER + i * MR_SEEK_OFFSET, s->shard->name, NULL) != MR_OK)
        return WRONG;
    if (mr_get64le(pair) == mr_get64le(pair + MR_SEEK_OFFSET))
        return NONE;
    return mr_seek_span_at(pair, s->seek_size, s->shard->samples, image_len, span) ? FOUND : WRONG;
}

/* Reads check and entries at once.  False: they cannot be read or do not match. */
static bool read_entries(const mr_open_shard *s, const mr_seek_span *span, uint64_t image_hash, uint8_t *out)
{
    uint8_t check[MR_SEEK_CHECK];
    struct iovec parts[2] = {{check, sizeof check}, {out, span->len}};
    ssize_t n = preadv(s->seek, parts, 2, (off_t)span->offset);
    bool whole = n == (ssize_t)(sizeof check + span->len);
    if (n >= 0 && !whole) /* a signal, or the end of the file */
        whole = mr_file_pread(s->seek, check, sizeof check, span->offset, s->shard->name, NULL) == MR_OK &&
                mr_file_pread(s->seek, out, span->len, span->offset + sizeof check, s->shard->name, NULL) == MR_OK;
    return whole && mr_seek_entries_ok(check, out, span->len, image_hash);
}

size_t mr_shard_files_seek(mr_shard_files *f, const mr_open_shard *s, const mr_row *row, uint8_t *out, uint64_t *at)
{
    mr_seek_span span;
    if (s->seek < 0 || row->codec != MR_CODEC_JPEG)
        return 0;
    lookup where = find_entries(f, mr_shard_entry_of(s), row->holder, row->image_len, &span);
    if (where == FOUND && at)
        *at = span.offset + MR_SEEK_CHECK;
    if (where == NONE || !out)
        return where == FOUND ? span.len : 0;
    bool good = where == FOUND && read_entries(s, &span, row->image_hash, out);
    atomic_fetch_add_explicit(good ? &f->found : &f->refused, 1, memory_order_relaxed);
    return good ? span.len : 0;
}

mr_shard_files_counts mr_shard_files_count(mr_shard_files *f)
{
    pthread_mutex_lock(&f->lock);
    mr_shard_files_counts counts = {
        .foreign = f->foreign, .found = atomic_load(&f->found), .refused = atomic_load(&f->refused)};
    pthread_mutex_unlock(&f->lock);
    return counts;
}
