/* cmd_diff.c - `millrace diff A B`: what differs between two datasets, for people and for scripts.
 * Invariant: exit code 0 says that all samples and the classes agree, 1 that they do not; like diff(1). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/term.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/json/json.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/commands.h"
#include "shards/diff/diff.h"
#include "shards/report/differences.h"

enum { SHOWN = 20 }; /* of each kind */

typedef struct request {
    const char *a, *b, *html;
    bool json, summary;
} request;

static const mr_option options[] = {
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .help = "print one JSON object with every difference"},
    {"summary", 0, MR_ARG_FLAG, MR_FIELD(request, summary), .help = "only counts, no samples"},
    {"html", 0, MR_ARG_PATH, MR_FIELD(request, html), .value = "FILE",
     .help = "also write a page with the images of samples that differ, side by side"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {
    {.value = "A", .kind = MR_ARG_PATH, MR_FIELD(request, a)},
    {.value = "B", .kind = MR_ARG_PATH, MR_FIELD(request, b)},
    {0},
};

static const char *class_of(const mr_dataset *ds, const mr_diff_side *s)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    return s->label >= 0 && (size_t)s->label < m->class_count ? m->classes[s->label].name : "none";
}

/* ---- for scripts ------------------------------------------------------------------------------------------------- */

static json_t *side_json(const mr_dataset *ds, const mr_diff_side *s)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)s->image_hash);
    return json_pack("{s:s, s:s, s:I, s:s, s:I, s:s}", "source", s->source, "split", s->split, "sample",
                     (json_int_t)s->number, "class", class_of(ds, s), "bytes", (json_int_t)s->image_len, "xxh3_64",
                     hash);
}

static json_t *words_of(unsigned what)
{
    json_t *list = json_array();
    for (size_t bit = 0; bit < MR_DIFF_BITS; bit++)
        if (what >> bit & 1)
            json_array_append_new(list, json_string(mr_diff_words[bit]));
    return list;
}

static json_t *counts_json(const mr_diff *d)
{
    json_t *of = json_object();
    for (size_t bit = 0; bit < MR_DIFF_BITS; bit++)
        json_object_set_new(of, mr_diff_words[bit], json_integer((json_int_t)d->bits[bit]));
    return json_pack("{s:I, s:I, s:I, s:o, s:b, s:I, s:I, s:I}", "added", (json_int_t)d->added, "removed",
                     (json_int_t)d->removed, "changed", (json_int_t)d->changed, "changed_in", of, "classes_differ",
                     (int)d->classes_differ, "leaks_a", (json_int_t)d->leaks_a, "leaks_b", (json_int_t)d->leaks_b,
                     "new_leaks", (json_int_t)d->new_leaks);
}

