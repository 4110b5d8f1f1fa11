/* index_trust.c - which indexes of an open dataset were compared with the manifest.
 *
 *   stamps[split][shard]    0: not yet; else a hash of what distinguishes the compared file from others:
 *                           device, inode, size, times of modification and of change
 *
 * Invariant: a stamp is stored only after all bytes of the file with these facts were hashed. */
#include "shards/dataset/index_trust.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/format/index.h"

/* A change within the tick of a file system's clock leaves the times as they were, so a file that is younger than this
 * is compared again when it is opened again. */
enum { SETTLED_MS = 100 };

struct mr_index_trust {
    const mr_split *splits; /* as stored: a view gives the manifest others later */
    size_t split_count;
    _Atomic uint64_t **stamps; /* by split; NULL: it has no shards */
};

void mr_index_trust_free(mr_index_trust *t)
{
    if (!t)
        return;
    for (size_t i = 0; t->stamps && i < t->split_count; i++)
        free(t->stamps[i]);
    free(t->stamps);
    free(t);
}

mr_status mr_index_trust_new(const mr_manifest *m, mr_index_trust **out, mr_error *err)
{
    mr_index_trust *t = mr_alloc(1, sizeof *t);
    if (!t)
        return mr_fail_memory(err, "opening a dataset");
    t->splits = m->splits;
    t->split_count = m->split_count;
    t->stamps = mr_alloc(m->split_count + 1, sizeof(_Atomic uint64_t *));
    bool good = t->stamps != NULL;
    for (size_t i = 0; good && i < m->split_count; i++) {
        t->stamps[i] = mr_alloc(m->splits[i].shard_count + 1, sizeof **t->stamps);
        good = t->stamps[i] != NULL;
    }
    if (good) {
        *out = t;
        return MR_OK;
    }
    mr_index_trust_free(t);
    return mr_fail_memory(err, "opening a dataset");
}

/* NULL: from another manifest, so there is no place to note it. */
static _Atomic uint64_t *stamp_of_shard(const mr_index_trust *t, const mr_shard *shard)
{
    for (size_t i = 0; i < t->split_count; i++) {
        const mr_split *s = &t->splits[i];
        if (shard >= s->shards && shard < s->shards + s->shard_count)
            return &t->stamps[i][shard - s->shards];
    }
    return NULL;
}

static uint64_t stamp_of_file(const struct stat *st)
{
    const uint64_t facts[] = {
        st->st_dev,
        st->st_ino,
        (uint64_t)st->st_size,
        (uint64_t)st->st_mtim.tv_sec,
        (uint64_t)st->st_mtim.tv_nsec,
        (uint64_t)st->st_ctim.tv_sec,
        (uint64_t)st->st_ctim.tv_nsec,
    };
    return mr_hash64(facts, sizeof facts) | 1;
}

static int64_t milliseconds(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

static bool is_settled(const struct stat *st)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = milliseconds(&now) - milliseconds(&st->st_ctim);
    return age < 0 || age > SETTLED_MS; /* below 0: the clock of another host, which says nothing */
}

mr_status mr_index_trust_check(mr_index_trust *t, const mr_shard *shard, int idx, mr_error *err)
{
    struct stat st;
    mr_digest found;
    _Atomic uint64_t *stamp = stamp_of_shard(t, shard);
    if (fstat(idx, &st) != 0)
        return mr_fail_errno(err, errno, "%s.idx", shard->name);
    uint64_t file = stamp_of_file(&st);
    if (stamp && atomic_load_explicit(stamp, memory_order_relaxed) == file)
        return MR_OK;
    MR_TRY(mr_file_digest(idx, shard->idx.bytes, false, shard->name, &found, err));
    MR_TRY(mr_index_check_digest(shard, found.xxh3_128, err));
    if (stamp && is_settled(&st))
        atomic_store_explicit(stamp, file, memory_order_relaxed);
    return MR_OK;
}
