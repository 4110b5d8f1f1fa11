/* cmd_verify.c - `millrace verify DATASET`: is the dataset intact?
 * Invariant: under mpirun only rank 0 prints. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shards/cmd_verify.h"
#include "base/cli/cli.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/text.h"
#include "image/codec/image.h"
#include "shards/commands.h"
#include "shards/dataset/dataset.h"
#include "shards/verify/formats.h"
#include "shards/view/view.h"

enum { TEXT, JSON, FORMATS }; /* from FORMATS on: forms of verify/formats.h */

#define X(name) #name,
static const char *const format_words[] = {"text", "json", MR_VERIFY_FORMATS(X) NULL};
#undef X
#define X(name) mr_verify_##name,
static mr_verify_format *const formats[] = {MR_VERIFY_FORMATS(X)};
#undef X

typedef struct request {
    const char *dir, *junit;
    int format;
    bool json, quick, deep, decode;
    mr_verify_options options;
    uint64_t stall;
} request;

static mr_status take_digest(void *field, const char *text, mr_error *err)
{
    uint8_t digest[32];
    if (!mr_unhex(text, digest, sizeof digest))
        return mr_fail(err, MR_MISUSE,
                       "--expect %s: a dataset digest is 64 hexadecimal digits, as 'millrace inspect' prints it", text);
    *(const char **)field = text;
    return MR_OK;
}

static const mr_option options[] = {
    {"quick", 0, MR_ARG_FLAG, MR_FIELD(request, quick),
     .help = "check sizes, manifest and indexes only; takes seconds, reads no image"},
    {"deep", 0, MR_ARG_FLAG, MR_FIELD(request, deep),
     .help = "also check LMDB's pages, and compare metas and image headers with the index"},
    {"decode", 0, MR_ARG_FLAG, MR_FIELD(request, decode),
     .help = "also decode every image, and compare seek indexes with rebuilt ones (implies --deep)"},
    {"no-sha256", 0, MR_ARG_FLAG, MR_FIELD(request, options.no_sha256),
     .help = "check XXH3 only: ten times faster, detects corruption but no tampering"},
    {"expect", 0, MR_ARG_OTHER, MR_FIELD(request, options.expect), .take = take_digest, .value = "DIGEST",
     .help = "fail unless the dataset has this digest (inspect prints it)"},
    {"max-pixels", 0, MR_ARG_COUNT, MR_FIELD(request, options.limits.max_pixels), .value = "N", .low = 1,
     .standard = MR_TEXT_OF(MR_DEFAULT_MAX_PIXELS), .help = "with --decode: report larger images"},
    {"jobs", 'j', MR_ARG_COUNT, MR_FIELD(request, options.jobs), .value = "N", .low = 1, .high = 1024, .own = true,
     .help = "threads (default: one per processor)"},
    {"format", 0, MR_ARG_WORD, MR_FIELD(request, format), .own = true, .words = format_words, .standard = "text",
     .help = "output format: text, one JSON object with every problem, JUnit XML, text with annotations of GitHub, or "
             "GitLab Code Quality"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "the same as --format json"},
    {"junit", 0, MR_ARG_PATH, MR_FIELD(request, junit), .value = "FILE",
     .help = "also write JUnit XML, a test case per shard"},
    MR_OPTION_STALL(request, stall),
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, options.quiet), .own = true,
     .help = "no progress, and no output on success"},
    {0},
};

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, dir)}, {0}};

static mr_status check(void *ctx, mr_error *err)
{
    request *q = ctx;
    if (q->quick && (q->deep || q->decode))
        return mr_fail(err, MR_MISUSE, "--quick and --%s exclude each other", q->decode ? "decode" : "deep");
    if (q->json && q->format > JSON)
        return mr_fail(err, MR_MISUSE, "--json and --format %s exclude each other", format_words[q->format]);
    if (q->json)
        q->format = JSON;
    q->options.level = q->decode  ? MR_VERIFY_DECODE
                       : q->deep  ? MR_VERIFY_DEEP
                       : q->quick ? MR_VERIFY_QUICK
                                  : MR_VERIFY_FULL;
    return MR_OK;
}

static mr_status print_json(const mr_verify_report *r, mr_error *err)
{
    json_t *json = NULL;
    MR_TRY(mr_verify_json(r, &json, err));
    mr_status status = mr_json_print(json, err);
    json_decref(json);
    return status;
}

static mr_status print_form(const request *q, const mr_verify_report *r, const char *why, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf form = {0};
    MR_TRY(formats[q->format - FORMATS](r, why, q->dir, &form, err));
    fwrite(mr_buf_text(&form), 1, form.len, stdout);
    return MR_OK;
}

/* A workflow's annotations are lines of its log, which people read. */
static bool formats_follow_text(const request *q)
{
    return q->format >= FORMATS && formats[q->format - FORMATS] == mr_verify_github;
}

/* r NULL: there is no report, for this reason.  Unless it is the `end`, another follows and replaces this one in a
 * file; a pipe or a device would keep both, and gets only that. */
static mr_status write_junit(const request *q, const mr_verify_report *r, const char *why, bool end, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf xml = {0};
    mr_output o;
    MR_TRY(mr_path_keep_out(q->junit, q->dir, err));
    MR_TRY(mr_verify_junit(r, why, q->dir, &xml, err));
    MR_TRY(mr_output_open(AT_FDCWD, q->junit, &o, err));
    mr_status status = end || o.temp ? mr_file_write(o.fd, xml.data, xml.len, q->junit, err) : MR_OK;
    return mr_output_close(&o, status, err);
}

/* An earlier report must not be mistaken for this run's, however it ends; a pipe or a device has none.  A path where no
 * file can be is reported at once; other failures to write follow the verdict. */
