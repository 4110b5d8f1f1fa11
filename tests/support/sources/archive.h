/* archive.h - archives made for tests, entry by entry, hostile ones too. */
#ifndef MR_SUPPORT_ARCHIVE_H
#define MR_SUPPORT_ARCHIVE_H

#include <sys/stat.h>

#include "tests/support/support.h"

typedef struct support_entry {
    const char *path;
    const void *bytes; /* NULL: a folder, unless something below is set */
    size_t len;
    const char *link;      /* target of a symbolic link */
    const char *hard_link; /* target of a hard link */
    mode_t device;         /* S_IFCHR, S_IFBLK (both 1:3), S_IFIFO; a zip and a 7z have no such entries */
} support_entry;

/* kind: "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst" (without a checksum), "zip" (stored), "zip-deflate",
 * "zip-streamed" (its lengths follow the data), "7z", "7z-store", "cpio", "cpio.gz". */
void support_archive(const char *path, const char *kind, const support_entry *entries, size_t count);
/* Damages it: one bit of the byte that is `after` bytes from the start of these words; returns its offset. */
size_t support_archive_flip(const char *path, const char *where, size_t after, unsigned bit);
/* Every file under `dir`, in the order of `support_list`, or reversed. */
void support_archive_tree(const char *path, const char *kind, const char *dir, bool reversed);

#endif
