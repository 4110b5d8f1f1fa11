/* cmd_export.c - `millrace export DST OUT`: the source files again, or a WebDataset tar. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/scope.h"
#include "base/term.h"
#include "base/text.h"
#include "export/export.h"
#include "shards/commands.h"

typedef struct request {
    const char *dir, *out, *to;
    bool json;
    mr_export_options options;
} request;

static const mr_option options[] = {
    {"to", 0, MR_ARG_TEXT, MR_FIELD(request, to), .words = MR_WORDS("folder", "tar"),
     .help = "folder: every file at its source path; tar: a WebDataset tar (default: tar if OUT ends in .tar, else "
             "folder)"},
    {"split", 0, MR_ARG_TEXT, MR_FIELD(request, options.split), .value = "SPLIT", .help = "only this split"},
    {"force", 0, MR_ARG_FLAG, MR_FIELD(request, options.force), .help = "replace OUT and everything in it"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object at the end"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, options.quiet), .own = true, .help = "no progress, no summary"},
    {0},
};

static const mr_option arguments[] = {
    {.value = "DST", .kind = MR_ARG_PATH, MR_FIELD(request, dir)},
    {.value = "OUT", .kind = MR_ARG_PATH, MR_FIELD(request, out)},
    {0},
};

static bool is_tar(const request *q)
{
    size_t len = strlen(q->out);
    return q->to ? strcmp(q->to, "tar") == 0 : len > 4 && strcmp(q->out + len - 4, ".tar") == 0;
}

static mr_status check(void *ctx, mr_error *err)
{
    const request *q = ctx;
    if (strcmp(q->out, "-") != 0)
        return MR_OK;
    if (!is_tar(q))
        return mr_fail(err, MR_MISUSE, "a folder cannot go to standard output; add --to tar");
    if (q->json)
        return mr_fail(err, MR_MISUSE, "the tar goes to standard output; --json cannot go there too");
    if (isatty(STDOUT_FILENO))
        return mr_fail(err, MR_MISUSE, "standard output is a terminal; send the tar to a file or a pipe");
    return MR_OK;
}

static void print_summary(const request *q, const mr_export_result *r, double seconds)
{
    char samples[32], files[32], bytes[32], time[32];
    if (q->json)
        printf("{\"ok\":true,\"samples\":%llu,\"files\":%llu,\"bytes\":%llu}\n", (unsigned long long)r->samples,
               (unsigned long long)r->files, (unsigned long long)r->bytes);
    else if (!q->options.quiet)
        fprintf(strcmp(q->out, "-") == 0 ? stderr : stdout, "%s: %swritten%s, %s file%s, %s, of %s sample%s in %s\n",
                q->out, mr_sgr(stdout, MR_GREEN), mr_sgr(stdout, MR_PLAIN), mr_text_count(r->files, files),
                r->files == 1 ? "" : "s", mr_text_bytes(r->bytes, bytes), mr_text_count(r->samples, samples),
                r->samples == 1 ? "" : "s", mr_text_seconds(seconds, time));
}

static int start(int argc, char **argv)
{
    request q = {0};
    mr_export_result result = {0};
    mr_error err = {0};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    double begin = mr_seconds();
    if (!mr_cli_parse(&cli, &cmd_export, argc, argv, &q))
        return cli.code;
    mr_status status = (is_tar(&q) ? mr_export_tar : mr_export_folder)(q.dir, q.out, &q.options, &result, &err);
    if (status == MR_OK)
        print_summary(&q, &result, mr_seconds() - begin);
    return mr_cli_end(NULL, status, &err);
}

const mr_command cmd_export = {
    .name = "export",
    .title = "write the source files back, or a WebDataset tar",
    .usage = "DST OUT",
    .example = "millrace export imagenette pictures",
    .summary = "Writes the ingested image files back at their source paths, byte for byte; or a WebDataset tar with "
               "image, meta and label of every sample.  Each record is checked against its hash on the way.  OUT "
               "appears only when it is complete.",
    .notes = "Examples:\n"
             "  millrace export imagenette pictures\n"
             "  millrace export imagenette val.tar --split val\n"
             "  millrace export imagenette - --to tar | ssh host tar -x\n\n"
             "Annotations are part of a sample's meta: see 'millrace show' or the .json files of the tar.\n\n"
             "Exit status: 0 done; 1 a sample is damaged; 2 wrong use; 3 the system failed.",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
