/* output.c - a file written whole, or written to what the user put in its place.
 * Invariant: the temporary file, NAME.tmp in a dataset and PATH.millrace.tmp where a user names PATH, belongs to the
 * writer that holds the lock of the file there.  So a writer never renames or removes what another one is at work on,
 * and a file that nobody has locked was left by one that was killed. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/scope.h"

enum { TRIES = 10000 }; /* to make a file that others sweep away */

mr_status mr_file_fail_create(mr_error *err, int errnum, const char *path)
{
    if (errnum == ENOENT || errnum == ENOTDIR)
        return mr_fail(err, MR_MISUSE, "%s: its folder is not there", path);
    return mr_fail_errno(err, errnum, "%s: cannot create", path);
}

/* ---- the temporary file ------------------------------------------------------------------------------------------ */

/* Removes what an earlier run or a stranger left there.  A file that is being written stays: with `wait` this returns
 * when its writer is done.  0 or -1, errno says why. */
static int clear_away(int dirfd, const char *name, bool wait)
{
    struct stat st;
    int fd = -1, result = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW);
    if (result == 0 && S_ISREG(st.st_mode)) {
        int how = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
        fd = openat(dirfd, name, O_WRONLY | how);
        if (fd < 0 && errno == EACCES) /* another user's, which may be locked all the same */
            fd = openat(dirfd, name, O_RDONLY | how);
        result = fd < 0 ? -1 : 0;
    }
    if (result == 0 && (fd < 0 || (mr_file_lock(fd, wait) && mr_file_is_at(fd, dirfd, name, false))))
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
            mr_file_lock(fd, true);
            if (mr_file_is_at(fd, dirfd, name, false))
                return fd;
            close(fd); /* before it was locked another writer took it for left behind */
        } else if (errno != EEXIST || clear_away(dirfd, name, true) != 0) {
            return -1;
        }
    }
    errno = ESTALE; /* a file system whose files are never the same */
    return -1;
}

/* ---- where a user's path leads ----------------------------------------------------------------------------------- */

/* The number of "/dev/fd/3", "/proc/self/fd/3" and the like, -1 of all else.  Such a link's text is not a path: it may
 * say "pipe:[77]", and a file's name, opened again, would lose the place up to which others have written. */
static mr_status own_descriptor(const char *path, int *number, mr_error *err)
{
    char *dir = NULL, *name = NULL, *end;
    *number = -1;
    mr_status status = mr_path_split(path, &dir, &name, err);
    if (status != MR_OK)
        return status;
    char *ours = realpath("/proc/self/fd", NULL), *real = ours || errno == ENOENT ? realpath(dir, NULL) : NULL;
    if (!real)
        status = mr_fail_errno(err, errno, "%s", path);
    long n = real && ours && strcmp(real, ours) == 0 ? strtol(name, &end, 10) : -1;
    if (n >= 0 && n <= INT_MAX && end > name && !*end)
        *number = (int)n;
    free(real);
    free(ours);
    free(dir);
    free(name);
    return status;
}

/* *direct: a descriptor of what is there and is not a regular file; -1: a file is to be put at *path, with links
 * resolved. */
