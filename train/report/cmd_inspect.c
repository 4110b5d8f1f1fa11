/* cmd_inspect.c - `millrace inspect DATASET|RUN`: what a dataset contains, or what was trained on what.
 * Invariant: reads the manifest and the headers of indexes, and looks whether every file is there in its size; all of
 * the indexes is read only for --classes, metas only for --objects, and images only for --near-duplicates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "shards/dataset/dataset.h"
#include "shards/format/index.h"
#include "train/report/cmd_inspect_classes.h"
#include "train/report/cmd_inspect_croissant.h"
#include "train/report/cmd_inspect_near.h"
#include "train/report/cmd_inspect_objects.h"
#include "train/report/commands.h"
#include "train/report/run_facts.h"
#include "train/report/run_print.h"
#include "shards/cmd_seek.h"
#include "shards/view/view.h"

typedef struct request {
    const char *dir;
    bool json, croissant, classes, objects, near, near_distance_given;
    uint32_t near_distance, jobs;
    uint64_t max_pixels;
    bool max_pixels_given;
} request;

static const mr_option options[] = {
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object"},
    {"croissant", 0, MR_ARG_FLAG, MR_FIELD(request, croissant),
     .help = "print a Croissant 1.1 description: files with their SHA-256, classes, splits"},
    {"classes", 0, MR_ARG_FLAG, MR_FIELD(request, classes), .help = "count the samples of each class in each split"},
    {"objects", 0, MR_ARG_FLAG, MR_FIELD(request, objects),
     .help = "read all metas; count objects by class and size, and images without objects"},
    {"near-duplicates", 0, MR_ARG_FLAG, MR_FIELD(request, near),
     .help = "decode all images; list near-duplicates within splits, and leaks between them"},
    {"near-distance", 0, MR_ARG_COUNT, MR_FIELD(request, near_distance), .value = "N", .high = MR_NEAR_DISTANCE_MAX,
     .standard = MR_TEXT_OF(MR_NEAR_DISTANCE_STANDARD), .given = offsetof(request, near_distance_given),
     .help = "compare images whose hashes differ in at most N of 63 bits; a larger N finds more and takes longer"},
    {"max-pixels", 0, MR_ARG_COUNT, MR_FIELD(request, max_pixels), .value = "N", .low = 1,
     .standard = MR_TEXT_OF(MR_DEFAULT_MAX_PIXELS), .given = offsetof(request, max_pixels_given),
     .help = "with --near-duplicates: skip larger images"},
    {"jobs", 'j', MR_ARG_COUNT, MR_FIELD(request, jobs), .value = "N", .low = 1, .high = 1024, .alias = "threads",
     .own = true, .help = "threads for --near-duplicates (default: one per processor)"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static mr_status check(void *ctx, mr_error *err)
{
    const request *q = ctx;
    if (q->near_distance_given && !q->near)
        return mr_fail(err, MR_MISUSE, "--near-distance requires --near-duplicates");
    if (q->max_pixels_given && !q->near)
        return mr_fail(err, MR_MISUSE, "--max-pixels requires --near-duplicates");
    if (q->croissant && (q->json || q->classes || q->objects || q->near))
        return mr_fail(err, MR_MISUSE, "--croissant prints a document of its own; use it alone");
    return MR_OK;
}

static const mr_option arguments[] = {{.value = "DATASET|RUN", .kind = MR_ARG_PATH, MR_FIELD(request, dir)}, {0}};

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static uint64_t file_bytes(const mr_split *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->shard_count; i++)
        bytes += s->shards[i].mdb.bytes + s->shards[i].idx.bytes;
    return bytes;
}

static json_t *splits_json(const mr_manifest *m)
{
    json_t *splits = json_object();
    for (size_t i = 0; i < m->split_count; i++) {
        const mr_split *s = &m->splits[i];
        json_object_set_new(splits, s->name,
                            json_pack("{s:I,s:I,s:I,s:I,s:I}", "samples", (json_int_t)s->samples, "images",
                                      (json_int_t)s->images, "bytes", (json_int_t)s->image_bytes, "shards",
                                      (json_int_t)s->shard_count, "file_bytes", (json_int_t)file_bytes(s)));
    }
    return splits;
}

typedef struct counted { /* what was asked for, besides the manifest */
    mr_class_counts classes;
    cmd_objects objects;
    mr_similar near;
    unsigned distance; /* for `near` */
    cmd_seek_found seeks;
} counted;

