/* cmd_export.c - `millrace export DST OUT`: the source files again, or a WebDataset tar. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/term.h"
#include "base/text.h"
#include "export/export.h"
#include "shards/commands.h"

enum { OPT_TO = 256, OPT_SPLIT, OPT_FORCE, OPT_JSON };

typedef struct request {
    const char *dir, *out, *to;
    bool json;
    mr_export_options options;
} request;

static const struct argp_option options[] = {
    {"to", OPT_TO, "FORM", 0,
     "folder: every file at its source path; tar: a WebDataset tar (default: tar if OUT "
     "ends in .tar, else folder)",
     1},
    {"split", OPT_SPLIT, "SPLIT", 0, "only this split", 1},
    {"force", OPT_FORCE, NULL, 0, "replace OUT, with all that is in it", 1},
    {"json", OPT_JSON, NULL, 0, "print one JSON object at the end", 2},
    {"quiet", 'q', NULL, 0, "no progress, no summary", 2},
    {0},
};

static const char help[] =
    "Writes the ingested image files back at their source paths, byte for byte; or a WebDataset tar with image, meta "
    "and "
    "label of every sample.  Each record is checked against its hash on the way.  OUT appears only when it is whole."
    "\vExamples:\n"
    "  millrace export imagenette pictures\n"
    "  millrace export imagenette val.tar --split val\n"
    "  millrace export imagenette - --to tar | ssh host tar -x\n\n"
    "Annotations are part of a sample's meta: see 'millrace show' or the .json files of the tar.\n\n"
    "Exit status: 0 done; 1 a sample is damaged; 2 wrong use; 3 the system failed.";

static bool is_tar(const request *q)
{
    size_t len = q->out ? strlen(q->out) : 0;
    return q->to ? strcmp(q->to, "tar") == 0 : len > 4 && strcmp(q->out + len - 4, ".tar") == 0;
}

static void check(const request *q, struct argp_state *state)
{
    static const char *const forms[] = {"folder", "tar", "webdataset", NULL};
    if (!q->dir || !q->out)
        mr_cli_misuse(state, "expected DST OUT, for example: millrace export imagenette pictures");
    if (q->to && strcmp(q->to, "folder") != 0 && !is_tar(q)) {
        const char *near = mr_text_nearest(q->to, forms);
        mr_cli_misuse(state, "--to %s: expected folder or tar%s%s%s", q->to, near ? "; did you mean " : "",
                      near && strcmp(near, "webdataset") == 0 ? "tar"
                      : near                                  ? near
                                                              : "",
                      near ? "?" : "");
    }
    if (strcmp(q->out, "-") == 0 && !is_tar(q))
        mr_cli_misuse(state, "a folder cannot go to standard output; add --to tar");
    if (strcmp(q->out, "-") == 0 && q->json)
        mr_cli_misuse(state, "the tar goes to standard output; --json cannot go there too");
    if (strcmp(q->out, "-") == 0 && isatty(STDOUT_FILENO))
        mr_cli_misuse(state, "standard output is a terminal; send the tar to a file or a pipe");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    request *q = state->input;
    switch (key) {
    case OPT_TO:
        q->to = arg;
        break;
    case OPT_SPLIT:
        q->options.split = arg;
        break;
    case OPT_FORCE:
        q->options.force = true;
        break;
    case OPT_JSON:
        q->json = true;
        break;
    case 'q':
        q->options.quiet = true;
        break;
    case ARGP_KEY_ARG:
        if (q->out)
            mr_cli_misuse(state, "'%s' is one argument too many", arg);
        *(q->dir ? &q->out : &q->dir) = arg;
        break;
    case ARGP_KEY_END:
        check(q, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
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

int cmd_export(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "DST OUT", help, NULL, NULL, NULL};
    request q = {0};
    mr_export_result result = {0};
    mr_error err = {0};
    double start = mr_seconds();
    mr_cli_parse(&argp, argc, argv, &q);
    mr_status status = (is_tar(&q) ? mr_export_tar : mr_export_folder)(q.dir, q.out, &q.options, &result, &err);
    if (status == MR_OK)
        print_summary(&q, &result, mr_seconds() - start);
    if (status != MR_OK)
        mr_term_error(&err);
    return mr_exit_code(status);
}
