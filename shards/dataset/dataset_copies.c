/* dataset_copies.c - where an open dataset's shards are read from: copies on a disk of this host, and behind a URL.
 * Invariant: bytes from a copy or a range are checked by their reader, like all others; nothing here fails a run that
 * could go on without copies. */
#include <stdlib.h>

#include "base/files/path.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/dataset/parts.h"

/* In a remote split of more shards, an index is fetched when it is needed: a run may need few. */
enum { INDEXES_AT_ONCE = 1000 };

static mr_status fetch(void *from, const mr_shard *shard, int to, const atomic_bool *stop, mr_error *err)
{
    return mr_remote_fetch(from, shard, to, stop, err);
}

/* `dir` NULL: for a remote dataset, the default. */
static mr_status make_local(const mr_dataset *ds, const char *dir, uint64_t max_bytes, bool copies, mr_local **out,
                            mr_error *err)
{
    mr_local_options o = {
        .dir = dir, .most_bytes = max_bytes, .copies = copies, .manifest = ds->manifest, .source = ds->dir};
    if (ds->remote) {
        mr_error why;
        if (mr_remote_keep(ds->remote, dir, max_bytes, &why) != MR_OK && !dir)
            return mr_fail(err, MR_SYSTEM, "%s", why.text);
        o.dir = mr_remote_kept(ds->remote, &o.most_bytes);
        o.fetch = fetch;
        o.from = ds->remote;
    }
    return mr_local_open(&o, out, err);
}

mr_status mr_dataset_stage(mr_dataset *ds, const char *dir, uint64_t max_bytes, int copies, mr_error *err)
{
    for (size_t i = 0; i < ds->other_count; i++)
        MR_TRY(mr_dataset_stage(ds->others[i], dir, max_bytes, copies, err));
    if (!dir && !ds->remote) /* a dataset of a view, beside one that is remote */
        return MR_OK;
    if (ds->local)
        return mr_fail(err, MR_MISUSE, "%s: already has a staging directory", ds->path);
    if (dir && ds->place && mr_path_inside(dir, ds->place))
        return mr_fail(err, MR_MISUSE, "%s: is inside the dataset that would be copied to it; name another folder",
                       dir);
    return make_local(ds, dir, max_bytes, copies != 0, &ds->local, err);
}

/* A remote dataset always has one, from the first time that a loader asks. */
static mr_local *local_of(const mr_dataset *shared)
{
    mr_dataset *ds = (mr_dataset *)(uintptr_t)shared;
    if (!ds->remote)
        return ds->local;
    pthread_mutex_lock(&ds->lock);
    if (!ds->local) /* without one, all is read where it is */
        (void)make_local(ds, NULL, 0, true, &ds->local, NULL);
    mr_local *l = ds->local;
    pthread_mutex_unlock(&ds->lock);
    return l;
}

mr_status mr_dataset_stage_remark(const mr_dataset *ds, mr_error *out)
{
    for (size_t i = 0; i < ds->other_count; i++)
        if (mr_dataset_stage_remark(ds->others[i], out) == MR_OK)
            return MR_OK;
    return ds->local && mr_local_remark(ds->local, out) ? MR_OK : MR_END;
}

bool mr_dataset_has_copies(const mr_dataset *ds)
{
    for (size_t i = 0; i < ds->other_count; i++)
        if (mr_dataset_has_copies(ds->others[i]))
            return true;
    return ds->remote || ds->local;
}

bool mr_dataset_open_copy(const mr_dataset *ds, const mr_shard *shard, int *fd)
{
    mr_local *l = local_of(mr_dataset_owner(ds, &shard));
    if (!l)
        return false;
    bool found = mr_local_find(l, shard, fd);
    if (!found)
        mr_local_want(l, shard);
    return found;
}

/* For a remote dataset; made the first time that something is `wanted`.  NULL: there is none. */
static mr_ahead *ahead_of(const mr_dataset *shared, bool wanted)
{
    mr_dataset *ds = (mr_dataset *)(uintptr_t)shared;
    pthread_mutex_lock(&ds->lock);
    if (!ds->ahead && wanted)
        (void)mr_ahead_open(ds->remote, &ds->ahead, NULL);
    mr_ahead *ahead = ds->ahead;
    pthread_mutex_unlock(&ds->lock);
    return ahead;
}

