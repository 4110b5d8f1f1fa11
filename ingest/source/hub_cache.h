/* hub_cache.h - folders of a cache of the Hugging Face hub, whose files are links to its blobs; private to this module.
 * Source: "Understand caching" in the documentation of huggingface_hub.
 *
 *      datasets--NAME/blobs/0d5b...                                    the bytes
 *      datasets--NAME/snapshots/REV/data/train.parquet -> ../../../blobs/0d5b...
 *
 * Invariant: of the links that leave the given folder, only those with exactly this form are followed, by one step, to
 * a regular file of that blobs/ folder. */
#ifndef MR_SOURCE_HUB_CACHE_H
#define MR_SOURCE_HUB_CACHE_H

#include "ingest/source/list.h"

typedef struct hub_cache { /* the cache that one given folder is in */
    int blobs;             /* the folder, lent by the list; -1: the given folder is not in a cache */
    uint32_t holder;       /* its number */
    unsigned up;           /* folders from the given one up to datasets--NAME */
} hub_cache;

/* Appends the snapshot that stands for `path`, if that is datasets--NAME (or models--, spaces--) itself: the only one,
 * or else the one that refs/main names, with a note.  MR_BAD_DATA: it names none. */
mr_status mr_hub_cache_snapshot(const char *path, mr_notes *notes, mr_buf *out, mr_error *err);

/* Looks whether `path`, open as `fd`, is snapshots/ in such a folder, or below it. */
mr_status mr_hub_cache_open(list *l, const char *path, int fd, hub_cache *out, mr_error *err);

/* The name in blobs/ of a link at `path` in the given folder, a part of `target`; NULL: not of the form above, or not
 * a regular file of blobs/.  *size: its size. */
const char *mr_hub_cache_blob(const hub_cache *c, const char *path, const char *target, uint64_t *size);

/* Whether a file at `path` is at the top of a snapshot, if the given folder is above it. */
bool mr_hub_cache_at_top(const hub_cache *c, const char *path);

#endif
