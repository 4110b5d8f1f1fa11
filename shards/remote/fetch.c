/* fetch.c - a shard in parts, by several connections; and parts of it for readers that cannot wait.
 * Invariant: a shard is whole only once its SHA-256, over what is in the file, is the manifest's. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "shards/remote/parts.h"

/* Parts large enough for a connection's window to open, and so many that a link with 20 ms of delay is full.  A small
 * shard has more of them than connections, so that hashing does not begin when all of it is there. */
enum { PART = 8 << 20, PART_MIN = 2 << 20, PARTS = 32, CONNECTIONS = 8, TRIES = 2, PIECE = 256 << 10, WAIT_MS = 100 };

static void name_of(const mr_shard *shard, char name[sizeof shard->name + 8])
{
    snprintf(name, sizeof shard->name + 8, "%s.mdb", shard->name);
}

/* A shard that the manifest lists and the server does not have is damage. */
static mr_status damaged_if_missing(mr_status status, mr_error *err)
{
    if (status != MR_END)
        return status;
    if (err)
        err->status = MR_BAD_DATA;
    return MR_BAD_DATA;
}

typedef enum part_state { ABSENT, COMING, THERE } part_state;

typedef struct mr_fetch_job {
    mr_remote *remote;
    const mr_shard *shard;
    const char *name;
    int to;
    const atomic_bool *stop;
    uint64_t part;           /* bytes of each but the last */
    pthread_mutex_t writing; /* the kernel lets one thread write to a file; the others would spin */

    uint8_t *pieces; /* [CONNECTIONS + 1][PIECE]: memory of each connection, and of hashing */

    /* All below under the remote's coming_lock. */
    struct mr_fetch_job *next; /* next in its list */
    unsigned readers;
    uint8_t *parts;    /* the part_state of each part */
    size_t hashed;     /* parts, from the first */
    bool hashing;      /* a thread works on it, and checks for more before it ends */
    mr_hasher *hasher; /* that thread's */
} job;

typedef struct part {
    job *job;
    uint64_t at;    /* where in the file the bytes held begin */
    uint8_t *piece; /* [PIECE]: libcurl gives 16 KiB at a time, and each write would wait for those of other threads */
    size_t held;
} part;

static mr_status write_piece(part *p, mr_error *err)
{
    pthread_mutex_lock(&p->job->writing);
    mr_status status = mr_file_pwrite(p->job->to, p->piece, p->held, p->at, p->job->name, err);
    int errnum = errno;
    pthread_mutex_unlock(&p->job->writing);
    errno = errnum;
    p->at += p->held;
    p->held = 0;
    return status;
}

static mr_status add_to_part(void *to, const uint8_t *bytes, size_t n, mr_error *err)
{
    part *p = to;
    while (n) {
        size_t capacity = PIECE - p->held, some = n < capacity ? n : capacity;
        memcpy(p->piece + p->held, bytes, some);
        p->held += some;
        bytes += some;
        n -= some;
        if (p->held == PIECE)
            MR_TRY(write_piece(p, err));
    }
    return MR_OK;
}

static mr_status hash_part(const job *j, size_t item, mr_error *err)
{
    uint64_t at = item * j->part, rest = j->shard->mdb.bytes - at, end = at + (rest < j->part ? rest : j->part);
    uint8_t *piece = j->pieces + (size_t)CONNECTIONS * PIECE;
    for (size_t n; at < end; at += n) {
        n = end - at < PIECE ? (size_t)(end - at) : PIECE;
        MR_TRY(mr_file_pread(j->to, piece, n, at, j->name, err));
        mr_hasher_add(j->hasher, piece, n);
    }
    return MR_OK;
}

/* The part has arrived: what is there without a gap is hashed while the other connections continue. */
static mr_status hash_on(job *j, size_t item, size_t count, mr_error *err)
{
    mr_status status = MR_OK;
    pthread_mutex_t *lock = &j->remote->coming_lock;
    pthread_mutex_lock(lock);
    j->parts[item] = THERE;
    pthread_cond_broadcast(&j->remote->came);
    if (!j->hashing) {
        j->hashing = true;
        while (status == MR_OK && j->hashed < count && j->parts[j->hashed] == THERE) {
            pthread_mutex_unlock(lock);
            status = hash_part(j, j->hashed, err);
            pthread_mutex_lock(lock);
            j->hashed++;
        }
        j->hashing = false;
    }
    pthread_mutex_unlock(lock);
    return status;
}

static size_t count_parts(const job *j)
{
    return (size_t)((j->shard->mdb.bytes + j->part - 1) / j->part);
}

static mr_status fetch_part(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    job *j = ctx;
    uint64_t from = item * j->part, rest = j->shard->mdb.bytes - from, bytes = rest < j->part ? rest : j->part;
    part p = {.job = j, .at = from, .piece = j->pieces + (size_t)worker * PIECE};
    pthread_mutex_lock(&j->remote->coming_lock);
    j->parts[item] = COMING;
    pthread_mutex_unlock(&j->remote->coming_lock);
    const mr_get get = {.name = j->name,
                        .from = from,
                        .bytes = bytes,
                        .whole = j->shard->mdb.bytes,
                        .sink = add_to_part,
                        .to = &p,
                        .stop = j->stop};
    MR_TRY(damaged_if_missing(mr_http_get(j->remote->http, &get, err), err));
    MR_TRY(write_piece(&p, err));
    sync_file_range(j->to, (off_t)from, (off_t)bytes, SYNC_FILE_RANGE_WRITE); /* fsync() finds less to do */
    return hash_on(j, item, count_parts(j), err);
}