void mr_dataset_read_ahead(const mr_dataset *ds, const mr_shard *shard, uint64_t from, size_t len)
{
    mr_ahead *ahead = ahead_of(mr_dataset_owner(ds, &shard), true);
    if (ahead)
        mr_ahead_want(ahead, shard, from, len);
}

bool mr_dataset_has_remote(const mr_dataset *ds, const mr_shard *shard)
{
    return mr_dataset_owner(ds, &shard)->remote != NULL;
}

bool mr_dataset_is_remote(const mr_dataset *ds)
{
    return ds->remote != NULL;
}

void mr_dataset_describe_remote(const mr_dataset *ds, mr_error *out)
{
    uint64_t bytes = 0, samples = 0, most;
    char all[32], limit[32], rest[32], requests[32];
    const char *dir = mr_remote_kept(ds->remote, &most);
    for (size_t i = 0; i < ds->manifest->split_count; i++) {
        samples += ds->manifest->splits[i].samples;
        for (size_t k = 0; k < ds->manifest->splits[i].shard_count; k++)
            bytes += ds->manifest->splits[i].shards[k].mdb.bytes;
    }
    mr_text_bytes(bytes, all);
    if (!most || bytes <= most)
        mr_fail(out, MR_OK, "%s: the %s read from it are fetched once and kept in %s", ds->path, all, dir);
    else
        mr_fail(out, MR_OK, "%s: of %s, %s keeps %s; the other %s are read by range in each full epoch, in %s requests",
                ds->path, all, dir, mr_text_bytes(most, limit), mr_text_bytes(bytes - most, rest),
                mr_text_count((uint64_t)((double)samples * (double)(bytes - most) / (double)bytes), requests));
}

/* The shards of a split that one dataset has. */
static size_t shards_of(const mr_dataset *ds, const mr_dataset *owner, const mr_split *split, const mr_shard **out)
{
    size_t count = 0;
    for (size_t i = 0; i < split->shard_count; i++) {
        out[count] = &split->shards[i];
        count += mr_dataset_owner(ds, &out[count]) == owner;
    }
    return count;
}

void mr_dataset_fetch_indexes(const mr_dataset *ds, const mr_split *split, const atomic_bool *stop)
{
    MR_AUTO(mr_scope_free) const mr_shard **shards = NULL;
    if (split->shard_count > INDEXES_AT_ONCE)
        return;
    shards = mr_alloc(split->shard_count + 1, sizeof *shards);
    for (size_t i = 0; shards && i <= ds->other_count; i++) {
        const mr_dataset *owner = i ? ds->others[i - 1] : ds;
        if (owner->remote)
            mr_remote_fetch_indexes(owner->remote, shards, shards_of(ds, owner, split, shards), false, stop);
    }
}

mr_status mr_dataset_read_range(const mr_dataset *ds, const mr_shard *shard, uint64_t from, void *out, size_t len,
                                const atomic_bool *stop, mr_error *err)
{
    ds = mr_dataset_owner(ds, &shard);
    mr_ahead *ahead = ahead_of(ds, false);
    if (ahead && mr_ahead_take(ahead, shard, from, out, len, stop))
        return MR_OK;
    return mr_remote_read(ds->remote, shard, from, out, len, stop, err);
}

void mr_dataset_drop_copy(const mr_dataset *ds, const mr_shard *shard)
{
    ds = mr_dataset_owner(ds, &shard);
    if (ds->local)
        mr_local_drop(ds->local, shard);
}

mr_local_counts mr_dataset_copies(const mr_dataset *ds)
{
    mr_local_counts all = ds->local ? mr_local_count(ds->local) : (mr_local_counts){0};
    for (size_t i = 0; i < ds->other_count; i++) {
        mr_local_counts one = mr_dataset_copies(ds->others[i]);
        all.copied += one.copied;
        all.bytes += one.bytes;
        all.found += one.found;
    }
    return all;
}
