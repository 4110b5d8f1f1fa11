/* cmd_verify.c - `millrace verify DST`: is the dataset whole?
 * Invariant: under mpirun only rank 0 prints. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shards/cmd_verify.h"
#include "base/cli.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "shards/commands.h"

enum { OPT_QUICK = 256, OPT_DEEP, OPT_DECODE, OPT_NO_SHA256, OPT_EXPECT, OPT_MAX_PIXELS, OPT_JSON, OPT_JUNIT };

typedef struct request {
    const char *dir, *junit;
    bool json, leveled;
    mr_verify_options options;
} request;

static const struct argp_option options[] = {
    {"quick", OPT_QUICK, NULL, 0,
     "sizes, manifest and indexes only: seconds for terabytes, but no image byte is "
     "read",
     1},
    {"deep", OPT_DEEP, NULL, 0, "also walk LMDB's pages and compare metas and image headers with the index", 1},
    {"decode", OPT_DECODE, NULL, 0,
     "also decode every pixel, and make seek indexes again to compare (implies "
     "--deep)",
     1},
    {"no-sha256", OPT_NO_SHA256, NULL, 0, "XXH3 alone: finds every accident, ten times faster, but no forgery", 2},
    {"expect", OPT_EXPECT, "DIGEST", 0, "insist on this dataset digest (inspect prints it): pins the very dataset", 2},
    {"max-pixels", OPT_MAX_PIXELS, "N", 0, "with --decode: a larger picture is a problem (default 178956970)", 2},
    {"jobs", 'j', "N", 0, "threads (default: one a processor)", 3},
    {"json", OPT_JSON, NULL, 0, "print one JSON object with every problem", 4},
    {"junit", OPT_JUNIT, "FILE", 0, "also write JUnit XML, a test case a shard", 4},
    {"quiet", 'q', NULL, 0, "no progress, and no words when all is well", 4},
    {0},
};

static const char help[] =
    "Proves that a dataset is whole: every file's size and digest, every index row, every record's hash.  On damage, "
    "names the shards, samples and source files that are hit, and says what is whole.  Nothing is changed."
    "\vExamples:\n"
    "  millrace verify imagenette                       everything, all processors\n"
    "  millrace verify --quick imagenette               before a run\n"
    "  millrace verify --expect 3f9c... --junit verify.xml imagenette\n"
    "  mpirun -n 8 millrace verify imagenette           8 ranks share the shards\n\n"
    "Exit status: 0 whole; 1 damage found; 2 wrong use or no dataset there; 3 the system failed, or keeps back a file "
    "or a "
    "part of one (the report is printed all the same).";

static void set_level(request *q, mr_verify_level level, struct argp_state *state)
{
    if (q->leveled && q->options.level != level && (q->options.level == MR_VERIFY_QUICK || level == MR_VERIFY_QUICK))
        mr_cli_misuse(state, "--quick and --%s exclude each other",
                      mr_verify_level_words[level == MR_VERIFY_QUICK ? q->options.level : level]);
    if (!q->leveled || level > q->options.level)
        q->options.level = level;
    q->leveled = true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    request *q = state->input;
    uint64_t n;
    uint8_t digest[32];
    switch (key) {
    case OPT_QUICK:
        set_level(q, MR_VERIFY_QUICK, state);
        break;
    case OPT_DEEP:
        set_level(q, MR_VERIFY_DEEP, state);
        break;
    case OPT_DECODE:
        set_level(q, MR_VERIFY_DECODE, state);
        break;
    case OPT_NO_SHA256:
        q->options.no_sha256 = true;
        break;
    case OPT_JSON:
        q->json = true;
        break;
    case OPT_JUNIT:
        q->junit = arg;
        break;
    case 'q':
        q->options.quiet = true;
        break;
    case OPT_EXPECT:
        if (!mr_unhex(arg, digest, sizeof digest))
            mr_cli_misuse(state, "--expect %s: a dataset digest is 64 hexadecimal digits, as inspect prints it", arg);
        q->options.expect = arg;
        break;
    case OPT_MAX_PIXELS:
        if (!mr_text_parse_u64(arg, &q->options.limits.max_pixels) || q->options.limits.max_pixels == 0)
            mr_cli_misuse(state, "--max-pixels %s: expected a number from 1", arg);
        break;
    case 'j':
        if (!mr_text_parse_u64(arg, &n) || n < 1 || n > 1024)
            mr_cli_misuse(state, "--jobs %s: expected a number from 1 to 1024", arg);
        q->options.jobs = (unsigned)n;
        break;
    default:
        return mr_cli_dataset(key, arg, state, &q->dir);
    }
    return 0;
}

static mr_status print_json(const mr_verify_report *r, mr_error *err)
{
    json_t *json = NULL;
    mr_status status = mr_verify_json(r, &json, err);
    if (status == MR_OK)
        status = mr_json_print(json, err);
    json_decref(json);
    return status;
}

/* r NULL: there is no report, for this reason.  Not the `end`: another one follows, and takes this one's place in a
 * file; a pipe or a device would keep both, and gets only that. */
