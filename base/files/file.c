/* file.c - opens, reads and creates files and directories safely; output.c writes whole files. */
#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/files/path.h"
#include "base/files/supply.h"
#include "base/scope.h"

mr_status mr_file_open(int dirfd, const char *path, bool follow, int *fd, uint64_t *size, mr_error *err)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer; regular files ignore it. */
    int opened = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
    if (opened < 0 && errno == ENOENT) {
        mr_status supplied = mr_supply_file(dirfd, path, &opened, err);
        if (supplied != MR_OK && supplied != MR_END)
            return supplied;
        errno = ENOENT;
    }
    if (opened < 0) {
        if (errno == ELOOP && !follow)
            return mr_fail(err, MR_BAD_DATA, "%s: is a symbolic link, not a file", path);
        return mr_fail_errno(err, errno, "%s", path);
    }
    struct stat st;
    if (fstat(opened, &st) != 0) {
        mr_fail_errno(err, errno, "%s", path);
        close(opened);
        return MR_SYSTEM;
    }
    if (!S_ISREG(st.st_mode)) {
        close(opened);
        return mr_fail(err, MR_BAD_DATA, "%s: is not a regular file", path);
    }
    *fd = opened;
    if (size)
        *size = (uint64_t)st.st_size;
    return MR_OK;
}

