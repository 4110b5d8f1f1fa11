/* cmd_ingest.c - millrace ingest SRC... DATASET: the command line.
 * Invariant: results go to stdout, progress and errors to stderr; only rank 0 prints. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ingest/cmd_ingest.h"
#include "ingest/cmd_annotations.h"
#include "base/cli/cli.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/text.h"
#include "image/codec/image.h"
#include "ingest/cmd_lists.h"
#include "ingest/commands.h"
#include "ingest/ingest.h"
#include "ingest/solid.h"
#include "shards/remote/remote.h"

typedef struct request {
    mr_ingest_options o;
    mr_cli_list paths, left_out, annotations;
    mr_cmd_annotations settled;
    mr_split_map maps[32];
    bool json;
    const char *report;
    char *downloads; /* of rank 0; NULL: no source is a URL */
    uint64_t progress_fd, stall;
    bool near_distance_given;
} request;

#define LAYOUT_NAME(name) #name,

static mr_status take_split_map(void *field, const char *text, mr_error *err)
{
    request *q = field;
    return mr_split_map_take((char *)text, q->maps, MR_COUNT(q->maps), &q->o.for_layout.map_count, err);
}

static mr_status take_split(void *field, const char *text, mr_error *err)
{
    request *q = field;
    return mr_split_shares_take(text, &q->o, err);
}

static mr_status take_max_rejects(void *field, const char *text, mr_error *err)
{
    request *q = field;
    return mr_max_rejects_take(text, &q->o.max_rejects, &q->o.max_rejects_percent, err);
}

