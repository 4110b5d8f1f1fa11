/* shard_files.c - the shards of a split, kept open and shared by threads.
 *
 *   shards[k]           the entry of each open shard of the split; for the others only this pointer
 *   open[0 .. count)    the entries, in any order
 *
 * Invariant: an entry with borrowers is never closed; entries do not move. */
#include "loader/batch/shard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/format/index.h"

enum {
    ROWS_ENOUGH = 64, /* rows read one by one before all are read: a shard may be opened for one row only */
    LOOKUPS = 64,     /* borrowed so often before a copy on this host's disk is looked for again */
};

struct mr_shard_files {
    const mr_dataset *ds;
    const mr_split *split;
    pthread_mutex_t lock;
    pthread_cond_t returned;
    _Atomic unsigned users;
    unsigned max, count;
    uint64_t clock;
    size_t rows_bytes, tables_bytes;
    uint64_t foreign;                /* unused seek indexes */
    _Atomic uint64_t found, refused; /* entries, by mr_shard_files_seek() */
    mr_open_shard **shards;          /* NULL: not open */
    bool *mistrusted;                /* by shard, like those */
    mr_open_shard *open[MR_SHARD_FILES_MAX];
};

/* A quarter of the process's descriptors: other loaders and the program itself need some. */
static unsigned default_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 12 >= MR_SHARD_FILES_MAX)
        return MR_SHARD_FILES_MAX;
    return limit.rlim_cur / 12 ? (unsigned)(limit.rlim_cur / 12) : 1;
}

mr_status mr_shard_files_new(const mr_dataset *ds, const mr_split *split, unsigned max, mr_shard_files **out,
                             mr_error *err)
{
    mr_shard_files *f = mr_alloc(1, sizeof *f);
    size_t count = split->shard_count ? split->shard_count : 1;
    mr_open_shard **shards = mr_alloc(count, sizeof *shards);
    bool *mistrusted = mr_alloc(count, sizeof *mistrusted);
    if (!f || !shards || !mistrusted) {
        free(f);
        free(shards);
        free(mistrusted);
        return mr_fail_memory(err, "opening shards");
    }
    f->users = 1;
    f->ds = ds;
    f->split = split;
    f->shards = shards;
    f->mistrusted = mistrusted;
    f->max = max == 0 ? default_max() : max < MR_SHARD_FILES_MAX ? max : MR_SHARD_FILES_MAX;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->returned, NULL);
    *out = f;
    return MR_OK;
}

static size_t table_bytes(const mr_open_shard *s)
{
    return (size_t)(s->shard->samples + 1) * MR_SEEK_OFFSET;
}

static void close_shard(mr_shard_files *f, mr_open_shard *s)
{
    if (s->mdb >= 0)
        close(s->mdb);
    close(s->idx);
    if (s->seek >= 0)
        close(s->seek);
    if (s->rows)
        f->rows_bytes -= s->shard->idx.bytes;
    if (s->seek_table)
        f->tables_bytes -= table_bytes(s);
    free(s->rows);
    free(s->seek_table);
    f->count--;
    f->open[s->place] = f->open[f->count];
    f->open[s->place]->place = s->place;
    f->shards[s->shard - f->split->shards] = NULL;
    free(s);
}

mr_shard_files *mr_shard_files_share(mr_shard_files *f)
{
    atomic_fetch_add(&f->users, 1);
    return f;
}

void mr_shard_files_free(mr_shard_files *f)
{
    if (!f || atomic_fetch_sub(&f->users, 1) > 1)
        return;
    while (f->count)
        close_shard(f, f->open[0]);
    pthread_cond_destroy(&f->returned);
    pthread_mutex_destroy(&f->lock);
    free(f->shards);
    free(f->mistrusted);
    free(f);
}

/* Closes the open shard that has been idle longest; false: all are borrowed. */
static bool close_oldest(mr_shard_files *f)
{
    mr_open_shard *best = NULL;
    for (unsigned i = 0; i < f->count; i++) {
        mr_open_shard *s = f->open[i];
        if (s->borrowers == 0 && (!best || s->used < best->used))
            best = s;
    }
    if (best)
        close_shard(f, best);
    return best != NULL;
}

/* The seek index is optional: without it, or with an invalid one, loading is only slower.  Only a lack of descriptors
 * is reported, as for the other files. */
static mr_status open_seek(mr_shard_files *f, const mr_shard *shard, int *seek, uint64_t *size, mr_error *err)
{
    mr_status status = mr_dataset_open_seek(f->ds, shard, seek, size, err);
    if (status == MR_SYSTEM && (errno == EMFILE || errno == ENFILE) && f->count)
        return status;
    if (status != MR_OK)
        *seek = -1;
    f->foreign += status == MR_BAD_DATA;
    return MR_OK;
}