mr_status mr_file_pread(int fd, void *bytes, size_t len, uint64_t offset, const char *name, mr_error *err)
{
    uint8_t *at = bytes;
    while (len) {
        ssize_t n = pread(fd, at, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mr_fail_errno(err, errno, "%s: cannot read", name);
        if (n == 0)
            return mr_fail(err, MR_BAD_DATA, "%s: ends at byte %llu, %zu bytes early", name, (unsigned long long)offset,
                           len);
        at += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return MR_OK;
}

mr_status mr_file_read_all(int dirfd, const char *path, uint64_t max, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size;
    MR_TRY(mr_file_open(dirfd, path, true, &fd, &size, err));
    if (size > max)
        return mr_fail(err, MR_BAD_DATA, "%s: %llu bytes are more than the limit of %llu", path,
                       (unsigned long long)size, (unsigned long long)max);
    if (!mr_buf_reserve(out, size))
        return mr_fail_memory(err, path);
    MR_TRY(mr_file_pread(fd, out->data + out->len, size, 0, path, err));
    out->len += size;
    return MR_OK;
}

mr_status mr_file_write(int fd, const void *bytes, size_t len, const char *name, mr_error *err)
{
    const uint8_t *at = bytes;
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mr_fail_errno(err, errno, "%s: cannot write", name);
        at += n;
        len -= (size_t)n;
    }
    return MR_OK;
}

mr_status mr_file_pwrite(int fd, const void *bytes, size_t len, uint64_t offset, const char *name, mr_error *err)
{
    const uint8_t *at = bytes;
    while (len) {
        ssize_t n = pwrite(fd, at, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mr_fail_errno(err, errno, "%s: cannot write", name);
        at += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return MR_OK;
}

mr_status mr_dir_sync(int dirfd, const char *name, mr_error *err)
{
    /* Some file systems have nothing to sync for a directory and return EINVAL. */
    if (fsync(dirfd) != 0 && errno != EINVAL)
        return mr_fail_errno(err, errno, "%s: cannot sync the directory", name);
    return MR_OK;
}

mr_status mr_dir_sync_parent(int dirfd, const char *path, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL;
    MR_AUTO(mr_scope_free) char *name = NULL;
    MR_TRY(mr_path_split(path, &dir, &name, err));
    MR_AUTO(mr_scope_close) int fd = openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? mr_fail_errno(err, errno, "%s", dir) : mr_dir_sync(fd, dir, err);
}

mr_status mr_file_scratch(int *fd, mr_error *err)
{
    const char *set = mr_env("TMPDIR"), *dir = set ? set : "/tmp";
    *fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*fd < 0 && errno == EOPNOTSUPP) { /* not on every file system: create a named file and unlink it */
        char *path = NULL;
        if (asprintf(&path, "%s/millrace-XXXXXX", dir) < 0)
            return mr_fail_memory(err, dir);
        *fd = mkostemp(path, O_CLOEXEC);
        if (*fd >= 0)
            unlink(path);
        free(path);
    }
    return *fd < 0 ? mr_fail_errno(err, errno, "%s: cannot create a temporary file", dir) : MR_OK;
}

static mr_status make_one(const char *path, mr_error *err)
{
    if (mkdir(path, 0777) != 0)
        return errno == EEXIST ? MR_OK : mr_fail_errno(err, errno, "%s: cannot create the directory", path);
    mr_status status = mr_dir_sync_parent(AT_FDCWD, path, err);
    if (status != MR_OK)
        rmdir(path);
    return status;
}

mr_status mr_dir_make(const char *path, mr_error *err)
{
    if (!*path)
        return mr_fail(err, MR_MISUSE, "\"\": is not a valid path");
    MR_AUTO(mr_scope_free) char *copy = strdup(path);
    if (!copy)
        return mr_fail_memory(err, path);
    for (char *at = copy + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char end = *at;
        *at = '\0';
        MR_TRY(make_one(copy, err));
        if (end == '\0')
            return MR_OK;
        *at = end;
    }
}

static int remove_all(int dirfd, const char *path)
{
    if (unlinkat(dirfd, path, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        errno = saved;
        return -1;
    }
    int failed = 0;
    for (struct dirent *e; !failed && (e = readdir(dir));)
        if (!mr_is_dots(e->d_name))
            failed = remove_all(fd, e->d_name);
    int saved = errno;
    closedir(dir);
    errno = saved;
    return failed ? -1 : unlinkat(dirfd, path, AT_REMOVEDIR);
}

bool mr_is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

bool mr_dir_is(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool mr_file_lock(int fd, bool wait)
{
    int result;
    do
        result = flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
    while (result != 0 && errno == EINTR);
    return result == 0 || errno != EWOULDBLOCK;
}

bool mr_file_is_at(int fd, int dirfd, const char *name, bool follow)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && fstatat(dirfd, name, &there, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

mr_status mr_dir_check_mount(int dirfd, const char *path, mr_error *err)
{
    struct statx st;
    if (statx(dirfd, "", AT_EMPTY_PATH, 0, &st) == 0 &&
        (st.stx_attributes & st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return mr_fail(err, MR_MISUSE,
                       "%s: is a mount point and cannot be replaced; name a folder in it, for example %s/dataset", path,
                       path);
    return MR_OK;
}

mr_status mr_dir_remove(int dirfd, const char *path, mr_error *err)
{
    if (remove_all(dirfd, path) != 0)
        return mr_fail_errno(err, errno, "%s: cannot remove", path);
    return MR_OK;
}

mr_status mr_file_digest(int fd, uint64_t size, bool with_sha256, const char *name, mr_digest *out, mr_error *err)
{
    return mr_file_digest_part(fd, 0, size, with_sha256, name, out, err);
}

mr_status mr_file_digest_part(int fd, uint64_t from, uint64_t size, bool with_sha256, const char *name, mr_digest *out,
                              mr_error *err)
{
    enum { CHUNK = 256 * 1024 }; /* stays in the second-level cache between read and hash */
    mr_hasher *h;
    MR_AUTO(mr_scope_free) uint8_t *chunk = mr_alloc(1, CHUNK);
    if (!chunk)
        return mr_fail_memory(err, "hashing");
    MR_TRY(mr_hasher_begin(with_sha256, &h, err));
    for (uint64_t at = 0; at < size;) {
        size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        mr_status status = mr_file_pread(fd, chunk, n, from + at, name, err);
        if (status != MR_OK) {
            mr_hasher_end(h, NULL, NULL);
            return status;
        }
        mr_hasher_add(h, chunk, n);
        at += n;
    }
    return mr_hasher_end(h, out, err);
}
