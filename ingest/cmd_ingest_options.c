/* cmd_ingest_options.c - millrace ingest SRC... DATASET: its options, and which of them exclude each other.
 * Invariant: nothing is opened or written here. */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "ingest/cmd_ingest.h"
#include "base/scope.h"
#include "ingest/cmd_lists.h"

#define LAYOUT_NAME(name) #name,

static mr_status take_split_map(void *field, const char *text, mr_error *err)
{
    mr_ingest_request *q = field;
    return mr_split_map_take("split-map", (char *)text, q->maps, MR_COUNT(q->maps), &q->o.for_layout.map_count, err);
}

static mr_status take_split_list(void *field, const char *text, mr_error *err)
{
    mr_ingest_request *q = field;
    return mr_split_map_take("split-list", (char *)text, q->lists, MR_COUNT(q->lists), &q->o.for_layout.list_count,
                             err);
}

static mr_status take_split(void *field, const char *text, mr_error *err)
{
    mr_ingest_request *q = field;
    return mr_split_shares_take(text, &q->o, err);
}

static mr_status take_max_rejects(void *field, const char *text, mr_error *err)
{
    mr_ingest_request *q = field;
    return mr_max_rejects_take(text, &q->o.max_rejects, &q->o.max_rejects_percent, err);
}