static mr_status find_end(char **path, int *direct, mr_error *err)
{
    struct stat st;
    mr_status status = MR_OK;
    int number, links = 0;
    bool there;
    while ((there = lstat(*path, &st) == 0) && S_ISLNK(st.st_mode) && status == MR_OK) {
        status = own_descriptor(*path, &number, err);
        if (status == MR_OK && number >= 0) {
            *direct = fcntl(number, F_DUPFD_CLOEXEC, 0);
            return *direct < 0 ? mr_file_fail_create(err, errno, *path) : MR_OK;
        }
        if (status == MR_OK && ++links > MR_PATH_LINKS)
            status = mr_fail_errno(err, ELOOP, "%s", *path);
        if (status == MR_OK)
            status = mr_path_follow(path, err);
    }
    if (status != MR_OK || !there || S_ISREG(st.st_mode))
        return status; /* if it is there but cannot be looked at, making its neighbour says why */
    if (S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
        return mr_fail(err, MR_MISUSE, "%s: is a %s; name a file", *path, S_ISDIR(st.st_mode) ? "directory" : "disk");
    /* O_NONBLOCK: a FIFO that nobody reads is refused, not waited for. */
    int fd = open(*path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENXIO && S_ISFIFO(st.st_mode))
        return mr_fail(err, MR_MISUSE, "%s: is a FIFO that nobody reads", *path);
    if (fd < 0)
        return mr_file_fail_create(err, errno, *path);
    *direct = fd;
    if (fcntl(fd, F_SETFL, 0) != 0)
        return mr_fail_errno(err, errno, "%s", *path);
    return MR_OK;
}

/* ---- one output -------------------------------------------------------------------------------------------------- */

/* In a dataset all names are ours; in a user's folder NAME.tmp may be his own.  Of a name that has no room for more the
 * end is left out: files that share the rest take turns. */
static char *temp_of(int dirfd, const char *path)
{
    static const char ours[] = ".millrace.tmp";
    char *temp;
    const char *slash = strrchr(path, '/');
    size_t len = strlen(slash ? slash + 1 : path), most = NAME_MAX - strlen(ours);
    size_t out = len > most && len <= NAME_MAX ? len - most : 0;
    if (out && strcmp(path + strlen(path) - strlen(ours), ours) == 0)
        out++; /* else it were its own */
    if (dirfd == AT_FDCWD)
        return asprintf(&temp, "%.*s%s", (int)(strlen(path) - out), path, ours) < 0 ? NULL : temp;
    return asprintf(&temp, "%s.tmp", path) < 0 ? NULL : temp;
}

/* errno says why; a file that is in the way is named. */
static mr_status cannot_make(const mr_output *o, mr_error *err)
{
    struct stat st;
    int failed = errno;
    if (o->dirfd != AT_FDCWD)
        return mr_fail_errno(err, failed, "%s", o->temp);
    bool in_the_way = lstat(o->temp, &st) == 0;
    return mr_file_fail_create(err, failed, in_the_way ? o->temp : o->path);
}

static void release(mr_output *o)
{
    if (o->fd >= 0)
        close(o->fd);
    free(o->path);
    free(o->temp);
    *o = (mr_output){.fd = -1};
}

mr_status mr_output_open(int dirfd, const char *path, mr_output *o, mr_error *err)
{
    mr_status status = MR_OK;
    bool of_user = dirfd == AT_FDCWD;
    *o = (mr_output){.fd = -1, .dirfd = dirfd, .path = strdup(path)};
    if (!o->path)
        status = mr_fail_memory(err, path);
    else if (of_user && !*path)
        status = mr_fail(err, MR_MISUSE, "\"\": is not a valid file name");
    if (status == MR_OK && of_user)
        status = find_end(&o->path, &o->fd, err);
    if (status == MR_OK && o->fd < 0) {
        o->temp = temp_of(dirfd, o->path);
        if (!o->temp)
            status = mr_fail_memory(err, path);
        else if ((o->fd = make_temp(dirfd, o->temp)) < 0)
            status = cannot_make(o, err);
    }
    if (status != MR_OK)
        release(o);
    return status;
}

mr_status mr_output_close(mr_output *o, mr_status status, mr_error *err)
{
    const char *name = o->temp ? o->temp : o->path;
    /* Pipes and devices have nothing to sync and say EINVAL. */
    if (status == MR_OK && fsync(o->fd) != 0 && (o->temp || errno != EINVAL))
        status = mr_fail_errno(err, errno, "%s: cannot sync", name);
    bool ours = o->temp && mr_file_is_at(o->fd, o->dirfd, o->temp, false);
    if (o->temp && status == MR_OK && !ours)
        status = mr_fail(err, MR_SYSTEM, "%s: somebody took this file away while it was written; run the command again",
                         o->temp);
    if (o->temp && status == MR_OK && renameat(o->dirfd, o->temp, o->dirfd, o->path) != 0)
        status = mr_fail_errno(err, errno, "%s: cannot rename to %s", o->temp, o->path);
    if (ours && status != MR_OK)
        unlinkat(o->dirfd, o->temp, 0);
    else if (ours)
        status = mr_dir_sync_parent(o->dirfd, o->path, err);
    if (o->fd >= 0 && close(o->fd) != 0 && status == MR_OK) /* last, for the lock's sake */
        status = mr_fail_errno(err, errno, "%s: cannot close", name);
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
    char *temp = temp_of(dirfd, path);
    if (temp)
        clear_away(dirfd, temp, false);
    free(temp);
}
