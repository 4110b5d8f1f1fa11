/* cmd_ingest.c - millrace ingest SRC... DST: the command line.
 * Invariant: results go to stdout, progress and complaints to stderr; only rank 0 prints. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ingest/cmd_ingest.h"
#include "base/cli.h"
#include "base/file.h"
#include "base/path.h"
#include "base/pool.h"
#include "base/text.h"
#include "ingest/cmd_lists.h"
#include "ingest/commands.h"
#include "pipeline/ingest.h"

enum key {
    KEY_LAYOUT = 256,
    KEY_IMAGE,
    KEY_LABEL,
    KEY_TEXT,
    KEY_CONFIG,
    KEY_UNLISTED,
    KEY_SPLIT_MAP,
    KEY_SHARD_SIZE,
    KEY_SHUFFLE,
    KEY_CHECK,
    KEY_MAX_REJECTS,
    KEY_MAX_PIXELS,
    KEY_MAX_SCANS,
    KEY_MAX_FILE,
    KEY_MAX_FILES,
    KEY_MAX_RATIO,
    KEY_ROOT,
    KEY_LEAVE_OUT,
    KEY_CLASS_DEPTH,
    KEY_FAIL_ON_LEAK,
    KEY_FORCE,
    KEY_DRY_RUN,
    KEY_JSON,
    KEY_REPORT,
    KEY_SEEK,
    KEY_NO_SEEK,
};

static const struct argp_option options[] = {
    {.doc = "What the source is:", .group = 1},
    {"layout", KEY_LAYOUT, "NAME", 0, "imagenette, roboflow, coco, newyorker or hub; found by looking if not given", 1},
    {"config", KEY_CONFIG, "NAME", 0, "newyorker, hub: which config (matching, ranking, explanation ...)", 1},
    {"label-column", KEY_LABEL, "NAME", 0,
     "take labels from this column (imagenette: noisy_labels_25; newyorker, hub: any)", 1},
    {"image-column", KEY_IMAGE, "NAME", 0, "hub: the column with the images; found by its type if not given", 1},
    {"text-column", KEY_TEXT, "NAME", 0, "hub: keep this column's text as the sample's captions, too", 1},
    {"split-map", KEY_SPLIT_MAP, "FROM=TO,..", 0,
     "store split or folder FROM as split TO (test=val); an empty TO leaves "
     "FROM out",
     1},
    {"root", KEY_ROOT, "FOLDER", 0, "the dataset is this folder of the source; found by looking if not given", 1},
    {"leave-out", KEY_LEAVE_OUT, "PATH", 0,
     "ignore this file, folder or pattern ('train/*.png') of the source; may be "
     "repeated",
     1},
    {"class-depth", KEY_CLASS_DEPTH, "N", 0,
     "imagenette, roboflow: the class is the path of N folders below the split "
     "(1: train/CLASS; 2: train/animals/cat is class animals/cat)",
     1},
    {"keep-unlisted", KEY_UNLISTED, 0, 0, "imagenette, roboflow, coco: take images that no annotation file lists, too",
     1},
    {.doc = "What the dataset becomes:", .group = 2},
    {"shard-size", KEY_SHARD_SIZE, "SIZE", 0, "bytes a shard aims at, 4KiB to 64GiB (default 256MiB)", 2},
    {"shuffle", KEY_SHUFFLE, "SEED", 0, "shuffle the samples of each split by this number", 2},
    {"seek-index", KEY_SEEK, "N", OPTION_ARG_OPTIONAL,
     "make seek indexes with an entry every N MCUs (default 16): crops "
     "decode faster, for 1 to 2 % of space",
     2},
    {"no-seek-index", KEY_NO_SEEK, 0, 0, "make none; `millrace seek` can do it later", 2},
    {"force", KEY_FORCE, 0, 0, "replace a finished dataset at DST once the new one is whole", 2},
    {.doc = "What is let in:", .group = 3},
    {"check", KEY_CHECK, "LEVEL", 0, "header (default): structure to the end marker; decode: every pixel", 3},
    {"max-rejects", KEY_MAX_REJECTS, "N or N%", 0, "end with exit code 1 if more images are rejected (default 1%)", 3},
    {"max-pixels", KEY_MAX_PIXELS, "N", 0, "reject images with more pixels (default 178956970)", 3},
    {"max-scans", KEY_MAX_SCANS, "N", 0, "reject JPEGs with more scans (default 256, fewer for large ones)", 3},
    {"max-file", KEY_MAX_FILE, "SIZE", 0, "reject larger image files (default 1GiB)", 3},
    {"max-files", KEY_MAX_FILES, "N", 0, "refuse a source of more files (default 20000000)", 3},
    {"max-ratio", KEY_MAX_RATIO, "N", 0,
     "refuse an archive that unpacks to more than N times its size, and metas of "
     "more than N times the files they are made of (default 100; the first 64 MiB are free)",
     3},
    {"fail-on-leak", KEY_FAIL_ON_LEAK, "alike", OPTION_ARG_OPTIONAL,
     "end with exit code 1 if a picture is in two splits, "
     "byte for byte; =alike: or as copies of one name that look alike",
     3},
    {.doc = "How it runs:", .group = 4},
    {"jobs", 'j', "N", 0, "threads (default: the processors; under mpirun 1 a rank)", 4},
    {"dry-run", KEY_DRY_RUN, 0, 0,
     "look at everything, say what would be done, write nothing; a single SRC needs "
     "no DST then",
     4},
    {"report", KEY_REPORT, "FILE", 0, "write the report here as well, also when ingest fails", 4},
    {"json", KEY_JSON, 0, 0, "print one JSON object instead of the summary", 4},
    {"quiet", 'q', 0, 0, "no progress and no summary", 4},
    {0},
};

static const char help[] =
    "Turns image datasets into shards of the untouched encoded bytes."
    "\vEach SRC is a folder, an archive (tar, tar.gz, tar.zst, zip, 7z ...) or - for an archive on standard input; "
    "several are laid over one another as one tree.  A folder that holds the archives as downloaded is read without "
    "unpacking.  DST must not exist yet; it appears whole, in one step, at the end.  An interrupted ingest goes on "
    "where it was when the same command is given again.\n\n"
    "  millrace ingest imagenette2-160.tgz imagenette\n"
    "  millrace ingest flowers/ flowers.mr --split-map test=val\n"
    "  millrace ingest train2017.zip val2017.zip annotations_trainval2017.zip coco\n"
    "  millrace ingest hub-download/ cartoons.mr --text-column image_description\n"
    "  mpirun -n 4 millrace ingest imagenet/ imagenet.mr\n\n"
    "Parquet files are read by a program, parquet_rows.py, which needs Python with pyarrow.  MILLRACE_PYTHON names the "
    "Python to use in place of python3; MILLRACE_PARQUET_READER another program, which gets a Parquet file on standard "
    "input and its name, /dev/stdin, as the last argument, and writes a tar stream.\n\n"
    "Exit status: 0 done; 1 the data is bad; 2 wrong use; 3 the system failed; 130 or 143 interrupted by SIGINT "
    "(Ctrl-C) or SIGTERM (129, 138, 140: by SIGHUP, SIGUSR1, SIGUSR2), with DST as it was or, if the message says so, "
    "new and whole.";

typedef struct args {
    mr_ingest_options o;
    char *paths[256];
    size_t path_count;
    mr_split_map maps[32];
    char *left_out[256];
    bool json;
    bool jobs_given;
    const char *report;
} args;

static uint64_t above_zero(const char *option, const char *arg, uint64_t most, struct argp_state *state)
{
    uint64_t n;
    if (!mr_text_parse_u64(arg, &n) || n == 0 || n > most)
        mr_cli_misuse(state, "--%s %s: use a number above 0%s", option, arg,
                      most < UINT64_MAX ? " and below 2^32" : "");
    return n;
}

static void check_layout(const char *name, struct argp_state *state)
{
    const char *names[16] = {0};
    for (size_t i = 0; mr_layouts[i] && i < MR_COUNT(names) - 1; i++) {
        names[i] = mr_layouts[i]->name;
        if (strcmp(names[i], name) == 0)
            return;
    }
    mr_cli_no_such(state, "--layout", name, "layout", names);
}

static void finish(args *a, struct argp_state *state)
{
    bool alone = a->path_count == 1 && a->o.dry_run; /* what is only looked at needs no DST */
    if (a->path_count == 0)
        mr_cli_misuse(state, "SRC and DST are missing, for example: millrace ingest imagenette2-160.tgz imagenette");
    if (a->path_count == 1 && !alone)
        mr_cli_misuse(state, "DST is missing, for example: millrace ingest %s %s", a->paths[0], "dataset");
    a->o.sources = a->paths;
    a->o.source_count = a->path_count - !alone;
    a->o.target = alone ? NULL : a->paths[a->path_count - 1];
    if (a->o.target && (strcmp(a->o.target, "-") == 0 || !*a->o.target))
        mr_cli_misuse(state, "DST must be a folder to make, not '%s'", a->o.target);
    a->o.for_layout.maps = a->maps;
    a->o.for_source.leave_out = a->left_out;
    a->o.for_source.quiet = a->o.quiet;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    args *a = state->input;
    mr_status status;
    mr_error err;
    uint64_t n;
    switch (key) {
    case KEY_LAYOUT:
        check_layout(arg, state);
        a->o.layout = arg;
        break;
    case KEY_LABEL:
        a->o.for_layout.label_column = arg;
        break;
    case KEY_IMAGE:
        a->o.for_layout.image_column = arg;
        break;
    case KEY_TEXT:
        a->o.for_layout.text_column = arg;
        break;
    case KEY_CONFIG:
        a->o.for_layout.config = arg;
        break;
    case KEY_UNLISTED:
        a->o.for_layout.keep_unlisted = true;
        break;
    case KEY_SPLIT_MAP:
        status = mr_split_map_take(arg, a->maps, MR_COUNT(a->maps), &a->o.for_layout.map_count, &err);
        mr_cli_must(state, status, &err);
        break;
    case KEY_ROOT:
        a->o.for_layout.root = arg;
        break;
    case KEY_LEAVE_OUT:
        if (!*arg)
            mr_cli_misuse(state, "--leave-out: expected a file or folder of the source");
        if (a->o.for_source.leave_out_count == MR_COUNT(a->left_out))
            mr_cli_misuse(state, "--leave-out: given more than %zu times; a pattern may do", MR_COUNT(a->left_out));
        a->left_out[a->o.for_source.leave_out_count++] = arg;
        break;
    case KEY_CLASS_DEPTH:
        if (!mr_text_parse_u64(arg, &n) || n == 0 || n > 16)
            mr_cli_misuse(state, "--class-depth %s: use a number from 1 to 16", arg);
        a->o.for_layout.class_depth = (unsigned)n;
        break;
    case KEY_SHARD_SIZE:
        if (!mr_text_parse_size(arg, &a->o.shard_size) || a->o.shard_size < 1 << 12 ||
            a->o.shard_size > (uint64_t)1 << 36)
            mr_cli_misuse(state, "--shard-size %s: use 4KiB to 64GiB, for example 256MiB", arg);
        break;
    case KEY_SHUFFLE:
        if (!mr_text_parse_u64(arg, &a->o.seed) || a->o.seed > INT64_MAX)
            mr_cli_misuse(state, "--shuffle %s: the seed is a number, for example --shuffle 1", arg);
        a->o.shuffle = true;
        break;
    case KEY_SEEK:
        if (arg && (!mr_text_parse_u64(arg, &n) || n > MR_SEEK_EVERY_MAX))
            mr_cli_misuse(state, "--seek-index=%s: use a number from 0 to %d", arg, MR_SEEK_EVERY_MAX);
        a->o.seek = true;
        a->o.seek_every = arg ? (unsigned)n : MR_JPEG_SEEK_EVERY;
        break;
    case KEY_NO_SEEK:
        a->o.seek = false;
        break;
    case KEY_CHECK:
        a->o.decode = strcmp(arg, "decode") == 0;
        if (!a->o.decode && strcmp(arg, "header") != 0)
            mr_cli_misuse(state, "--check %s: use header or decode", arg);
        break;
    case KEY_MAX_REJECTS:
        status = mr_max_rejects_take(arg, &a->o.max_rejects, &a->o.max_rejects_percent, &err);
        mr_cli_must(state, status, &err);
        break;
    case KEY_MAX_PIXELS:
        a->o.limits.max_pixels = above_zero("max-pixels", arg, UINT64_MAX, state);
        break;
    case KEY_MAX_SCANS:
        a->o.limits.max_scans = (uint32_t)above_zero("max-scans", arg, UINT32_MAX, state);
        break;
    case KEY_MAX_FILES:
        a->o.for_source.max_entries = above_zero("max-files", arg, UINT32_MAX - 1, state);
        break;
    case KEY_MAX_RATIO:
        a->o.for_source.max_ratio = above_zero("max-ratio", arg, UINT64_MAX, state);
        break;
    case KEY_MAX_FILE:
        if (!mr_text_parse_size(arg, &a->o.for_source.max_entry) || a->o.for_source.max_entry == 0 ||
            a->o.for_source.max_entry > MR_RECORD_MAX)
            mr_cli_misuse(state, "--max-file %s: use a size up to 4GiB, for example 64MiB", arg);
        break;
    case KEY_FAIL_ON_LEAK:
        a->o.fail_on_leak = arg ? MR_LEAK_ALIKE : MR_LEAK_EQUAL;
        if (arg && strcmp(arg, "alike") != 0)
            mr_cli_misuse(state, "--fail-on-leak=%s: use --fail-on-leak for equal bytes, or --fail-on-leak=alike", arg);
        break;
    case KEY_FORCE:
        a->o.force = true;
        break;
    case KEY_DRY_RUN:
        a->o.dry_run = true;
        break;
    case KEY_JSON:
        a->json = true;
        break;
    case KEY_REPORT:
        if (!*arg)
            mr_cli_misuse(state, "--report: expected the name of a file");
        a->report = arg;
        break;
    case 'j':
        if (!mr_text_parse_u64(arg, &n) || n == 0 || n > 1024)
            mr_cli_misuse(state, "--jobs %s: use a number from 1 to 1024", arg);
        a->o.jobs = (unsigned)n;
        a->jobs_given = true;
        break;
    case 'q':
        a->o.quiet = true;
        break;
    case ARGP_KEY_ARG:
        if (a->path_count == MR_COUNT(a->paths))
            mr_cli_misuse(state, "more than %zu sources", MR_COUNT(a->paths) - 1);
        a->paths[a->path_count++] = arg;
        break;
    case ARGP_KEY_END:
        finish(a, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static mr_status write_report(const mr_ingest *in, const char *path, bool complete, mr_error *err)
{
    mr_buf text = {0};
    json_t *report = mr_ingest_report(in, complete);
    json_object_set_new(report, "sources", cmd_ingest_sources(in->options));
    mr_status status = mr_json_dump(report, &text, err);
    if (status == MR_OK)
        status = mr_file_publish(AT_FDCWD, path, text.data, text.len, err);
    json_decref(report);
    mr_buf_free(&text);
    return status;
}

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
static atomic_bool published;
static mr_buf farewells[2]; /* until then, and from then on; written before a signal may come */

static void on_signal(int number)
{
    const mr_buf *words = &farewells[atomic_load(&published)];
    ssize_t n = write(STDERR_FILENO, words->data, words->len);
    (void)n;
    signal(number, SIG_DFL);
    raise(number);
}

static mr_status catch_signals(const mr_ingest_options *o, mr_error *err)
{
    const char *const ends[] = {
        " is as it was, and the same command goes on from the shards that are finished\n",
        o->force ? " is the new dataset, whole; what may be left of the old one lies beside it, as .partial\n"
                 : " is the new dataset, whole\n",
    };
    mr_status status = MR_OK;
    for (size_t i = 0; status == MR_OK && i < MR_COUNT(farewells); i++) {
        mr_buf *words = &farewells[i];
        mr_buf_add_text(words, "\nmillrace: interrupted; ");
        if (!o->dry_run)
            mr_text_show(words, o->target, strlen(o->target));
        mr_buf_add_text(words, o->dry_run ? "nothing was written\n" : ends[i]);
        status = mr_buf_status(words, err, "starting");
    }
    for (size_t i = 0; i < MR_COUNT(caught); i++) /* `nohup` ignores the end of the terminal, and so it stays */
        if (signal(caught[i], on_signal) == SIG_IGN && caught[i] == SIGHUP)
            signal(SIGHUP, SIG_IGN);
    return status;
}

/* Neither over what is read nor among what is made. */
static mr_status check_report(const args *a, mr_error *err)
{
    const char *report = a->report;
    struct stat in;
    mr_status status = MR_OK;
    if (!report)
        return MR_OK;
    for (size_t i = 0; i < a->o.source_count && status == MR_OK; i++)
        if (strcmp(a->o.sources[i], "-") != 0)
            status = mr_path_keep_out(report, a->o.sources[i], err);
        else if (fstat(STDIN_FILENO, &in) == 0 && S_ISREG(in.st_mode) &&
                 mr_file_is_at(STDIN_FILENO, AT_FDCWD, report, true))
            status = mr_fail(err, MR_MISUSE, "--report %s: is what standard input reads; name another file", report);
    if (status != MR_OK || !a->o.target)
        return status;
    char *partial = mr_stage_name(a->o.target);
    if (!partial)
        return mr_fail_memory(err, report);
    if (mr_path_inside(report, a->o.target) || mr_path_inside(report, partial))
        status = mr_fail(err, MR_MISUSE,
                         "--report %s: is, or lies in, the dataset (%s), which has a report of its own; "
                         "name another file",
                         report, a->o.target);
    free(partial);
    return status;
}

int cmd_ingest(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "SRC... DST", help, NULL, NULL, NULL};
    args a = {.o = {.shard_size = (uint64_t)256 << 20,
                    .max_rejects_percent = 1,
                    .seek = true,
                    .seek_every = MR_JPEG_SEEK_EVERY,
                    .published = &published}};
    mr_ranks *ranks = NULL;
    mr_ingest in = {0};
    mr_error err, other;
    mr_status told = MR_OK; /* of what was asked for beside the dataset */
    mr_cli_parse(&argp, argc, argv, &a);
    mr_status status = mr_cli_ranks(&ranks, &err);
    bool leader = !ranks || mr_ranks_rank(ranks) == 0;
    if (status != MR_OK) {
        if (leader)
            mr_term_error(&err);
        mr_ranks_end(ranks);
        return mr_exit_code(status);
    }
    if (!a.jobs_given)
        a.o.jobs = mr_ranks_world(ranks) > 1 ? 1 : mr_pool_processors();
    status = mr_ranks_agree(ranks, leader ? catch_signals(&a.o, &err) : MR_OK, &err);
    if (status == MR_OK && a.o.dry_run && mr_ranks_world(ranks) > 1)
        status = mr_fail(&err, MR_MISUSE, "--dry-run: not under mpirun; one process is enough to look");
    if (status == MR_OK)
        status = mr_ranks_agree(ranks, leader ? check_report(&a, &err) : MR_OK, &err);
    if (status == MR_OK)
        status = mr_ingest_run(&a.o, ranks, &in, &err);
    if (leader && a.report && in.options)
        told = write_report(&in, a.report, status == MR_OK, &other);
    if (told != MR_OK)
        mr_term_error(&other);
    if (leader && a.json && in.options) {
        mr_status printed = cmd_ingest_json(&in, status, &err, &other);
        if (printed != MR_OK)
            mr_term_error(&other);
        told = told == MR_OK ? printed : told;
    } else if (leader && status == MR_OK && !a.o.quiet) {
        status = cmd_ingest_summary(&in, stdout, &err);
    } else if (leader && status != MR_OK && in.options) {
        cmd_ingest_failure(&in);
    }
    if (leader && status != MR_OK)
        mr_term_error(&err);
    mr_ranks_end(ranks);
    mr_ingest_release(&in);
    return mr_exit_code(status != MR_OK ? status : told);
}
