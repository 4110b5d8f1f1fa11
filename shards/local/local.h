/* local.h - copies of a dataset's shards on a disk of this host, for datasets on a disk that hosts share.
 * Invariant: a copy has its name only once its SHA-256 is that of the manifest; whatever happens to the local disk, the
 * dataset itself can be read, so no failure here is one of the run.
 *
 *      DIR/SHA256.mdb     a copy, last used when it was modified; a reader holds a shared lock (flock)
 *      DIR/SHA256.part    being copied, with an exclusive lock; without one its copier has died, and it is removed
 *
 * Any number of jobs and datasets share a DIR.  store.c has the folder, copier.c the thread that fills it. */
#ifndef MR_LOCAL_H
#define MR_LOCAL_H

#include <stdatomic.h>

#include "shards/manifest/manifest.h"

/* Writes the shard's .mdb to the start of an open file, if its SHA-256 is right; ends soon when *stop is set. */
typedef mr_status mr_local_fetch(void *from, const mr_shard *shard, int to, const atomic_bool *stop, mr_error *err);

typedef struct mr_local_options {
    const char *dir;             /* made if it is missing */
    uint64_t most_bytes;         /* bytes of all copies there; 0: no limit but the disk's */
    bool copies;                 /* this process makes copies; otherwise it only uses them.  One per host is enough */
    const mr_manifest *manifest; /* these two are lent and must outlive it */
    int source;                  /* the dataset's folder */
    mr_local_fetch *fetch;       /* NULL: shards are in that folder */
    void *from;
} mr_local_options;

typedef struct mr_local mr_local;

/* A folder that cannot be used is a remark, not a failure.  MR_SYSTEM: no memory, no thread. */
mr_status mr_local_open(const mr_local_options *o, mr_local **out, mr_error *err);
void mr_local_close(mr_local *l); /* ends copying at once; NULL is fine */

/* From any thread: */

/* The shard's copy, open for reading; false: there is none.  Closing *fd gives it back. */
bool mr_local_find(mr_local *l, const mr_shard *shard, int *fd);
/* The shard is read from the dataset: it is copied next, and the rest of its split after that. */
void mr_local_want(mr_local *l, const mr_shard *shard);
/* The shard's copy gave wrong bytes: it is removed, and this process does not make it again. */
void mr_local_drop(mr_local *l, const mr_shard *shard);
/* One sentence about what went wrong, or did not fit; false: there is nothing to say. */
bool mr_local_remark(mr_local *l, mr_error *out);

typedef struct mr_local_counts {
    uint64_t copied, bytes; /* by this process */
    uint64_t found;         /* calls of mr_local_find() that were answered */
} mr_local_counts;
mr_local_counts mr_local_count(mr_local *l);

#endif
