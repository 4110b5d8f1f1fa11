/* copier.c - the thread that copies shards, in the order in which they are needed.
 * Invariant: each shard is tried once; a failed write ends copying for good, but never the run. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/format/index.h"
#include "shards/local/parts.h"

enum { STEP = 4 << 20 };

typedef enum state { UNTRIED = 0, TRIED } state;

struct mr_local {
    mr_local_options o;
    mr_store store;
    const mr_shard **shards; /* shards of all splits, in order */
    size_t count;
    pid_t owner; /* in a child of fork() there is no thread */

    pthread_mutex_t lock; /* guards all members below except the atomics */
    pthread_cond_t wanted;
    uint8_t *states; /* [count] */
    size_t *queue;   /* [count]: wanted shards, each at most once; the copier is at `taken` */
    bool *queued, *split_wanted;
    size_t taken, queue_len, swept; /* shards below `swept` need no look when the queue is empty */
    bool said;
    mr_error remark;
    mr_local_counts counts;

    pthread_t thread;
    bool runs;
    atomic_bool stop;
    uint8_t *buffer; /* the thread's own, [STEP] */
};

static void say(mr_local *l, const mr_error *why)
{
    pthread_mutex_lock(&l->lock);
    if (!l->said)
        l->remark = *why;
    l->said = true;
    pthread_mutex_unlock(&l->lock);
}

/* ---- one shard --------------------------------------------------------------------------------------------------- */

/* MR_END: copying is to stop. */
static mr_status copy_bytes(mr_local *l, const mr_shard *shard, int from, int to, mr_hasher *hash, mr_error *err)
{
    for (uint64_t at = 0; at < shard->mdb.bytes;) {
        size_t n = shard->mdb.bytes - at < STEP ? (size_t)(shard->mdb.bytes - at) : STEP;
        if (atomic_load(&l->stop))
            return MR_END;
        mr_status status = mr_file_pread(from, l->buffer, n, at, shard->name, err);
        if (status != MR_OK) /* the dataset's own trouble, which its readers report */
            return MR_BAD_DATA;
        mr_hasher_add(hash, l->buffer, n);
        MR_TRY(mr_file_pwrite(to, l->buffer, n, at, l->store.path, err));
        at += n;
    }
    return MR_OK;
}

/* MR_BAD_DATA: the shard itself is damaged. */
static mr_status copy_verified(mr_local *l, const mr_shard *shard, int to, mr_error *err)
{
    if (l->o.fetch)
        return l->o.fetch(l->o.from, shard, to, &l->stop, err);
    MR_AUTO(mr_scope_close) int from = -1;
    mr_hasher *hash = NULL;
    mr_digest digest = {.bytes = 0};
    if (mr_index_open_file(l->o.source, shard, "mdb", &from, err) != MR_OK)
        return MR_BAD_DATA;
    MR_TRY(mr_hasher_begin(true, &hash, err));
    mr_status status = copy_bytes(l, shard, from, to, hash, err);
    mr_status ended = mr_hasher_end(hash, &digest, status == MR_OK ? err : NULL);
    MR_TRY(status);
    MR_TRY(ended);
    if (memcmp(digest.sha256, shard->mdb.sha256, sizeof digest.sha256) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s.mdb: differs from what was ingested; `millrace verify` shows the extent",
                       shard->name);
    return MR_OK;
}

