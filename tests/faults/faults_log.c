/* faults_log.c - the log of what a program did to its disk.
 * Invariant: a record comes after those of all calls that ended before its own began; only raw system calls are made
 * here, so that nothing of this is wrapped, counted or failed itself. */
#undef _FILE_OFFSET_BITS
#include "tests/faults/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    int fd; /* 0: not looked for yet, -1: not wanted */
} state = {PTHREAD_MUTEX_INITIALIZER, 0};

bool log_wanted(void)
{
    if (state.fd == 0) {
        const char *path = getenv("MILLRACE_FAULT_LOG");
        long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
        /* Out of the way of those who count descriptors from below. */
        state.fd = fd < 0 ? -1 : (int)syscall(SYS_fcntl, (int)fd, F_DUPFD_CLOEXEC, 200);
        if (fd >= 0)
            syscall(SYS_close, (int)fd);
    }
    return state.fd > 0;
}

void log_begin(void)
{
    if (log_wanted())
        pthread_mutex_lock(&state.lock);
}

void log_end(void)
{
    if (log_wanted())
        pthread_mutex_unlock(&state.lock);
}

static void put(log_record r, const struct iovec *parts, int count)
{
    struct iovec all[1026] = {{&r, sizeof r}};
    for (int i = 0; i < count && i < 1025; i++)
        all[i + 1] = parts[i];
    /* One call, O_APPEND: records of several processes do not mix. */
    if (syscall(SYS_writev, state.fd, all, count + 1) < 0)
        abort();
}

/* "a/b/c" -> inode of "a/b", and "c" in `name`. */
static uint64_t folder_of(int dirfd, const char *path, char name[256])
{
    char dir[4096];
    struct stat st;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    size_t cut = len;
    while (cut && path[cut - 1] != '/')
        cut--;
    if (len - cut > 255 || cut >= sizeof dir)
        return 0;
    memcpy(name, path + cut, len - cut);
    name[len - cut] = '\0';
    memcpy(dir, cut ? path : ".", cut ? cut : 1);
    dir[cut ? cut : 1] = '\0';
    return syscall(SYS_newfstatat, dirfd, dir, &st, 0) == 0 ? (uint64_t)st.st_ino : 0;
}

static uint64_t inode(int fd)
{
    struct stat st;
    return syscall(SYS_fstat, fd, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

bool log_is_there(int dirfd, const char *path)
{
    struct stat st;
    return syscall(SYS_newfstatat, dirfd, path, &st, 0) == 0;
}

void log_opened(int dirfd, const char *path, int fd, int flags, bool was_there)
{
    int saved = errno;
    char name[256];
    bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (!was_there && (flags & O_CREAT) && !unnamed) {
        log_record r = {.kind = LOG_CREATE, .file = inode(fd), .dir = folder_of(dirfd, path, name)};
        r.len = (uint32_t)strlen(name) + 1;
        put(r, &(struct iovec){name, r.len}, 1);
    } else if ((flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY) {
        put((log_record){.kind = LOG_SIZE, .file = inode(fd)}, NULL, 0);
    }
    errno = saved;
}

void log_made(int dirfd, const char *path)
{
    int saved = errno;
    char name[256];
    struct stat st;
    if (syscall(SYS_newfstatat, dirfd, path, &st, 0) == 0) {
        log_record r = {.kind = LOG_MKDIR, .file = st.st_ino, .dir = folder_of(dirfd, path, name)};
        r.len = (uint32_t)strlen(name) + 1;
        put(r, &(struct iovec){name, r.len}, 1);
    }
    errno = saved;
}

int64_t log_position(int fd)
{
    int saved = errno;
    struct stat st;
    int64_t at = syscall(SYS_lseek, fd, 0, SEEK_CUR);
    long flags = syscall(SYS_fcntl, fd, F_GETFL);
    if (flags >= 0 && (flags & O_APPEND) && syscall(SYS_fstat, fd, &st) == 0)
        at = st.st_size;
    errno = saved;
    return at;
}

void log_written(int fd, int64_t at, const struct iovec *parts, int count, ssize_t done)
{
    int saved = errno;
    struct stat st;
    if (at >= 0 && done > 0 && count <= 1024 && syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode)) {
        struct iovec took[1024];
        size_t left = (size_t)done;
        int n = 0;
        for (; n < count && left; n++) {
            took[n] = parts[n];
            if (took[n].iov_len > left)
                took[n].iov_len = left;
            left -= took[n].iov_len;
        }
        put((log_record){.kind = LOG_WRITE, .len = (uint32_t)done, .file = st.st_ino, .at = (uint64_t)at}, took, n);
    }
    errno = saved;
}

void log_sized(int fd, int64_t size)
{
    int saved = errno;
    put((log_record){.kind = LOG_SIZE, .file = inode(fd), .at = (uint64_t)size}, NULL, 0);
    errno = saved;
}

void log_synced(int fd)
{
    int saved = errno;
    put((log_record){.kind = LOG_SYNC, .file = fd < 0 ? 0 : inode(fd)}, NULL, 0);
    errno = saved;
}

void log_renamed(int old_dirfd, const char *old, int new_dirfd, const char *new, bool exchange)
{
    int saved = errno;
    char a[256] = "", b[256] = "";
    log_record r = {.kind = exchange ? LOG_EXCHANGE : LOG_RENAME, .dir = folder_of(old_dirfd, old, a)};
    r.other_dir = folder_of(new_dirfd, new, b);
    struct iovec parts[] = {{a, strlen(a) + 1}, {b, strlen(b) + 1}};
    r.len = (uint32_t)(parts[0].iov_len + parts[1].iov_len);
    put(r, parts, 2);
    errno = saved;
}

void log_removed(int dirfd, const char *path)
{
    int saved = errno;
    char name[256] = "";
    log_record r = {.kind = LOG_REMOVE, .dir = folder_of(dirfd, path, name)};
    r.len = (uint32_t)strlen(name) + 1;
    put(r, &(struct iovec){name, r.len}, 1);
    errno = saved;
}
