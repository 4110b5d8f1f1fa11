/* output.c - a whole file under its name, or bytes straight into the pipe or device that the user named.
 * Invariant: the temporary file, NAME.tmp in a dataset and PATH.millrace.tmp beside a path that the user named, belongs
 * to the writer that holds its lock: no writer renames or removes another's, and an unlocked one is left over from a
 * writer that was killed. */
#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/path.h"
#include "base/scope.h"
#include "base/files/temp.h"

enum { TRIES = 10000 }; /* to create a file that others keep removing */

mr_status mr_file_fail_create(mr_error *err, int errnum, const char *path)
{
    if (errnum == ENOENT || errnum == ENOTDIR)
        return mr_fail(err, MR_MISUSE, "%s: its folder does not exist", path);
    return mr_fail_errno(err, errnum, "%s: cannot create", path);
}

mr_status mr_output_check(const char *path, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL, *name = NULL;
    if (access(path, F_OK) == 0)
        return MR_OK;
    MR_TRY(mr_path_split(path, &dir, &name, err));
    return access(dir, W_OK) == 0 ? MR_OK : mr_file_fail_create(err, errno, path);
}

/* ---- the temporary file ------------------------------------------------------------------------------------------ */

/* Another user's file may only be readable, and locked all the same. */
static int open_to_lock(int dirfd, const char *name)
{
    int how = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, fd = openat(dirfd, name, O_WRONLY | how);
    return fd < 0 && errno == EACCES ? openat(dirfd, name, O_RDONLY | how) : fd;
}

/* Removes what is at `name`, unless it is being written; with `wait`, returns when its writer is done.  0, or -1: errno
 * says why. */
static int clear_away(int dirfd, const char *name, bool wait)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -1;
    int fd = S_ISREG(st.st_mode) ? open_to_lock(dirfd, name) : -1, result = 0;
    if (S_ISREG(st.st_mode) && fd < 0)
        return errno == ENOENT ? 0 : -1;
    if (fd < 0 || mr_temp_claim(fd, dirfd, name, wait))
        result = unlinkat(dirfd, name, 0);
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return result != 0 && errno != ENOENT ? -1 : 0;
}

/* A new file of this name, locked; -1: errno says why. */
static int make_temp(int dirfd, const char *name)
{
    for (int left = TRIES; left; left--) {
        int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            if (mr_temp_claim(fd, dirfd, name, true))
                return fd;
            close(fd); /* another writer took it for left over before it was locked */
        } else if (errno != EEXIST || clear_away(dirfd, name, true) != 0) {
            return -1;
        }
    }
    errno = ESTALE; /* a file system on which no file stays the same */
    return -1;
}

/* ---- where a user's path leads ----------------------------------------------------------------------------------- */

/* The number in "/dev/fd/3", "/proc/self/fd/3" and the like; -1 for any other path.  The text of such a link is not a
 * path: it may be "pipe:[77]", and reopening a file by name would lose the offset that it was handed over with. */
static mr_status own_descriptor(const char *path, int *number, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL, *name = NULL, *ours = realpath("/proc/self/fd", NULL), *real = NULL;
    char *end;
    *number = -1;
    if (!ours && errno != ENOENT)
        return mr_fail_errno(err, errno, "%s", path);
    MR_TRY(mr_path_split(path, &dir, &name, err));
    real = realpath(dir, NULL);
    if (!real)
        return mr_fail_errno(err, errno, "%s", path);
    long n = ours && strcmp(real, ours) == 0 ? strtol(name, &end, 10) : -1;
    if (n >= 0 && n <= INT_MAX && end > name && !*end)
        *number = (int)n;
    return MR_OK;
}

/* Follows the link at *path by one step, unless it is one of this process's descriptors: then *direct is a copy. */
static mr_status follow(char **path, int *direct, mr_error *err)
{
    int number;
    MR_TRY(own_descriptor(*path, &number, err));
    if (number < 0)
        return mr_path_follow(path, err);
    *direct = fcntl(number, F_DUPFD_CLOEXEC, 0);
    return *direct < 0 ? mr_file_fail_create(err, errno, *path) : MR_OK;
}

/* *direct: opened for writing. */
static mr_status open_special(const char *path, mode_t mode, int *direct, mr_error *err)
{
    if (S_ISDIR(mode) || S_ISBLK(mode))
        return mr_fail(err, MR_MISUSE, "%s: is a %s; name a file", path, S_ISDIR(mode) ? "directory" : "disk");
    /* O_NONBLOCK: a FIFO without a reader is an error, and not waited for. */
    *direct = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*direct < 0 && errno == ENXIO && S_ISFIFO(mode))
        return mr_fail(err, MR_MISUSE, "%s: is a FIFO without a reader", path);
    if (*direct < 0)
        return mr_file_fail_create(err, errno, path);
    return fcntl(*direct, F_SETFL, 0) == 0 ? MR_OK : mr_fail_errno(err, errno, "%s", path);
}

/* *direct: a descriptor for writing to an existing path that is not a regular file; -1: the file is to be created at
 * *path, whose links are resolved. */