/* False: no shard can be copied any more. */
static bool copy_shard(mr_local *l, const mr_shard *shard)
{
    mr_error why = {.status = MR_OK};
    int to;
    mr_status status = mr_store_make_room(&l->store, shard->mdb.bytes, &why);
    if (status == MR_OK)
        status = mr_store_begin(&l->store, shard, &to, &why);
    if (status == MR_OK && to < 0)
        return true; /* there, or being copied by another process */
    if (status == MR_OK)
        status = mr_store_end(&l->store, shard, to, copy_verified(l, shard, to, &why), &why);
    if (atomic_load(&l->stop))
        return false;
    if (status == MR_OK) {
        pthread_mutex_lock(&l->lock);
        l->counts.copied++;
        l->counts.bytes += shard->mdb.bytes;
        pthread_mutex_unlock(&l->lock);
        return true;
    }
    say(l, &why);
    return status == MR_BAD_DATA;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static size_t split_of(const mr_local *l, size_t shard)
{
    const mr_manifest *m = l->o.manifest;
    size_t split = 0;
    for (size_t before = 0; before + m->splits[split].shard_count <= shard; split++)
        before += m->splits[split].shard_count;
    return split;
}

/* With the lock held: a shard that is needed, or the next of a split that is being read; l->count: none. */
static size_t next_shard(mr_local *l)
{
    while (l->taken < l->queue_len) {
        size_t at = l->queue[l->taken++];
        if (l->states[at] == UNTRIED)
            return at;
    }
    for (size_t at = l->swept; at < l->count; at++) {
        if (l->states[at] == UNTRIED && l->split_wanted[split_of(l, at)])
            return at;
        if (l->states[at] != UNTRIED && at == l->swept)
            l->swept++;
    }
    return l->count;
}

static void *run(void *arg)
{
    mr_local *l = arg;
    bool works = true;
    mr_store_sweep(&l->store);
    (void)mr_store_make_room(&l->store, 0, NULL); /* the limit may be smaller than that of the run before */
    pthread_mutex_lock(&l->lock);
    while (works && !atomic_load(&l->stop)) {
        size_t at = next_shard(l);
        if (at == l->count) {
            pthread_cond_wait(&l->wanted, &l->lock);
            continue;
        }
        l->states[at] = TRIED;
        pthread_mutex_unlock(&l->lock);
        works = copy_shard(l, l->shards[at]);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static mr_status start(mr_local *l, mr_error *err)
{
    MR_TRY(mr_manifest_shards(l->o.manifest, &l->shards, &l->count, err));
    l->states = mr_alloc(l->count + 1, sizeof *l->states);
    l->queue = mr_alloc(l->count + 1, sizeof *l->queue);
    l->queued = mr_alloc(l->count + 1, sizeof *l->queued);
    l->split_wanted = mr_alloc(l->o.manifest->split_count + 1, sizeof *l->split_wanted);
    l->buffer = mr_alloc(STEP, 1);
    if (!l->states || !l->queue || !l->queued || !l->split_wanted || !l->buffer)
        return mr_fail_memory(err, "copying shards");
    int code = pthread_create(&l->thread, NULL, run, l);
    if (code != 0)
        return mr_fail_errno(err, code, "starting a thread that copies shards");
    l->runs = true;
    return MR_OK;
}

mr_status mr_local_open(const mr_local_options *o, mr_local **out, mr_error *err)
{
    mr_local *l = mr_alloc(1, sizeof *l);
    mr_error why;
    if (!l)
        return mr_fail_memory(err, "copying shards");
    *l = (mr_local){.o = *o, .owner = getpid()};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wanted, NULL);
    if (mr_store_open(o->dir, o->most_bytes, &l->store, &why) != MR_OK) {
        mr_error remark;
        mr_fail(&remark, MR_SYSTEM, "%s; shards are read from the dataset", why.text);
        say(l, &remark);
    }
    mr_status status = o->copies && l->store.dir >= 0 ? start(l, err) : MR_OK;
    if (status == MR_OK)
        *out = l;
    else
        mr_local_close(l);
    return status;
}

void mr_local_close(mr_local *l)
{
    if (!l)
        return;
    if (l->runs && l->owner != getpid())
        return; /* the thread is the parent's, and its lock may be held forever here */
    if (l->runs) {
        pthread_mutex_lock(&l->lock);
        atomic_store(&l->stop, true);
        pthread_cond_broadcast(&l->wanted);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    pthread_cond_destroy(&l->wanted);
    pthread_mutex_destroy(&l->lock);
    mr_store_close(&l->store);
    free(l->shards);
    free(l->states);
    free(l->queue);
    free(l->queued);
    free(l->split_wanted);
    free(l->buffer);
    free(l);
}

/* ---- from readers ------------------------------------------------------------------------------------------------ */

bool mr_local_find(mr_local *l, const mr_shard *shard, int *fd)
{
    bool found = mr_store_find(&l->store, shard, fd);
    if (found && l->owner == getpid()) {
        pthread_mutex_lock(&l->lock);
        l->counts.found++;
        pthread_mutex_unlock(&l->lock);
    }
    return found;
}

void mr_local_want(mr_local *l, const mr_shard *shard)
{
    size_t split = 0, before = 0;
    const mr_manifest *m = l->o.manifest;
    if (!l->runs || l->owner != getpid())
        return;
    while (split < m->split_count &&
           !(shard >= m->splits[split].shards && shard < m->splits[split].shards + m->splits[split].shard_count))
        before += m->splits[split++].shard_count;
    if (split == m->split_count)
        return;
    size_t at = before + (size_t)(shard - m->splits[split].shards);
    pthread_mutex_lock(&l->lock);
    if (!l->queued[at])
        l->queue[l->queue_len++] = at;
    l->queued[at] = true;
    l->split_wanted[split] = true;
    pthread_cond_signal(&l->wanted);
    pthread_mutex_unlock(&l->lock);
}

void mr_local_drop(mr_local *l, const mr_shard *shard)
{
    mr_error why;
    mr_store_drop(&l->store, shard);
    mr_fail(&why, MR_BAD_DATA, "%s: its copy of %s.mdb was damaged; it was removed, and the dataset is read instead",
            l->store.path, shard->name);
    if (l->owner == getpid())
        say(l, &why);
}

bool mr_local_remark(mr_local *l, mr_error *out)
{
    pthread_mutex_lock(&l->lock);
    bool said = l->said;
    if (said)
        *out = l->remark;
    pthread_mutex_unlock(&l->lock);
    return said;
}

mr_local_counts mr_local_count(mr_local *l)
{
    pthread_mutex_lock(&l->lock);
    mr_local_counts counts = l->counts;
    pthread_mutex_unlock(&l->lock);
    return counts;
}