/* Opens the files; *full: it failed for lack of descriptors. */
static mr_status open_shard(mr_shard_files *f, const mr_shard *shard, bool *full, mr_error *err)
{
    MR_AUTO(mr_scope_close) int mdb = -1, idx = -1;
    MR_AUTO(mr_scope_free) mr_open_shard *s = mr_alloc(1, sizeof *s);
    size_t number = (size_t)(shard - f->split->shards);
    int seek = -1;
    bool copied = false;
    uint64_t seek_size = 0;
    *full = false;
    if (!s)
        return mr_fail_memory(err, "opening shards");
    mr_status status = mr_dataset_open_file(f->ds, shard, "idx", &idx, err);
    if (status == MR_OK && !f->mistrusted[number])
        copied = mr_dataset_open_copy(f->ds, shard, &mdb);
    bool by_range = !copied && mr_dataset_is_remote(f->ds);
    if (status == MR_OK && !copied && !by_range)
        status = mr_dataset_open_file(f->ds, shard, "mdb", &mdb, err);
    if (status == MR_OK && !by_range) /* other threads wait: it comes with the copy */
        status = open_seek(f, shard, &seek, &seek_size, err);
    *full = status == MR_SYSTEM && (errno == EMFILE || errno == ENFILE);
    MR_TRY(status);
    /* Rows are read one by one in random order; all of them are a thousandth of the records. */
    posix_fadvise(idx, 0, 0, POSIX_FADV_WILLNEED);
    if (seek >= 0) /* only its table */
        posix_fadvise(seek, 0, (off_t)(MR_SEEK_HEADER + (shard->samples + 1) * MR_SEEK_OFFSET), POSIX_FADV_WILLNEED);
    *s = (mr_open_shard){.mdb = mdb,
                         .idx = idx,
                         .seek = seek,
                         .seek_size = seek_size,
                         .shard = shard,
                         .place = f->count,
                         .copied = copied};
    f->open[f->count++] = f->shards[number] = s;
    s = NULL;
    mdb = idx = -1;
    return MR_OK;
}

/* With the lock held.  Needs a place in the list first, then descriptors, which the rest of the process may be using.
 */
static mr_status get(mr_shard_files *f, const mr_shard *shard, mr_open_shard **out, mr_error *err)
{
    mr_open_shard **s = &f->shards[shard - f->split->shards];
    while (!*s) {
        if (f->count < f->max) {
            bool full;
            mr_status status = open_shard(f, shard, &full, err);
            if (!full && status != MR_OK)
                return status;
            if (full && f->count == 0)
                return mr_fail(err, MR_SYSTEM, "%s.mdb: Too many open files; raise `ulimit -n` or open fewer loaders",
                               shard->name);
            if (!full)
                break;
        }
        if (!close_oldest(f))
            pthread_cond_wait(&f->returned, &f->lock);
    }
    *out = *s;
    return MR_OK;
}

/* Entries are the files' own; borrowers see them as constant. */
static mr_open_shard *own(const mr_open_shard *shard)
{
    return (mr_open_shard *)(uintptr_t)shard;
}

static bool *trust_lost(const mr_shard_files *f, const mr_open_shard *s)
{
    return &f->mistrusted[s->shard - f->split->shards];
}

mr_status mr_shard_files_original(const mr_shard_files *f, const mr_shard *shard, int *fd, mr_error *err)
{
    *fd = -1;
    return mr_dataset_is_remote(f->ds) ? MR_OK : mr_dataset_open_file(f->ds, shard, "mdb", fd, err);
}

void mr_shard_files_ahead(const mr_shard_files *f, const mr_shard *shard, uint64_t offset, size_t len)
{
    mr_dataset_read_ahead(f->ds, shard, offset, len);
}

mr_status mr_shard_files_read(const mr_shard_files *f, const mr_shard *shard, int fd, mr_shard_span span, uint8_t *out,
                              const atomic_bool *stop, mr_error *err)
{
    if (fd < 0)
        return mr_dataset_read_range(f->ds, shard, span.offset, out, span.len, stop, err);
    return mr_file_pread(fd, out, span.len, span.offset, span.name, err);
}

/* With the lock held: a shard that nobody is reading switches to its copy, once there is one; one whose copy is damaged
 * goes back. */
static void choose_file(mr_shard_files *f, mr_open_shard *s)
{
    int fd = -1;
    if (s->borrowers || !mr_dataset_has_copies(f->ds) || (s->copied && !*trust_lost(f, s)))
        return;
    bool opened = s->copied
                      ? mr_shard_files_original(f, s->shard, &fd, NULL) == MR_OK
                      : !*trust_lost(f, s) && ++s->lookups % LOOKUPS == 0 && mr_dataset_open_copy(f->ds, s->shard, &fd);
    if (!opened)
        return;
    if (s->mdb >= 0)
        close(s->mdb);
    s->mdb = fd;
    s->copied = !s->copied;
    if (s->copied && s->seek < 0 && mr_dataset_is_remote(f->ds))
        (void)open_seek(f, s->shard, &s->seek, &s->seek_size, NULL);
}