const mr_option mr_ingest_option_rows[] = {
    {"layout", 0, MR_ARG_TEXT, MR_FIELD(mr_ingest_request, o.layout),
     .words = (const char *const[]){MR_LAYOUTS(LAYOUT_NAME) NULL},
     .group = "Source:", .help = "layout of the source (default: detected)"},
    {"config", 0, MR_ARG_TEXT, MR_FIELD(mr_ingest_request, o.for_layout.config), .value = "NAME",
     .help = "newyorker, hub: config (matching, ranking, explanation ...)", .rare = true},
    {"label-column", 0, MR_ARG_TEXT, MR_FIELD(mr_ingest_request, o.for_layout.label_column), .value = "NAME",
     .help =
         "label column; imagenette: noisy_labels_25; newyorker, hub, webdataset: any; table: one, or several as A,B,C"},
    {"label-separator", 0, MR_ARG_TEXT, MR_FIELD(mr_ingest_request, o.for_layout.label_separator), .value = "CHARS",
     .help = "table: separator of several classes in a cell (default: detected, | or ;); '' for none", .rare = true},
    {"class-pattern", 0, MR_ARG_TEXT, MR_FIELD(mr_ingest_request, o.for_layout.class_pattern), .value = "PATTERN",
     .help = "table: the class is in the file's name: '{class}_#' fits Abyssinian_12.jpg; # is a number, * anything",
     .rare = true},
    {"image-column", 0, MR_ARG_TEXT, MR_FIELD(mr_ingest_request, o.for_layout.image_column), .value = "NAME",
     .help =
         "image column; hub: detected by default; webdataset: the member (seg.png); table: the column of file names"},
    {"text-column", 0, MR_ARG_TEXT, MR_FIELD(mr_ingest_request, o.for_layout.text_column), .value = "NAME",
     .help = "column with captions; hub, webdataset, table"},
    {"split-map", 0, MR_ARG_OTHER, .take = take_split_map, .value = "FROM=TO,..",
     .help = "rename a split (test=val); FROM may be a folder; an empty TO excludes FROM"},
    {"split-list", 0, MR_ARG_OTHER, .take = take_split_list, .value = "FILE=TO,..",
     .help = "take splits from text files of the source that name an image per line (meta/train.txt=train)",
     .rare = true},
    {"split", 0, MR_ARG_OTHER, .take = take_split, .value = "NAME=SHARE,..",
     .help = "divide a source without splits (train=0.8,val=0.1,test=0.1); by the images' hashes, each class in these "
             "shares; images that are identical, look alike, or were made from one (.rf.) stay together"},
    {"group-pattern", 0, MR_ARG_TEXT, MR_FIELD(mr_ingest_request, o.group_pattern), .value = "REGEX",
     .help =
         "with --split: keep images together in whose paths REGEX, or its first group in parentheses, finds the same "
         "text: '(patient[0-9]+)'",
     .rare = true},
    {"root", 0, MR_ARG_TEXT, MR_FIELD(mr_ingest_request, o.for_layout.root), .value = "FOLDER",
     .help = "folder of the dataset in the source; detected by default"},
    {"exclude", 0, MR_ARG_LIST, MR_FIELD(mr_ingest_request, left_out), .value = "PATH", .alias = "leave-out",
     .help = "exclude a file, folder or pattern of the source; for example 'train/*.png'; may be repeated"},
    {"annotations", 0, MR_ARG_LIST, MR_FIELD(mr_ingest_request, annotations), .value = "FILE",
     .help = "coco: JSON file with annotations; in the source or elsewhere; detected by default; may be repeated"},
    {"class-depth", 0, MR_ARG_COUNT, MR_FIELD(mr_ingest_request, o.for_layout.class_depth), .value = "N", .low = 1,
     .high = 16,
     .help = "imagenette, roboflow: folder levels that make a class (2: train/animals/cat is class animals/cat)",
     .rare = true},
    {"keep-unlisted", 0, MR_ARG_FLAG, MR_FIELD(mr_ingest_request, o.for_layout.keep_unlisted),
     .help = "also ingest unlisted images; those that no annotation file and no split lists"},
    {"skip-unmatched", 0, MR_ARG_FLAG, MR_FIELD(mr_ingest_request, o.for_layout.skip_unmatched),
     .help = "skip unmatched images and annotation files; by default these are errors"},
    {"shard-size", 0, MR_ARG_SIZE, MR_FIELD(mr_ingest_request, o.shard_size), .value = "SIZE", .low = 1 << 12,
     .high = (uint64_t)1 << 36, .standard = "256MiB", .given = offsetof(mr_ingest_request, o.shard_size_given),
     .group = "Dataset:",
     .help = "target size of a shard; 4KiB to 64GiB; without it, larger shards for sources beyond 12 TiB"},
    {"shuffle", 0, MR_ARG_COUNT, MR_FIELD(mr_ingest_request, o.seed), .value = "SEED", .high = INT64_MAX,
     .given = offsetof(mr_ingest_request, o.shuffle), .help = "shuffle each split with this seed"},
    {"seek-index", 0, MR_ARG_COUNT, MR_FIELD(mr_ingest_request, o.seek_every), .value = "N", .high = MR_SEEK_EVERY_MAX,
     .standard = "8", .optional = "8", .given = offsetof(mr_ingest_request, o.seek),
     .help = "make seek indexes, for fast crops; an entry every N MCUs, about 2 % of space"},
    {"no-seek-index", 0, MR_ARG_SET, MR_FIELD(mr_ingest_request, o.seek), .low = false,
     .help = "no seek index; 'millrace seek' can add it later"},
    {"force", 0, MR_ARG_FLAG, MR_FIELD(mr_ingest_request, o.force),
     .help = "replace DATASET once the new one is complete"},
    {"check", 0, MR_ARG_WORD, MR_FIELD(mr_ingest_request, o.decode), .words = MR_WORDS("header", "decode"),
     .standard = "header", .group = "Checks and limits:",
     .help = "how images are checked; header: structure to the end marker; decode: every pixel"},
    {"max-rejects", 0, MR_ARG_OTHER, .take = take_max_rejects, .value = "N or N%", .standard = "1%",
     .help = "fail if more images are rejected; exit code 1; unsafe and duplicate names count as well"},
    {"max-pixels", 0, MR_ARG_COUNT, MR_FIELD(mr_ingest_request, o.limits.max_pixels), .value = "N", .low = 1,
     .help = "reject images with more pixels (default " MR_TEXT_OF(MR_DEFAULT_MAX_PIXELS) ")", .rare = true},
    {"max-scans", 0, MR_ARG_COUNT, MR_FIELD(mr_ingest_request, o.limits.max_scans), .value = "N", .low = 1,
     .help = "reject JPEGs with more scans (default 256, fewer for large ones)", .rare = true},
    {"max-file", 0, MR_ARG_SIZE, MR_FIELD(mr_ingest_request, o.for_source.max_entry), .value = "SIZE", .low = 1,
     .high = MR_RECORD_MAX, .help = "reject larger image files (default 1GiB)", .rare = true},
    {"max-files", 0, MR_ARG_COUNT, MR_FIELD(mr_ingest_request, o.for_source.max_entries), .value = "N", .low = 1,
     .high = UINT32_MAX - 1, .help = "reject a source with more files (default 20000000)", .rare = true},
    {"max-ratio", 0, MR_ARG_COUNT, MR_FIELD(mr_ingest_request, o.for_source.max_ratio), .value = "N", .low = 1,
     .help = "reject archives that unpack to more than N times their size, and metas larger than N times their files "
             "(default 100; the first 64 MiB are exempt)",
     .rare = true},
    {"fail-on-leak", 0, MR_ARG_WORD, MR_FIELD(mr_ingest_request, o.fail_on_leak), .optional = "equal",
     .words =
         (const char *const[]){[MR_LEAK_NONE] = "none", [MR_LEAK_EQUAL] = "equal", [MR_LEAK_ALIKE] = "alike", NULL},
     .help = "fail if two splits share an image; exit code 1; with =alike, near-duplicates count as well"},
    {"near-duplicates", 0, MR_ARG_FLAG, MR_FIELD(mr_ingest_request, o.near),
     .help = "report near-duplicates; within splits and across them"},
    {"near-distance", 0, MR_ARG_COUNT, MR_FIELD(mr_ingest_request, o.near_distance), .value = "N",
     .high = MR_NEAR_DISTANCE_MAX, .standard = MR_TEXT_OF(MR_NEAR_DISTANCE_STANDARD),
     .given = offsetof(mr_ingest_request, near_distance_given),
     .help = "with --near-duplicates: compare images whose hashes differ in at most N of 63 bits", .rare = true},
    {"jobs", 'j', MR_ARG_COUNT, MR_FIELD(mr_ingest_request, o.jobs), .value = "N", .low = 1, .high = 1024, .own = true,
     .group = "Execution:", .help = "threads; default: one per processor, under mpirun 1 per rank"},
    {"dry-run", 0, MR_ARG_FLAG, MR_FIELD(mr_ingest_request, o.dry_run),
     .help = "check and report, but write nothing; with one SRC, DATASET is optional"},
    {"report", 0, MR_ARG_PATH, MR_FIELD(mr_ingest_request, report), .value = "FILE",
     .help = "also write the report to FILE; even if ingest fails"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(mr_ingest_request, json), .own = true,
     .help = "print one JSON object instead of the summary"},
    {"progress-fd", 0, MR_ARG_COUNT, MR_FIELD(mr_ingest_request, progress_fd), .value = "N", .low = 3, .high = 1 << 20,
     .own = true, .help = "write progress to file descriptor N, a JSON object per line: step, done, total, bytes",
     .rare = true},
    MR_OPTION_STALL(mr_ingest_request, stall),
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(mr_ingest_request, o.quiet), .own = true,
     .help = "no progress and no summary"},
    {0},
};

const mr_option mr_ingest_arguments[] = {{.value = "SRC", .kind = MR_ARG_LIST, MR_FIELD(mr_ingest_request, paths)},
                                         {0}};

mr_status mr_ingest_request_check(void *ctx, mr_error *err)
{
    mr_ingest_request *q = ctx;
    size_t count = q->paths.count;
    bool no_target = count == 1 && q->o.dry_run;
    if (count == 0)
        return mr_fail(err, MR_MISUSE, "SRC and DATASET are missing, for example: %s", MR_INGEST_EXAMPLE);
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
    q->o.for_layout.lists = q->lists;
    q->o.for_source.leave_out = q->left_out.items;
    q->o.for_source.leave_out_count = q->left_out.count;
    if (q->progress_fd && fcntl((int)q->progress_fd, F_GETFD) < 0)
        return mr_fail(err, MR_MISUSE, "--progress-fd: descriptor %llu is not open",
                       (unsigned long long)q->progress_fd);
    q->o.for_source.progress = (int)q->progress_fd;
    q->o.for_source.quiet = q->o.quiet && !q->progress_fd;
    return MR_OK;
}