static const mr_option options[] = {
    {"layout", 0, MR_ARG_TEXT, MR_FIELD(request, o.layout),
     .words = (const char *const[]){MR_LAYOUTS(LAYOUT_NAME) NULL},
     .group = "Source:", .help = "layout of the source (default: detected)"},
    {"config", 0, MR_ARG_TEXT, MR_FIELD(request, o.for_layout.config), .value = "NAME",
     .help = "newyorker, hub: config (matching, ranking, explanation ...)", .rare = true},
    {"label-column", 0, MR_ARG_TEXT, MR_FIELD(request, o.for_layout.label_column), .value = "NAME",
     .help =
         "label column; imagenette: noisy_labels_25; newyorker, hub, webdataset: any; table: one, or several as A,B,C"},
    {"label-separator", 0, MR_ARG_TEXT, MR_FIELD(request, o.for_layout.label_separator), .value = "CHARS",
     .help = "table: separator of several classes in a cell (default: detected, | or ;); '' for none", .rare = true},
    {"class-pattern", 0, MR_ARG_TEXT, MR_FIELD(request, o.for_layout.class_pattern), .value = "PATTERN",
     .help = "table: the class is in the file's name: '{class}_#' fits Abyssinian_12.jpg; # is a number, * anything",
     .rare = true},
    {"image-column", 0, MR_ARG_TEXT, MR_FIELD(request, o.for_layout.image_column), .value = "NAME",
     .help =
         "image column; hub: detected by default; webdataset: the member (seg.png); table: the column of file names"},
    {"text-column", 0, MR_ARG_TEXT, MR_FIELD(request, o.for_layout.text_column), .value = "NAME",
     .help = "column with captions; hub, webdataset, table"},
    {"split-map", 0, MR_ARG_OTHER, .take = take_split_map, .value = "FROM=TO,..",
     .help = "rename a split (test=val); FROM may be a folder; an empty TO excludes FROM"},
    {"split", 0, MR_ARG_OTHER, .take = take_split, .value = "NAME=SHARE,..",
     .help = "divide a source without splits (train=0.8,val=0.1,test=0.1); by the images' hashes, each class in these "
             "shares; images that are equal, look alike, or were made from one (.rf.) stay together"},
    {"group-pattern", 0, MR_ARG_TEXT, MR_FIELD(request, o.group_pattern), .value = "REGEX",
     .help =
         "with --split: keep images together in whose paths REGEX, or its first group in parentheses, finds the same "
         "text: '(patient[0-9]+)'",
     .rare = true},
    {"root", 0, MR_ARG_TEXT, MR_FIELD(request, o.for_layout.root), .value = "FOLDER",
     .help = "folder of the dataset in the source; detected by default"},
    {"exclude", 0, MR_ARG_LIST, MR_FIELD(request, left_out), .value = "PATH", .alias = "leave-out",
     .help = "exclude a file, folder or pattern of the source; for example 'train/*.png'; may be repeated"},
    {"annotations", 0, MR_ARG_LIST, MR_FIELD(request, annotations), .value = "FILE",
     .help = "coco: JSON file with annotations; in the source or elsewhere; detected by default; may be repeated"},
    {"class-depth", 0, MR_ARG_COUNT, MR_FIELD(request, o.for_layout.class_depth), .value = "N", .low = 1, .high = 16,
     .help = "imagenette, roboflow: folder levels that make a class (2: train/animals/cat is class animals/cat)",
     .rare = true},
    {"keep-unlisted", 0, MR_ARG_FLAG, MR_FIELD(request, o.for_layout.keep_unlisted),
     .help = "also ingest unlisted images; those that no annotation file and no split lists"},
    {"skip-unmatched", 0, MR_ARG_FLAG, MR_FIELD(request, o.for_layout.skip_unmatched),
     .help = "skip images without annotations and vice versa; by default these are errors"},
    {"shard-size", 0, MR_ARG_SIZE, MR_FIELD(request, o.shard_size), .value = "SIZE", .low = 1 << 12,
     .high = (uint64_t)1 << 36, .standard = "256MiB", .given = offsetof(request, o.shard_size_given),
     .group = "Dataset:",
     .help = "target size of a shard; 4KiB to 64GiB; without it, larger shards for sources beyond 12 TiB"},
    {"shuffle", 0, MR_ARG_COUNT, MR_FIELD(request, o.seed), .value = "SEED", .high = INT64_MAX,
     .given = offsetof(request, o.shuffle), .help = "shuffle each split with this seed"},
    {"seek-index", 0, MR_ARG_COUNT, MR_FIELD(request, o.seek_every), .value = "N", .high = MR_SEEK_EVERY_MAX,
     .standard = "8", .optional = "8", .given = offsetof(request, o.seek),
     .help = "make seek indexes, for fast crops; an entry every N MCUs, about 2 % of space"},
    {"no-seek-index", 0, MR_ARG_SET, MR_FIELD(request, o.seek), .low = false,
     .help = "no seek index; 'millrace seek' can add it later"},
    {"force", 0, MR_ARG_FLAG, MR_FIELD(request, o.force), .help = "replace DATASET once the new one is complete"},
    {"check", 0, MR_ARG_WORD, MR_FIELD(request, o.decode), .words = MR_WORDS("header", "decode"), .standard = "header",
     .group = "Checks and limits:",
     .help = "how images are checked; header: structure to the end marker; decode: every pixel"},
    {"max-rejects", 0, MR_ARG_OTHER, .take = take_max_rejects, .value = "N or N%", .standard = "1%",
     .help = "fail if more images are rejected; exit code 1; unsafe and duplicate names count as well"},
    {"max-pixels", 0, MR_ARG_COUNT, MR_FIELD(request, o.limits.max_pixels), .value = "N", .low = 1,
     .help = "reject images with more pixels (default " MR_TEXT_OF(MR_DEFAULT_MAX_PIXELS) ")", .rare = true},
    {"max-scans", 0, MR_ARG_COUNT, MR_FIELD(request, o.limits.max_scans), .value = "N", .low = 1,
     .help = "reject JPEGs with more scans (default 256, fewer for large ones)", .rare = true},
    {"max-file", 0, MR_ARG_SIZE, MR_FIELD(request, o.for_source.max_entry), .value = "SIZE", .low = 1,
     .high = MR_RECORD_MAX, .help = "reject larger image files (default 1GiB)", .rare = true},
    {"max-files", 0, MR_ARG_COUNT, MR_FIELD(request, o.for_source.max_entries), .value = "N", .low = 1,
     .high = UINT32_MAX - 1, .help = "reject a source with more files (default 20000000)", .rare = true},
    {"max-ratio", 0, MR_ARG_COUNT, MR_FIELD(request, o.for_source.max_ratio), .value = "N", .low = 1,
     .help = "reject archives that unpack to more than N times their size, and metas larger than N times their files "
             "(default 100; the first 64 MiB are exempt)",
     .rare = true},
    {"fail-on-leak", 0, MR_ARG_WORD, MR_FIELD(request, o.fail_on_leak), .optional = "equal",
     .words =
         (const char *const[]){[MR_LEAK_NONE] = "none", [MR_LEAK_EQUAL] = "equal", [MR_LEAK_ALIKE] = "alike", NULL},
     .help = "fail if two splits share an image; exit code 1; with =alike, near-duplicates count as well"},
    {"near-duplicates", 0, MR_ARG_FLAG, MR_FIELD(request, o.near),
     .help = "report near-duplicates; within splits and across them"},
    {"near-distance", 0, MR_ARG_COUNT, MR_FIELD(request, o.near_distance), .value = "N", .high = MR_NEAR_DISTANCE_MAX,
     .standard = MR_TEXT_OF(MR_NEAR_DISTANCE_STANDARD), .given = offsetof(request, near_distance_given),
     .help = "with --near-duplicates: compare images whose hashes differ in at most N of 63 bits", .rare = true},
    {"jobs", 'j', MR_ARG_COUNT, MR_FIELD(request, o.jobs), .value = "N", .low = 1, .high = 1024, .own = true,
     .group = "Execution:", .help = "threads; default: one per processor, under mpirun 1 per rank"},
    {"dry-run", 0, MR_ARG_FLAG, MR_FIELD(request, o.dry_run),
     .help = "check and report, but write nothing; with one SRC, DATASET is optional"},
    {"report", 0, MR_ARG_PATH, MR_FIELD(request, report), .value = "FILE",
     .help = "also write the report to FILE; even if ingest fails"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true,
     .help = "print one JSON object instead of the summary"},
    {"progress-fd", 0, MR_ARG_COUNT, MR_FIELD(request, progress_fd), .value = "N", .low = 3, .high = 1 << 20,
     .own = true, .help = "write progress to file descriptor N, a JSON object per line: step, done, total, bytes",
     .rare = true},
    MR_OPTION_STALL(request, stall),
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, o.quiet), .own = true, .help = "no progress and no summary"},
    {0},
};

