/* shard_files.c - the shards of a split, kept open and shared by threads.
 *
 *   shards[k]           the entry of shard k of the split, from its first opening until the files are freed
 *   open[0 .. count)    those that are open, in any order
 *
 * Invariant: an entry is opened, closed and switched to a copy only with the lock held and while it is closed for
 * borrowers; counting a borrower in succeeds only on an open one. */
#include "loader/batch/shard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "loader/batch/shard_files_state.h"

enum { LOOKUPS = 64 }; /* how often it is borrowed before a copy on this host's disk is looked for again */

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
    _Atomic(mr_shard_entry *) *shards = mr_alloc(count, sizeof *shards);
    if (!f || !shards) {
        free(f);
        free(shards);
        return mr_fail_memory(err, "opening shards");
    }
    f->users = 1;
    f->ds = ds;
    f->split = split;
    f->shards = shards;
    f->max = max == 0 ? default_max() : max < MR_SHARD_FILES_MAX ? max : MR_SHARD_FILES_MAX;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->returned, NULL);
    *out = f;
    return MR_OK;
}

static void close_files(mr_open_shard *s)
{
    mr_scope_close(&s->mdb);
    mr_scope_close(&s->idx);
    mr_scope_close(&s->seek);
    s->mdb = s->idx = s->seek = -1;
}

/* One that nobody can borrow. */
static void close_shard(mr_shard_files *f, mr_shard_entry *e)
{
    mr_shard_rows_drop(f, e);
    close_files(&e->files);
    f->count--;
    f->open[e->place] = f->open[f->count];
    f->open[e->place]->place = e->place;
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
    for (size_t i = 0; i < f->split->shard_count; i++)
        free(f->shards[i]);
    pthread_cond_destroy(&f->returned);
    pthread_mutex_destroy(&f->lock);
    free(f->shards);
    free(f);
}

/* Whether nobody has borrowed it; nobody can, then. */
static bool close_for_borrowers(mr_shard_entry *e)
{
    int none = 0;
    return atomic_compare_exchange_strong(&e->borrowers, &none, MR_SHARD_CLOSED);
}