bool mr_shard_files_drop_copy(mr_shard_files *f, const mr_open_shard *shard)
{
    mr_open_shard *s = own(shard);
    pthread_mutex_lock(&f->lock);
    bool copied = s->copied, first = copied && !*trust_lost(f, s);
    *trust_lost(f, s) |= copied;
    pthread_mutex_unlock(&f->lock);
    if (first)
        mr_dataset_drop_copy(f->ds, shard->shard);
    return copied;
}

mr_status mr_shard_files_borrow(mr_shard_files *f, uint64_t n, const mr_open_shard **out, mr_error *err)
{
    mr_open_shard *s = NULL;
    pthread_mutex_lock(&f->lock);
    mr_status status = get(f, mr_dataset_shard(f->split, n), &s, err);
    if (status == MR_OK) {
        choose_file(f, s);
        s->borrowers++;
        s->used = ++f->clock;
        *out = s;
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}

/* With the lock held.  If this fails, rows are read one by one as before, which reports what is wrong; but of an index
 * that was overwritten since it was opened, no row is used. */
static void keep_rows(mr_shard_files *f, mr_open_shard *s)
{
    size_t bytes = s->shard->idx.bytes;
    uint8_t found[16];
    if (++s->rows_read != ROWS_ENOUGH || bytes > MR_SHARD_FILES_ROWS - f->rows_bytes)
        return;
    MR_AUTO(mr_scope_free) uint8_t *rows = malloc(bytes);
    if (!rows || mr_file_pread(s->idx, rows, bytes, 0, s->shard->name, NULL) != MR_OK)
        return;
    mr_hash128(rows, bytes, found);
    s->overwritten = mr_index_check_digest(s->shard, found, NULL) != MR_OK;
    if (s->overwritten)
        return;
    s->rows = rows;
    rows = NULL;
    f->rows_bytes += bytes;
}

mr_status mr_shard_files_row(mr_shard_files *f, const mr_open_shard *shard, uint64_t n, mr_row *row, mr_error *err)
{
    mr_open_shard *s = own(shard);
    uint64_t i = mr_split_stored(f->split, n) - s->shard->first;
    pthread_mutex_lock(&f->lock);
    if (!s->rows)
        keep_rows(f, s);
    const uint8_t *rows = s->rows;
    bool overwritten = s->overwritten;
    pthread_mutex_unlock(&f->lock);
    if (overwritten)
        return mr_fail(err, MR_BAD_DATA,
                       "%s.idx: was overwritten while it was being read; `millrace reindex` rebuilds it",
                       s->shard->name);
    if (rows)
        return mr_dataset_row_from(rows + MR_INDEX_HEADER + i * MR_INDEX_ROW, s->shard, i, row, err);
    return mr_dataset_row(s->idx, s->shard, i, row, err);
}

/* With the lock held, once rows are kept: a shard whose rows are read often needs many entries, too. */
static void keep_table(mr_shard_files *f, mr_open_shard *s)
{
    size_t bytes = table_bytes(s);
    if (!s->rows || bytes > MR_SHARD_FILES_SEEK - f->tables_bytes)
        return;
    uint8_t *table = malloc(bytes);
    if (!table || mr_file_pread(s->seek, table, bytes, MR_SEEK_HEADER, s->shard->name, NULL) != MR_OK) {
        free(table);
        return;
    }
    s->seek_table = table;
    f->tables_bytes += bytes;
}

typedef enum lookup { NONE, WRONG, FOUND } lookup;

/* Finds the entries of the shard's row i, if it has any. */
static lookup find_entries(mr_shard_files *f, mr_open_shard *s, uint64_t i, uint64_t image_len, mr_seek_span *span)
{
    uint8_t read[2 * MR_SEEK_OFFSET] = {0};
    const uint8_t *pair = read;
    pthread_mutex_lock(&f->lock);
    if (!s->seek_table)
        keep_table(f, s);
    if (s->seek_table)
        pair = s->seek_table + i * MR_SEEK_OFFSET;
    pthread_mutex_unlock(&f->lock);
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

size_t mr_shard_files_seek(mr_shard_files *f, const mr_open_shard *shard, const mr_row *row, uint8_t *out, uint64_t *at)
{
    mr_open_shard *s = own(shard);
    mr_seek_span span;
    if (s->seek < 0 || row->codec != MR_CODEC_JPEG)
        return 0;
    lookup where = find_entries(f, s, row->holder, row->image_len, &span);
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

void mr_shard_files_return(mr_shard_files *f, const mr_open_shard *shard)
{
    mr_open_shard *s = own(shard);
    pthread_mutex_lock(&f->lock);
    s->borrowers--;
    pthread_cond_broadcast(&f->returned);
    pthread_mutex_unlock(&f->lock);
}
