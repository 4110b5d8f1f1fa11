/* cmd_report.c - `millrace report DST`: a page about a dataset.
 * Invariant: the page appears whole or not at all, and never inside the dataset. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/scope.h"
#include "base/term.h"
#include "base/text.h"
#include "report/commands.h"
#include "report/page.h"

typedef struct request {
    const char *dir, *output;
    uint64_t seed;
    bool quiet;
} request;

static const mr_option options[] = {
    {"output", 'o', MR_ARG_PATH, MR_FIELD(request, output), .value = "FILE", .standard = "report.html",
     .help = "the page; - for standard output"},
    {"seed", 0, MR_ARG_COUNT, MR_FIELD(request, seed), .value = "S", .standard = "0",
     .help = "another seed shows other samples"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .own = true, .help = "print nothing but errors"},
    {0},
};

static const mr_option arguments[] = {{.value = "DST", .kind = MR_ARG_PATH, MR_FIELD(request, dir)}, {0}};

static mr_status write_report(const request *q, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf page = {0};
    double begin = mr_seconds();
    char bytes[32], seconds[32];
    bool out = strcmp(q->output, "-") == 0;
    if (!out)
        MR_TRY(mr_path_keep_out(q->output, q->dir, err));
    MR_TRY(mr_page_write(q->dir, q->seed, &page, err));
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
    if (!mr_cli_parse(&cli, &cmd_report, argc, argv, &q))
        return cli.code;
    return mr_cli_end(NULL, write_report(&q, &err), &err);
}

const mr_command cmd_report = {
    .name = "report",
    .title = "a page about a dataset, for people",
    .usage = "DST",
    .example = "millrace report imagenette -o imagenette.html",
    .summary =
        "Writes one HTML file that needs no network: splits and classes, sizes and formats, a wall of samples with "
        "their boxes, polygons and captions, and what ingest left out.  It has small copies of some pictures: "
        "publish it only where these may be published.",
    .notes =
        "Examples:\n"
        "  millrace report imagenette -o imagenette.html\n"
        "  millrace report coco --seed 7 -o - > coco.html\n"
        "\n"
        "The page is at most about 5 MB.  Objects, captions and lists of labels are counted in up to 50,000 samples, "
        "chosen evenly; the page says so.\n"
        "\n"
        "Exit status: 0 done; 1 the dataset is damaged; 2 wrong use or no dataset there; 3 the system failed.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
