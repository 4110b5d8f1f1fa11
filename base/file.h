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

/* A file on its way: write to `fd`, then close.  Readers of `path` see what was there before, or all of it: a temp name
 * beside it, fsync, rename, fsync of the directory.  Two writers of one path take turns.
 * With AT_FDCWD the path is taken for one that the user named: a link is followed, also to what is not there yet; a
 * pipe, a FIFO that somebody reads, a terminal or another device, one of this process's descriptors (/dev/fd/N) is
 * written to as it is. */
typedef struct mr_output {
    int fd, dirfd;
    char *path, *temp; /* temp: NULL, written straight into what is at `path` */
} mr_output;

mr_status mr_output_open(int dirfd, const char *path, mr_output *o, mr_error *err);
/* `status`: how writing went; if not MR_OK it is what returns, and the path is as it was (pipes and devices have what
 * was written). */
mr_status mr_output_close(mr_output *o, mr_status status, mr_error *err);

/* The same of bytes that are there already. */
mr_status mr_file_publish(int dirfd, const char *path, const void *bytes, size_t len, mr_error *err);

/* Removes the temp file of a mr_file_publish() of `path` that was killed, if there is one. */
void mr_file_forget(int dirfd, const char *path);

/* A new file without a name in $TMPDIR or /tmp, to read and write: however the process ends, nothing is left there. */
mr_status mr_file_scratch(int *fd, mr_error *err);

mr_status mr_dir_sync(int dirfd, const char *name, mr_error *err);        /* fsync of a directory */
mr_status mr_dir_sync_parent(int dirfd, const char *path, mr_error *err); /* of the one that `path` stands in */
/* With parents; fine if it is there.  The names of those made are on disk: what is published in them would be lost with
 * them otherwise. */
mr_status mr_dir_make(const char *path, mr_error *err);
bool mr_is_dots(const char *name); /* "." or ".." */
bool mr_dir_is(const char *path);  /* whether a folder is there, or a link to one */
/* Keeps others out of an open file or folder until it is closed.  False: somebody else has it, and `wait` is not asked
 * for.  On a file system without locks everybody gets it. */
bool mr_file_lock(int fd, bool wait);
/* Whether this name, or with `follow` what it is a link to, still is what is open. */
bool mr_file_is_at(int fd, int dirfd, const char *name, bool follow);
/* MR_MISUSE: it is a mount point, whose place no folder can take. */
mr_status mr_dir_check_mount(int dirfd, const char *path, mr_error *err);
/* Puts the folder `from` in the place of the folder `to`: `aside` NULL, by one exchange of the two names; else by two
 * renames, the old one to `aside` first, where a crash between them leaves it whole.  0 or errno; EINVAL, ENOSYS: this
 * file system cannot exchange names.  *gone: where the old folder lies now, `from` or `aside`; NULL: at its place. */
int mr_dir_replace(const char *from, const char *to, const char *aside, const char **gone);
mr_status mr_dir_remove(int dirfd, const char *path, mr_error *err); /* the whole tree; links are not followed */

#endif
