/* cmd_push.c - `millrace push DATASET URL`: uploads a dataset to a bucket or a web server.
 * Invariant: the manifest is stored last, so that a URL with a manifest has all of its dataset. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/cli/term.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "shards/commands.h"
#include "shards/format/index.h"
#include "shards/remote/push.h"
#include "shards/remote/remote.h"
#include "shards/seek/seek.h"

typedef struct request {
    const char *dir, *url, *expect;
    bool quiet;
    unsigned jobs;
    int dirfd;
    mr_manifest *manifest;
    const mr_shard **shards;
    size_t count;
    char sha256[65];
    mr_push *push;
    atomic_size_t stored, kept;
    mr_progress *progress;
} request;

static const mr_option options[] = {
    {"expect", 0, MR_ARG_PATH, MR_FIELD(request, expect), .value = "DIGEST",
     .help = "fail unless the dataset has this digest (inspect prints it)"},
    {"jobs", 'j', MR_ARG_COUNT, MR_FIELD(request, jobs), .value = "N", .low = 1, .high = 64, .own = true,
     .standard = "8", .help = "files to upload in parallel"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .own = true, .help = "no progress, and no output on success"},
    {0},
};

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, dir)},
                                      {.value = "URL", .kind = MR_ARG_PATH, MR_FIELD(request, url)},
                                      {0}};

static mr_status store(request *q, const char *name, const uint8_t *sha256, mr_error *err)
{
    bool stored;
    MR_TRY(mr_push_file(q->push, q->dirfd, name, sha256, &stored, err));
    atomic_fetch_add(stored ? &q->stored : &q->kept, 1);
    return MR_OK;
}

static mr_status one_shard(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    request *q = ctx;
    const mr_shard *shard = q->shards[item];
    char name[sizeof shard->name + 8];
    mr_buf idx = {0};
    (void)worker;
    snprintf(name, sizeof name, "%s.mdb", shard->name);
    MR_TRY(store(q, name, shard->mdb.sha256, err));
    mr_status status = mr_index_bytes(q->dirfd, shard, &idx, err); /* compared with the manifest */
    mr_buf_free(&idx);
    MR_TRY(status);
    snprintf(name, sizeof name, "%s.idx", shard->name);
    MR_TRY(store(q, name, NULL, err));
    snprintf(name, sizeof name, "%s" MR_SEEK_SUFFIX, shard->name);
    if (faccessat(q->dirfd, name, R_OK, 0) == 0)
        MR_TRY(store(q, name, NULL, err));
    mr_progress_add(q->progress, 1, shard->mdb.bytes);
    return MR_OK;
}

static mr_status push(request *q, mr_error *err)
{
    uint8_t digest[32];
    MR_TRY(mr_remote_keep_out(q->dir, err));
    if (!mr_remote_is_url(q->url))
        return mr_fail(err, MR_MISUSE, "%s: is not a URL; cp -r copies a dataset on this host", q->url);
    MR_TRY(mr_manifest_open(q->dir, &q->manifest, digest, err));
    mr_hex(digest, sizeof digest, q->sha256);
    if (q->expect && strcasecmp(q->expect, q->sha256) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: not the expected dataset: its digest is %s, expected %s", q->dir,
                       q->sha256, q->expect);
    MR_TRY(mr_manifest_shards(q->manifest, &q->shards, &q->count, err));
    q->dirfd = open(q->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (q->dirfd < 0)
        return mr_fail_errno(err, errno, "%s", q->dir);
    MR_TRY(mr_push_open(q->url, &q->push, err));
    q->progress = mr_progress_begin("push", q->count, q->quiet);
    mr_status status = mr_pool_run(q->count, q->jobs, one_shard, q, err);
    mr_progress_end(q->progress);
    MR_TRY(status);
    return store(q, MR_MANIFEST, digest, err);
}

static int start(int argc, char **argv)
{
    request q = {.dirfd = -1};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_push, argc, argv, &q))
        return cli.code;
    mr_status status = push(&q, &err);
    if (status == MR_OK && !q.quiet)
        printf("%s: %zu file%s uploaded, %zu already there\n  read it as %s#sha256=%s\n", q.url, q.stored,
               q.stored == 1 ? "" : "s", q.kept, q.url, q.sha256);
    mr_push_close(q.push);
    if (q.dirfd >= 0)
        close(q.dirfd);
    free(q.shards);
    mr_manifest_free(q.manifest);
    return mr_cli_end(NULL, status, &err);
}

const mr_command mr_cmd_push = {
    .name = "push",
    .title = "upload a dataset to a bucket or a web server",
    .usage = "DATASET URL",
    .example = "millrace push dogs s3://bucket/dogs",
    .summary = "Uploads a dataset's files to the URL, the manifest last.  Each is compared with the manifest "
               "before it is sent.",
    .notes = "Files that are already there, by size and SHA-256, are not sent again, and neither are the parts of a "
             "large file that an earlier push to a bucket has uploaded: the same command continues where it stopped.\n"
             "\n"
             "Exit status: 0 done; 1 the dataset is damaged; 2 usage error or no dataset there; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
