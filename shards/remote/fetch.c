/* fetch.c - a shard in parts, by several connections; and parts of it for those who cannot wait.
 * Invariant: a shard is whole only once its SHA-256, over what is in the file, is the manifest's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "shards/remote/parts.h"

/* Parts large enough for a connection's window to open, and so many that a link with 20 ms of delay is full. */
enum { PART = 8 << 20, CONNECTIONS = 8, TRIES = 2 };

static void name_of(const mr_shard *shard, char name[sizeof shard->name + 8])
{
    snprintf(name, sizeof shard->name + 8, "%s.mdb", shard->name);
}

/* A shard that the manifest lists and the server does not have is damage. */
static mr_status damaged_if_missing(mr_status status, mr_error *err)
{
    if (status != MR_END)
        return status;
    if (err)
        err->status = MR_BAD_DATA;
    return MR_BAD_DATA;
}

typedef struct job {
    mr_remote *remote;
    const mr_shard *shard;
    const char *name;
    int to;
    const atomic_bool *stop;
} job;

typedef struct part {
    const job *job;
    uint64_t at;
} part;

static mr_status write_part(void *to, const uint8_t *bytes, size_t n, mr_error *err)
{
    part *p = to;
    MR_TRY(mr_file_pwrite(p->job->to, bytes, n, p->at, p->job->name, err));
    p->at += n;
    return MR_OK;
}

static mr_status fetch_part(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    const job *j = ctx;
    (void)worker;
    uint64_t from = (uint64_t)item * PART, rest = j->shard->mdb.bytes - from;
    part p = {.job = j, .at = from};
    const mr_get get = {.name = j->name,
                        .from = from,
                        .bytes = rest < PART ? rest : PART,
                        .whole = j->shard->mdb.bytes,
                        .sink = write_part,
                        .to = &p,
                        .stop = j->stop};
    return damaged_if_missing(mr_http_get(j->remote->http, &get, err), err);
}

mr_status mr_remote_fetch(mr_remote *r, const mr_shard *shard, int to, const atomic_bool *stop, mr_error *err)
{
    char name[sizeof shard->name + 8];
    mr_digest digest;
    name_of(shard, name);
    job j = {.remote = r, .shard = shard, .name = name, .to = to, .stop = stop};
    size_t parts = (size_t)((shard->mdb.bytes + PART - 1) / PART);
    for (unsigned i = 0; i < TRIES; i++) { /* a bit may have flipped on the way */
        MR_TRY(mr_pool_run(parts, parts < CONNECTIONS ? (unsigned)parts : CONNECTIONS, fetch_part, &j, err));
        MR_TRY(mr_file_digest(to, shard->mdb.bytes, true, name, &digest, err));
        if (memcmp(digest.sha256, shard->mdb.sha256, sizeof digest.sha256) == 0)
            return MR_OK;
    }
    return mr_fail(err, MR_BAD_DATA,
                   "%s/%s: differs from what was ingested, twice; it was damaged on the way or on the server: compare "
                   "it there, or upload it again",
                   mr_http_url(r->http)->shown, name);
}

typedef struct target {
    uint8_t *at;
} target;

static mr_status copy(void *to, const uint8_t *bytes, size_t n, mr_error *err)
{
    target *t = to;
    (void)err;
    memcpy(t->at, bytes, n);
    t->at += n;
    return MR_OK;
}

mr_status mr_remote_read(mr_remote *r, const mr_shard *shard, uint64_t from, void *out, size_t len,
                         const atomic_bool *stop, mr_error *err)
{
    char name[sizeof shard->name + 8];
    target t = {.at = out};
    name_of(shard, name);
    const mr_get get = {
        .name = name, .from = from, .bytes = len, .whole = shard->mdb.bytes, .sink = copy, .to = &t, .stop = stop};
    return len ? damaged_if_missing(mr_http_get(r->http, &get, err), err) : MR_OK;
}
