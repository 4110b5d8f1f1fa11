/* cmd_ingest.c - millrace ingest SRC... DATASET: a run of it.
 * Invariant: results go to stdout, progress and errors to stderr; only rank 0 prints. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ingest/cmd_ingest.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/text.h"
#include "ingest/commands.h"
#include "ingest/ingest.h"
#include "ingest/solid.h"
#include "shards/remote/remote.h"

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
static mr_status check_report(const mr_ingest_request *q, mr_error *err)
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
            return mr_fail(err, MR_MISUSE, "--report %s: standard input reads this file; name another file", report);
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
static mr_status finish(const mr_ingest_request *q, mr_ingest *in, mr_status status, mr_error *err)
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

static bool is_view(const mr_ingest_request *q)
{
    return q->o.source_count == 1 && q->o.target && mr_solid_is_view(q->o.sources[0]);
}

/* What a view says, or what was checked when its datasets were made, cannot be asked again. */
static mr_status check_view(const mr_ingest_request *q, const mr_ranks *ranks, mr_error *err)
{
    const mr_layout_options *l = &q->o.for_layout;
    const struct {
        bool given;
        const char *option;
    } others[] = {{q->o.layout != NULL, "layout"},
                  {l->label_column != NULL, "label-column"},
                  {l->config != NULL, "config"},
                  {l->map_count > 0, "split-map"},
                  {l->list_count > 0, "split-list"},
                  {q->o.share_count > 0, "split"},
                  {q->o.shuffle, "shuffle"},
                  {q->left_out.count > 0, "exclude"},
                  {q->annotations.count > 0, "annotations"},
                  {q->o.decode, "check"},
                  {q->o.near, "near-duplicates"},
                  {q->o.fail_on_leak, "fail-on-leak"},
                  {q->o.dry_run, "dry-run"},
                  {q->report != NULL, "report"}};
    for (size_t i = 0; i < MR_COUNT(others); i++)
        if (others[i].given)
            return mr_fail(err, MR_MISUSE, "--%s: %s is a view, which selects the samples itself", others[i].option,
                           q->o.sources[0]);
    if (mr_ranks_world(ranks) > 1)
        return mr_fail(err, MR_MISUSE, "%s: a view is written by one process; run it without mpirun", q->o.sources[0]);
    return MR_OK;
}

static mr_status print_solid(const mr_ingest_request *q, const mr_solid_result *r, mr_error *err)
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

static mr_status write_view(mr_ingest_request *q, mr_ranks *ranks, mr_error *err)
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
static mr_status name_downloads(mr_ingest_request *q, mr_error *err)
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

static mr_status prepare(mr_ingest_request *q, mr_error *err)
{
    MR_TRY(check_report(q, err));
    return name_downloads(q, err);
}

static mr_status ingest(mr_ingest_request *q, mr_ranks *ranks, mr_ingest *in, mr_error *err)
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

/* A source of files; `status`: the status of the start. */
static mr_status take_source(mr_ingest_request *q, mr_ranks *ranks, mr_status status, mr_error *err)
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
    mr_ingest_request q = {.o = {.seek = true, .published = &published}};
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
    .example = MR_INGEST_EXAMPLE,
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
    .options = mr_ingest_option_rows,
    .arguments = mr_ingest_arguments,
    .check = mr_ingest_request_check,
    .run = start,
};
