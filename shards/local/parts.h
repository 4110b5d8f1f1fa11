/* parts.h - what store.c and copier.c share.
 * Invariant: the store knows nothing of threads; the copier alone writes to it. */
#ifndef MR_LOCAL_PARTS_H
#define MR_LOCAL_PARTS_H

#include <time.h>

#include "shards/local/local.h"

typedef struct mr_store {
    char *path;
    int dir;               /* -1: cannot be used */
    uint64_t most_bytes;   /* 0: no limit */
    struct timespec since; /* what was used later is not evicted: a current run uses it */
} mr_store;

/* MR_SYSTEM: the folder cannot be created or opened; the store is then without one. */
mr_status mr_store_open(const char *path, uint64_t most_bytes, mr_store *out, mr_error *err);
void mr_store_close(mr_store *s);
/* Opens an existing copy with a shared lock, and marks it as used now. */
bool mr_store_find(const mr_store *s, const mr_shard *shard, int *fd);
void mr_store_drop(const mr_store *s, const mr_shard *shard);
/* Removes what copiers that have died left. */
void mr_store_sweep(const mr_store *s);
/* Removes copies that no one uses, the longest unused first, until `bytes` more fit.  MR_END: they do not. */
mr_status mr_store_make_room(const mr_store *s, uint64_t bytes, mr_error *err);

/* The shard's .part, empty, this process's own; *fd -1: another process copies it, or it is there already. */
mr_status mr_store_begin(const mr_store *s, const mr_shard *shard, int *fd, mr_error *err);
/* `status`: the result of copying; a failure is returned.  The part gets its final name, or is removed.  Closes fd. */
mr_status mr_store_end(const mr_store *s, const mr_shard *shard, int fd, mr_status status, mr_error *err);

#endif