static mr_status write_junit(const request *q, const mr_verify_report *r, const char *why, bool end, mr_error *err)
{
    mr_buf xml = {0};
    mr_output o;
    mr_status status = mr_path_keep_out(q->junit, q->dir, err);
    if (status != MR_OK)
        return status;
    status = r ? mr_verify_junit(r, q->dir, &xml, err) : mr_verify_junit_error(why, q->dir, &xml, err);
    if (status == MR_OK && (status = mr_output_open(AT_FDCWD, q->junit, &o, err)) == MR_OK) {
        if (end || o.temp)
            status = mr_file_write(o.fd, xml.data, xml.len, q->junit, err);
        status = mr_output_close(&o, status, err);
    }
    mr_buf_free(&xml);
    return status;
}

/* An earlier report must not be taken for this run's, however it ends; a pipe or a device has none.  Where no file can
 * be is told at once, whatever else can go wrong with it behind the verdict. */
static mr_status begin_junit(const request *q, mr_error *err)
{
    struct stat st;
    if (stat(q->junit, &st) == 0 && S_ISFIFO(st.st_mode))
        return mr_path_keep_out(q->junit, q->dir, err); /* its reader would take closing it for the end */
    mr_error why;
    mr_status status = write_junit(q, NULL, "verify did not come to its end", false, &why);
    if (status == MR_MISUSE)
        return mr_fail(err, status, "%s", why.text);
    if (status != MR_OK && lstat(q->junit, &st) == 0 && S_ISREG(st.st_mode))
        unlink(q->junit); /* there is no room for another, say */
    return MR_OK;
}

/* The verdict is printed whatever becomes of the file, and the other way round. */
static mr_status deliver(const request *q, const mr_verify_report *r, mr_error *err)
{
    mr_status written = q->junit ? write_junit(q, r, NULL, true, err) : MR_OK, printed = MR_OK;
    if (q->json)
        printed = print_json(r, written == MR_OK ? err : NULL);
    else
        cmd_verify_print(r, q->dir, &q->options);
    return written == MR_OK ? printed : written;
}

/* Where there is a report it is delivered; a file or a part of one that the system kept back is its failure then. */
static int end(const request *q, const mr_verify_report *r, mr_status status, mr_error *err)
{
    const mr_problem *refused = NULL;
    if (status == MR_OK) {
        status = deliver(q, r, err);
        refused = mr_verify_refused(r);
    } else if (q->junit) {
        write_junit(q, NULL, err->text, true, NULL);
    }
    if (status == MR_OK && refused)
        status = mr_fail(err, MR_SYSTEM, "%s: %s", q->dir, refused->detail);
    if (status != MR_OK)
        mr_term_error(err);
    return status == MR_OK && !mr_verify_ok(r) ? 1 : mr_exit_code(status);
}

int cmd_verify(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "DST", help, NULL, NULL, NULL};
    request q = {.options = {.level = MR_VERIFY_FULL}};
    mr_verify_report *report = NULL;
    mr_ranks *ranks = NULL;
    mr_error err = {0};
    mr_cli_parse(&argp, argc, argv, &q);
    mr_status status = mr_cli_ranks(&ranks, &err);
    bool first = !ranks || mr_ranks_rank(ranks) == 0;
    q.options.ranks = ranks;
    if (status == MR_OK) {
        mr_status begun = first && q.junit ? begin_junit(&q, &err) : MR_OK;
        if (begun != MR_OK)
            q.junit = NULL; /* it is no place for a report of this failure, either */
        status = mr_ranks_agree(ranks, begun, &err);
    }
    if (status == MR_OK)
        status = mr_verify(q.dir, &q.options, &report, &err);
    int code = first ? end(&q, report, status, &err) : mr_exit_code(status);
    mr_verify_report_free(report);
    mr_ranks_end(ranks);
    return code;
}
