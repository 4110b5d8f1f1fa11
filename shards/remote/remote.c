/* remote.c - the folder that stands for a remote dataset, and what is fetched into it.
 * Invariant: a file is in the folder only once its bytes were compared with what the manifest says. */
#include "shards/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/files/file.h"
#include "base/files/supply.h"
#include "base/hash.h"
#include "base/scope.h"
#include "shards/format/index.h"
#include "shards/remote/parts.h"
#include "shards/seek/seek.h"

enum {
    TRIES = 2,
    WAIT_MS = 20,
    FEW = 16, /* records read one by one before a shard is fetched as a whole */
};
#define DEFAULT_MOST ((uint64_t)50 << 30)

bool mr_remote_is_url(const char *text)
{
    return mr_url_scheme(text) != MR_SCHEME_NONE;
}

mr_status mr_remote_keep_out(const char *path, mr_error *err)
{
    mr_url url = {.scheme = MR_SCHEME_NONE};
    if (!mr_remote_is_url(path))
        return MR_OK;
    MR_TRY(mr_url_parse(path, &url, err));
    mr_status status =
        mr_fail(err, MR_MISUSE, "%s: is remote and read-only; change the dataset where it is stored, then upload it",
                url.shown);
    mr_url_free(&url);
    return status;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

mr_status mr_remote_cache_path(const char *name, mr_buf *out, mr_error *err)
{
    if (!mr_env_cache_path(name, out) && !out->failed) {
        errno = EINVAL;
        return mr_fail(err, MR_MISUSE,
                       "neither XDG_CACHE_HOME nor HOME names a folder for fetched data; set one of them");
    }
    return mr_buf_status(out, err, name);
}

static uint64_t default_most(const char *dir)
{
    struct statvfs fs;
    if (statvfs(dir, &fs) != 0)
        return DEFAULT_MOST;
    uint64_t half = (uint64_t)fs.f_bavail * fs.f_frsize / 2;
    return half && half < DEFAULT_MOST ? half : DEFAULT_MOST;
}

/* With the lock held. */
static mr_status open_store(mr_remote *r, const char *dir, uint64_t most_bytes, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    if (!dir) {
        MR_TRY(mr_remote_cache_path("shards", &path, err));
        dir = mr_buf_text(&path);
        MR_TRY(mr_dir_make(dir, err));
        if (!most_bytes)
            most_bytes = default_most(dir);
    }
    mr_store_close(&r->store);
    mr_status status = mr_store_open(dir, most_bytes, &r->store, err);
    mr_store_sweep(&r->store);
    return status;
}

mr_status mr_remote_keep(mr_remote *r, const char *dir, uint64_t most_bytes, mr_error *err)
{
    pthread_mutex_lock(&r->lock);
    mr_status status = open_store(r, dir, most_bytes, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

const char *mr_remote_kept(mr_remote *r, uint64_t *most_bytes)
{
    *most_bytes = r->store.most_bytes;
    return r->store.path;
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* The shard that NAME.SUFFIX is of; `suffix` without the dot. */
static const mr_shard *shard_of(const mr_manifest *m, const char *name, const char *suffix, size_t *number)
{
    const char *dot = strrchr(name, '.');
    size_t before = 0;
    if (!dot || strcmp(dot + 1, suffix) != 0)
        return NULL;
    for (size_t i = 0; i < m->split_count; i++) {
        const mr_split *s = &m->splits[i];
        size_t len = strlen(s->name);
        for (size_t k = 0; strncmp(s->name, name, len) == 0 && k < s->shard_count; k++)
            if (strncmp(s->shards[k].name, name, (size_t)(dot - name)) == 0 && !s->shards[k].name[dot - name]) {
                *number = before + k;
                return &s->shards[k];
            }
        before += s->shard_count;
    }
    return NULL;
}

static mr_status need_store(mr_remote *r, mr_error *err)
{
    pthread_mutex_lock(&r->lock);
    mr_status status = r->store.path ? MR_OK : open_store(r, NULL, 0, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

bool mr_remote_find(mr_remote *r, const mr_shard *shard, int *fd)
{
    return need_store(r, NULL) == MR_OK && mr_store_find(&r->store, shard, fd);
}

bool mr_remote_reads_few(mr_remote *r, const mr_shard *shard)
{
    size_t number;
    char name[sizeof shard->name + 8];
    snprintf(name, sizeof name, "%s.mdb", shard->name);
    return shard_of(r->manifest, name, "mdb", &number) &&
           atomic_fetch_add_explicit(&r->reads[number], 1, memory_order_relaxed) < FEW;
}

/* Fetches into an unnamed file what cannot be kept. */
static mr_status fetch_unkept(mr_remote *r, const mr_shard *shard, int *fd, mr_error *err)
{
    MR_AUTO(mr_scope_close) int scratch = -1;
    MR_TRY(mr_file_scratch(&scratch, err));
    mr_status status = mr_remote_fetch(r, shard, scratch, NULL, err);
    if (status == MR_SYSTEM && errno == ENOSPC) {
        mr_fail(err, status, "%s.mdb: there is no room for it in %s or in $TMPDIR; name a larger disk", shard->name,
                r->store.path);
        errno = ENOSPC;
    }
    MR_TRY(status);
    *fd = scratch;
    scratch = -1;
    return MR_OK;
}

static mr_status find_or_fetch(mr_remote *r, const mr_shard *shard, int *fd, mr_error *err)
{
    const struct timespec step = {.tv_nsec = WAIT_MS * 1000000L};
    mr_error why;
    int part = -1;
    for (;;) {
        if (mr_store_find(&r->store, shard, fd))
            return MR_OK;
        if (mr_store_make_room(&r->store, shard->mdb.bytes, &why) != MR_OK ||
            mr_store_begin(&r->store, shard, &part, &why) != MR_OK)
            return fetch_unkept(r, shard, fd, err);
        if (part >= 0)
            MR_TRY(mr_store_end(&r->store, shard, part, mr_remote_fetch(r, shard, part, NULL, err), err));
        else
            nanosleep(&step, NULL); /* another process, or the thread that copies, fetches it */
    }
}

/* A damaged shard is not fetched again for each of its samples. */
static mr_status open_shard(mr_remote *r, const mr_shard *shard, size_t number, int *fd, mr_error *err)
{
    mr_error why = {.status = MR_OK};
    mr_status status = need_store(r, &why);
    pthread_mutex_lock(&r->lock);
    if (r->damaged[number])
        status = mr_fail(&why, MR_BAD_DATA, "%s", r->damaged[number]);
    pthread_mutex_unlock(&r->lock);
    if (status == MR_OK)
        status = find_or_fetch(r, shard, fd, &why);
    if (status == MR_OK)
        return MR_OK;
    int errnum = errno;
    pthread_mutex_lock(&r->lock);
    if (status == MR_BAD_DATA && !r->damaged[number]) {
        size_t size = strlen(why.text) + 1;
        r->damaged[number] = mr_alloc(size, 1);
        if (r->damaged[number]) /* or it is fetched again */
            memcpy(r->damaged[number], why.text, size);
    }
    pthread_mutex_unlock(&r->lock);
    mr_fail(err, status, "%s", why.text);
    errno = errnum;
    return status;
}

/* ---- small files ------------------------------------------------------------------------------------------------- */

static mr_status check_small(const mr_shard *shard, bool seek, const mr_buf *bytes, mr_error *err)
{
    mr_seek_header header;
    uint8_t found[16];
    if (seek)
        return mr_seek_check(bytes->data, bytes->len, shard, NULL, &header, err);
    if (bytes->len != shard->idx.bytes)
        return mr_fail(err, MR_BAD_DATA, "%s.idx: %zu bytes instead of %llu", shard->name, bytes->len,
                       (unsigned long long)shard->idx.bytes);
    mr_hash128(bytes->data, bytes->len, found);
    return mr_index_check_digest(shard, found, err);
}

/* With the lock held. */
static mr_status fetch_small(mr_remote *r, const mr_shard *shard, const char *name, bool seek, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    mr_error why = {.status = MR_OK};
    uint64_t most = seek ? mr_seek_bytes_max(shard) : shard->idx.bytes;
    for (unsigned i = 0; i < TRIES; i++) {
        mr_buf_clear(&bytes);
        MR_TRY(mr_http_read(r->http, name, NULL, most, &bytes, err));
        if (check_small(shard, seek, &bytes, &why) == MR_OK)
            return mr_file_publish(r->dir, name, bytes.data, bytes.len, err);
    }
    return mr_fail(err, MR_BAD_DATA, "%s/%s", mr_http_url(r->http)->shown, why.text);
}

static mr_status open_small(mr_remote *r, const mr_shard *shard, size_t number, const char *name, bool seek, int *fd,
                            mr_error *err)
{
    mr_status status = MR_OK;
    pthread_mutex_t *lock = &r->small[number % MR_COUNT(r->small)];
    pthread_mutex_lock(lock);
    *fd = openat(r->dir, name, O_RDONLY | O_CLOEXEC); /* another thread may have been faster */
    if (*fd < 0 && seek && r->no_seek[number])
        status = MR_END;
    else if (*fd < 0)
        status = fetch_small(r, shard, name, seek, err);
    if (seek && status == MR_END)
        r->no_seek[number] = true;
    if (status == MR_OK && *fd < 0 && (*fd = openat(r->dir, name, O_RDONLY | O_CLOEXEC)) < 0)
        status = mr_fail_errno(err, errno, "%s/%s", r->folder, name);
    pthread_mutex_unlock(lock);
    return status;
}

static mr_status supply(void *from, const char *name, int *fd, mr_error *err)
{
    mr_remote *r = from;
    const mr_shard *shard;
    size_t number;
    if ((shard = shard_of(r->manifest, name, "mdb", &number)))
        return open_shard(r, shard, number, fd, err);
    if ((shard = shard_of(r->manifest, name, "idx", &number)))
        return open_small(r, shard, number, name, false, fd, err);
    if ((shard = shard_of(r->manifest, name, "seek", &number)))
        return open_small(r, shard, number, name, true, fd, err);
    return MR_END;
}

mr_remote *mr_remote_of(int dirfd)
{
    return mr_supply_from(dirfd, supply);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void free_remote(mr_remote *r)
{
    if (!r)
        return;
    mr_http_close(r->http);
    mr_manifest_free(r->manifest);
    if (r->dir >= 0)
        close(r->dir);
    mr_store_close(&r->store);
    for (size_t i = 0; i < MR_COUNT(r->small); i++)
        pthread_mutex_destroy(&r->small[i]);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->coming_lock);
    pthread_cond_destroy(&r->came);
    free(r->folder);
    free(r->no_seek);
    free(r->reads);
    free(r->damaged); /* nothing has been read yet */
    free(r);
}

static void release_remote(mr_remote **r)
{
    free_remote(*r);
}

static mr_status fetch_manifest(const mr_remote *r, const char *name, mr_buf *out, mr_error *err)
{
    const char *shown = mr_http_url(r->http)->shown;
    mr_error why;
    mr_status status = mr_http_read(r->http, name, NULL, MR_MANIFEST_MAX, out, &why);
    if (status == MR_END)
        return mr_fail(err, MR_MISUSE, "%s: is not a dataset: there is no %s", shown, name);
    return status == MR_OK ? MR_OK : mr_fail(err, status, "%s", why.text);
}

/* Unless the same bytes are there. */
static mr_status publish(int dir, const char *name, const mr_buf *bytes, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf old = {0};
    if (mr_file_read_all(dir, name, bytes->len, &old, NULL) == MR_OK && old.len == bytes->len &&
        memcmp(old.data, bytes->data, old.len) == 0)
        return MR_OK;
    return mr_file_publish(dir, name, bytes->data, bytes->len, err);
}

static mr_status check_pin(const mr_remote *r, const uint8_t digest[32], mr_error *err)
{
    const mr_url *url = mr_http_url(r->http);
    char found[65], wanted[65];
    if (!url->pinned || memcmp(digest, url->digest, 32) == 0)
        return MR_OK;
    mr_hex(digest, 32, found);
    mr_hex(url->digest, 32, wanted);
    return mr_fail(err, MR_BAD_DATA, "%s: not the expected dataset: its digest is %s, expected %s", url->shown, found,
                   wanted);
}

/* The manifest, checked, in the cache. */
static mr_status take_manifest(mr_remote *r, mr_error *err)
{
    const char *shown = mr_http_url(r->http)->shown;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    uint8_t digest[32];
    char sha256[65];
    mr_error why;
    mr_manifest *head = NULL;
    MR_TRY(fetch_manifest(r, MR_MANIFEST, &bytes, err));
    mr_sha256(bytes.data, bytes.len, digest);
    MR_TRY(check_pin(r, digest, err));
    mr_status status = mr_manifest_parse(bytes.data, bytes.len, MR_MANIFEST, &head, &why);
    if (status != MR_OK)
        return mr_fail(err, status, "%s: %s", shown, why.text);
    mr_manifest_free(head);
    mr_hex(digest, sizeof digest, sha256);
    MR_TRY(mr_remote_cache_path("datasets/", &path, err));
    mr_buf_add_text(&path, sha256);
    MR_TRY(mr_dir_make(mr_buf_text(&path), err));
    r->folder = strdup(mr_buf_text(&path));
    r->dir = open(mr_buf_text(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!r->folder || r->dir < 0)
        return mr_fail_errno(err, errno, "%s", mr_buf_text(&path));
    MR_TRY(publish(r->dir, MR_MANIFEST, &bytes, err));
    status = mr_manifest_read(r->dir, &r->manifest, digest, &why);
    return status == MR_OK ? MR_OK : mr_fail(err, status, "%s: %s", shown, why.text);
}

mr_status mr_remote_open(const char *text, mr_error *err)
{
    mr_url url = {.scheme = MR_SCHEME_NONE};
    size_t shards = 0;
    if (!mr_remote_is_url(text))
        return MR_OK;
    MR_AUTO(release_remote) mr_remote *r = mr_alloc(1, sizeof *r);
    if (!r)
        return mr_fail_memory(err, text);
    r->dir = r->store.dir = -1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->coming_lock, NULL);
    pthread_cond_init(&r->came, NULL);
    for (size_t i = 0; i < MR_COUNT(r->small); i++)
        pthread_mutex_init(&r->small[i], NULL);
    MR_TRY(mr_url_parse(text, &url, err));
    MR_TRY(mr_http_open(&url, &r->http, err));
    MR_TRY(take_manifest(r, err));
    for (size_t i = 0; i < r->manifest->split_count; i++)
        shards += r->manifest->splits[i].shard_count;
    r->no_seek = mr_alloc(shards + 1, sizeof *r->no_seek);
    r->damaged = mr_alloc(shards + 1, sizeof *r->damaged);
    r->reads = mr_alloc(shards + 1, sizeof *r->reads);
    if (!r->no_seek || !r->damaged || !r->reads)
        return mr_fail_memory(err, text);
    MR_TRY(mr_supply_add(text, r->folder, supply, r, err));
    r = NULL;
    return MR_OK;
}
