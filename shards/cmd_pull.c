/* cmd_pull.c - `millrace pull URL DATASET`: a remote dataset, as a folder of this host.
 * Invariant: DATASET appears by one rename, when each of its files is on disk and is what the manifest says. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/cli/term.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/files/supply.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "base/text.h"
#include "shards/commands.h"
#include "shards/format/index.h"
#include "shards/remote/remote.h"
#include "shards/seek/seek.h"

enum { SHARDS_AT_ONCE = 2 }; /* each comes by several connections, and one is hashed while the other comes */

typedef struct request {
    const char *url, *target, *expect;
    bool quiet;
    char *partial;
    int from, to; /* folders */
    mr_manifest *manifest;
    const mr_shard **shards;
    size_t count;
    uint64_t bytes;
    char sha256[65];
    mr_progress *progress;
} request;

static const mr_option options[] = {
    {"expect", 0, MR_ARG_PATH, MR_FIELD(request, expect), .value = "DIGEST",
     .help = "fail unless the dataset has this digest (inspect prints it)"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .own = true, .help = "no progress, and no output on success"},
    {0},
};

static const mr_option arguments[] = {{.value = "URL", .kind = MR_ARG_PATH, MR_FIELD(request, url)},
                                      {.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, target)},
                                      {0}};

/* Whether an earlier pull that did not end has left the file: it is fetched again unless its bytes are right. */
static bool is_there(const request *q, const mr_shard *shard, const char *name)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    uint64_t size;
    mr_digest found;
    return mr_file_open(q->to, name, false, &fd, &size, NULL) == MR_OK && size == shard->mdb.bytes &&
           mr_file_digest(fd, size, true, name, &found, NULL) == MR_OK &&
           memcmp(found.sha256, shard->mdb.sha256, sizeof found.sha256) == 0;
}