/* Closes the open shard that has been idle longest; false: all are borrowed. */
static bool close_oldest(mr_shard_files *f)
{
    for (;;) {
        mr_shard_entry *best = NULL;
        for (unsigned i = 0; i < f->count; i++) {
            mr_shard_entry *e = f->open[i];
            if (atomic_load(&e->borrowers) == 0 && (!best || e->used < best->used))
                best = e;
        }
        if (!best)
            return false;
        if (close_for_borrowers(best)) {
            close_shard(f, best);
            return true;
        }
    }
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

/* Opens the files of a closed entry; *full: it failed for lack of descriptors. */
static mr_status open_files(mr_shard_files *f, mr_shard_entry *e, bool *full, mr_error *err)
{
    mr_open_shard *s = &e->files;
    mr_status status = mr_dataset_open_file(f->ds, s->shard, "idx", &s->idx, err);
    e->copied = status == MR_OK && !e->mistrusted && mr_dataset_open_copy(f->ds, s->shard, &s->mdb);
    bool by_range = !e->copied && mr_dataset_has_remote(f->ds, s->shard);
    if (status == MR_OK && !e->copied && !by_range)
        status = mr_dataset_open_file(f->ds, s->shard, "mdb", &s->mdb, err);
    if (status == MR_OK && !by_range) /* other threads wait: it comes with the copy */
        status = open_seek(f, s->shard, &s->seek, &s->seek_size, err);
    *full = status == MR_SYSTEM && (errno == EMFILE || errno == ENFILE);
    if (status != MR_OK)
        close_files(s);
    return status;
}

/* Only the entry of a shard that is seldom read stays. */
static mr_status entry_of(mr_shard_files *f, const mr_shard *shard, mr_shard_entry **out, mr_error *err)
{
    _Atomic(mr_shard_entry *) *place = &f->shards[shard - f->split->shards];
    *out = atomic_load(place);
    if (*out)
        return MR_OK;
    mr_shard_entry *e = mr_alloc(1, sizeof *e);
    if (!e)
        return mr_fail_memory(err, "opening shards");
    e->files = (mr_open_shard){.shard = shard, .mdb = -1, .idx = -1, .seek = -1};
    e->borrowers = MR_SHARD_CLOSED;
    atomic_store_explicit(place, e, memory_order_release);
    *out = e;
    return MR_OK;
}

static void settle(const mr_shard_files *f, mr_shard_entry *e)
{
    atomic_store(&e->settled, !mr_dataset_has_copies(f->ds) || (e->copied && !e->mistrusted));
}

/* With the lock held, for the caller as its first borrower. */
static mr_status open_shard(mr_shard_files *f, mr_shard_entry *e, bool *full, mr_error *err)
{
    const mr_open_shard *s = &e->files;
    MR_TRY(open_files(f, e, full, err));
    /* Rows are read one by one in random order; all of them are a thousandth of the records. */
    posix_fadvise(s->idx, 0, 0, POSIX_FADV_WILLNEED);
    if (s->seek >= 0) /* only its table */
        posix_fadvise(s->seek, 0, (off_t)(MR_SEEK_HEADER + (s->shard->samples + 1) * MR_SEEK_OFFSET),
                      POSIX_FADV_WILLNEED);
    e->place = f->count;
    f->open[f->count++] = e;
    atomic_store(&e->used, atomic_fetch_add(&f->opened, 1));
    settle(f, e);
    atomic_store(&e->borrowers, 1);
    return MR_OK;
}

/* Counts the caller in, if the shard is open. */
static bool join(mr_shard_entry *e)
{
    int n = atomic_load_explicit(&e->borrowers, memory_order_relaxed);
    while (n != MR_SHARD_CLOSED)
        if (atomic_compare_exchange_weak(&e->borrowers, &n, n + 1))
            return true;
    return false;
}

/* With the lock held.  Needs a place in the list first, then descriptors, which the rest of the process may be
 * using. */
static mr_status borrow(mr_shard_files *f, mr_shard_entry *e, mr_error *err)
{
    while (!join(e)) {
        if (f->count < f->max) {
            bool full = false;
            mr_status status = open_shard(f, e, &full, err);
            if (!full)
                return status;
            if (f->count == 0)
                return mr_fail(err, MR_SYSTEM, "%s.mdb: Too many open files; raise `ulimit -n` or open fewer loaders",
                               e->files.shard->name);
        }
        atomic_fetch_add(&f->waiting, 1); /* set before borrowers are checked, so that no return after that is missed */
        if (!close_oldest(f))
            pthread_cond_wait(&f->returned, &f->lock);
        atomic_fetch_sub(&f->waiting, 1);
    }
    return MR_OK;
}

mr_status mr_shard_files_original(const mr_shard_files *f, const mr_shard *shard, int *fd, mr_error *err)
{
    *fd = -1;
    return mr_dataset_has_remote(f->ds, shard) ? MR_OK : mr_dataset_open_file(f->ds, shard, "mdb", fd, err);
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

/* With the lock held, for an entry that nobody can borrow: switches to its copy, once there is one, and back from a
 * damaged one. */
static void switch_file(mr_shard_files *f, mr_shard_entry *e)
{
    mr_open_shard *s = &e->files;
    int fd = -1;
    bool opened = e->copied
                      ? mr_shard_files_original(f, s->shard, &fd, NULL) == MR_OK
                      : !e->mistrusted && ++e->lookups % LOOKUPS == 0 && mr_dataset_open_copy(f->ds, s->shard, &fd);
    if (!opened)
        return;
    mr_scope_close(&s->mdb);
    s->mdb = fd;
    e->copied = !e->copied;
    if (e->copied && s->seek < 0 && mr_dataset_has_remote(f->ds, s->shard))
        (void)open_seek(f, s->shard, &s->seek, &s->seek_size, NULL);
}

static void choose_file(mr_shard_files *f, mr_shard_entry *e)
{
    if (atomic_load(&e->settled) || !close_for_borrowers(e))
        return;
    switch_file(f, e);
    settle(f, e);
    atomic_store(&e->borrowers, 0);
}

bool mr_shard_files_drop_copy(mr_shard_files *f, const mr_open_shard *shard)
{
    mr_shard_entry *e = mr_shard_entry_of(shard);
    pthread_mutex_lock(&f->lock);
    bool copied = e->copied, first = copied && !e->mistrusted;
    e->mistrusted |= copied;
    settle(f, e);
    pthread_mutex_unlock(&f->lock);
    if (first)
        mr_dataset_drop_copy(f->ds, shard->shard);
    return copied;
}

mr_status mr_shard_files_borrow(mr_shard_files *f, uint64_t n, const mr_open_shard **out, mr_error *err)
{
    const mr_shard *shard = mr_dataset_shard(f->split, n);
    mr_shard_entry *e = atomic_load_explicit(&f->shards[shard - f->split->shards], memory_order_acquire);
    if (!e || !atomic_load(&e->settled) || !join(e)) {
        pthread_mutex_lock(&f->lock);
        mr_status status = entry_of(f, shard, &e, err);
        if (status == MR_OK) {
            choose_file(f, e);
            status = borrow(f, e, err);
        }
        pthread_mutex_unlock(&f->lock);
        MR_TRY(status);
    }
    uint64_t now = atomic_load_explicit(&f->opened, memory_order_relaxed);
    if (atomic_load_explicit(&e->used, memory_order_relaxed) != now)
        atomic_store_explicit(&e->used, now, memory_order_relaxed);
    *out = &e->files;
    return MR_OK;
}

void mr_shard_files_return(mr_shard_files *f, const mr_open_shard *shard)
{
    mr_shard_entry *e = mr_shard_entry_of(shard);
    if (atomic_fetch_sub(&e->borrowers, 1) > 1 || !atomic_load(&f->waiting))
        return;
    pthread_mutex_lock(&f->lock);
    pthread_cond_broadcast(&f->returned);
    pthread_mutex_unlock(&f->lock);
}
