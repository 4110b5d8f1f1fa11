/* cmd_seek.c - `millrace seek DATASET`: seek indexes beside the shards, made, kept or dropped.
 * Invariant: no file of the dataset itself is changed; under mpirun only rank 0 prints and drops. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shards/cmd_seek.h"
#include "base/cli/cli.h"
#include "base/system/pool.h"
#include "base/files/supply.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "shards/dataset/dataset_ranks.h"
#include "shards/commands.h"
#include "shards/remote/remote.h"

typedef unsigned long long ull;

typedef struct request {
    const char *dir;
    mr_seek_options options;
    bool json, drop, every_given;
    int dirfd;
    mr_manifest *manifest;
    const mr_shard **shards;
    mr_seek_result *results;
    size_t count;
} request;

static const mr_option options[] = {
    {"every", 0, MR_ARG_COUNT, MR_FIELD(request, options.every), .value = "N", .high = MR_SEEK_EVERY_MAX,
     .standard = "8", .given = offsetof(request, every_given),
     .help = "one entry every N MCUs of a row (0: one per row, the smallest index)"},
    {"force", 0, MR_ARG_FLAG, MR_FIELD(request, options.force), .help = "rebuild intact indexes, too"},
    {"check", 0, MR_ARG_FLAG, MR_FIELD(request, options.check),
     .help = "only compare each index with a rebuilt one; detects tampering"},
    {"drop", 0, MR_ARG_FLAG, MR_FIELD(request, drop), .help = "remove the seek indexes; only speed is lost"},
    {"jobs", 'j', MR_ARG_COUNT, MR_FIELD(request, options.jobs), .value = "N", .low = 1, .high = 1024,
     .alias = "threads", .own = true, .help = "threads (default: one per processor; under mpirun 1 per rank)"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, options.quiet), .own = true,
     .help = "no progress, and no output on success"},
    {0},
};

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, dir)}, {0}};

static mr_status check(void *ctx, mr_error *err)
{
    const request *q = ctx;
    if (q->drop && (q->every_given || q->options.force))
        return mr_fail(err, MR_MISUSE, "--drop removes what --every and --force would make; use one or the other");
    if (q->options.check && (q->drop || q->every_given || q->options.force))
        return mr_fail(
            err, MR_MISUSE,
            "--check compares existing seek indexes at their own spacing; use it without --drop, --every and --force");
    return MR_OK;
}

/* ---- results (for ingest, too) ----------------------------------------------------------------------------------- */

cmd_seek_sums mr_cmd_seek_sum(const mr_seek_result *results, const mr_shard *const *shards, size_t count)
{
    cmd_seek_sums s = {0};
    for (size_t i = 0; i < count; i++) {
        const mr_seek_result *r = &results[i];
        s.shards[r->outcome]++;
        s.data_bytes += shards[i]->mdb.bytes + shards[i]->idx.bytes;
        s.all.images += r->images;
        s.all.jpegs += r->jpegs;
        s.all.indexed += r->indexed;
        s.all.bytes += r->bytes;
        s.all.examined += r->examined;
        s.all.cpu += r->cpu;
        if (r->outcome == MR_SEEK_FAILED && s.worst != MR_SYSTEM)
            s.worst = r->why.status == MR_SYSTEM ? MR_SYSTEM : MR_BAD_DATA;
    }
    return s;
}

json_t *mr_cmd_seek_json(const cmd_seek_sums *s, unsigned every)
{
    json_t *doc = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "every", (json_int_t)every, "made",
                            (json_int_t)s->shards[MR_SEEK_MADE], "good", (json_int_t)s->shards[MR_SEEK_GOOD], "failed",
                            (json_int_t)s->shards[MR_SEEK_FAILED], "pictures", (json_int_t)s->all.images, "indexed",
                            (json_int_t)s->all.indexed, "left_to_libjpeg", (json_int_t)(s->all.jpegs - s->all.indexed),
                            "no_jpeg", (json_int_t)(s->all.images - s->all.jpegs), "bytes", (json_int_t)s->all.bytes,
                            "data_bytes", (json_int_t)s->data_bytes);
    if (doc && s->all.examined)
        json_object_set_new(doc, "cpu_ms_per_jpeg", json_real(s->all.cpu * 1e3 / (double)s->all.examined));
    return doc;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

