/* verify.c - the whole dataset: the manifest, and the shards divided among threads and ranks.
 * Invariant: shard i is checked by rank i % world; rank 0 ends with all problems in the order of the shards. */
#include "shards/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/supply.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "shards/dataset/dataset_ranks.h"
#include "shards/remote/remote.h"
#include "shards/verify/parts.h"
#include "shards/view/view.h"

typedef struct run {
    const mr_verify_options *o;
    mr_verify_report *report;
    const mr_shard **shards; /* shards of all splits, parallel to the report's */
    mr_verify_find find;
    mr_verify_scratch *scratch; /* one a thread */
    mr_progress *progress;
    int dirfd, dir_errno; /* why dirfd is -1 */
    char *place;          /* the folder's absolute path; NULL: unknown */
    unsigned rank, world;
} run;

/* ---- the manifest --------------------------------------------------------------------------------------------- */

static mr_status list_shards(run *v, mr_error *err)
{
    mr_verify_report *r = v->report;
    r->split_count = r->manifest->split_count;
    MR_TRY(mr_manifest_shards(r->manifest, &v->shards, &r->shard_count, err));
    r->shards = mr_alloc(r->shard_count, sizeof *r->shards);
    if (!r->shards)
        return mr_fail_memory(err, MR_MANIFEST);
    for (size_t i = 0; i < r->shard_count; i++) {
        const mr_shard *s = v->shards[i];
        r->shards[i] = (mr_verify_shard){.name = s->name, .samples = s->samples, .bytes = s->mdb.bytes + s->idx.bytes};
        r->samples += s->samples;
        r->bytes += r->shards[i].bytes;
    }
    MR_TRY(mr_verify_find_begin(v->shards, r->shard_count, &v->find, err));
    return MR_OK;
}

static mr_status check_seal(const run *v, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    uint8_t digest[32];
    if (v->dirfd < 0)
        return mr_fail_errno(err, v->dir_errno, "the dataset's folder");
    MR_TRY(mr_file_read_all(v->dirfd, MR_MANIFEST, UINT64_MAX, &bytes, err));
    mr_sha256(bytes.data, bytes.len, digest);
    if (memcmp(digest, v->report->digest, sizeof digest) != 0)
        return mr_fail(err, MR_BAD_DATA, "manifest.json: changed while it was read");
    return mr_manifest_check_seal(bytes.data, bytes.len, MR_MANIFEST, err);
}

/* A damaged manifest is a finding, not a failure: then report->manifest stays NULL and no shard is checked. */
static mr_status read_manifest(run *v, const char *dir, mr_error *err)
{
    mr_verify_report *r = v->report;
    mr_error why = {0};
    size_t shards = 0;
    mr_status status = mr_manifest_open_edited(dir, &r->manifest, r->digest, &why);
    if (status == MR_OK) {
        r->have_digest = true;
        status = list_shards(v, err);
        if (status != MR_OK)
            return status;
        status = check_seal(v, &why);
        if (status == MR_OK)
            return status;
    }
    /* If the seal is broken but the text is valid, the shards are still checked. */
    if (status == MR_BAD_DATA) {
        mr_problem_add(&r->problems, MR_PROBLEM_MANIFEST, NULL, MR_NO_SAMPLE, NULL, "%s", why.text);
        return MR_OK;
    }
    if (status == MR_MISUSE && v->dirfd >= 0 && !mr_manifest_is_there(v->dirfd) &&
        mr_verify_beside(v->dirfd, dir, &v->find, NULL, &shards, NULL) == MR_OK && shards) {
        mr_problem_add(&r->problems, MR_PROBLEM_MANIFEST, NULL, MR_NO_SAMPLE, NULL,
                       "manifest.json: the manifest of %zu shard%s is missing; restore it or ingest again", shards,
                       shards == 1 ? "" : "s");
        return MR_OK;
    }
    if (err)
        *err = why;
    return status;
}

