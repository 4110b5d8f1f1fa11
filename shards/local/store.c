/* store.c - a folder of copies, named by their digests, which any number of processes share.
 * Invariant: a file is removed only by a process that holds an exclusive lock on it, so never while it is read or
 * written; a copy appears by one rename, when its bytes are on disk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/local/parts.h"

enum { DIGITS = 64, NAME_SIZE = DIGITS + 8 };

static const char copy_suffix[] = ".mdb", part_suffix[] = ".part";

static void name_of(const mr_shard *shard, const char *suffix, char name[NAME_SIZE])
{
    mr_hex(shard->mdb.sha256, sizeof shard->mdb.sha256, name);
    memcpy(name + DIGITS, suffix, strlen(suffix) + 1);
}

static bool is_name(const char *name, const char *suffix)
{
    return strspn(name, "0123456789abcdef") == DIGITS && strcmp(name + DIGITS, suffix) == 0;
}

mr_status mr_store_open(const char *path, uint64_t most_bytes, mr_store *out, mr_error *err)
{
    *out = (mr_store){.dir = -1, .most_bytes = most_bytes};
    clock_gettime(CLOCK_REALTIME, &out->since);
    out->path = strdup(path);
    if (!out->path)
        return mr_fail_memory(err, path);
    MR_TRY(mr_dir_make(path, err));
    out->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return out->dir >= 0 ? MR_OK : mr_fail_errno(err, errno, "%s", path);
}

void mr_store_close(mr_store *s)
{
    if (s->dir >= 0)
        close(s->dir);
    free(s->path);
    *s = (mr_store){.dir = -1};
}

/* On a file system without locks, no other job can hold one either. */
static bool locked(int fd, int how)
{
    return flock(fd, how | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

bool mr_store_find(const mr_store *s, const mr_shard *shard, int *fd)
{
    char name[NAME_SIZE];
    struct stat st;
    name_of(shard, copy_suffix, name);
    MR_AUTO(mr_scope_close)
    int opened = s->dir >= 0 ? openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (opened < 0 || !locked(opened, LOCK_SH) || fstat(opened, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink == 0 ||
        (uint64_t)st.st_size != shard->mdb.bytes)
        return false;
    (void)futimens(opened, NULL); /* fails for another user's copy, which then looks older than it is */
    *fd = opened;
    opened = -1;
    return true;
}

/* Removes a file that nobody uses; false: somebody does, or it cannot be removed. */
static bool remove_unused(const mr_store *s, const char *name)
{
    MR_AUTO(mr_scope_close) int fd = openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd >= 0 && locked(fd, LOCK_EX) && mr_file_is_at(fd, s->dir, name, false) && unlinkat(s->dir, name, 0) == 0;
}

void mr_store_drop(const mr_store *s, const mr_shard *shard)
{
    char name[NAME_SIZE];
    name_of(shard, copy_suffix, name);
    if (s->dir >= 0)
        (void)unlinkat(s->dir, name, 0); /* its readers keep what is open, and notice as this one did */
}

static void close_list(DIR **list)
{
    if (*list)
        closedir(*list);
}

/* A descriptor of its own, as reading a folder moves its offset. */
static DIR *list_of(const mr_store *s)
{
    int fd = s->dir >= 0 ? openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !list)
        close(fd);
    return list;
}

void mr_store_sweep(const mr_store *s)
{
    MR_AUTO(close_list) DIR *list = list_of(s);
    for (struct dirent *e; list && (e = readdir(list));)
        if (is_name(e->d_name, part_suffix))
            remove_unused(s, e->d_name);
}

/* ---- capacity ---------------------------------------------------------------------------------------------------- */

typedef struct copies {
    uint64_t bytes;
    char oldest[NAME_SIZE]; /* the oldest of those not used since the start; "": none */
    struct timespec used;
    uint64_t oldest_bytes;
} copies;

static bool before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* `kept`: the first few of the unused ones, which could not be removed, are passed over. */
static copies survey(const mr_store *s, const struct timespec *after)
{
    copies c = {.bytes = 0};
    MR_AUTO(close_list) DIR *list = list_of(s);
    struct stat st;
    for (struct dirent *e; list && (e = readdir(list));) {
        bool copy = is_name(e->d_name, copy_suffix);
        if ((!copy && !is_name(e->d_name, part_suffix)) || fstatat(s->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        c.bytes += (uint64_t)st.st_size;
        if (!copy || !before(&st.st_mtim, &s->since) || !before(after, &st.st_mtim) ||
            (*c.oldest && !before(&st.st_mtim, &c.used)))
            continue;
        memcpy(c.oldest, e->d_name, strlen(e->d_name) + 1);
        c.used = st.st_mtim;
        c.oldest_bytes = (uint64_t)st.st_size;
    }
    return c;
}

mr_status mr_store_make_room(const mr_store *s, uint64_t bytes, mr_error *err)
{
    struct timespec after = {.tv_sec = -1}; /* copies up to this time could not be removed, or are gone */
    char limit[32];
    if (!s->most_bytes)
        return MR_OK;
    for (;;) {
        copies c = survey(s, &after);
        if (c.bytes <= s->most_bytes && bytes <= s->most_bytes - c.bytes)
            return MR_OK;
        if (!*c.oldest) {
            mr_fail(err, MR_END, "%s: not all shards fit into %s; the others are read from the dataset", s->path,
                    mr_text_bytes(s->most_bytes, limit));
            return MR_END;
        }
        remove_unused(s, c.oldest);
        after = c.used;
    }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

mr_status mr_store_begin(const mr_store *s, const mr_shard *shard, int *fd, mr_error *err)
{
    char name[NAME_SIZE];
    struct stat st;
    name_of(shard, copy_suffix, name);
    *fd = -1;
    if (fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return MR_OK;
    name_of(shard, part_suffix, name);
    MR_AUTO(mr_scope_close) int part = openat(s->dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (part < 0)
        return mr_fail_errno(err, errno, "%s: cannot store copies; shards are read from the dataset", s->path);
    /* Between opening and locking, another process may have finished it. */
    if (!locked(part, LOCK_EX) || !mr_file_is_at(part, s->dir, name, false))
        return MR_OK;
    if (ftruncate(part, 0) != 0 || (fallocate(part, 0, 0, (off_t)shard->mdb.bytes) != 0 && errno == ENOSPC)) {
        int why = errno;
        (void)unlinkat(s->dir, name, 0);
        return mr_fail_errno(err, why, "%s: has no room for more copies; other shards are read from the dataset",
                             s->path);
    }
    *fd = part;
    part = -1;
    return MR_OK;
}

mr_status mr_store_end(const mr_store *s, const mr_shard *shard, int fd, mr_status status, mr_error *err)
{
    char part[NAME_SIZE], copy[NAME_SIZE];
    name_of(shard, part_suffix, part);
    name_of(shard, copy_suffix, copy);
    if (status == MR_OK && (fsync(fd) != 0 || renameat(s->dir, part, s->dir, copy) != 0))
        status = mr_fail_errno(err, errno, "%s: cannot store copies; shards are read from the dataset", s->path);
    if (status != MR_OK)
        (void)unlinkat(s->dir, part, 0);
    close(fd);
    return status;
}