void mr_cmd_seek_words(const cmd_seek_sums *s, mr_buf *out)
{
    char images[32], indexed[32], left[32], others[32], bytes[32];
    uint64_t other = s->all.images - s->all.jpegs, rest = s->all.jpegs - s->all.indexed;
    mr_buf_printf(out, "%s of %s images indexed (%.1f %%)", mr_text_count(s->all.indexed, indexed),
                  mr_text_count(s->all.images, images), share(s->all.indexed, s->all.images));
    if (rest)
        mr_buf_printf(out, ", %s JPEGs left to libjpeg-turbo (%.1f %%)", mr_text_count(rest, left),
                      share(rest, s->all.images));
    if (other)
        mr_buf_printf(out, ", %s in other formats (%.1f %%)", mr_text_count(other, others),
                      share(other, s->all.images));
    mr_buf_printf(out, "; %s, %.2f %% of the data", mr_text_bytes(s->all.bytes, bytes),
                  share(s->all.bytes, s->data_bytes));
    if (s->all.examined)
        mr_buf_printf(out, "; %.0f us of CPU time per JPEG", s->all.cpu * 1e6 / (double)s->all.examined);
}

/* ---- what is there (for inspect) --------------------------------------------------------------------------------- */

/* The file's name or permissions are the problem: no reader can use it, and that will not change.  After errors that
 * may pass (a failing disk, too many open files) "none" would be a guess. */
static bool leads_nowhere(int errnum)
{
    return errnum == ELOOP || errnum == ENOTDIR || errnum == ENXIO || errnum == EACCES;
}

static void add_found(cmd_seek_found *out, uint64_t bytes, unsigned every)
{
    out->mixed |= out->found && every != out->every;
    out->every = out->found ? out->every : every;
    out->bytes += bytes;
    out->found++;
}

static mr_status find_remote(mr_remote *r, const mr_manifest *m, cmd_seek_found *out, mr_error *err)
{
    MR_AUTO(mr_scope_free) const mr_shard **shards = NULL;
    MR_TRY(mr_manifest_shards(m, &shards, &out->shards, err));
    MR_AUTO(mr_scope_free) mr_remote_seek *found = mr_alloc(out->shards + 1, sizeof *found);
    if (!found)
        return mr_fail_memory(err, "seek indexes");
    MR_TRY(mr_remote_look_seeks(r, shards, out->shards, found, err));
    for (size_t i = 0; i < out->shards; i++)
        if (found[i].bytes)
            add_found(out, found[i].bytes, found[i].every);
    return MR_OK;
}

mr_status mr_cmd_seek_find(const char *dir, const mr_manifest *m, cmd_seek_found *out, mr_error *err)
{
    uint64_t bytes;
    unsigned every;
    MR_AUTO(mr_scope_close) int dirfd = mr_supply_open_folder(dir);
    if (dirfd < 0)
        return mr_fail_errno(err, errno, "%s: cannot open", dir);
    mr_remote *remote = mr_remote_of(dirfd);
    if (remote)
        return find_remote(remote, m, out, err);
    for (size_t i = 0; i < m->split_count; i++)
        for (size_t k = 0; k < m->splits[i].shard_count; k++) {
            mr_status status = mr_seek_look(dirfd, &m->splits[i].shards[k], &bytes, &every, err);
            if (status == MR_SYSTEM && !leads_nowhere(errno))
                return status;
            out->shards++;
            if (status == MR_OK)
                add_found(out, bytes, every);
        }
    return MR_OK;
}

json_t *mr_cmd_seek_found_json(const cmd_seek_found *found)
{
    if (!found->found)
        return json_null();
    return json_pack("{s:I,s:I,s:o}", "shards", (json_int_t)found->found, "bytes", (json_int_t)found->bytes, "every",
                     found->mixed ? json_null() : json_integer((json_int_t)found->every));
}

