/* cmd_reindex.c - `millrace reindex DATASET`: lost or damaged indexes, rebuilt from their shards.
 * Invariant: an index is built only from a .mdb whose digest, on this very descriptor, is the manifest's; and it is
 * published only if its own digest is the manifest's too.  Good files are left alone. */
#include <fcntl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/files/file.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "shards/format/index.h"
#include "shards/commands.h"
#include "shards/remote/remote.h"

#define AGAIN "copy the shard again from where the dataset came from, or ingest again"

typedef enum outcome { GOOD, REBUILT, FAILED } outcome;

typedef struct shard_result {
    outcome outcome;
    mr_error why;
} shard_result;

typedef struct request {
    const char *dir;
    bool json, quiet;
    unsigned jobs;
    int dirfd;
    mr_manifest *manifest;
    const mr_shard **shards;
    shard_result *results;
    size_t count;
    mr_progress *progress;
} request;

static const mr_option options[] = {
    {"jobs", 'j', MR_ARG_COUNT, MR_FIELD(request, jobs), .value = "N", .low = 1, .high = 1024, .own = true,
     .help = "threads (default: one per processor)"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .own = true, .help = "no progress, and no output on success"},
    {0},
};

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, dir)}, {0}};

static bool same(const mr_digest *a, const mr_digest *b)
{
    return a->bytes == b->bytes && memcmp(a->xxh3_128, b->xxh3_128, sizeof a->xxh3_128) == 0 &&
           memcmp(a->sha256, b->sha256, sizeof a->sha256) == 0;
}

/* Opens NAME, following a link as readers do, if its size and digest are those listed; the caller closes *fd, also on
 * failure. */
static mr_status open_checked(int dirfd, const char *name, const mr_digest *listed, int *fd, mr_error *err)
{
    mr_digest found;
    uint64_t size;
    MR_TRY(mr_file_open(dirfd, name, true, fd, &size, err));
    if (size != listed->bytes)
        return mr_fail(err, MR_BAD_DATA, "%s: has %llu bytes, the manifest says %llu; " AGAIN, name,
                       (unsigned long long)size, (unsigned long long)listed->bytes);
    MR_TRY(mr_file_digest(*fd, size, true, name, &found, err));
    return same(&found, listed) ? MR_OK
                                : mr_fail(err, MR_BAD_DATA, "%s: its digest does not match the manifest; " AGAIN, name);
}

static mr_status rebuild(request *q, const mr_shard *shard, const char *idx_name, mr_error *err)
{
    char mdb_name[96];
    MR_AUTO(mr_scope_close) int fd = -1;
    MR_AUTO(mr_buf_free) mr_buf index = {0};
    mr_digest digest = {0};
    snprintf(mdb_name, sizeof mdb_name, "%s.mdb", shard->name);
    if (faccessat(q->dirfd, mdb_name, F_OK, 0) != 0 && errno == ENOENT)
        return mr_fail(err, MR_BAD_DATA, "%s: the shard is missing, and with it its index; " AGAIN, mdb_name);
    MR_TRY(open_checked(q->dirfd, mdb_name, &shard->mdb, &fd, err));
    MR_TRY(mr_index_build(fd, shard->mdb.bytes, mdb_name, shard->first, shard->samples, &index, err));
    MR_TRY(mr_buf_status(&index, err, idx_name));
    digest.bytes = index.len;
    mr_hash128(index.data, index.len, digest.xxh3_128);
    mr_sha256(index.data, index.len, digest.sha256);
    if (!same(&digest, &shard->idx))
        return mr_fail(err, MR_BAD_DATA,
                       "%s: the index built from a good %s does not match the digest in the manifest; nothing was "
                       "written. Was the manifest edited?",
                       idx_name, mdb_name);
    return mr_file_publish(q->dirfd, idx_name, index.data, index.len, err);
}

/* One damaged shard must not keep the others from being repaired, so failures wait in the results. */
static mr_status one_shard(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    request *q = ctx;
    const mr_shard *shard = q->shards[item];
    shard_result *r = &q->results[item];
    char idx_name[96];
    MR_AUTO(mr_scope_close) int fd = -1;
    (void)worker;
    (void)err;
    snprintf(idx_name, sizeof idx_name, "%s.idx", shard->name);
    if (open_checked(q->dirfd, idx_name, &shard->idx, &fd, &r->why) == MR_OK)
        r->outcome = GOOD;
    else
        r->outcome = rebuild(q, shard, idx_name, &r->why) == MR_OK ? REBUILT : FAILED;
    mr_progress_add(q->progress, 1, shard->idx.bytes + (r->outcome == GOOD ? 0 : shard->mdb.bytes));
    return MR_OK;
}

