/* download.c - one file behind a URL, as a file of this host.
 * Invariant: `arrived` never counts a byte that is not yet in the file. */
#include "shards/remote/download.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "shards/remote/http.h"

struct mr_download {
    mr_http *http;
    char *path; /* never changes, as both threads read it */
    int fd;
    pthread_t thread;
    bool started;
    mr_hasher *hasher; /* hashes a pinned URL; NULL: there is nothing to compare */
    uint64_t announced;
    atomic_bool stop;

    pthread_mutex_t lock; /* guards all members below */
    pthread_cond_t more;
    uint64_t size, arrived; /* bytes; size 0: not known yet */
    bool ended;
    mr_status status;
    mr_error why;
};

static mr_status add(void *to, const uint8_t *bytes, size_t n, mr_error *err)
{
    mr_download *d = to;
    if (d->arrived == 0 && d->announced && ftruncate(d->fd, (off_t)d->announced) != 0)
        return mr_fail_errno(err, errno, "%s", d->path);
    MR_TRY(mr_file_write(d->fd, bytes, n, d->path, err));
    if (d->hasher)
        mr_hasher_add(d->hasher, bytes, n);
    pthread_mutex_lock(&d->lock);
    d->size = d->announced;
    d->arrived += n;
    pthread_cond_broadcast(&d->more);
    pthread_mutex_unlock(&d->lock);
    return MR_OK;
}

static void *run(void *ctx)
{
    mr_download *d = ctx;
    mr_error why;
    const mr_get get = {.name = "", .sink = add, .to = d, .size = &d->announced, .stop = &d->stop};
    mr_status status = mr_http_get(d->http, &get, &why);
    if (status == MR_END)
        status = why.status = MR_MISUSE;
    pthread_mutex_lock(&d->lock);
    d->ended = true;
    d->status = status;
    d->why = why;
    pthread_cond_broadcast(&d->more);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void release(mr_download *d)
{
    if (d->fd >= 0)
        close(d->fd);
    if (d->hasher)
        (void)mr_hasher_end(d->hasher, NULL, NULL);
    mr_http_close(d->http);
    free(d->path);
    pthread_cond_destroy(&d->more);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static mr_status open_file(mr_download *d, const char *folder, mr_error *err)
{
    const mr_url *url = mr_http_url(d->http);
    const char *name = strrchr(url->shown, '/') + 1;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    if (!*name || mr_is_dots(name))
        return mr_fail(err, MR_MISUSE, "%s: names no file", url->shown);
    mr_buf_printf(&path, "%s/%s", folder, name);
    MR_TRY(mr_buf_status(&path, err, url->shown));
    if (!(d->path = strdup(mr_buf_text(&path))))
        return mr_fail_memory(err, url->shown);
    d->fd = open(d->path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    return d->fd >= 0 ? MR_OK : mr_fail_errno(err, errno, "%s", d->path);
}

static mr_status start(mr_download *d, const char *text, const char *folder, mr_error *err)
{
    mr_url url = {.scheme = MR_SCHEME_NONE};
    MR_TRY(mr_url_parse(text, &url, err));
    url.base[strlen(url.base) - 1] = '\0'; /* a file has no slash at its end */
    MR_TRY(mr_http_open(&url, &d->http, err));
    MR_TRY(open_file(d, folder, err));
    if (mr_http_url(d->http)->pinned)
        MR_TRY(mr_hasher_begin(true, &d->hasher, err));
    int errnum = mr_thread_start(&d->thread, run, d);
    if (errnum)
        return mr_fail_errno(err, errnum, "%s: cannot start a thread", mr_http_url(d->http)->shown);
    d->started = true;
    return MR_OK;
}

mr_status mr_download_begin(const char *url, const char *folder, mr_download **out, mr_error *err)
{
    mr_download *d = *out = mr_alloc(1, sizeof *d);
    if (!d)
        return mr_fail_memory(err, folder);
    d->fd = -1;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->more, NULL);
    mr_status status = start(d, url, folder, err);
    pthread_mutex_lock(&d->lock);
    while (status == MR_OK && !d->arrived && !d->ended)
        pthread_cond_wait(&d->more, &d->lock);
    bool failed = d->ended && d->status != MR_OK;
    pthread_mutex_unlock(&d->lock);
    if (status == MR_OK && !failed)
        return MR_OK;
    *out = NULL;
    return mr_download_end(d, status, err);
}

const char *mr_download_path(const mr_download *d)
{
    return d->path;
}

uint64_t mr_download_size(mr_download *d)
{
    pthread_mutex_lock(&d->lock);
    uint64_t size = d->ended && !d->size ? d->arrived : d->size;
    pthread_mutex_unlock(&d->lock);
    return size;
}

bool mr_download_wait(mr_download *d, uint64_t end)
{
    pthread_mutex_lock(&d->lock);
    while (d->arrived < end && !d->ended)
        pthread_cond_wait(&d->more, &d->lock);
    bool there = d->arrived >= end || d->status == MR_OK;
    pthread_mutex_unlock(&d->lock);
    return there;
}

/* The digest of what has arrived so far. */
static mr_status compare(mr_download *d, mr_error *err)
{
    const mr_url *url = mr_http_url(d->http);
    mr_digest found;
    char hex[65], wanted[65];
    mr_status status = mr_hasher_end(d->hasher, &found, err);
    d->hasher = NULL;
    MR_TRY(status);
    if (memcmp(found.sha256, url->digest, sizeof url->digest) == 0)
        return MR_OK;
    mr_hex(found.sha256, sizeof found.sha256, hex);
    mr_hex(url->digest, sizeof url->digest, wanted);
    return mr_fail(err, MR_BAD_DATA, "%s: not the expected file: its SHA-256 is %s, expected %s", url->shown, hex,
                   wanted);
}

/* The thread has ended: whether by itself. */
static bool join(mr_download *d, bool whole)
{
    pthread_mutex_lock(&d->lock);
    bool stopped = !whole && !d->ended;
    pthread_mutex_unlock(&d->lock);
    atomic_store(&d->stop, stopped);
    pthread_join(d->thread, NULL);
    return !stopped;
}

mr_status mr_download_end(mr_download *d, mr_status status, mr_error *err)
{
    /* What is damaged may not be the expected file: that is the better reason, and worth the wait. */
    bool whole = status == MR_OK || (status == MR_BAD_DATA && d->hasher);
    mr_error other = {.status = MR_OK};
    if (d->started && join(d, whole)) {
        mr_status mine = d->status;
        if (mine != MR_OK)
            other = d->why;
        else if (whole && d->hasher)
            mine = compare(d, &other);
        if (mine != MR_OK && err)
            *err = other;
        status = mine != MR_OK ? mine : status;
    }
    release(d);
    return status;
}
