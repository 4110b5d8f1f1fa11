/* cmd_report.c - `millrace report DATASET` and `millrace report RUN`: a page about a dataset or a training run.
 * Invariant: the page appears whole or not at all, and never inside a dataset or a checkpoint. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "train/report/commands.h"
#include "shards/report/page.h"
#include "train/report/run_page.h"

typedef struct request {
    const char *dir, *output, *dataset;
    uint64_t seed, max_pixels;
    bool seeded, quiet;
} request;

static const mr_option options[] = {
    {"output", 'o', MR_ARG_PATH, MR_FIELD(request, output), .value = "FILE", .standard = "report.html",
     .help = "output file (-: standard output)"},
    {"seed", 0, MR_ARG_COUNT, MR_FIELD(request, seed), .value = "S", .standard = "0",
     .given = offsetof(request, seeded), .help = "random seed of the samples that are shown"},
    {"dataset", 0, MR_ARG_PATH, MR_FIELD(request, dataset), .value = "DATASET",
     .help = "with RUN: where its dataset is now, to show images", .input = true},
    {"max-pixels", 0, MR_ARG_COUNT, MR_FIELD(request, max_pixels), .value = "N", .low = 1,
     .standard = MR_TEXT_OF(MR_DEFAULT_MAX_PIXELS), .help = "do not show larger images"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .own = true, .help = "print nothing but errors"},
    {0},
};

static const mr_option arguments[] = {{.value = "DATASET|RUN", .kind = MR_ARG_PATH, MR_FIELD(request, dir)}, {0}};

static mr_status keep_out(const request *q, bool run, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL, *name = NULL;
    if (q->dataset)
        MR_TRY(mr_path_keep_out(q->output, q->dataset, err));
    if (!run)
        return mr_path_keep_out(q->output, q->dir, err);
    MR_TRY(mr_path_split(q->output, &dir, &name, err));
    if (mr_checkpoint_is(dir))
        return mr_fail(err, MR_MISUSE, "--output %s: is in a checkpoint; name another file", q->output);
    return MR_OK;
}

static mr_status make_page(const request *q, bool run, mr_buf *page, mr_error *err)
{
    if (run && q->seeded)
        return mr_fail(err, MR_MISUSE, "%s: is a run; --seed applies to reports of datasets only", q->dir);
    if (!run && q->dataset)
        return mr_fail(err, MR_MISUSE, "%s: is not a run; --dataset is for reports of runs", q->dir);
    const mr_page_options o = {q->seed, q->max_pixels, q->quiet ? MR_PROGRESS_QUIET : MR_PROGRESS_LINE};
    return run ? mr_run_page_write(q->dir, q->dataset, q->max_pixels, page, err) : mr_page_write(q->dir, &o, page, err);
}

static mr_status write_report(const request *q, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf page = {0};
    double begin = mr_seconds();
    char bytes[32], seconds[32];
    bool out = strcmp(q->output, "-") == 0;
    bool run;
    MR_TRY(mr_run_is(q->dir, &run, err));
    if (!out)
        MR_TRY(keep_out(q, run, err));
    MR_TRY(make_page(q, run, &page, err));
    if (out)
        return mr_file_write(STDOUT_FILENO, page.data, page.len, "standard output", err);
    MR_TRY(mr_file_publish(AT_FDCWD, q->output, page.data, page.len, err));
    if (!q->quiet)
        printf("%s: %swritten%s, %s, in %s\n", q->output, mr_sgr(stdout, MR_GREEN), mr_sgr(stdout, MR_PLAIN),
               mr_text_bytes(page.len, bytes), mr_text_seconds(mr_seconds() - begin, seconds));
    return MR_OK;
}

static int start(int argc, char **argv)
{
    request q = {0};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_report, argc, argv, &q))
        return cli.code;
    return mr_cli_end(NULL, write_report(&q, &err), &err);
}

const mr_command mr_cmd_report = {
    .name = "report",
    .title = "write an HTML report of a dataset or a run",
    .usage = "DATASET|RUN",
    .example = "millrace report imagenette -o imagenette.html",
    .summary =
        "Writes one HTML file that needs no network: splits and classes, sizes and formats, a wall of samples with "
        "their boxes, polygons and captions, and what ingest left out.  Of a training run (the --output of millrace "
        "train): curves, where time went, confusions, the most confident mistakes, retrieval results.  It has "
        "thumbnails of some images: publish it only where these may be published.",
    .notes =
        "Examples:\n"
        "  millrace report imagenette -o imagenette.html\n"
        "  millrace report coco --seed 7 -o - > coco.html\n"
        "  millrace report run -o run.html\n"
        "\n"
        "The page is at most about 5 MB.  Objects, captions and label lists are counted in up to 50,000 samples, "
        "chosen evenly; the page says so.\n"
        "\n"
        "Exit status: 0 done; 1 the dataset or the run is damaged; 2 usage error, or no dataset or run there; 3 system "
        "error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
