/* faults.h - calls of the C library that fail, kill or are written down, by the word of the environment.
 *
 *      MILLRACE_FAULT=CLASS:N:HOW      the N-th call of a class; N+ : that one and all that follow
 *          HOW   the name of an errno (ENOSPC); short: half of a write is done; kill: the process is gone before it
 *      MILLRACE_FAULT_REPORT=FILE      "fired" when it came to that; at the end "CLASS CALLS" of every class
 *      MILLRACE_FAULT_TRACE=1          where it was, on standard error
 *      MILLRACE_FAULT_LOG=FILE         every change of the disk in its order, with the bytes (see below)
 *
 * Two builds of the same source: linked into `millrace_faults` by --wrap, it sees the product's own calls, with any
 * sanitizer; as millrace_faults.so under LD_PRELOAD, it sees those of the libraries too (liblmdb, libarchive ...). */
#ifndef MR_FAULTS_H
#define MR_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* "disk" counts every call of write, size, sync, rename, make and remove, and fails none of its own. */
#define FAULT_CLASSES(X)                                                                                               \
    X(memory) X(map) X(open) X(read) X(write) X(size) X(sync) X(rename) X(make) X(remove) X(close) X(thread) X(disk)

typedef enum fault_class {
#define X(word) FAULT_##word,
    FAULT_CLASSES(X)
#undef X
        FAULT_COUNT
} fault_class;

/* The log: records, each with its bytes after it.  A file is its inode, for the program may rename it.
 * create: `name` in folder `dir`.  rename: names and folders old and new, "old\0new\0".  exchange: the same, swapped.
 * sync: of file 0: of everything.  write: `at`, the bytes.  size: `at` is the new one.  ack: the driver's own word,
 * "exit 0 was seen". */
typedef enum log_kind {
    LOG_CREATE = 1,
    LOG_MKDIR,
    LOG_WRITE,
    LOG_SIZE,
    LOG_SYNC,
    LOG_RENAME,
    LOG_EXCHANGE,
    LOG_REMOVE,
    LOG_ACK
} log_kind;

typedef struct log_record {
    uint32_t kind, len;      /* of the bytes after it */
    uint64_t file;           /* inode; of rename and remove: 0 */
    uint64_t dir, other_dir; /* inodes of folders */
    uint64_t at;
} log_record;

/* faults_log.c; every call keeps errno.  log_begin() takes the lock that makes call and record one act, log_end()
 * gives it back; both are nothing without MILLRACE_FAULT_LOG. */
void log_begin(void);
void log_end(void);
bool log_wanted(void);
bool log_is_there(int dirfd, const char *path);
void log_opened(int dirfd, const char *path, int fd, int flags, bool was_there);
void log_made(int dirfd, const char *path);
void log_written(int fd, int64_t at, const struct iovec *parts, int count, ssize_t done);
void log_sized(int fd, int64_t size);
void log_synced(int fd); /* -1: everything */
void log_renamed(int old_dirfd, const char *old, int new_dirfd, const char *new, bool exchange);
void log_removed(int dirfd, const char *path);
int64_t log_position(int fd);

#endif
