/* indexes.c - the small files of many shards, several at once.
 * Invariant: an index that cannot be fetched here is fetched, and its failure reported, when it is opened. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/files/supply.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "shards/remote/parts.h"
#include "shards/seek/seek.h"

/* This many requests at once hide 20 ms of delay; a server sees no more from one host. */
enum { AT_ONCE = 16 };

typedef struct job {
    mr_remote *remote;
    const mr_shard *const *shards;
    size_t count;
    mr_remote_seek *found;
    const atomic_bool *stop;
} job;

/* Items: the indexes, then the seek indexes. */
static mr_status fetch_one(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    const job *j = ctx;
    const mr_shard *shard = j->shards[item % j->count];
    char name[sizeof shard->name + 8];
    MR_AUTO(mr_scope_close) int fd = -1;
    (void)worker;
    (void)err;
    if (j->stop && atomic_load(j->stop))
        return MR_OK;
    snprintf(name, sizeof name, "%s.%s", shard->name, item < j->count ? "idx" : "seek");
    fd = openat(j->remote->dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        (void)mr_supply_file(j->remote->dir, name, &fd, NULL);
    return MR_OK;
}

void mr_remote_fetch_indexes(mr_remote *r, const mr_shard *const *shards, size_t count, bool seeks,
                             const atomic_bool *stop)
{
    job j = {.remote = r, .shards = shards, .count = count, .stop = stop};
    if (count)
        (void)mr_pool_run(seeks ? 2 * count : count, AT_ONCE, fetch_one, &j, NULL);
}

typedef struct head {
    uint8_t bytes[MR_SEEK_HEADER];
    size_t len;
} head;

static mr_status add(void *to, const uint8_t *bytes, size_t n, mr_error *err)
{
    head *h = to;
    (void)err;
    memcpy(h->bytes + h->len, bytes, n);
    h->len += n;
    return MR_OK;
}

static mr_status look_at_one(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    const job *j = ctx;
    const mr_shard *shard = j->shards[item];
    char name[MR_SEEK_NAME];
    head h = {.len = 0};
    uint64_t size = 0;
    mr_seek_header header;
    (void)worker;
    snprintf(name, sizeof name, "%s" MR_SEEK_SUFFIX, shard->name);
    const mr_get get = {.name = name, .bytes = sizeof h.bytes, .sink = add, .to = &h, .size = &size};
    mr_status status = mr_http_get(j->remote->http, &get, err);
    if (status == MR_END)
        return MR_OK;
    MR_TRY(status);
    if (mr_seek_check_header(h.bytes, size, shard, &header, NULL) == MR_OK)
        j->found[item] = (mr_remote_seek){.bytes = size, .every = header.every};
    return MR_OK;
}

mr_status mr_remote_look_seeks(mr_remote *r, const mr_shard *const *shards, size_t count, mr_remote_seek *found,
                               mr_error *err)
{
    job j = {.remote = r, .shards = shards, .count = count, .found = found};
    return mr_pool_run(count, AT_ONCE, look_at_one, &j, err);
}