static const mr_option arguments[] = {{.value = "SRC", .kind = MR_ARG_LIST, MR_FIELD(request, paths)}, {0}};

static mr_status check(void *ctx, mr_error *err)
{
    request *q = ctx;
    size_t count = q->paths.count;
    bool no_target = count == 1 && q->o.dry_run;
    if (count == 0)
        return mr_fail(err, MR_MISUSE, "SRC and DATASET are missing, for example: %s", mr_cmd_ingest.example);
    if (count == 1 && !no_target)
        return mr_fail(err, MR_MISUSE, "DATASET is missing, for example: millrace ingest %s dataset",
                       q->paths.items[0]);
    q->o.sources = q->paths.items;
    q->o.source_count = count - !no_target;
    q->o.target = no_target ? NULL : q->paths.items[count - 1];
    if (q->annotations.count) {
        MR_TRY(mr_annotations_settle(q->annotations.items, q->annotations.count, &q->o, &q->settled, err));
        q->o.layout = q->o.layout ? q->o.layout : "coco";
    }
    if (q->o.target && (strcmp(q->o.target, "-") == 0 || !*q->o.target))
        return mr_fail(err, MR_MISUSE, "DATASET must be a new folder, not '%s'", q->o.target);
    if (q->o.group_pattern && !q->o.share_count)
        return mr_fail(err, MR_MISUSE, "--group-pattern is for --split; give both");
    q->o.near = q->o.near || q->o.share_count || q->o.fail_on_leak == MR_LEAK_ALIKE;
    if (q->near_distance_given && !q->o.near)
        return mr_fail(err, MR_MISUSE, "--near-distance is for --near-duplicates; give both");
    q->o.for_layout.maps = q->maps;
    q->o.for_source.leave_out = q->left_out.items;
    q->o.for_source.leave_out_count = q->left_out.count;
    if (q->progress_fd && fcntl((int)q->progress_fd, F_GETFD) < 0)
        return mr_fail(err, MR_MISUSE, "--progress-fd: descriptor %llu is not open",
                       (unsigned long long)q->progress_fd);
    q->o.for_source.progress = (int)q->progress_fd;
    q->o.for_source.quiet = q->o.quiet && !q->progress_fd;
    return MR_OK;
}

