/* shard_files.c - the shards of a split, kept open and shared by threads.
 *
 *   open[0 .. count)    what is open, in no order; found by a search of at most MR_SHARD_FILES_MAX entries
 *
 * Invariant: an entry with borrowers is never closed nor moved. */
#include "shard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct mr_shard_files {
    const mr_dataset *ds;
    const mr_split *split;
    pthread_mutex_t lock;
    pthread_cond_t returned;
    unsigned max, in_use;           /* in_use: entries with borrowers */
    uint64_t clock;
    mr_open_shard open[MR_SHARD_FILES_MAX];     /* shard NULL: free */
};

/* Two descriptors a shard, and at most half of what the process may open: the rest is its own. */
static unsigned default_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= MR_SHARD_FILES_MAX)
        return MR_SHARD_FILES_MAX;
    return limit.rlim_cur / 4 ? (unsigned)(limit.rlim_cur / 4) : 1;
}

mr_status mr_shard_files_new(const mr_dataset *ds, const mr_split *split, unsigned max, mr_shard_files **out,
                             mr_error *err)
{
    mr_shard_files *f = mr_alloc(1, sizeof *f);
    if (!f)
        return mr_fail_memory(err, "opening shards");
    f->ds = ds;
    f->split = split;
    f->max = max == 0 ? default_max() : max < MR_SHARD_FILES_MAX ? max : MR_SHARD_FILES_MAX;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->returned, NULL);
    *out = f;
    return MR_OK;
}

static void close_shard(mr_open_shard *s)
{
    if (!s->shard)
        return;
    close(s->mdb);
    close(s->idx);
    s->shard = NULL;
}

void mr_shard_files_free(mr_shard_files *f)
{
    if (!f)
        return;
    for (unsigned i = 0; i < f->max; i++)
        close_shard(&f->open[i]);
    pthread_cond_destroy(&f->returned);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static mr_open_shard *find(mr_shard_files *f, const mr_shard *shard)
{
    for (unsigned i = 0; i < f->max; i++)
        if (f->open[i].shard == shard)
            return &f->open[i];
    return NULL;
}

/* The open entry that was idle longest; NULL: all are borrowed or free. */
static mr_open_shard *oldest(mr_shard_files *f)
{
    mr_open_shard *best = NULL;
    for (unsigned i = 0; i < f->max; i++) {
        mr_open_shard *s = &f->open[i];
        if (s->shard && s->borrowers == 0 && (!best || s->used < best->used))
            best = s;
    }
    return best;
}

/* A free entry, made free if need be; NULL: all are borrowed. */
static mr_open_shard *room(mr_shard_files *f)
{
    mr_open_shard *s = find(f, NULL);
    if (s)
        return s;
    s = oldest(f);
    if (s)
        close_shard(s);
    return s;
}

/* Opens both files; *full says that it failed for want of descriptors. */
static mr_status open_shard(mr_shard_files *f, const mr_shard *shard, mr_open_shard *s, bool *full, mr_error *err)
{
    int mdb = -1, idx = -1;
    mr_status status = mr_dataset_open_file(f->ds, shard, "idx", &idx, err);
    if (status == MR_OK)
        status = mr_dataset_open_file(f->ds, shard, "mdb", &mdb, err);
    *full = status == MR_SYSTEM && (errno == EMFILE || errno == ENFILE);
    if (status != MR_OK) {
        if (idx >= 0)
            close(idx);
        return status;
    }
    /* Rows are read one by one in random order; together they are a thousandth of the records. */
    posix_fadvise(idx, 0, 0, POSIX_FADV_WILLNEED);
    *s = (mr_open_shard){.mdb = mdb, .idx = idx, .shard = shard};
    return MR_OK;
}

/* Under the lock. */
static mr_status get(mr_shard_files *f, const mr_shard *shard, mr_open_shard **out, mr_error *err)
{
    for (;;) {
        mr_open_shard *s = find(f, shard);
        if (s) {
            *out = s;
            return MR_OK;
        }
        bool full = true;
        s = room(f);
        if (s) {
            mr_status status = open_shard(f, shard, s, &full, err);
            if (status == MR_OK)
                *out = s;
            if (!full)
                return status;
            s = oldest(f);
            if (s)
                close_shard(s);
            else if (f->in_use == 0)
                return status;
        }
        if (!s)
            pthread_cond_wait(&f->returned, &f->lock);
    }
}

mr_status mr_shard_files_borrow(mr_shard_files *f, uint64_t n, const mr_open_shard **out, mr_error *err)
{
    mr_open_shard *s = NULL;
    pthread_mutex_lock(&f->lock);
    mr_status status = get(f, mr_dataset_shard(f->split, n), &s, err);
    if (status == MR_OK) {
        if (s->borrowers++ == 0)
            f->in_use++;
        s->used = ++f->clock;
        *out = s;
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}

void mr_shard_files_return(mr_shard_files *f, const mr_open_shard *shard)
{
    mr_open_shard *s = &f->open[shard - f->open];
    pthread_mutex_lock(&f->lock);
    if (--s->borrowers == 0)
        f->in_use--;
    pthread_cond_broadcast(&f->returned);
    pthread_mutex_unlock(&f->lock);
}
