/* cmd_export.c - `millrace export DATASET OUT`: the source files again, or a format that other programs read.
 * Invariant: everything that the format cannot hold is counted in the summary and in --json. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "shards/export/export.h"
#include "shards/commands.h"

typedef struct request {
    const char *dir, *out, *to;
    bool json;
    mr_export_options options;
} request;

#define WORD(word, title)   #word,
#define FORMAT(word, title) "  " #word ": " title "\n"

static const mr_option options[] = {
    {"to", 0, MR_ARG_TEXT, MR_FIELD(request, to), .words = MR_WORDS(MR_EXPORTS(WORD) "webdataset"),
     .help = "output format, see below (default: tar if OUT ends in .tar, otherwise folder)"},
    {"split", 0, MR_ARG_TEXT, MR_FIELD(request, options.split), .value = "SPLIT", .help = "export only this split"},
    {"task", 0, MR_ARG_WORD, MR_FIELD(request, options.task),
     .words = MR_WORDS("auto", "detect", "segment", "obb", "pose"), .standard = "auto",
     .help = "yolo: type of labels; auto: what most objects have"},
    {"shard-size", 0, MR_ARG_SIZE, MR_FIELD(request, options.shard_size), .low = 1, .high = (uint64_t)1 << 50,
     .value = "SIZE",
     .help = "tar, parquet: approximate size of a file (tar: default one file; webdataset: 1GB; parquet: 500MB)"},
    {"link", 0, MR_ARG_PATH, MR_FIELD(request, options.link), .value = "FOLDER",
     .help = "hard-link unchanged images from the source in FOLDER", .input = true},
    {"force", 0, MR_ARG_FLAG, MR_FIELD(request, options.force),
     .help = "replace OUT, if everything in it was written by an export"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object at the end"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, options.quiet), .own = true, .help = "no progress, no summary"},
    {0},
};

static const mr_option arguments[] = {
    {.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, dir)},
    {.value = "OUT", .kind = MR_ARG_PATH, MR_FIELD(request, out)},
    {0},
};

static bool ends_in_tar(const char *out)
{
    size_t len = strlen(out);
    return len > 4 && strcmp(out + len - 4, ".tar") == 0;
}

static const char *format_of(const request *q)
{
    return q->to ? q->to : ends_in_tar(q->out) ? "tar" : "folder";
}

/* One tar, not a folder of them: webdataset stands for the folder, if OUT can be one. */
static bool is_tar(const request *q)
{
    const char *format = format_of(q);
    bool shards = !strcmp(format, "webdataset") && strcmp(q->out, "-") != 0 && !ends_in_tar(q->out);
    return (!strcmp(format, "tar") || !strcmp(format, "webdataset")) && !shards && !q->options.shard_size;
}

static mr_status check(void *ctx, mr_error *err)
{
    const request *q = ctx;
    if (strcmp(q->out, "-") != 0)
        return MR_OK;
    if (!is_tar(q))
        return mr_fail(err, MR_MISUSE, "a folder cannot go to standard output; add --to tar%s",
                       q->options.shard_size ? " without --shard-size" : "");
    if (q->json)
        return mr_fail(err, MR_MISUSE, "the tar goes to standard output; --json cannot go there too");
    if (isatty(STDOUT_FILENO))
        return mr_fail(err, MR_MISUSE, "standard output is a terminal; send the tar to a file or a pipe");
    return MR_OK;
}

/* ---- the summary ------------------------------------------------------------------------------------------------- */

static void add_loss(const mr_export_result *r, int part, mr_buf *out)
{
    const mr_export_loss *loss = &r->losses[part];
    mr_buf_printf(out, "\"%s\":{\"count\":%llu", mr_export_part_words[part], (unsigned long long)loss->count);
    if (*loss->split)
        mr_buf_printf(out, ",\"split\":\"%s\",\"sample\":%llu", loss->split, (unsigned long long)loss->sample);
    if (r->instead[part]) {
        mr_buf_add_text(out, ",\"instead\":");
        mr_json_add_string(out, r->instead[part], strlen(r->instead[part]));
    }
    mr_buf_add_text(out, "}");
}