static mr_status pull_mdb(const request *q, const mr_shard *shard, mr_error *err)
{
    char name[sizeof shard->name + 8], part[sizeof shard->name + 8];
    MR_AUTO(mr_scope_close) int fd = -1;
    snprintf(name, sizeof name, "%s.mdb", shard->name);
    snprintf(part, sizeof part, "%s.part", shard->name);
    if (is_there(q, shard, name))
        return MR_OK;
    fd = openat(q->to, part, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s/%s", q->partial, part);
    mr_status status = mr_remote_fetch(mr_remote_of(q->from), shard, fd, NULL, err);
    if (status == MR_OK && (fsync(fd) != 0 || renameat(q->to, part, q->to, name) != 0))
        status = mr_fail_errno(err, errno, "%s/%s", q->partial, name);
    if (status != MR_OK)
        (void)unlinkat(q->to, part, 0);
    return status;
}

/* A file that is, or is to be, in the folder that stands for the dataset; false: it has none. */
static mr_status copy(const request *q, const char *name, uint64_t most, bool optional, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    errno = 0;
    mr_error why;
    mr_status status = mr_file_read_all(q->from, name, most, &bytes, &why);
    if (status == MR_SYSTEM && errno == ENOENT && optional)
        return MR_OK;
    if (status != MR_OK)
        return mr_fail(err, status, "%s", why.text);
    return mr_file_publish(q->to, name, bytes.data, bytes.len, err);
}

static mr_status one_shard(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    request *q = ctx;
    const mr_shard *shard = q->shards[item];
    char name[sizeof shard->name + 8];
    (void)worker;
    MR_TRY(pull_mdb(q, shard, err));
    snprintf(name, sizeof name, "%s.idx", shard->name);
    MR_TRY(copy(q, name, shard->idx.bytes, false, err));
    snprintf(name, sizeof name, "%s" MR_SEEK_SUFFIX, shard->name);
    MR_TRY(copy(q, name, mr_seek_bytes_max(shard), true, err));
    mr_progress_add(q->progress, 1, shard->mdb.bytes);
    return MR_OK;
}

static mr_status open_source(request *q, mr_error *err)
{
    uint8_t digest[32];
    if (!mr_remote_is_url(q->url))
        return mr_fail(err, MR_MISUSE, "%s: is not a URL; cp -r copies a dataset on this host", q->url);
    MR_TRY(mr_remote_open(q->url, err));
    MR_TRY(mr_manifest_open(q->url, &q->manifest, digest, err));
    mr_hex(digest, sizeof digest, q->sha256);
    if (q->expect && strcasecmp(q->expect, q->sha256) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: not the expected dataset: its digest is %s, expected %s", q->url,
                       q->sha256, q->expect);
    MR_TRY(mr_manifest_shards(q->manifest, &q->shards, &q->count, err));
    for (size_t i = 0; i < q->count; i++)
        q->bytes += q->shards[i]->mdb.bytes + q->shards[i]->idx.bytes;
    q->from = mr_supply_open_folder(q->url);
    return q->from >= 0 ? MR_OK : mr_fail_errno(err, errno, "%s", q->url);
}

static mr_status open_target(request *q, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf partial = {0};
    struct stat st;
    if (lstat(q->target, &st) == 0)
        return mr_fail(err, MR_MISUSE, "%s: exists already; remove it or name another folder", q->target);
    mr_buf_printf(&partial, "%.*s.pulled", (int)mr_path_len(q->target), q->target);
    q->partial = strdup(mr_buf_text(&partial));
    if (!q->partial)
        return mr_fail_memory(err, q->target);
    if (mkdir(q->partial, 0777) != 0 && errno != EEXIST)
        return mr_file_fail_create(err, errno, q->partial);
    q->to = open(q->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (q->to < 0)
        return mr_fail_errno(err, errno, "%s", q->partial);
    if (!mr_file_lock(q->to, false))
        return mr_fail(err, MR_MISUSE, "%s: another pull writes to it; wait for that one", q->partial);
    return MR_OK;
}

static mr_status pull(request *q, mr_error *err)
{
    MR_TRY(open_source(q, err));
    MR_TRY(open_target(q, err));
    mr_remote_fetch_indexes(mr_remote_of(q->from), q->shards, q->count, true, NULL);
    q->progress = mr_progress_begin("pull", q->count, q->quiet);
    mr_status status = mr_pool_run(q->count, SHARDS_AT_ONCE, one_shard, q, err);
    mr_progress_end(q->progress);
    MR_TRY(status);
    MR_TRY(copy(q, MR_MANIFEST, MR_MANIFEST_MAX, false, err));
    MR_TRY(mr_dir_sync(q->to, q->partial, err));
    if (renameat2(AT_FDCWD, q->partial, AT_FDCWD, q->target, RENAME_NOREPLACE) != 0)
        return mr_fail_errno(err, errno, "%s: cannot become %s", q->partial, q->target);
    return mr_dir_sync_parent(AT_FDCWD, q->target, err);
}

static int start(int argc, char **argv)
{
    request q = {.from = -1, .to = -1};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    char bytes[32];
    if (!mr_cli_parse(&cli, &mr_cmd_pull, argc, argv, &q))
        return cli.code;
    mr_status status = pull(&q, &err);
    if (status == MR_OK && !q.quiet)
        printf("%s: %zu shard%s, %s, each as the manifest says\n  digest %s\n", q.target, q.count,
               q.count == 1 ? "" : "s", mr_text_bytes(q.bytes, bytes), q.sha256);
    if (q.from >= 0)
        close(q.from);
    if (q.to >= 0)
        close(q.to);
    free(q.partial);
    free(q.shards);
    mr_manifest_free(q.manifest);
    return mr_cli_end(NULL, status, &err);
}

const mr_command mr_cmd_pull = {
    .name = "pull",
    .title = "copy a dataset from a URL to this host",
    .usage = "URL DATASET",
    .example = "millrace pull s3://bucket/dogs dogs",
    .summary = "Copies a dataset from a web server, a bucket or the hub into a new folder.  Each file is compared "
               "with the manifest before DATASET appears.",
    .notes = "Shards go to DATASET.pulled first; the same command continues where an earlier one ended.\n"
             "\n"
             "Exit status: 0 done; 1 the data received is damaged; 2 usage error or no dataset there; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
