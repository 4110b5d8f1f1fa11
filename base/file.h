/* file.h - files and directories, opened and published with care.
 * Invariant: only regular files are ever read (a FIFO or device is refused, not waited for), and a file becomes visible
 * under its final name only after its bytes are on disk. */
#ifndef MR_FILE_H
#define MR_FILE_H

#include "base/buf.h"

/* Opens `path` (relative to `dirfd`, or AT_FDCWD) for reading.  Refuses anything but a regular file with MR_BAD_DATA;
 * MR_SYSTEM where the system refuses (err names it).  `size` may be NULL.  `follow`: whether a symbolic link as the
 * last component is followed. */
mr_status mr_file_open(int dirfd, const char *path, bool follow, int *fd, uint64_t *size, mr_error *err);

/* Exactly `len` bytes at `offset`, or MR_BAD_DATA if the file ends before. `name` is for the message. */
mr_status mr_file_pread(int fd, void *bytes, size_t len, uint64_t offset, const char *name, mr_error *err);

/* A whole file of at most `max` bytes, appended to `out`. */
mr_status mr_file_read_all(int dirfd, const char *path, uint64_t max, mr_buf *out, mr_error *err);

mr_status mr_file_write(int fd, const void *bytes, size_t len, const char *name, mr_error *err);
mr_status mr_file_pwrite(int fd, const void *bytes, size_t len, uint64_t offset, const char *name, mr_error *err);

/* Why `path`, as the user named it, could not be created: MR_MISUSE where its folder is not there. */
mr_status mr_file_fail_create(mr_error *err, int errnum, const char *path);

/* A file being written: write to `fd`, then close.  Readers of `path` see either the previous file or the complete new
 * one: a temporary name beside it, fsync, rename, fsync of the directory.  Two writers of one path take turns.
 * With AT_FDCWD the path is one that the user named: links are followed, even to a file that does not exist yet; a
 * pipe, a FIFO that is being read, a terminal or another device, or one of this process's descriptors (/dev/fd/N) is
 * written to directly. */
typedef struct mr_output {
    int fd, dirfd;
    char *path, *temp; /* temp NULL: written directly to `path` */
} mr_output;

mr_status mr_output_open(int dirfd, const char *path, mr_output *o, mr_error *err);
/* `status`: of the writing.  If it is not MR_OK it is returned, and the path is left as it was (pipes and devices have
 * got what was written). */
mr_status mr_output_close(mr_output *o, mr_status status, mr_error *err);

/* Writes `bytes` as a whole file in this way. */
mr_status mr_file_publish(int dirfd, const char *path, const void *bytes, size_t len, mr_error *err);

/* Removes the temporary file that a killed mr_file_publish() of `path` left, if any. */
void mr_file_forget(int dirfd, const char *path);

/* An unnamed new file in $TMPDIR or /tmp, for reading and writing: nothing is left there however the process ends. */
mr_status mr_file_scratch(int *fd, mr_error *err);

mr_status mr_dir_sync(int dirfd, const char *name, mr_error *err);        /* fsync of a directory */
mr_status mr_dir_sync_parent(int dirfd, const char *path, mr_error *err); /* of the parent of `path` */
/* Makes a folder and its parents, unless they exist.  New directories are synced, as what is published in them would be
 * lost with them. */
mr_status mr_dir_make(const char *path, mr_error *err);
bool mr_is_dots(const char *name); /* "." or ".." */
bool mr_dir_is(const char *path);  /* a folder, or a link to one */
/* Locks an open file or folder until it is closed.  False: another process has the lock, without `wait`.  On a file
 * system without locks every caller succeeds. */
bool mr_file_lock(int fd, bool wait);
/* Whether `name`, or with `follow` what it links to, is still the open file. */
bool mr_file_is_at(int fd, int dirfd, const char *name, bool follow);
/* MR_MISUSE: it is a mount point, whose place no folder can take. */
mr_status mr_dir_check_mount(int dirfd, const char *path, mr_error *err);
mr_status mr_dir_remove(int dirfd, const char *path, mr_error *err); /* the whole tree; links are not followed */

#endif