static mr_status begin_junit(const request *q, mr_error *err)
{
    struct stat st;
    if (stat(q->junit, &st) == 0 && S_ISFIFO(st.st_mode))
        return mr_path_keep_out(q->junit, q->dir, err); /* closing it would look like the end to its reader */
    mr_error why;
    mr_status status = write_junit(q, NULL, "verify did not finish", false, &why);
    if (status == MR_MISUSE)
        return mr_fail(err, status, "%s", why.text);
    if (status != MR_OK && lstat(q->junit, &st) == 0 && S_ISREG(st.st_mode))
        unlink(q->junit); /* for example, the disk is full */
    return MR_OK;
}

/* Both are tried: the verdict is printed even if the file cannot be written, and vice versa. */
static mr_status deliver(const request *q, const mr_verify_report *r, mr_error *err)
{
    mr_status written = q->junit ? write_junit(q, r, NULL, true, err) : MR_OK, printed = MR_OK;
    if (q->format == TEXT || formats_follow_text(q))
        mr_cmd_verify_print(r, q->dir, &q->options);
    if (q->format == JSON)
        printed = print_json(r, written == MR_OK ? err : NULL);
    else if (q->format >= FORMATS)
        printed = print_form(q, r, NULL, written == MR_OK ? err : NULL);
    return written == MR_OK ? printed : written;
}

/* A report is delivered even if the system could not read a file or a part of one; that failure comes after it. */
static int end(const request *q, const mr_verify_report *r, mr_status status, mr_error *err)
{
    const mr_problem *unread = NULL;
    if (status == MR_OK) {
        status = deliver(q, r, err);
        unread = mr_verify_refused(r);
    } else {
        if (q->junit)
            write_junit(q, NULL, err->text, true, NULL);
        if (q->format >= FORMATS)
            print_form(q, NULL, err->text, NULL);
    }
    if (status == MR_OK && unread)
        status = mr_fail(err, MR_SYSTEM, "%s: %s", q->dir, unread->detail);
    if (status != MR_OK)
        mr_term_error(err);
    return status == MR_OK && !mr_verify_ok(r) ? 1 : mr_exit_code(status);
}

/* A view opens only if its datasets have their digests, and its conditions give the same lists; then the datasets are
 * verified in its place. */
static mr_status check_view(request *q, mr_dataset **view, mr_error *err)
{
    if (!mr_view_is_at(q->dir))
        return MR_OK;
    MR_TRY(mr_dataset_open(q->dir, view, err));
    if (q->options.expect && strcasecmp(q->options.expect, mr_dataset_sha256(*view)) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: not the expected view: its digest is %s, expected %s", q->dir,
                       mr_dataset_sha256(*view), q->options.expect);
    if (mr_dataset_source_count(*view) > 1 && (q->junit || q->format != TEXT))
        return mr_fail(err, MR_MISUSE, "%s: is a view of %zu datasets; --format and --junit report one: verify each",
                       q->dir, mr_dataset_source_count(*view));
    q->options.expect = NULL;
    return MR_OK;
}

/* Verifies one dataset; returns its exit code. */
static int verify(request *q, mr_ranks *ranks, mr_status status, mr_error *err)
{
    mr_verify_report *report = NULL;
    bool first = !ranks || mr_ranks_rank(ranks) == 0;
    if (status == MR_OK)
        status = mr_verify(q->dir, &q->options, &report, err);
    int code = first ? end(q, report, status, err) : mr_exit_code(status);
    mr_verify_report_free(report);
    return code;
}

static int start(int argc, char **argv)
{
    request q = {.options = {.level = MR_VERIFY_FULL}};
    mr_ranks *ranks = NULL;
    MR_AUTO(mr_dataset_release) mr_dataset *view = NULL;
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_verify, argc, argv, &q))
        return cli.code;
    mr_status status = mr_cli_ranks(&cli, q.stall, &ranks, &err);
    bool first = !ranks || mr_ranks_rank(ranks) == 0;
    q.options.ranks = ranks;
    if (status == MR_OK) {
        mr_status begun = first && q.junit ? begin_junit(&q, &err) : MR_OK;
        if (begun != MR_OK)
            q.junit = NULL; /* this failure cannot be reported there, either */
        status = mr_ranks_agree(ranks, begun, &err);
    }
    if (status == MR_OK)
        status = mr_ranks_agree(ranks, check_view(&q, &view, &err), &err);
    int code = 0;
    for (size_t i = 0; i < (view ? mr_dataset_source_count(view) : 1) && code <= 1; i++) {
        q.dir = view && status == MR_OK ? mr_dataset_source_path(view, i) : q.dir;
        int one = verify(&q, ranks, status, &err);
        code = one > code ? one : code;
    }
    mr_ranks_end(ranks);
    return code;
}

const mr_command mr_cmd_verify = {
    .name = "verify",
    .title = "prove that a dataset is intact",
    .usage = "DATASET",
    .example = "millrace verify imagenette",
    .summary = "Proves that a dataset is intact: every file's size and digest, every index row, every "
               "record's hash.  On damage, names the damaged shards, samples and source files, and "
               "says what is intact.  Of a view, proves that it sees what it was made of, then verifies its datasets.  "
               "Nothing is changed.",
    .notes =
        "Examples:\n"
        "  millrace verify imagenette                       everything, all processors\n"
        "  millrace verify --quick imagenette               before a run\n"
        "  millrace verify --expect 3f9c... --junit verify.xml imagenette\n"
        "  millrace verify --format gitlab imagenette > quality.json\n"
        "  mpirun -n 8 millrace verify imagenette           8 ranks share the shards\n"
        "\n"
        "Exit status: 0 intact; 1 damage found; 2 usage error, no dataset there, or one of a later format; 3 system "
        "error, or a file could not be read completely (the report is still printed).",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