static mr_status resolve(char **path, int *direct, mr_error *err)
{
    struct stat st;
    bool exists;
    for (int links = 0; (exists = lstat(*path, &st) == 0) && S_ISLNK(st.st_mode); links++) {
        if (links == MR_PATH_LINKS)
            return mr_fail_errno(err, ELOOP, "%s", *path);
        MR_TRY(follow(path, direct, err));
        if (*direct >= 0)
            return MR_OK;
    }
    if (!exists || S_ISREG(st.st_mode))
        return MR_OK; /* if lstat() failed otherwise, creating the temporary file will say why */
    return open_special(*path, st.st_mode, direct, err);
}

/* ---- one output -------------------------------------------------------------------------------------------------- */

/* In a dataset all names are millrace's; in a user's folder NAME.tmp may be the user's own.  A name too long for the
 * suffix loses its end: files that share the rest take turns. */
static char *temp_name(int dirfd, const char *path)
{
    static const char ours[] = ".millrace.tmp";
    char *temp;
    if (dirfd != AT_FDCWD)
        return asprintf(&temp, "%s.tmp", path) < 0 ? NULL : temp;
    const char *slash = strrchr(path, '/');
    size_t len = strlen(slash ? slash + 1 : path), max = NAME_MAX - strlen(ours);
    size_t cut = len > max && len <= NAME_MAX ? len - max : 0;
    if (cut && strcmp(path + strlen(path) - strlen(ours), ours) == 0)
        cut++; /* otherwise it would be its own temporary file */
    return asprintf(&temp, "%.*s%s", (int)(strlen(path) - cut), path, ours) < 0 ? NULL : temp;
}

/* errno says why; an existing file of the temporary name is named. */
static mr_status fail_temp(const mr_output *o, mr_error *err)
{
    struct stat st;
    int failed = errno;
    if (o->dirfd != AT_FDCWD)
        return mr_fail_errno(err, failed, "%s", o->temp);
    bool exists = lstat(o->temp, &st) == 0;
    return mr_file_fail_create(err, failed, exists ? o->temp : o->path);
}

static void release(mr_output *o)
{
    mr_scope_close(&o->fd);
    free(o->path);
    free(o->temp);
    *o = (mr_output){.fd = -1};
}

static mr_status open_output(mr_output *o, const char *path, mr_error *err)
{
    bool of_user = o->dirfd == AT_FDCWD;
    if (!o->path)
        return mr_fail_memory(err, path);
    if (of_user && !*path)
        return mr_fail(err, MR_MISUSE, "\"\": is not a valid file name");
    if (of_user)
        MR_TRY(resolve(&o->path, &o->fd, err));
    if (o->fd >= 0)
        return MR_OK;
    o->temp = temp_name(o->dirfd, o->path);
    if (!o->temp)
        return mr_fail_memory(err, path);
    o->fd = make_temp(o->dirfd, o->temp);
    return o->fd < 0 ? fail_temp(o, err) : MR_OK;
}

mr_status mr_output_open(int dirfd, const char *path, mr_output *o, mr_error *err)
{
    *o = (mr_output){.fd = -1, .dirfd = dirfd, .path = strdup(path)};
    mr_status status = open_output(o, path, err);
    if (status != MR_OK)
        release(o);
    return status;
}

static mr_status sync_and_rename(const mr_output *o, bool ours, mr_error *err)
{
    /* Pipes and devices have nothing to sync and return EINVAL. */
    if (fsync(o->fd) != 0 && (o->temp || errno != EINVAL))
        return mr_fail_errno(err, errno, "%s: cannot sync", o->temp ? o->temp : o->path);
    if (!o->temp)
        return MR_OK;
    if (!ours)
        return mr_fail(err, MR_SYSTEM, "%s: was removed or replaced while being written; run the command again",
                       o->temp);
    if (renameat(o->dirfd, o->temp, o->dirfd, o->path) != 0)
        return mr_fail_errno(err, errno, "%s: cannot rename to %s", o->temp, o->path);
    return MR_OK;
}

mr_status mr_output_close(mr_output *o, mr_status status, mr_error *err)
{
    bool ours = o->temp && mr_file_is_at(o->fd, o->dirfd, o->temp, false);
    if (status == MR_OK)
        status = sync_and_rename(o, ours, err);
    if (ours && status != MR_OK)
        unlinkat(o->dirfd, o->temp, 0);
    else if (ours)
        status = mr_dir_sync_parent(o->dirfd, o->path, err);
    if (o->fd >= 0 && close(o->fd) != 0 && status == MR_OK) /* last: it gives up the lock */
        status = mr_fail_errno(err, errno, "%s: cannot close", o->temp ? o->temp : o->path);
    o->fd = -1;
    release(o);
    return status;
}

mr_status mr_file_publish(int dirfd, const char *path, const void *bytes, size_t len, mr_error *err)
{
    mr_output o;
    MR_TRY(mr_output_open(dirfd, path, &o, err));
    return mr_output_close(&o, mr_file_write(o.fd, bytes, len, o.temp ? o.temp : o.path, err), err);
}

void mr_file_forget(int dirfd, const char *path)
{
    MR_AUTO(mr_scope_free) char *temp = temp_name(dirfd, path);
    if (temp)
        clear_away(dirfd, temp, false);
}