static mr_status print_json(const request *q, const mr_dataset *a, const mr_dataset *b, const mr_diff *d, mr_error *err)
{
    json_t *lists[3] = {json_array(), json_array(), json_array()}; /* changed, removed, added */
    for (size_t i = 0; i < d->count && !q->summary; i++) {
        const mr_difference *x = &d->items[i];
        if (x->a && x->b)
            json_array_append_new(lists[0], json_pack("{s:o, s:o, s:o}", "in", words_of(x->what), "a",
                                                      side_json(a, x->a), "b", side_json(b, x->b)));
        else
            json_array_append_new(lists[x->a ? 1 : 2], x->a ? side_json(a, x->a) : side_json(b, x->b));
    }
    json_t *doc = json_pack("{s:b, s:o, s:o, s:o, s:o}", "equal", (int)mr_diff_equal(d), "counts", counts_json(d),
                            "changed", lists[0], "removed", lists[1], "added", lists[2]);
    if (!doc)
        return mr_fail_memory(err, "printing");
    mr_status status = mr_json_print(doc, err);
    json_decref(doc);
    return status;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static mr_status print_splits(const mr_manifest *a, const mr_manifest *b, mr_error *err)
{
    mr_table *t = mr_table_new(3);
    char counts[2][32];
    if (!t)
        return mr_fail_memory(err, "printing");
    mr_table_row(t, "split", ">samples in A", ">samples in B");
    for (size_t i = 0; i < a->split_count; i++) {
        const mr_split *other = mr_manifest_split(b, a->splits[i].name);
        mr_table_row(t, a->splits[i].name, mr_text_count(a->splits[i].samples, counts[0]),
                     other ? mr_text_count(other->samples, counts[1]) : "-");
    }
    for (size_t i = 0; i < b->split_count; i++)
        if (!mr_manifest_split(a, b->splits[i].name))
            mr_table_row(t, b->splits[i].name, "-", mr_text_count(b->splits[i].samples, counts[1]));
    return mr_table_print(t, stdout, err);
}

/* The classes of one dataset that the other has not; at most SHOWN names. */
static void print_classes(const char *word, const mr_manifest *of, const mr_manifest *other)
{
    size_t count = 0;
    for (size_t i = 0; i < of->class_count; i++) {
        bool found = false;
        for (size_t k = 0; k < other->class_count && !found; k++)
            found = strcmp(of->classes[i].name, other->classes[k].name) == 0;
        if (found)
            continue;
        if (count < SHOWN) {
            printf(count ? ", " : "classes %s: ", word);
            mr_term_text(stdout, of->classes[i].name);
        }
        count++;
    }
    if (count)
        printf("%s\n", count > SHOWN ? " ..." : "");
}

static void print_side(const mr_dataset *ds, const char *mark, const mr_diff_side *s)
{
    printf("%s ", mark);
    mr_term_text(stdout, s->source);
    printf(" (%s, ", s->split);
    mr_term_text(stdout, class_of(ds, s));
    printf(")\n");
}

static const char *label_of(const mr_dataset *ds, const mr_diff_side *s)
{
    if (s->label >= 0)
        return class_of(ds, s);
    return s->flags & MR_FLAG_MULTI_LABEL ? "a list" : s->flags & MR_FLAG_UNANNOTATED ? "not annotated" : "none";
}

static void print_labels(const mr_dataset *a, const mr_dataset *b, const mr_difference *x)
{
    const char *one = label_of(a, x->a), *other = label_of(b, x->b);
    printf(" ");
    mr_term_text(stdout, one);
    printf(" -> ");
    mr_term_text(stdout, strcmp(one, other) != 0 ? other : "another");
}

static void print_change(const mr_dataset *a, const mr_dataset *b, const mr_difference *x)
{
    const char *comma = "";
    printf("~ ");
    mr_term_text(stdout, x->a->source);
    printf(": ");
    for (size_t bit = 0; bit < MR_DIFF_BITS; bit++) {
        if (!(x->what >> bit & 1))
            continue;
        printf("%s%s", comma, 1u << bit == MR_DIFF_SOURCE ? "now " : mr_diff_words[bit]);
        comma = ", ";
        if (1u << bit == MR_DIFF_SOURCE) {
            mr_term_text(stdout, x->b->source);
        } else if (1u << bit == MR_DIFF_SPLIT) {
            printf(" %s -> %s", x->a->split, x->b->split);
        } else if (1u << bit == MR_DIFF_LABEL) {
            print_labels(a, b, x);
        } else if (1u << bit == MR_DIFF_IMAGE) {
            printf(" (%u -> %u bytes)", x->a->image_len, x->b->image_len);
        }
    }
    printf("\n");
}

static void print_samples(const mr_dataset *a, const mr_dataset *b, const mr_diff *d)
{
    size_t shown[3] = {0};
    const size_t all[3] = {d->changed, d->removed, d->added};
    for (size_t i = 0; i < d->count; i++) {
        const mr_difference *x = &d->items[i];
        size_t kind = x->a && x->b ? 0 : x->a ? 1 : 2;
        char more[32];
        if (shown[kind]++ < SHOWN)
            kind == 0 ? print_change(a, b, x) : print_side(x->a ? a : b, x->a ? "-" : "+", x->a ? x->a : x->b);
        else if (shown[kind] == all[kind])
            printf("  ... and %s more like this; --json lists all\n", mr_text_count(all[kind] - SHOWN, more));
    }
}

static void print_counts(const mr_diff *d)
{
    char counts[4][32];
    const char *comma = "";
    printf("%s added, %s removed, %s changed", mr_text_count(d->added, counts[0]), mr_text_count(d->removed, counts[1]),
           mr_text_count(d->changed, counts[2]));
    for (size_t bit = 0; bit < MR_DIFF_BITS; bit++)
        if (d->bits[bit]) {
            bool moved = 1u << bit == MR_DIFF_SOURCE;
            printf("%s%s %s%s", *comma ? comma : " (", mr_text_count(d->bits[bit], counts[3]), moved ? "moved" : "in ",
                   moved ? "" : mr_diff_words[bit]);
            comma = ", ";
        }
    printf("%s\n", *comma ? ")" : "");
    if (d->new_leaks)
        printf("%s image%s in several splits of B, but not of A\n", mr_text_count(d->new_leaks, counts[0]),
               d->new_leaks == 1 ? "" : "s");
}

static mr_status print_human(const request *q, const mr_dataset *a, const mr_dataset *b, const mr_diff *d,
                             mr_error *err)
{
    const mr_manifest *of_a = mr_dataset_manifest(a), *of_b = mr_dataset_manifest(b);
    MR_TRY(print_splits(of_a, of_b, err));
    if (d->classes_differ) {
        print_classes("only in A", of_a, of_b);
        print_classes("only in B", of_b, of_a);
        printf("the classes, or their order, differ\n");
    }
    if (!q->summary)
        print_samples(a, b, d);
    if (mr_diff_equal(d))
        printf("%sequal%s: all samples and the classes agree\n", mr_sgr(stdout, MR_GREEN), mr_sgr(stdout, MR_PLAIN));
    else
        print_counts(d);
    return mr_term_flush(err);
}

static mr_status check_page(const request *q, mr_error *err)
{
    MR_TRY(mr_path_keep_out(q->html, q->a, err));
    MR_TRY(mr_path_keep_out(q->html, q->b, err));
    return mr_output_check(q->html, err);
}

static mr_status write_page(const request *q, const mr_dataset *a, const mr_dataset *b, const mr_diff *d, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf page = {0};
    const mr_compared c = {q->a, q->b, a, b, d};
    MR_TRY(mr_differences_page(&c, &page, err));
    return mr_file_publish(AT_FDCWD, q->html, page.data, page.len, err);
}

static mr_status compare(const request *q, bool *equal, mr_error *err)
{
    MR_AUTO(mr_dataset_release) mr_dataset *a = NULL;
    MR_AUTO(mr_dataset_release) mr_dataset *b = NULL;
    MR_AUTO(mr_diff_free) mr_diff d = {0};
    if (q->html)
        MR_TRY(check_page(q, err));
    MR_TRY(mr_dataset_open(q->a, &a, err));
    MR_TRY(mr_dataset_open(q->b, &b, err));
    MR_TRY(mr_diff_find(a, b, q->a, q->b, &d, err));
    *equal = mr_diff_equal(&d);
    if (q->html)
        MR_TRY(write_page(q, a, b, &d, err));
    return q->json ? print_json(q, a, b, &d, err) : print_human(q, a, b, &d, err);
}

static int start(int argc, char **argv)
{
    request q = {0};
    bool equal = false;
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_diff, argc, argv, &q))
        return cli.code;
    mr_status status = compare(&q, &equal, &err);
    int code = mr_cli_end(NULL, status, &err);
    return status == MR_OK && !equal ? 1 : code;
}

const mr_command mr_cmd_diff = {
    .name = "diff",
    .title = "compare two datasets",
    .usage = "A B",
    .example = "millrace diff flowers-v1 flowers-v2",
    .summary =
        "Compares two datasets sample by sample: by the path in the source, then, for what is left, by the image, "
        "so that a renamed file counts as moved.  Classes are compared by name.  Shards, order and shard sizes do "
        "not count.",
    .notes =
        "Lines begin with + (only in B), - (only in A) or ~ (changed); 20 of each are shown, and all with --json.\n"
        "\n"
        "Examples:\n"
        "  millrace diff flowers-v1 flowers-v2\n"
        "  millrace diff flowers-v1 flowers-v2 --json | jq '.counts'\n"
        "  millrace diff flowers-v1 flowers-v2 --html diff.html\n"
        "\n"
        "Samples are compared by their index rows; metas are read only where these differ, and images never. "
        "`millrace verify` proves that they are what was ingested.\n"
        "\n"
        "Exit status: 0 equal; 1 different, or a dataset is damaged; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
