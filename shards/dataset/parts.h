/* parts.h - what dataset.c and dataset_copies.c share.
 * Invariant: under `lock` are only what is made when it is first needed; all else but stamps stays as it was opened. */
#ifndef MR_DATASET_PARTS_H
#define MR_DATASET_PARTS_H

#include <pthread.h>

#include "shards/dataset/dataset.h"
#include "shards/dataset/index_trust.h"
#include "shards/remote/ahead.h"
#include "shards/remote/remote.h"
#include "shards/view/view.h"

struct mr_dataset {
    char *path, *place; /* as given by the caller; absolute, NULL: unknown */
    int dir, unopened;  /* unopened: errno, if there is no dir */
    mr_manifest *manifest;
    mr_manifest *seen; /* what callers see of the view whose first dataset this is; NULL: the manifest */
    mr_dataset **others;
    int32_t **labels; /* by dataset of the view, see mr_shard; NULL: the same */
    size_t other_count;
    mr_remote *remote;    /* NULL: it is on this host, or on a disk that hosts share */
    pthread_mutex_t lock; /* guards local and ahead, which may be made when they are first needed */
    mr_ahead *ahead;      /* for a remote dataset */
    mr_local *local;      /* copies on this host's disk; NULL: none */
    mr_index_trust *trust;
    bool checked; /* each file's size and each index's header, when it was opened */
    uint8_t digest[32];
    char sha256[65]; /* the same, as text */
};

/* dataset_view.c */
/* `host`: the ranks of this host, the first of which finds what is seen for all (collective); NULL: alone. */
mr_status mr_dataset_open_view(const char *path, mr_ranks *host, mr_dataset **out, mr_error *err);
void mr_dataset_free_seen(mr_dataset *ds);
/* view_draw.c: fills split->draw, if the view's split asks for it.  `ds`: the view. */
mr_status mr_view_draw_make(const mr_dataset *ds, const mr_view_split *from, mr_split *split, mr_error *err);

/* The dataset that has a shard's files; the shard becomes that one's own. */
static inline const mr_dataset *mr_dataset_owner(const mr_dataset *ds, const mr_shard **shard)
{
    if (!(*shard)->stored)
        return ds;
    const mr_dataset *owner = (*shard)->dataset ? ds->others[(*shard)->dataset - 1] : ds;
    *shard = (*shard)->stored;
    return owner;
}

#endif