/* *worst: the worst status of the shards that failed, whose failures are printed. */
static mr_status print_results(const request *q, mr_status *worst, mr_error *err)
{
    static const char *const words[] = {"good", "rebuilt", "failed"};
    size_t counts[3] = {0};
    json_t *list = json_array();
    for (size_t i = 0; i < q->count; i++) {
        const shard_result *r = &q->results[i];
        counts[r->outcome]++;
        if (r->outcome == FAILED) {
            if (*worst != MR_SYSTEM)
                *worst = r->why.status == MR_SYSTEM ? MR_SYSTEM : MR_BAD_DATA;
            mr_term_error(&r->why);
        } else if (r->outcome == REBUILT && !q->json && !q->quiet) {
            printf("  %s.idx %srebuilt%s\n", q->shards[i]->name, mr_sgr(stdout, MR_GREEN), mr_sgr(stdout, MR_PLAIN));
        }
        json_array_append_new(list, json_pack("{s:s,s:s,s:s?}", "shard", q->shards[i]->name, "index", words[r->outcome],
                                              "detail", r->outcome == FAILED ? r->why.text : NULL));
    }
    mr_status status = MR_OK;
    if (q->json) {
        json_t *doc =
            json_pack("{s:b,s:I,s:I,s:I,s:O}", "ok", *worst == MR_OK, "good", (json_int_t)counts[GOOD], "rebuilt",
                      (json_int_t)counts[REBUILT], "failed", (json_int_t)counts[FAILED], "shards", list);
        status = mr_json_print(doc, err);
        json_decref(doc);
    } else if (!q->quiet || *worst != MR_OK) {
        printf("%s: %zu index%s good, %zu rebuilt, %zu not repairable\n", q->dir, counts[GOOD],
               counts[GOOD] == 1 ? "" : "es", counts[REBUILT], counts[FAILED]);
    }
    json_decref(list);
    return status;
}

static mr_status reindex(request *q, mr_error *err)
{
    uint8_t digest[32];
    MR_TRY(mr_remote_keep_out(q->dir, err));
    MR_TRY(mr_manifest_open(q->dir, &q->manifest, digest, err));
    MR_TRY(mr_manifest_shards(q->manifest, &q->shards, &q->count, err));
    q->results = mr_alloc(q->count, sizeof *q->results);
    if (!q->results)
        return mr_fail_memory(err, q->dir);
    if ((q->dirfd = open(q->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return mr_fail_errno(err, errno, "%s", q->dir);
    q->progress = mr_progress_begin("reindex", q->count, q->quiet);
    mr_status status = mr_pool_run(q->count, q->jobs ? q->jobs : mr_pool_processors(), one_shard, q, err);
    mr_progress_end(q->progress);
    return status;
}

static int start(int argc, char **argv)
{
    request q = {.dirfd = -1};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_reindex, argc, argv, &q))
        return cli.code;
    mr_status worst = MR_OK, status = reindex(&q, &err);
    if (status == MR_OK)
        status = print_results(&q, &worst, &err);
    if (q.dirfd >= 0)
        close(q.dirfd);
    free(q.shards);
    free(q.results);
    mr_manifest_free(q.manifest);
    int code = mr_cli_end(NULL, status, &err);
    return code ? code : mr_exit_code(worst);
}

const mr_command mr_cmd_reindex = {
    .name = "reindex",
    .title = "rebuild lost .idx files",
    .usage = "DATASET",
    .example = "millrace reindex imagenette",
    .summary = "Rebuilds .idx files that are missing or damaged.  An index is a pure function of its shard, "
               "so the new one is identical to the lost one.  The shard's digest is checked first; "
               "intact indexes are kept.",
    .notes = "Examples:\n"
             "  millrace reindex imagenette\n"
             "  millrace verify --quick imagenette || millrace reindex imagenette\n"
             "\n"
             "Exit status: 0 every index is good now; 1 a shard is damaged; 2 usage error or no dataset "
             "there; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
