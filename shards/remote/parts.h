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

    pthread_mutex_t
        small[64];      /* of shard i: [i % 64], while a small file of it is fetched, so that it is fetched once */
    bool *no_seek;      /* of each shard, under its lock: the server has no .seek of it */
    atomic_uint *reads; /* of each shard: records read one by one */

    pthread_mutex_t lock; /* of all below */
    mr_store store;       /* path NULL: not opened yet */
    char **damaged;       /* of each shard: why it is not fetched again; NULL: it may be */
};

/* Appends $XDG_CACHE_HOME/millrace/NAME; without that variable, ~/.cache/millrace/NAME. */
mr_status mr_remote_cache_path(const char *name, mr_buf *out, mr_error *err);

#endif