/* From now on readers find the parts, none of which has arrived yet. */
static void show(job *j)
{
    pthread_mutex_lock(&j->remote->coming_lock);
    j->next = j->remote->coming;
    j->remote->coming = j;
    pthread_mutex_unlock(&j->remote->coming_lock);
}

/* Waiting readers take what has arrived first, before it is moved. */
static void hide(job *j)
{
    mr_remote *r = j->remote;
    job **at = &r->coming;
    pthread_mutex_lock(&r->coming_lock);
    while (j->readers)
        pthread_cond_wait(&r->came, &r->coming_lock);
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    pthread_mutex_unlock(&r->coming_lock);
}

/* Once; MR_OK says nothing about the digest. */
static mr_status fetch_all(job *j, mr_digest *digest, mr_error *err)
{
    size_t count = count_parts(j);
    j->hashed = 0;
    j->parts = mr_alloc(count, sizeof *j->parts);
    j->pieces = mr_alloc(CONNECTIONS + 1, PIECE);
    mr_status status = j->parts && j->pieces ? MR_OK : mr_fail_memory(err, j->name);
    if (status == MR_OK)
        status = mr_hasher_begin(true, &j->hasher, err);
    if (status == MR_OK) {
        show(j);
        status = mr_pool_run(count, count < CONNECTIONS ? (unsigned)count : CONNECTIONS, fetch_part, j, err);
        int errnum = errno;
        hide(j);
        mr_status ended = mr_hasher_end(j->hasher, digest, status == MR_OK ? err : NULL);
        errno = errnum;
        status = status == MR_OK ? ended : status;
    }
    free(j->parts);
    free(j->pieces);
    return status;
}

mr_status mr_remote_fetch(mr_remote *r, const mr_shard *shard, int to, const atomic_bool *stop, mr_error *err)
{
    char name[sizeof shard->name + 8];
    mr_digest digest;
    name_of(shard, name);
    uint64_t share = (shard->mdb.bytes / PARTS + PIECE - 1) / PIECE * PIECE;
    job j = {.remote = r, .shard = shard, .name = name, .to = to, .stop = stop};
    j.part = share < PART_MIN ? PART_MIN : share < PART ? share : PART;
    pthread_mutex_init(&j.writing, NULL);
    mr_status status = MR_OK;
    bool same = false;
    for (unsigned i = 0; i < TRIES && status == MR_OK && !same; i++) { /* a bit may have flipped on the way */
        status = fetch_all(&j, &digest, err);
        same = status == MR_OK && memcmp(digest.sha256, shard->mdb.sha256, sizeof digest.sha256) == 0;
    }
    pthread_mutex_destroy(&j.writing);
    if (status != MR_OK || same)
        return status;
    return mr_fail(err, MR_BAD_DATA,
                   "%s/%s: differs from what was ingested, twice; it was damaged in transit or on the server: compare "
                   "it there, or upload it again",
                   mr_http_url(r->http)->shown, name);
}

/* ---- one record -------------------------------------------------------------------------------------------------- */

/* With the remote's lock held. */
static part_state state_of(const job *j, uint64_t from, size_t len)
{
    part_state least = THERE;
    for (uint64_t i = from / j->part; i <= (from + len - 1) / j->part; i++)
        least = j->parts[i] < least ? (part_state)j->parts[i] : least;
    return least;
}

static job *find_coming(mr_remote *r, const mr_shard *shard)
{
    job *j = r->coming;
    while (j && j->shard != shard)
        j = j->next;
    return j;
}

bool mr_remote_read_coming(mr_remote *r, const mr_shard *shard, uint64_t from, void *out, size_t len,
                           const atomic_bool *stop)
{
    bool waits = true, there = false;
    struct timespec until;
    pthread_mutex_lock(&r->coming_lock);
    job *j = find_coming(r, shard);
    if (j && len && from < shard->mdb.bytes && len <= shard->mdb.bytes - from) {
        clock_gettime(CLOCK_REALTIME, &until);
        mr_time_add(&until, WAIT_MS);
        j->readers++;
        while (waits && state_of(j, from, len) == COMING && !(stop && atomic_load(stop)))
            waits = pthread_cond_timedwait(&r->came, &r->coming_lock, &until) == 0;
        there = state_of(j, from, len) == THERE && mr_file_pread(j->to, out, len, from, j->name, NULL) == MR_OK;
        j->readers--;
        pthread_cond_broadcast(&r->came);
    }
    pthread_mutex_unlock(&r->coming_lock);
    return there;
}

typedef struct target {
    uint8_t *at;
} target;

static mr_status copy(void *to, const uint8_t *bytes, size_t n, mr_error *err)
{
    target *t = to;
    (void)err;
    memcpy(t->at, bytes, n);
    t->at += n;
    return MR_OK;
}

mr_status mr_remote_read(mr_remote *r, const mr_shard *shard, uint64_t from, void *out, size_t len,
                         const atomic_bool *stop, mr_error *err)
{
    char name[sizeof shard->name + 8];
    target t = {.at = out};
    name_of(shard, name);
    const mr_get get = {
        .name = name, .from = from, .bytes = len, .whole = shard->mdb.bytes, .sink = copy, .to = &t, .stop = stop};
    return len ? damaged_if_missing(mr_http_get(r->http, &get, err), err) : MR_OK;
}