static mr_status check_expected(run *v, mr_error *err)
{
    mr_verify_report *r = v->report;
    uint8_t wanted[32];
    char found[65];
    if (!v->o->expect)
        return MR_OK;
    if (!mr_unhex(v->o->expect, wanted, sizeof wanted))
        return mr_fail(err, MR_MISUSE, "--expect %s: a dataset digest is 64 hexadecimal digits, as inspect prints it",
                       v->o->expect);
    if (!r->have_digest || memcmp(wanted, r->digest, sizeof wanted) == 0)
        return MR_OK;
    mr_hex(r->digest, sizeof r->digest, found);
    mr_problem_add(&r->problems, MR_PROBLEM_EXPECT, NULL, MR_NO_SAMPLE, NULL,
                   "not the expected dataset: its digest is %s, expected %s", found, v->o->expect);
    return MR_OK;
}

/* ---- shards --------------------------------------------------------------------------------------------------- */

static mr_status one_shard(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    run *v = ctx;
    size_t n = item * v->world + v->rank;
    mr_verify_job job = {.dirfd = v->dirfd,
                         .manifest = v->report->manifest,
                         .find = &v->find,
                         .shard = v->shards[n],
                         .options = v->o,
                         .scratch = &v->scratch[worker],
                         .progress = v->progress,
                         .out = &v->report->shards[n]};
    return mr_verify_one(&job, err);
}

static void free_scratch(mr_verify_scratch *scratch, unsigned jobs)
{
    for (unsigned i = 0; scratch && i < jobs; i++) {
        free(scratch[i].chunk);
        mr_hash64_free(scratch[i].stream);
        mr_buf_free(&scratch[i].record);
        mr_buf_free(&scratch[i].source);
        mr_buf_free(&scratch[i].entries);
        mr_jpeg_decoder_free(scratch[i].decoder);
    }
    free(scratch);
}

static mr_verify_scratch *make_scratch(unsigned jobs)
{
    mr_verify_scratch *scratch = mr_alloc(jobs, sizeof *scratch);
    bool good = scratch != NULL;
    for (unsigned i = 0; good && i < jobs; i++) {
        scratch[i].chunk = aligned_alloc(MR_LMDB_PAGE, MR_PASS_CHUNK);
        scratch[i].stream = mr_hash64_new();
        good = scratch[i].chunk && scratch[i].stream;
    }
    if (!good) {
        free_scratch(scratch, jobs);
        return NULL;
    }
    return scratch;
}

static uint64_t records_to_read(const run *v)
{
    uint64_t records = 0;
    for (size_t i = v->rank; i < v->report->shard_count; i += v->world)
        /* NOLINTNEXTLINE: without the memory for the list no rank comes here */
        records += v->shards[i]->images + v->shards[i]->samples * (v->o->level >= MR_VERIFY_DEEP ? 2 : 1);
    return records;
}