/* What a view consists of: its datasets, in order. */
static mr_status add_view(const char *path, json_t *doc, mr_error *err)
{
    MR_AUTO(mr_view_file_release) mr_view_file *v = NULL;
    char digest[65];
    MR_TRY(mr_view_read(path, &v, err));
    json_t *list = json_array();
    for (size_t i = 0; i < v->source_count; i++) {
        mr_hex(v->sources[i].digest, sizeof v->sources[i].digest, digest);
        json_array_append_new(list, json_pack("{s:o,s:s}", "path",
                                              mr_json_path(v->sources[i].path, strlen(v->sources[i].path)), "digest",
                                              digest));
    }
    return json_object_set_new(doc, "datasets", list) == 0 ? MR_OK : mr_fail_memory(err, "writing JSON");
}

static mr_status print_json(const char *path, const mr_dataset *ds, const char *digest, const counted *found,
                            mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    const mr_class_counts *c = &found->classes;
    json_t *doc = json_pack("{s:i,s:s,s:s?,s:s?,s:s,s:o}", "format", MR_FORMAT, "layout", m->layout, "variant",
                            m->variant, "licence", m->licence, "digest", digest, "splits", splits_json(m));
    if (!doc)
        return mr_fail_memory(err, "writing JSON");
    mr_cmd_classes_json(m, doc);
    json_object_set_new(doc, "options", m->options ? json_incref(m->options) : json_object());
    if (c->counts)
        mr_cmd_class_counts_json(m, c, doc);
    if (found->objects.counts)
        json_object_set_new(doc, "objects", mr_cmd_objects_json(m, &found->objects));
    mr_status status = found->near.found ? mr_cmd_near_json(ds, &found->near, found->distance, doc, err) : MR_OK;
    json_object_set_new(doc, "seek_index", mr_cmd_seek_found_json(&found->seeks));
    if (status == MR_OK && mr_dataset_source_count(ds))
        status = add_view(path, doc, err);
    if (status == MR_OK)
        status = mr_json_print(doc, err);
    json_decref(doc);
    return status;
}

/* ---- human-readable -------------------------------------------------------------------------------------------- */

/* `with_files`: what they take on disk; a view takes nothing. */
static mr_status print_splits(const mr_manifest *m, bool with_files, mr_error *err)
{
    mr_table *t = mr_table_new(with_files ? 6 : 4);
    char samples[32], images[32], bytes[32], shards[32], files[32];
    uint64_t sum[5] = {0};
    if (with_files)
        mr_table_row(t, "split", ">samples", ">images", ">bytes", ">shards", ">on disk");
    else
        mr_table_row(t, "split", ">samples", ">images", ">bytes");
    for (size_t i = 0; i <= m->split_count; i++) {
        uint64_t row[5];
        const mr_split *s = i < m->split_count ? &m->splits[i] : NULL;
        if (!s && m->split_count == 1)
            break;
        if (s) {
            const uint64_t own[5] = {s->samples, s->images, s->image_bytes, s->shard_count, file_bytes(s)};
            memcpy(row, own, sizeof row);
            for (size_t k = 0; k < 5; k++)
                sum[k] += row[k];
        } else {
            memcpy(row, sum, sizeof row);
        }
        const char *name = s ? s->name : "all";
        if (!with_files) {
            mr_table_row(t, name, mr_text_count(row[0], samples), mr_text_count(row[1], images),
                         mr_text_bytes(row[2], bytes));
            continue;
        }
        mr_table_row(t, name, mr_text_count(row[0], samples), mr_text_count(row[1], images),
                     mr_text_bytes(row[2], bytes), mr_text_count(row[3], shards), mr_text_bytes(row[4], files));
    }
    return mr_table_print(t, stdout, err);
}