static mr_status write_report(const mr_ingest *in, const char *path, bool complete, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    json_t *report = mr_ingest_report(in, complete);
    json_object_set_new(report, "sources", mr_cmd_ingest_sources(in->options));
    mr_status status = mr_json_dump(report, &text, err);
    json_decref(report);
    MR_TRY(status);
    return mr_file_publish(AT_FDCWD, path, text.data, text.len, err);
}

static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
static atomic_bool published;
static mr_buf interrupts[2]; /* messages before and after that; complete before a signal can arrive */

static void on_signal(int number)
{
    const mr_buf *message = &interrupts[atomic_load(&published)];
    ssize_t n = write(STDERR_FILENO, message->data, message->len);
    (void)n;
    signal(number, SIG_DFL);
    raise(number);
}

static mr_status catch_signals(const mr_ingest_options *o, mr_error *err)
{
    const char *const ends[] = {
        " is unchanged; run the same command again to continue with the shards that are finished\n",
        o->force ? " is the new dataset, complete; what may be left of the old one is beside it, as .partial\n"
                 : " is the new dataset, complete\n",
    };
    for (size_t i = 0; i < MR_COUNT(interrupts); i++) {
        mr_buf *message = &interrupts[i];
        mr_buf_add_text(message, "\nmillrace: interrupted; ");
        if (!o->dry_run && o->target)
            mr_text_show(message, o->target, strlen(o->target));
        mr_buf_add_text(message, o->dry_run ? "nothing was written\n" : ends[i]);
        MR_TRY(mr_buf_status(message, err, "starting"));
    }
    for (size_t i = 0; i < MR_COUNT(handled); i++) /* `nohup` ignores SIGHUP: keep that */
        if (signal(handled[i], on_signal) == SIG_IGN && handled[i] == SIGHUP)
            signal(SIGHUP, SIG_IGN);
    return MR_OK;
}

/* The report must not replace an input or a part of the dataset. */
static mr_status check_report(const request *q, mr_error *err)
{
    const char *report = q->report, *target = q->o.target;
    struct stat in;
    if (!report)
        return MR_OK;
    for (size_t i = 0; i < q->o.source_count; i++)
        if (strcmp(q->o.sources[i], "-") != 0)
            MR_TRY(mr_path_keep_out(report, q->o.sources[i], err));
        else if (fstat(STDIN_FILENO, &in) == 0 && S_ISREG(in.st_mode) &&
                 mr_file_is_at(STDIN_FILENO, AT_FDCWD, report, true))
            return mr_fail(err, MR_MISUSE, "--report %s: standard input reads this file; name another one", report);
    if (!target)
        return mr_output_check(report, err);
    MR_AUTO(mr_scope_free) char *partial = mr_stage_name(target);
    if (!partial)
        return mr_fail_memory(err, report);
    if (!mr_path_inside(report, target) && !mr_path_inside(report, partial))
        return mr_output_check(report, err);
    return mr_fail(err, MR_MISUSE,
                   "--report %s: is inside the dataset (%s), which has a report of its own; name another file", report,
                   target);
}

/* What rank 0 prints and writes at the end; returns the command's status. */
static mr_status finish(const request *q, mr_ingest *in, mr_status status, mr_error *err)
{
    mr_status extra = MR_OK; /* of --report and --json */
    mr_error other;
    if (q->report && in->options)
        extra = write_report(in, q->report, status == MR_OK, &other);
    if (extra != MR_OK)
        mr_term_error(&other);
    if (q->json && in->options) {
        mr_status printed = mr_cmd_ingest_json(in, status, err, &other);
        if (printed != MR_OK)
            mr_term_error(&other);
        extra = extra == MR_OK ? printed : extra;
    } else if (status == MR_OK && !q->o.quiet) {
        status = mr_cmd_ingest_summary(in, stdout, err);
    } else if (status == MR_OK) {
        status = mr_cmd_ingest_quiet(in, stderr, err);
    } else if (in->options) {
        mr_cmd_ingest_failure(in);
    }
    if (status != MR_OK)
        mr_term_error(err);
    return status != MR_OK ? status : extra;
}

