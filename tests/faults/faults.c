/* faults.c - the wrappers themselves: count, then fail, kill, or do the real thing and write it down.
 * Invariant: without a word in the environment every wrapper is the call that it wraps. */
#undef _FILE_OFFSET_BITS /* open and open64 are two symbols, and both are wrapped */
#undef _FORTIFY_SOURCE
#include "tests/faults/faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const words[] = {
#define X(word) #word,
    FAULT_CLASSES(X)
#undef X
};

static const struct {
    const char *word;
    int number;
} errors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}, {"EACCES", EACCES},
              {"EAGAIN", EAGAIN}, {"EDQUOT", EDQUOT}, {"EFBIG", EFBIG},   {"EROFS", EROFS},   {"EINTR", EINTR}};

enum { HOW_SHORT = -1, HOW_KILL = -2 };

static struct {
    int class, how; /* class: -1 none */
    unsigned long first;
    bool lasting, trace;
    atomic_ulong calls[FAULT_COUNT];
    atomic_bool ready, fired;
} plan = {.class = -1};

static void say(const char *text)
{
    const char *path = getenv("MILLRACE_FAULT_REPORT");
    long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd < 0)
        return;
    if (syscall(SYS_write, (int)fd, text, strlen(text)) < 0)
        abort();
    syscall(SYS_close, (int)fd);
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("MILLRACE_FAULT"), *colon = text ? strchr(text, ':') : NULL;
    for (int i = 0; colon && i < FAULT_COUNT; i++)
        if (strlen(words[i]) == (size_t)(colon - text) && memcmp(words[i], text, (size_t)(colon - text)) == 0)
            plan.class = i;
    if (colon && plan.class >= 0) {
        char *rest;
        plan.first = strtoul(colon + 1, &rest, 10);
        plan.lasting = *rest == '+';
        rest += plan.lasting;
        rest += *rest == ':';
        plan.how = strcmp(rest, "kill") == 0 ? HOW_KILL : strcmp(rest, "short") == 0 ? HOW_SHORT : 0;
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
            if (strcmp(errors[i].word, rest) == 0)
                plan.how = errors[i].number;
    }
    if (text && (!colon || plan.class < 0 || !plan.first || !plan.how)) {
        fprintf(stderr, "MILLRACE_FAULT=%s: expected CLASS:N[+]:HOW\n", text);
        _exit(99);
    }
    plan.trace = getenv("MILLRACE_FAULT_TRACE") != NULL;
#ifdef FAULTS_PRELOAD
    unsetenv("LD_PRELOAD"); /* a program that this one starts is not ours */
#endif
    if (text)
        backtrace((void *[1]){0}, 1); /* loads what it needs while calls still work */
    log_wanted();
    atomic_store(&plan.ready, true);
}

