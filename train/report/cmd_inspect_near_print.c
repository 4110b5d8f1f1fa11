/* cmd_inspect_near_print.c - near-duplicates, for people and as JSON.
 * Invariant: every line names both samples, by split, number and source. */
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/format/meta.h"
#include "train/report/cmd_inspect_near.h"

enum { SHOWN = 10, LISTED = 100000 }; /* how many of each kind are shown to people, and in JSON */

typedef struct pair {
    const mr_similar_picture *picture, *other;
    mr_buf source, other_source;
    bool labels_differ;
    unsigned distance;
} pair;

static void free_pair(pair *p)
{
    mr_buf_free(&p->source);
    mr_buf_free(&p->other_source);
}

static mr_status read_source(const mr_dataset *ds, const mr_similar_picture *p, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    mr_meta_facts facts;
    MR_TRY(mr_dataset_read_meta(ds, mr_dataset_manifest(ds)->splits[p->split].name, p->number, &view, err));
    return mr_meta_scan(view.meta, view.meta_len, &facts, out, err);
}

static mr_status read_pair(const mr_dataset *ds, const mr_similar *n, size_t i, mr_similar_kind kind, pair *out,
                           mr_error *err)
{
    out->picture = &n->pictures[i];
    out->other = mr_similar_other(n, i, kind);
    out->distance = kind == MR_SIMILAR_EQUAL ? 0 : n->found[i].distance;
    int32_t a = out->picture->label, b = out->other->label;
    out->labels_differ = a >= 0 && b >= 0 && a != b;
    MR_TRY(read_source(ds, out->picture, &out->source, err));
    return read_source(ds, out->other, &out->other_source, err);
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static void print_sample(const mr_dataset *ds, const mr_similar_picture *p, mr_buf *source)
{
    printf("%s %llu (", mr_dataset_manifest(ds)->splits[p->split].name, (unsigned long long)p->number);
    mr_term_text(stdout, mr_buf_text(source));
    printf(")");
}

static mr_status print_pair(const mr_dataset *ds, const mr_similar *n, size_t i, mr_similar_kind s, mr_error *err)
{
    MR_AUTO(free_pair) pair p = {0};
    MR_TRY(read_pair(ds, n, i, s, &p, err));
    printf("    ");
    print_sample(ds, p.picture, &p.source);
    printf(": also ");
    print_sample(ds, p.other, &p.other_source);
    printf("%s\n", p.labels_differ ? ", with another label" : "");
    return MR_OK;
}

static mr_status print_section(const mr_dataset *ds, const mr_similar *n, mr_similar_kind s, mr_error *err)
{
    static const char *const heads[] = {"leaks: equal bytes in two splits", "leaks: similar images in two splits",
                                        "duplicates: similar images in one split"};
    uint64_t count = mr_similar_count(n, s), shown = 0;
    char number[32];
    if (!count)
        return MR_OK;
    printf("  %s%s: %s%s\n", mr_sgr(stdout, s == MR_SIMILAR_DUPLICATE ? MR_YELLOW : MR_RED), heads[s],
           mr_text_count(count, number), mr_sgr(stdout, MR_PLAIN));
    for (size_t i = 0; i < n->count && shown < SHOWN; i++) {
        if (!mr_similar_other(n, i, s))
            continue;
        MR_TRY(print_pair(ds, n, i, s, err));
        shown++;
    }
    if (count > shown)
        printf("    ... and %s more, listed by --json\n", mr_text_count(count - shown, number));
    return MR_OK;
}

/* "; 3 of uniform colour were not compared", if there are any. */
static void print_uncompared(uint64_t count, const char *words)
{
    char number[32];
    if (count)
        printf("; %s %s", mr_text_count(count, number), words);
}

mr_status mr_cmd_near_print(const mr_dataset *ds, const mr_similar *n, unsigned distance, mr_error *err)
{
    char number[32];
    printf("\n  near-duplicates: %s image%s, hashes up to %u bits apart", mr_text_count(n->count, number),
           n->count == 1 ? "" : "s", distance);
    print_uncompared(n->plain, "of uniform colour not compared");
    print_uncompared(n->unreadable, "not decodable");
    print_uncompared(n->crowded, "with too many similar hashes to compare them all");
    printf("\n");
    for (int s = 0; s < MR_SIMILAR_KINDS; s++)
        MR_TRY(print_section(ds, n, (mr_similar_kind)s, err));
    if (!n->equal && !n->leaks && !n->duplicates)
        printf("  no two images look alike\n");
    return MR_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static mr_status add_pair(const mr_dataset *ds, const mr_similar *n, size_t i, mr_similar_kind s, json_t *list,
                          mr_error *err)
{
    MR_AUTO(free_pair) pair p = {0};
    const mr_manifest *m = mr_dataset_manifest(ds);
    MR_TRY(read_pair(ds, n, i, s, &p, err));
    json_t *item =
        json_pack("{ss sI ss ss sI ss ss sI sb}", "split", m->splits[p.picture->split].name, "sample",
                  (json_int_t)p.picture->number, "source", mr_buf_text(&p.source), "other_split",
                  m->splits[p.other->split].name, "other_sample", (json_int_t)p.other->number, "other_source",
                  mr_buf_text(&p.other_source), "kind", s == MR_SIMILAR_EQUAL ? "equal bytes" : "looks alike",
                  "distance", (json_int_t)p.distance, "labels_differ", (int)p.labels_differ);
    return json_array_append_new(list, item) ? mr_fail_memory(err, "writing JSON") : MR_OK;
}

static mr_status add_section(const mr_dataset *ds, const mr_similar *n, mr_similar_kind s, json_t *list, mr_error *err)
{
    size_t listed = 0;
    for (size_t i = 0; i < n->count && listed < LISTED; i++) {
        if (!mr_similar_other(n, i, s))
            continue;
        MR_TRY(add_pair(ds, n, i, s, list, err));
        listed++;
    }
    return MR_OK;
}

mr_status mr_cmd_near_json(const mr_dataset *ds, const mr_similar *n, unsigned distance, json_t *doc, mr_error *err)
{
    json_t *leaks = json_array(), *duplicates = json_array();
    json_t *near =
        json_pack("{sI sI sI sI sI sI sI sI so so}", "distance", (json_int_t)distance, "pictures", (json_int_t)n->count,
                  "single_tone", (json_int_t)n->plain, "unreadable", (json_int_t)n->unreadable, "crowded",
                  (json_int_t)n->crowded, "equal_leaks", (json_int_t)n->equal, "alike_leaks", (json_int_t)n->leaks,
                  "alike_in_one_split", (json_int_t)n->duplicates, "leaks", leaks, "duplicates", duplicates);
    if (!near || json_object_set_new(doc, "near_duplicates", near))
        return mr_fail_memory(err, "writing JSON");
    MR_TRY(add_section(ds, n, MR_SIMILAR_EQUAL, leaks, err));
    MR_TRY(add_section(ds, n, MR_SIMILAR_LEAK, leaks, err));
    return add_section(ds, n, MR_SIMILAR_DUPLICATE, duplicates, err);
}