static mr_status print_json(const request *q, const mr_export_result *r, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    bool first = true;
    mr_buf_printf(&text, "{\"ok\":true,\"format\":\"%s\",\"samples\":%llu,\"files\":%llu,\"bytes\":%llu", format_of(q),
                  (unsigned long long)r->samples, (unsigned long long)r->files, (unsigned long long)r->bytes);
    if (q->options.link)
        mr_buf_printf(&text, ",\"linked\":%llu", (unsigned long long)r->linked);
    if (*r->remark) {
        mr_buf_add_text(&text, ",\"remark\":");
        mr_json_add_string(&text, r->remark, strlen(r->remark));
    }
    mr_buf_add_text(&text, ",\"not_kept\":{");
    for (int i = 0; i < MR_PART_COUNT; i++)
        if (r->losses[i].count) {
            mr_buf_add_text(&text, first ? "" : ",");
            add_loss(r, i, &text);
            first = false;
        }
    mr_buf_add_text(&text, "}}\n");
    MR_TRY(mr_buf_status(&text, err, "exporting"));
    fputs(mr_buf_text(&text), stdout);
    return MR_OK;
}

static mr_status print_losses(const request *q, const mr_export_result *r, mr_error *err)
{
    bool any = false;
    char title[60], count[32], where[100];
    for (int i = 0; i < MR_PART_COUNT; i++)
        any = any || r->losses[i].count;
    if (!any)
        return MR_OK;
    mr_table *table = mr_table_new(4);
    snprintf(title, sizeof title, "not kept by %s", format_of(q));
    mr_table_row(table, title, ">count", "instead", "first");
    for (int i = 0; i < MR_PART_COUNT; i++) {
        const mr_export_loss *loss = &r->losses[i];
        if (!loss->count)
            continue;
        *where = '\0';
        if (*loss->split)
            snprintf(where, sizeof where, "%s %llu", loss->split, (unsigned long long)loss->sample);
        mr_table_row(table, mr_export_part_texts[i], mr_text_count(loss->count, count),
                     r->instead[i] ? r->instead[i] : "left out", where);
    }
    return mr_table_print(table, stdout, err);
}

static mr_status print_summary(const request *q, const mr_export_result *r, double seconds, mr_error *err)
{
    char samples[32], files[32], bytes[32], time[32];
    FILE *to = strcmp(q->out, "-") == 0 ? stderr : stdout;
    if (q->json)
        return print_json(q, r, err);
    if (q->options.quiet)
        return MR_OK;
    fprintf(to, "%s: %swritten%s, %s file%s, %s, of %s sample%s in %s\n", q->out, mr_sgr(stdout, MR_GREEN),
            mr_sgr(stdout, MR_PLAIN), mr_text_count(r->files, files), r->files == 1 ? "" : "s",
            mr_text_bytes(r->bytes, bytes), mr_text_count(r->samples, samples), r->samples == 1 ? "" : "s",
            mr_text_seconds(seconds, time));
    if (q->options.link)
        fprintf(to, "  %s linked to files of %s\n", mr_text_count(r->linked, files), q->options.link);
    if (*r->remark)
        fprintf(to, "  %s\n", r->remark);
    return print_losses(q, r, err);
}

static int start(int argc, char **argv)
{
    request q = {0};
    mr_export_result result = {0};
    mr_error err = {0};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    double begin = mr_seconds();
    if (!mr_cli_parse(&cli, &mr_cmd_export, argc, argv, &q))
        return cli.code;
    mr_status status = is_tar(&q) ? mr_export_tar(q.dir, q.out, &q.options, &result, &err)
                                  : mr_export(q.dir, q.out, format_of(&q), &q.options, &result, &err);
    if (status == MR_OK)
        status = print_summary(&q, &result, mr_seconds() - begin, &err);
    return mr_cli_end(NULL, status, &err);
}

const mr_command mr_cmd_export = {
    .name = "export",
    .title = "write the source files back, or convert to another format",
    .usage = "DATASET OUT",
    .example = "millrace export imagenette pictures",
    .summary =
        "Writes the images of a dataset, byte for byte, with their labels, captions and objects, in a format that "
        "other programs read; or the ingested files at their source paths.  Each record is checked against its "
        "hash on the way.  OUT appears only when it is complete; what the format cannot hold is counted and "
        "printed.",
    .notes = "Formats:\n" MR_EXPORTS(
        FORMAT) "\n"
                "Examples:\n"
                "  millrace export imagenette pictures\n"
                "  millrace export objects objects-coco --to coco\n"
                "  millrace export objects objects-yolo --to yolo --task detect\n"
                "  millrace export imagenette val.tar --split val\n"
                "  millrace export imagenette tars --to webdataset\n"
                "  millrace export imagenette - --to tar | ssh host tar -x\n\n"
                "A file keeps its name in the source, without the folders. Names that are not safe on every file "
                "system are changed, and a duplicate becomes NAME-2; both are counted.\n\n"
                "Exit status: 0 done; 1 a sample is damaged; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
