/* file.h - opening, reading and publishing files and directories safely.
 * Invariant: only regular files are ever read (a FIFO or device is rejected, not waited for), and a file becomes
 * visible under its final name only after its bytes are on disk. */
#ifndef MR_FILE_H
#define MR_FILE_H

#include "base/hash.h"

/* Opens `path` (relative to `dirfd`, or AT_FDCWD) for reading.  MR_BAD_DATA: not a regular file; MR_SYSTEM: the system
 * call failed.  `size` may be NULL.  `follow`: whether a symbolic link as the last component is followed. */
mr_status mr_file_open(int dirfd, const char *path, bool follow, int *fd, uint64_t *size, mr_error *err);

/* Exactly `len` bytes at `offset`, or MR_BAD_DATA if the file is too short.  `name` is for the message. */
mr_status mr_file_pread(int fd, void *bytes, size_t len, uint64_t offset, const char *name, mr_error *err);

/* A whole file of at most `max` bytes, appended to `out`. */
mr_status mr_file_read_all(int dirfd, const char *path, uint64_t max, mr_buf *out, mr_error *err);

mr_status mr_file_write(int fd, const void *bytes, size_t len, const char *name, mr_error *err);
mr_status mr_file_pwrite(int fd, const void *bytes, size_t len, uint64_t offset, const char *name, mr_error *err);

/* Why `path`, as the user named it, could not be created: MR_MISUSE if its folder does not exist. */
mr_status mr_file_fail_create(mr_error *err, int errnum, const char *path);

/* A file being written: write to `fd`, then close.  Readers of `path` see the old file or the complete new one: a temp
 * name next to it, fsync, rename, fsync of the directory.  Two writers of one path take turns.
 * With AT_FDCWD the path is one that the user named: a link is followed, even to a file that does not exist yet; a
 * pipe, a FIFO with a reader, a terminal or another device, or a descriptor of this process (/dev/fd/N) is written
 * directly. */
typedef struct mr_output {
    int fd, dirfd;
    char *path, *temp; /* temp NULL: `path` is written directly */
} mr_output;

mr_status mr_output_open(int dirfd, const char *path, mr_output *o, mr_error *err);
/* Before long work: fails where the file could not be created at its end, because its folder is missing or
 * read-only. */
mr_status mr_output_check(const char *path, mr_error *err);
/* `status`: the status of the writing; if it is not MR_OK it is returned, and the path is left unchanged (pipes and
 * devices keep what was written). */
mr_status mr_output_close(mr_output *o, mr_status status, mr_error *err);

/* The same for bytes in memory. */
mr_status mr_file_publish(int dirfd, const char *path, const void *bytes, size_t len, mr_error *err);

/* Removes the temp file of a killed mr_file_publish() of `path`, if there is one. */
void mr_file_forget(int dirfd, const char *path);

/* A new unnamed file in $TMPDIR or /tmp, to read and write: nothing is left behind, however the process ends. */
mr_status mr_file_scratch(int *fd, mr_error *err);

mr_status mr_dir_sync(int dirfd, const char *name, mr_error *err);        /* fsync of a directory */
mr_status mr_dir_sync_parent(int dirfd, const char *path, mr_error *err); /* syncs the folder that contains `path` */
/* With parents; it may exist.  New directories are synced: otherwise a crash could lose them and what is published in
 * them. */
mr_status mr_dir_make(const char *path, mr_error *err);
bool mr_is_dots(const char *name); /* "." or ".." */
bool mr_dir_is(const char *path);  /* whether it is a folder or a link to one */
/* Locks an open file or folder until it is closed.  False: another process holds the lock and `wait` is false.  Always
 * true on a file system without locks. */
bool mr_file_lock(int fd, bool wait);
/* Whether this name, or with `follow` the link's target, is still the open file. */
bool mr_file_is_at(int fd, int dirfd, const char *name, bool follow);
/* MR_MISUSE: it is a mount point, which cannot be replaced. */
mr_status mr_dir_check_mount(int dirfd, const char *path, mr_error *err);
mr_status mr_dir_remove(int dirfd, const char *path, mr_error *err); /* the whole tree; links are not followed */

/* The digest of the first `size` bytes of an open file (MR_BAD_DATA if it is shorter). */
mr_status mr_file_digest(int fd, uint64_t size, bool with_sha256, const char *name, mr_digest *out, mr_error *err);
/* The same for `size` bytes at `from`. */
mr_status mr_file_digest_part(int fd, uint64_t from, uint64_t size, bool with_sha256, const char *name, mr_digest *out,
                              mr_error *err);

#endif
