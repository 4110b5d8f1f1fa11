/* support_archive.h - archives made for tests, entry by entry, hostile ones too. */
#ifndef MR_SUPPORT_ARCHIVE_H
#define MR_SUPPORT_ARCHIVE_H

#include <sys/stat.h>

#include "support.h"

typedef struct support_entry {
    const char *path;
    const void *bytes;              /* NULL: a folder, unless something below is set */
    size_t len;
    const char *link;               /* target of a symbolic link */
    const char *hard_link;          /* target of a hard link */
    mode_t device;                  /* S_IFCHR, S_IFBLK (both 1:3), S_IFIFO; a zip and a 7z have no such entries */
} support_entry;

/* kind: "tar", "tar.gz", "tar.zst", "zip" (stored), "zip-deflate", "7z". */
void support_archive(const char *path, const char *kind, const support_entry *entries, size_t count);
/* Every file under `dir`, in the order of `support_list`, or reversed. */
void support_archive_tree(const char *path, const char *kind, const char *dir, bool reversed);

#endif