/* ---- a view ------------------------------------------------------------------------------------------------------ */

static bool is_view(const request *q)
{
    return q->o.source_count == 1 && q->o.target && mr_solid_is_view(q->o.sources[0]);
}

/* What a view says, or what was checked when its datasets were made, cannot be asked again. */
static mr_status check_view(const request *q, const mr_ranks *ranks, mr_error *err)
{
    const mr_layout_options *l = &q->o.for_layout;
    const struct {
        bool given;
        const char *option;
    } others[] = {
        {q->o.layout != NULL, "layout"},    {l->label_column != NULL, "label-column"}, {l->config != NULL, "config"},
        {l->map_count > 0, "split-map"},    {q->o.share_count > 0, "split"},           {q->o.shuffle, "shuffle"},
        {q->left_out.count > 0, "exclude"}, {q->annotations.count > 0, "annotations"}, {q->o.decode, "check"},
        {q->o.near, "near-duplicates"},     {q->o.fail_on_leak, "fail-on-leak"},       {q->o.dry_run, "dry-run"},
        {q->report != NULL, "report"}};
    for (size_t i = 0; i < MR_COUNT(others); i++)
        if (others[i].given)
            return mr_fail(err, MR_MISUSE, "--%s: %s is a view, which selects the samples itself", others[i].option,
                           q->o.sources[0]);
    if (mr_ranks_world(ranks) > 1)
        return mr_fail(err, MR_MISUSE, "%s: a view is written by one process; run it without mpirun", q->o.sources[0]);
    return MR_OK;
}

static mr_status print_solid(const request *q, const mr_solid_result *r, mr_error *err)
{
    char samples[32], bytes[32];
    if (q->json) {
        json_t *doc = json_pack("{s:b,s:s,s:I,s:I,s:I,s:I,s:s}", "ok", 1, "view", q->o.sources[0], "samples",
                                (json_int_t)r->samples, "images", (json_int_t)r->images, "bytes",
                                (json_int_t)r->image_bytes, "shards", (json_int_t)r->shards, "digest", r->digest);
        mr_status status = mr_json_print(doc, err);
        json_decref(doc);
        return status;
    }
    if (q->o.quiet)
        return MR_OK;
    printf("%s: %s samples in %zu shard%s of %zu split%s, %s\ndigest %s\n", q->o.target,
           mr_text_count(r->samples, samples), r->shards, r->shards == 1 ? "" : "s", r->splits,
           r->splits == 1 ? "" : "s", mr_text_bytes(r->image_bytes, bytes), r->digest);
    return mr_term_flush(err);
}

static mr_status write_view(request *q, mr_ranks *ranks, mr_error *err)
{
    mr_solid_result result;
    MR_TRY(check_view(q, ranks, err));
    MR_TRY(catch_signals(&q->o, err));
    const mr_solid_options o = {.source = q->o.sources[0],
                                .target = q->o.target,
                                .shard_size = q->o.shard_size,
                                .jobs = q->o.jobs,
                                .force = q->o.force,
                                .quiet = q->o.for_source.quiet,
                                .seek = q->o.seek,
                                .seek_every = q->o.seek_every,
                                .ranks = ranks,
                                .published = &published};
    MR_TRY(mr_solid_write(&o, &result, err));
    return print_solid(q, &result, err);
}

/* DATASET.download, if a source is a URL. */
static mr_status name_downloads(request *q, mr_error *err)
{
    const char *dataset = q->o.target ? q->o.target : "millrace";
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    bool any = false;
    for (size_t i = 0; i < q->o.source_count; i++)
        any |= mr_remote_is_url(q->o.sources[i]);
    if (!any)
        return MR_OK;
    mr_buf_printf(&text, "%.*s.download", (int)mr_path_len(dataset), dataset);
    MR_TRY(mr_buf_status(&text, err, dataset));
    q->o.for_source.downloads = q->downloads = strdup(mr_buf_text(&text));
    return q->downloads ? MR_OK : mr_fail_memory(err, dataset);
}

