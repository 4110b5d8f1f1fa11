/* parts.h - what fetch.c, multipart.c and remote.c share.
 * Invariant: a remote's connections, place and folder never change once it is open. */
#ifndef MR_REMOTE_PARTS_H
#define MR_REMOTE_PARTS_H

#include <pthread.h>

#include "shards/local/parts.h"
#include "shards/remote/http.h"
#include "shards/remote/remote.h"

struct mr_remote {
    mr_http *http;
    char *folder; /* that stands for it */
    int dir;
    mr_manifest *manifest;

    pthread_mutex_t small[64]; /* [i % 64]: held while a small file of shard i is fetched, so that it is fetched once */
    bool *no_seek;             /* per shard, under its lock: the server has no .seek of it */
    atomic_uint *reads;        /* per shard: records read one by one */

    pthread_mutex_t lock; /* guards these two */
    mr_store store;       /* path NULL: not opened yet */
    char **damaged;       /* per shard: why it is not fetched again; NULL: it may be */

    pthread_mutex_t coming_lock; /* guards all members below, and what fetch.c names */
    pthread_cond_t came;         /* a part has, or a reader has ended */
    struct mr_fetch_job *coming; /* shards that are being fetched, a list */
};

/* Appends $XDG_CACHE_HOME/millrace/NAME; without that variable, ~/.cache/millrace/NAME. */
mr_status mr_remote_cache_path(const char *name, mr_buf *out, mr_error *err);

/* A record of a shard that is being fetched, if its part is there, or comes within the next 0.1 s: nothing is asked
 * for.  False: it is not.  Nothing is compared here either. */
bool mr_remote_read_coming(mr_remote *r, const mr_shard *shard, uint64_t from, void *out, size_t len,
                           const atomic_bool *stop);

#endif