void mr_cmd_seek_found_words(const cmd_seek_found *found, mr_buf *out)
{
    char bytes[32];
    mr_buf_add_text(out, mr_text_bytes(found->bytes, bytes));
    if (found->found < found->shards)
        mr_buf_printf(out, ", for %zu of %zu shards", found->found, found->shards);
    if (found->mixed)
        mr_buf_add_text(out, ", of mixed spacings");
    else if (found->every)
        mr_buf_printf(out, ", an entry every %u MCUs", found->every);
    else
        mr_buf_add_text(out, ", one entry per row of MCUs");
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static mr_status print_json(const request *q, const cmd_seek_sums *s, mr_error *err)
{
    json_t *doc = mr_cmd_seek_json(s, q->options.every), *failures = json_array();
    bool good = doc && failures;
    for (size_t i = 0; good && i < q->count; i++)
        if (q->results[i].outcome == MR_SEEK_FAILED)
            good = json_array_append_new(failures, json_pack("{s:s,s:s}", "shard", q->shards[i]->name, "detail",
                                                             q->results[i].why.text)) == 0;
    if (q->options.check)
        good = good && json_object_set_new(doc, "none", json_integer((json_int_t)s->shards[MR_SEEK_NONE])) == 0 &&
               json_object_del(doc, "made") == 0 && json_object_del(doc, "every") == 0;
    good = good && json_object_set_new(doc, "ok", json_boolean(s->worst == MR_OK)) == 0 &&
           json_object_set(doc, "failures", failures) == 0;
    mr_status status = good ? mr_json_print(doc, err) : mr_fail_memory(err, "writing JSON");
    json_decref(failures);
    json_decref(doc);
    return status;
}

static void print_checked(const request *q, const cmd_seek_sums *s)
{
    uint64_t wrong = s->shards[MR_SEEK_FAILED], all = s->shards[MR_SEEK_GOOD] + wrong;
    printf("%s: %llu seek index%s checked", q->dir, (ull)all, all == 1 ? "" : "es");
    if (wrong)
        printf(", %s%llu not good%s", mr_sgr(stdout, MR_RED), (ull)wrong, mr_sgr(stdout, MR_PLAIN));
    if (s->shards[MR_SEEK_NONE])
        printf("; %llu shard%s without one", (ull)s->shards[MR_SEEK_NONE], s->shards[MR_SEEK_NONE] == 1 ? "" : "s");
}

static void print_made(const request *q, const cmd_seek_sums *s)
{
    printf("%s: %llu seek index%s made, %llu kept", q->dir, (ull)s->shards[MR_SEEK_MADE],
           s->shards[MR_SEEK_MADE] == 1 ? "" : "es", (ull)s->shards[MR_SEEK_GOOD]);
    if (s->shards[MR_SEEK_FAILED])
        printf(", %s%llu not made%s", mr_sgr(stdout, MR_RED), (ull)s->shards[MR_SEEK_FAILED], mr_sgr(stdout, MR_PLAIN));
}

/* *worst: the worst status of the shards that failed, whose failures are printed. */
static mr_status print_results(const request *q, mr_status *worst, mr_error *err)
{
    cmd_seek_sums s = mr_cmd_seek_sum(q->results, q->shards, q->count);
    mr_status status = MR_OK;
    MR_AUTO(mr_buf_free) mr_buf words = {0};
    mr_error why;
    for (size_t i = 0; i < q->count; i++)
        if (q->results[i].outcome == MR_SEEK_FAILED) {
            mr_fail(&why, q->results[i].why.status, "%s: %s", q->dir, q->results[i].why.text);
            mr_term_error(&why);
        }
    if (q->json) {
        status = print_json(q, &s, err);
    } else if (!q->options.quiet || s.worst != MR_OK) {
        mr_cmd_seek_words(&s, &words);
        status = mr_buf_status(&words, err, "printing");
        (q->options.check ? print_checked : print_made)(q, &s);
        printf("\n");
        if (!q->options.check || s.worst == MR_OK) /* the counts of what was not compared would be wrong */
            printf("  %s\n", mr_buf_text(&words));
    }
    *worst = s.worst;
    return status;
}

static mr_status print_dropped(const request *q, size_t dropped, mr_error *err)
{
    if (q->json) {
        json_t *doc = json_pack("{s:b,s:I}", "ok", 1, "dropped", (json_int_t)dropped);
        mr_status status = doc ? mr_json_print(doc, err) : mr_fail_memory(err, "writing JSON");
        json_decref(doc);
        return status;
    }
    if (!q->options.quiet)
        printf("%s: %zu seek index%s dropped\n", q->dir, dropped, dropped == 1 ? "" : "es");
    return MR_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static mr_status open_shards(request *q, uint8_t digest[32], mr_error *err)
{
    MR_TRY(mr_remote_keep_out(q->dir, err));
    MR_TRY(mr_manifest_open(q->dir, &q->manifest, digest, err));
    MR_TRY(mr_manifest_shards(q->manifest, &q->shards, &q->count, err));
    q->results = mr_alloc(q->count, sizeof *q->results);
    if (!q->results)
        return mr_fail_memory(err, q->dir);
    q->dirfd = open(q->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return q->dirfd < 0 ? mr_fail_errno(err, errno, "%s", q->dir) : MR_OK;
}

static mr_status drop(const request *q, mr_error *err)
{
    mr_ranks *ranks = q->options.ranks;
    bool leader = mr_ranks_rank(ranks) == 0;
    size_t dropped = 0;
    MR_TRY(mr_ranks_agree(ranks, leader ? mr_seek_drop(q->dirfd, q->shards, q->count, &dropped, err) : MR_OK, err));
    return leader ? print_dropped(q, dropped, err) : MR_OK;
}

static mr_status make(const request *q, mr_status *worst, mr_error *err)
{
    MR_TRY(mr_seek_make(q->dirfd, q->shards, q->count, &q->options, q->results, err));
    return mr_ranks_rank(q->options.ranks) == 0 ? print_results(q, worst, err) : MR_OK;
}

static mr_status open_dataset(request *q, mr_error *err)
{
    uint8_t digest[32] = {0};
    MR_TRY(mr_ranks_agree(q->options.ranks, open_shards(q, digest, err), err));
    return mr_dataset_agree(q->options.ranks, digest, err);
}

static mr_status seek(request *q, mr_status *worst, mr_error *err)
{
    MR_TRY(open_dataset(q, err));
    if (!q->options.jobs)
        q->options.jobs = mr_ranks_world(q->options.ranks) > 1 ? 1 : mr_pool_processors();
    return q->drop ? drop(q, err) : make(q, worst, err);
}

static int start(int argc, char **argv)
{
    request q = {.dirfd = -1};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    mr_status worst = MR_OK;
    if (!mr_cli_parse(&cli, &mr_cmd_seek, argc, argv, &q))
        return cli.code;
    mr_status status = mr_cli_ranks(&cli, MR_STALL_SECONDS, &q.options.ranks, &err);
    if (status == MR_OK)
        status = seek(&q, &worst, &err);
    if (q.dirfd >= 0)
        close(q.dirfd);
    free(q.shards);
    free(q.results);
    mr_manifest_free(q.manifest);
    int code = mr_cli_end(q.options.ranks, status, &err);
    return code ? code : mr_exit_code(worst);
}

const mr_command mr_cmd_seek = {
    .name = "seek",
    .title = "add or remove seek indexes, which make crops decode faster",
    .usage = "DATASET",
    .example = "millrace seek imagenette",
    .summary =
        "Makes a seek index beside each shard, NAME.seek: the points of each JPEG where decoding can start, so "
        "that a crop decodes little more than its own rows.  It takes about 1 % of the dataset's space, and one "
        "entropy decode per image to make.  It changes no pixel and no digest, can be removed at any time, and is "
        "ignored where it is damaged.  Intact files are kept, so an interrupted run continues where it stopped.",
    .notes = "Examples:\n"
             "  millrace seek imagenette\n"
             "  millrace seek --every 8 imagenette\n"
             "  millrace seek --check imagenette                 before you trust seek indexes from others\n"
             "  millrace seek --drop imagenette\n"
             "  mpirun -n 8 millrace seek imagenet               8 ranks share the shards\n"
             "\n"
             "Exit status: 0 every shard has its seek index now, or with --check the existing ones are right; "
             "1 a shard is damaged, or with --check a seek index; 2 usage error or no "
             "dataset there; 3 system error.",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