static void print_options(const mr_manifest *m)
{
    const char *key;
    json_t *value;
    bool first = true;
    json_object_foreach(m->options, key, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        printf("%s", first ? "  options  " : ", ");
        mr_term_text(stdout, key);
        printf("=");
        mr_term_text(stdout, text ? text : "?");
        free(text);
        first = false;
    }
    if (!first)
        printf("\n");
}

/* What a view consists of, a line for each part: "train flowers:train --first 100". */
static mr_status print_parts(const char *path, mr_error *err)
{
    MR_AUTO(mr_view_file_release) mr_view_file *v = NULL;
    char digest[65];
    MR_TRY(mr_view_read(path, &v, err));
    for (size_t i = 0; i < v->source_count; i++) {
        mr_hex(v->sources[i].digest, 32, digest);
        printf("  of       ");
        mr_term_text(stdout, v->sources[i].path);
        printf(", %s\n", digest);
    }
    for (size_t i = 0; i < v->rename_count; i++) {
        printf("  renamed  ");
        mr_term_text(stdout, v->renames[i].from);
        printf(" to ");
        mr_term_text(stdout, v->renames[i].to);
        printf("\n");
    }
    for (size_t i = 0; i < v->split_count; i++)
        for (size_t k = 0; k < v->splits[i].part_count; k++) {
            const mr_view_part *p = &v->splits[i].parts[k];
            printf("  %-7s  ", v->splits[i].name);
            mr_term_text(stdout, v->sources[p->dataset].path);
            printf(":%s", p->split);
            if (p->weight)
                printf(" --weight %s", p->weight);
            for (size_t c = 0; c < p->condition_count; c++) {
                bool lines = strchr(p->conditions[c].argument, '\n') != NULL;
                printf(" --%s ", p->conditions[c].kind->name);
                mr_term_text(stdout, lines ? "FILE" : p->conditions[c].argument);
            }
            printf("%s", v->splits[i].balance ? " --balance class" : "");
            if (v->splits[i].repeat > 1)
                printf(" --repeat %llu", (unsigned long long)v->splits[i].repeat);
            printf("\n");
        }
    return MR_OK;
}

static void print_seeks(const cmd_seek_found *found)
{
    MR_AUTO(mr_buf_free) mr_buf words = {0};
    if (!found->found)
        return;
    mr_cmd_seek_found_words(found, &words);
    printf("  seek     %s (not part of the digest)\n", mr_buf_text(&words));
}

static mr_status print_human(const request *q, const mr_dataset *ds, const char *digest, const counted *found,
                             mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    const mr_class_counts *c = &found->classes;
    bool variant = m->variant && *m->variant, view = mr_dataset_source_count(ds) > 0;
    printf("%s%s%s: ", mr_sgr(stdout, MR_BOLD), q->dir, mr_sgr(stdout, MR_PLAIN));
    mr_term_text(stdout, m->layout);
    printf("%s", variant ? " (" : "");
    mr_term_text(stdout, variant ? m->variant : "");
    printf("%s, ", variant ? ")" : "");
    if (view)
        printf("a view of %zu dataset%s\n", mr_dataset_source_count(ds), mr_dataset_source_count(ds) == 1 ? "" : "s");
    else
        printf("format %d\n", MR_FORMAT);
    MR_TRY(print_splits(m, !view, err));
    if (c->counts)
        mr_cmd_class_counts_print(m, c);
    else
        mr_cmd_classes_print(m);
    if (found->objects.counts)
        MR_TRY(mr_cmd_objects_print(m, &found->objects, err));
    if (found->near.found)
        MR_TRY(mr_cmd_near_print(ds, &found->near, found->distance, err));
    printf("\n");
    if (m->licence) {
        printf("  licence  ");
        mr_term_text(stdout, m->licence);
        printf("\n");
    }
    if (view)
        MR_TRY(print_parts(q->dir, err));
    else
        print_options(m);
    print_seeks(&found->seeks);
    printf("  digest   %s%s%s\n", mr_sgr(stdout, MR_CYAN), digest, mr_sgr(stdout, MR_PLAIN));
    return MR_OK;
}