__attribute__((destructor)) static void end(void)
{
    char text[64 * FAULT_COUNT] = "";
    size_t n = 0;
    for (int i = 0; i < FAULT_COUNT; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %lu\n", words[i], atomic_load(&plan.calls[i]));
    say(text);
}

/* "fired libarchive.so.13": whose call it was, libc left aside.  Without allocations: they may be what fails. */
static void say_who(void)
{
    void *frames[16];
    char text[300] = "fired ";
    Dl_info me, at;
    int count = backtrace(frames, 16);
    if (!dladdr((void *)(uintptr_t)say_who, &me))
        me.dli_fname = "";
    for (int i = 0; i < count; i++) {
        const char *slash = dladdr(frames[i], &at) && at.dli_fname ? strrchr(at.dli_fname, '/') : NULL;
        if (!slash || strncmp(slash, "/libc.so", 8) == 0 || (strcmp(at.dli_fname, me.dli_fname) == 0 && i < 4))
            continue;
        strncat(text, slash + 1, sizeof text - 10);
        break;
    }
    strcat(text, "\n");
    say(text);
}

static bool hit(fault_class class)
{
    unsigned long n = atomic_fetch_add(&plan.calls[class], 1) + 1;
    if (plan.class != (int)class || !(n == plan.first || (plan.lasting && n > plan.first)))
        return false;
    if (!atomic_exchange(&plan.fired, true)) {
        say_who();
        if (plan.trace) {
            void *frames[24];
            backtrace_symbols_fd(frames, backtrace(frames, 24), STDERR_FILENO);
        }
    }
    if (plan.how == HOW_KILL)
        kill(getpid(), SIGKILL);
    return true;
}

/* Zero: do it.  Else what to set errno to; HOW_SHORT only of writes. */
static int fault(fault_class class)
{
    if (!atomic_load(&plan.ready))
        return 0;
    if (class >= FAULT_write && class <= FAULT_remove && hit(FAULT_disk))
        return plan.how;
    return hit(class) ? plan.how : 0;
}

/* clang-format takes these macros for types and statements, and would nest what follows ever deeper. */
/* clang-format off */
#ifdef FAULTS_PRELOAD
#define WRAPPED(name) name
#define DECLARE(type, name, ...)
#define REAL(name) ((__typeof__(&name))find(#name, (void *_Atomic *)&real_##name))
#define KEEP(name) static void *_Atomic real_##name;
static void *find(const char *name, void *_Atomic *kept)
{
    void *found = atomic_load(kept);
    if (!found)
        atomic_store(kept, found = dlsym(RTLD_NEXT, name));
    return found;
}
#else
#define WRAPPED(name) __wrap_##name
#define DECLARE(type, name, ...) type __real_##name(__VA_ARGS__); type __wrap_##name(__VA_ARGS__);
#define REAL(name) __real_##name
#define KEEP(name)
#endif

#define BEGIN(class, failed) \
    do { \
        int how_ = fault(FAULT_##class); \
        if (how_) { \
            errno = how_; \
            return failed; \
        } \
    } while (0)

/* A call that only fails or not:  WRAP(class, type, what failing returns, name, (parameters), (arguments)) */
#define UNPACK(...) __VA_ARGS__
#define WRAP(class, type, failed, name, params, args) \
    KEEP(name) DECLARE(type, name, UNPACK params) \
    type WRAPPED(name) params { BEGIN(class, failed); return REAL(name) args; }

WRAP(memory, void *, NULL, malloc, (size_t size), (size))
WRAP(memory, void *, NULL, realloc, (void *old, size_t size), (old, size))
WRAP(memory, void *, NULL, aligned_alloc, (size_t align, size_t size), (align, size))
WRAP(map, void *, MAP_FAILED, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at),
     (p, n, prot, flags, fd, at))
WRAP(map, void *, MAP_FAILED, mmap64, (void *p, size_t n, int prot, int flags, int fd, off64_t at),
     (p, n, prot, flags, fd, at))
WRAP(read, ssize_t, -1, read, (int fd, void *bytes, size_t n), (fd, bytes, n))
WRAP(read, ssize_t, -1, pread, (int fd, void *bytes, size_t n, off_t at), (fd, bytes, n, at))
WRAP(read, ssize_t, -1, pread64, (int fd, void *bytes, size_t n, off64_t at), (fd, bytes, n, at))
WRAP(open, DIR *, NULL, opendir, (const char *path), (path))
WRAP(open, DIR *, NULL, fdopendir, (int fd), (fd))
WRAP(open, int, -1, memfd_create, (const char *name, unsigned flags), (name, flags))
WRAP(open, FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
WRAP(open, FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))
WRAP(open, int, -1, pipe2, (int ends[2], int flags), (ends, flags))
WRAP(open, int, -1, dup, (int fd), (fd))
WRAP(open, char *, NULL, realpath, (const char *path, char *out), (path, out))
#ifndef FAULTS_PRELOAD              /* within the library these call malloc, which is seen */
WRAP(memory, char *, NULL, strdup, (const char *text), (text))
WRAP(memory, char *, NULL, strndup, (const char *text, size_t n), (text, n))
#endif

/* dlsym() itself asks for zeroed memory before it has said where calloc is. */
KEEP(calloc)
DECLARE(void *, calloc, size_t count, size_t size)
void *WRAPPED(calloc)(size_t count, size_t size)
{
    BEGIN(memory, NULL);
#ifdef FAULTS_PRELOAD
    static _Thread_local bool looking;
    if (!atomic_load(&real_calloc) && looking)
        return NULL;                /* glibc goes on without it */
    looking = true;
#endif
    return REAL(calloc)(count, size);
}

KEEP(pthread_create)
DECLARE(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
int WRAPPED(pthread_create)(pthread_t *t, const pthread_attr_t *how, void *(*run)(void *), void *with)
{
    int failed = fault(FAULT_thread);
    return failed ? failed : REAL(pthread_create)(t, how, run, with);
}

KEEP(close)
DECLARE(int, close, int)
int WRAPPED(close)(int fd)
{
    int how = fault(FAULT_close), result = REAL(close)(fd);
    if (how)
        errno = how;                /* closed all the same, as in Linux */
    return how ? -1 : result;
}

/* ---- changes of the disk ---------------------------------------------------------------------------------------- */

static bool makes(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

#define OPEN(name, dirfd, ...) { \
    mode_t mode = 0; \
    if (makes(flags)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
    BEGIN(open, -1); \
    log_begin(); \
    bool there = log_wanted() && log_is_there(dirfd, path); \
    int fd = REAL(name)(__VA_ARGS__); \
    if (log_wanted() && fd >= 0) \
        log_opened(dirfd, path, fd, flags, there); \
    log_end(); \
    return fd; \
}

KEEP(open) DECLARE(int, open, const char *, int, ...)
int WRAPPED(open)(const char *path, int flags, ...) OPEN(open, AT_FDCWD, path, flags, mode)
KEEP(open64) DECLARE(int, open64, const char *, int, ...)
int WRAPPED(open64)(const char *path, int flags, ...) OPEN(open64, AT_FDCWD, path, flags, mode)
KEEP(openat) DECLARE(int, openat, int, const char *, int, ...)
int WRAPPED(openat)(int dirfd, const char *path, int flags, ...) OPEN(openat, dirfd, dirfd, path, flags, mode)
KEEP(openat64) DECLARE(int, openat64, int, const char *, int, ...)
int WRAPPED(openat64)(int dirfd, const char *path, int flags, ...) OPEN(openat64, dirfd, dirfd, path, flags, mode)

KEEP(writev) DECLARE(ssize_t, writev, int, const struct iovec *, int)
KEEP(pwritev) DECLARE(ssize_t, pwritev, int, const struct iovec *, int, off_t)
KEEP(write) DECLARE(ssize_t, write, int, const void *, size_t)
KEEP(pwrite) DECLARE(ssize_t, pwrite, int, const void *, size_t, off_t)
DECLARE(ssize_t, pwrite64, int, const void *, size_t, off64_t)

/* `at` < 0: where the descriptor stands. */
static ssize_t written(int fd, const struct iovec *parts, int count, off_t at)
{
    int how = fault(FAULT_write);
    if (how > 0) {
        errno = how;
        return -1;
    }
    log_begin();
    struct iovec half = {parts->iov_base, parts->iov_len > 1 ? parts->iov_len / 2 : parts->iov_len};
    if (how == HOW_SHORT) {
        parts = &half;
        count = 1;
    }
    int64_t where = !log_wanted() ? -1 : at < 0 ? log_position(fd) : at;
    ssize_t done = at >= 0      ? count == 1 ? REAL(pwrite)(fd, parts->iov_base, parts->iov_len, at)
                                             : REAL(pwritev)(fd, parts, count, at)
                   : count == 1 ? REAL(write)(fd, parts->iov_base, parts->iov_len)
                                : REAL(writev)(fd, parts, count);
    if (log_wanted())
        log_written(fd, where, parts, count, done);
    log_end();
    return done;
}

ssize_t WRAPPED(write)(int fd, const void *bytes, size_t n)
{
    return written(fd, &(struct iovec){(void *)(uintptr_t)bytes, n}, 1, -1);
}

ssize_t WRAPPED(writev)(int fd, const struct iovec *parts, int count)
{
    return count > 0 ? written(fd, parts, count, -1) : REAL(writev)(fd, parts, count);
}

ssize_t WRAPPED(pwritev)(int fd, const struct iovec *parts, int count, off_t at)
{
    return count > 0 ? written(fd, parts, count, at) : REAL(pwritev)(fd, parts, count, at);
}

ssize_t WRAPPED(pwrite)(int fd, const void *bytes, size_t n, off_t at)
{
    return written(fd, &(struct iovec){(void *)(uintptr_t)bytes, n}, 1, at);
}

ssize_t WRAPPED(pwrite64)(int fd, const void *bytes, size_t n, off64_t at)
{
    return WRAPPED(pwrite)(fd, bytes, n, at);
}

/* The call and its record are one act:  WRAP_LOGGED(class, name, (parameters), (arguments), record) */
#define WRAP_LOGGED(class, name, params, args, record) \
    KEEP(name) DECLARE(int, name, UNPACK params) \
    int WRAPPED(name) params { \
        BEGIN(class, -1); \
        log_begin(); \
        int result = REAL(name) args; \
        if (log_wanted() && result == 0) \
            record; \
        log_end(); \
        return result; \
    }

WRAP_LOGGED(size, ftruncate, (int fd, off_t n), (fd, n), log_sized(fd, n))
WRAP_LOGGED(size, ftruncate64, (int fd, off64_t n), (fd, n), log_sized(fd, n))
WRAP_LOGGED(sync, fsync, (int fd), (fd), log_synced(fd))
WRAP_LOGGED(sync, fdatasync, (int fd), (fd), log_synced(fd))
WRAP_LOGGED(sync, syncfs, (int fd), (fd), log_synced(-1))
WRAP_LOGGED(rename, rename, (const char *a, const char *b), (a, b), log_renamed(AT_FDCWD, a, AT_FDCWD, b, false))
WRAP_LOGGED(rename, renameat, (int x, const char *a, int y, const char *b), (x, a, y, b),
            log_renamed(x, a, y, b, false))
WRAP_LOGGED(rename, renameat2, (int x, const char *a, int y, const char *b, unsigned how), (x, a, y, b, how),
            log_renamed(x, a, y, b, (how & RENAME_EXCHANGE) != 0))
WRAP_LOGGED(make, mkdir, (const char *path, mode_t mode), (path, mode), log_made(AT_FDCWD, path))
WRAP_LOGGED(make, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode), log_made(dir, path))
WRAP_LOGGED(remove, unlink, (const char *path), (path), log_removed(AT_FDCWD, path))
WRAP_LOGGED(remove, unlinkat, (int dir, const char *path, int flags), (dir, path, flags), log_removed(dir, path))
WRAP_LOGGED(remove, rmdir, (const char *path), (path), log_removed(AT_FDCWD, path))

KEEP(mkstemp64) DECLARE(int, mkstemp64, char *)
int WRAPPED(mkstemp64)(char *path)
{
    BEGIN(open, -1);
    log_begin();
    int fd = REAL(mkstemp64)(path);
    if (log_wanted() && fd >= 0)
        log_opened(AT_FDCWD, path, fd, O_CREAT, false);
    log_end();
    return fd;
}