static mr_status check_shards(run *v, mr_error *err)
{
    size_t mine = v->report->shard_count > v->rank ? (v->report->shard_count - v->rank - 1) / v->world + 1 : 0;
    unsigned jobs = v->o->jobs ? v->o->jobs : mr_pool_processors();
    if (jobs > mine)
        jobs = mine ? (unsigned)mine : 1;
    v->scratch = make_scratch(jobs);
    if (!v->scratch)
        return mr_fail_memory(err, "starting threads");
    bool quiet = v->o->quiet || v->rank != 0 || v->o->level == MR_VERIFY_QUICK;
    v->progress = mr_progress_begin("verify", records_to_read(v), quiet);
    mr_status status = mr_pool_run(mine, jobs, one_shard, v, err);
    mr_progress_end(v->progress);
    free_scratch(v->scratch, jobs);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

static mr_status agree(const run *v, mr_status mine, mr_error *err)
{
    return v->world > 1 ? mr_ranks_agree(v->o->ranks, mine, err) : mine;
}

/* If only some ranks can read the manifest, none continues: the others would wait forever. */
static void agree_on_manifest(run *v)
{
    mr_verify_report *r = v->report;
    mr_error why = {0};
    mr_status mine = MR_OK;
    if (!r->manifest)
        mine = mr_fail(&why, MR_BAD_DATA, "%s",
                       r->problems.count && r->problems.items[0].detail ? r->problems.items[0].detail
                                                                        : "manifest.json: damaged");
    if (mr_ranks_agree(v->o->ranks, mine, &why) == MR_OK || !r->manifest)
        return;
    mr_problem_add(&r->problems, MR_PROBLEM_MANIFEST, NULL, MR_NO_SAMPLE, NULL, "%s (on another rank)", why.text);
    r->shard_count = 0;
    mr_manifest_free(r->manifest);
    r->manifest = NULL;
}

static mr_status verify(run *v, const char *dir, mr_error *err)
{
    size_t shards;
    mr_status status = read_manifest(v, dir, err);
    if (status == MR_OK)
        status = check_expected(v, err);
    status = agree(v, status, err);
    if (status == MR_OK && v->world > 1)
        agree_on_manifest(v);
    if (status == MR_OK && v->world > 1 && v->report->manifest)
        status = mr_dataset_agree(v->o->ranks, v->report->digest, err);
    if (status != MR_OK || !v->report->manifest)
        return status;
    mr_remote *remote = mr_remote_of(v->dirfd);
    if (remote)
        mr_remote_fetch_indexes(remote, v->shards, v->report->shard_count, true, NULL);
    if (v->rank == 0)
        status = mr_verify_beside(v->dirfd, dir, &v->find, v->report, &shards, err);
    if (status == MR_OK)
        status = check_shards(v, err);
    status = agree(v, status, err);
    if (status == MR_OK && v->world > 1)
        status = mr_verify_gather(v->o->ranks, v->report, err);
    if (status == MR_OK && v->rank == 0)
        mr_verify_oddity_warn(v->report);
    return status;
}

/* Its path now leads to another dataset or to nothing, as `ingest --force` leaves it: what is missing then is not
 * damage.  `status`: the status of verifying it, which is returned otherwise. */
static mr_status check_place(const run *v, const char *dir, mr_status status, mr_error *err)
{
    if ((status == MR_OK && mr_verify_ok(v->report)) || v->dirfd < 0 || !v->place ||
        mr_file_is_at(v->dirfd, AT_FDCWD, v->place, false))
        return status;
    return mr_fail(err, MR_SYSTEM, "%s: was replaced, moved or removed while it was verified; run the command again",
                   dir);
}

mr_status mr_verify(const char *dir, const mr_verify_options *o, mr_verify_report **out, mr_error *err)
{
    double start = mr_seconds();
    run v = {.o = o, .world = o->ranks ? mr_ranks_world(o->ranks) : 1, .rank = o->ranks ? mr_ranks_rank(o->ranks) : 0};
    v.report = mr_alloc(1, sizeof *v.report);
    if (!v.report)
        return mr_fail_memory(err, dir);
    v.report->level = o->level;
    mr_status status = mr_view_refuse(dir, err);
    if (status == MR_OK)
        status = mr_remote_open(dir, err);
    if (status != MR_OK) {
        mr_verify_report_free(v.report);
        return status;
    }
    v.dirfd = mr_supply_open_folder(dir);
    v.dir_errno = v.dirfd < 0 ? errno : 0;
    v.place = realpath(mr_supply_folder(dir), NULL);
    status = verify(&v, dir, err);
    if (status == MR_OK && (v.report->problems.failed || v.report->warnings.failed))
        status = mr_fail_memory(err, "collecting problems");
    status = check_place(&v, dir, status, err);
    if (v.dirfd >= 0)
        close(v.dirfd);
    free(v.place);
    free(v.shards);
    mr_verify_find_end(&v.find);
    v.report->seconds = mr_seconds() - start;
    if (status == MR_OK)
        *out = v.report;
    else
        mr_verify_report_free(v.report);
    return status;
}

void mr_verify_report_free(mr_verify_report *r)
{
    if (!r)
        return;
    for (size_t i = 0; r->shards && i < r->shard_count; i++) {
        mr_problems_free(&r->shards[i].problems);
        mr_verify_oddity_free(&r->shards[i]);
    }
    mr_problems_free(&r->problems);
    mr_problems_free(&r->warnings);
    free(r->shards);
    mr_manifest_free(r->manifest);
    free(r);
}