static void free_counted(counted *c)
{
    free(c->classes.counts);
    mr_cmd_objects_free(&c->objects);
    mr_similar_free(&c->near);
}

static mr_status inspect(const request *q, const mr_dataset *ds, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    MR_AUTO(free_counted) counted found = {0};
    char hex[65];
    if (q->croissant)
        MR_TRY(mr_view_refuse(q->dir, err));
    if (q->croissant)
        return mr_cmd_croissant_print(ds, err);
    if (q->classes)
        MR_TRY(mr_class_counts_read(ds, &found.classes, err));
    if (q->objects)
        MR_TRY(mr_cmd_objects_read(q->dir, ds, &found.objects, err));
    found.distance = q->near_distance;
    const mr_similar_options near = {
        .distance = q->near_distance, .jobs = q->jobs, .progress = MR_PROGRESS_LINE, .max_pixels = q->max_pixels};
    if (q->near)
        MR_TRY(mr_similar_find(q->dir, ds, &near, &found.near, err));
    if (!mr_dataset_source_count(ds))
        MR_TRY(mr_cmd_seek_find(q->dir, m, &found.seeks, err));
    mr_hex(mr_dataset_digest(ds), 32, hex);
    return q->json ? print_json(q->dir, ds, hex, &found, err) : print_human(q, ds, hex, &found, err);
}

static mr_status inspect_run(const request *q, mr_error *err)
{
    if (q->croissant || q->classes || q->objects || q->near)
        return mr_fail(err, MR_MISUSE,
                       "%s: is a run; --croissant, --classes, --objects and --near-duplicates are for "
                       "datasets",
                       q->dir);
    return mr_run_print(q->dir, q->json, err);
}

static int start(int argc, char **argv)
{
    request q = {0};
    mr_dataset *ds = NULL;
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_inspect, argc, argv, &q))
        return cli.code;
    bool run;
    mr_status status = mr_run_is(q.dir, &run, &err);
    if (status == MR_OK)
        status = run ? inspect_run(&q, &err) : mr_dataset_open(q.dir, &ds, &err);
    if (status == MR_OK && !run)
        status = inspect(&q, ds, &err);
    mr_dataset_free(ds);
    return mr_cli_end(NULL, status, &err);
}

const mr_command mr_cmd_inspect = {
    .name = "inspect",
    .title = "summarise a dataset or a training run",
    .usage = "DATASET|RUN",
    .example = "millrace inspect imagenette",
    .summary = "Summarises a dataset: splits, samples, bytes, classes, the options it was made with, and "
               "its digest (the same wherever the same source is ingested).  Of a training run (the --output of "
               "millrace train, or a checkpoint): what was trained on what, from its newest checkpoint.",
    .notes = "Examples:\n"
             "  millrace inspect imagenette\n"
             "  millrace inspect --classes imagenette\n"
             "  millrace inspect --objects coco\n"
             "  millrace inspect --near-duplicates imagenette\n"
             "  millrace inspect --croissant imagenette > imagenette/croissant.json\n"
             "  millrace inspect run\n"
             "  millrace inspect --json imagenette | jq .splits.train.samples\n"
             "\n"
             "Exit status: 0 done; 1 a file is missing or has the wrong size, or the manifest or an index "
             "or a checkpoint is damaged; 2 usage error, or no dataset or run there; 3 system error.",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