static mr_status prepare(request *q, mr_error *err)
{
    MR_TRY(check_report(q, err));
    return name_downloads(q, err);
}

static mr_status ingest(request *q, mr_ranks *ranks, mr_ingest *in, mr_error *err)
{
    bool leader = mr_ranks_rank(ranks) == 0;
    if (!q->o.jobs)
        q->o.jobs = mr_ranks_world(ranks) > 1 ? 1 : mr_pool_processors();
    MR_TRY(mr_ranks_agree(ranks, leader ? catch_signals(&q->o, err) : MR_OK, err));
    if (q->o.dry_run && mr_ranks_world(ranks) > 1)
        return mr_fail(err, MR_MISUSE, "--dry-run: not supported under mpirun; run it in one process");
    MR_TRY(mr_ranks_agree(ranks, leader ? prepare(q, err) : MR_OK, err));
    return mr_ingest_run(&q->o, ranks, in, err);
}

/* A source of files; `status`: of the start. */
static mr_status take_source(request *q, mr_ranks *ranks, mr_status status, mr_error *err)
{
    mr_ingest in = {0};
    if (status == MR_OK)
        status = ingest(q, ranks, &in, err);
    if (!ranks || mr_ranks_rank(ranks) == 0)
        status = finish(q, &in, status, err);
    if (q->downloads)
        (void)mr_dir_remove(AT_FDCWD, q->downloads, NULL);
    free(q->downloads);
    mr_ingest_release(&in);
    return status;
}

static int start(int argc, char **argv)
{
    request q = {.o = {.seek = true, .published = &published}};
    mr_ranks *ranks = NULL;
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err;
    int code;
    if (mr_cli_parse(&cli, &mr_cmd_ingest, argc, argv, &q)) {
        mr_status status = mr_cli_ranks(&cli, q.stall, &ranks, &err);
        if (status == MR_OK && is_view(&q)) {
            status = write_view(&q, ranks, &err);
            if (status != MR_OK)
                mr_term_error(&err);
        } else {
            status = take_source(&q, ranks, status, &err);
        }
        code = mr_exit_code(status);
        mr_ranks_end(ranks);
    } else {
        code = cli.code;
    }
    free(q.paths.items);
    free(q.left_out.items);
    free(q.annotations.items);
    mr_annotations_free(&q.settled);
    return code;
}

const mr_command mr_cmd_ingest = {
    .name = "ingest",
    .title = "convert image folders and archives into a dataset",
    .usage = "SRC... DATASET",
    .example = "millrace ingest imagenette2-160.tgz imagenette",
    .summary = "Converts image datasets into shards of their original encoded bytes.",
    .notes = "Each SRC is a folder, an archive (tar, tar.gz, tar.zst, zip, 7z ...), the URL of one (https, s3, gs, hf; "
             "#sha256=HEX at its end is checked) or - for an archive on standard input; several are merged into one "
             "tree.  A folder's archives are read without unpacking them.  A view gives the samples that it selects.  "
             "DATASET must not exist yet; it appears at the end, complete, in one "
             "step.  To continue an interrupted ingest, run the same command again.\n"
             "\n"
             "  millrace ingest imagenette2-160.tgz imagenette\n"
             "  millrace ingest flowers/ flowers.mr --split-map valid=,test=val\n"
             "  millrace ingest train2017.zip val2017.zip annotations_trainval2017.zip coco\n"
             "  millrace ingest hub-download/ cartoons.mr --text-column image_description\n"
             "  mpirun -n 4 millrace ingest imagenet/ imagenet.mr\n",
    .more = "\n"
            "Parquet files are read by a program, parquet_rows.py, which needs Python with pyarrow.  "
            "MILLRACE_PYTHON names the Python to use instead of python3; MILLRACE_PARQUET_READER names "
            "another program, which gets a Parquet file on standard input and its name, /dev/stdin, as "
            "the last argument, and writes a tar stream.\n"
            "\n"
            "SIGINT (Ctrl-C) ends with exit status 130, SIGTERM with 143, SIGHUP, SIGUSR1 and SIGUSR2 with 129, 138 "
            "and 140; DATASET is unchanged unless the message says that it is complete.\n"
            "\n"
            "Exit status: 0 done; 1 the data is bad; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
