/* cmd_ingest_summary.c - what people and machines read when an ingest has ended.
 * Invariant: every number comes from the notes and the shards that were built, and adds up to what the source held.
 * What the user can change comes first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/cmd_ingest.h"
#include "shards/cmd_seek.h"

enum { SHOWN = 10, SHOWN_IGNORED = 3 }; /* examples of each kind */

static const char in_report[] = "--report FILE keeps them all";

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_note(const mr_note *n, FILE *stream)
{
    fprintf(stream, "  ");
    mr_term_text(stream, n->path);
    fprintf(stream, "%s", n->path[0] && n->detail[0] ? ": " : "");
    mr_term_text(stream, n->detail);
    fprintf(stream, "\n");
}

static void print_kind(const mr_notes *notes, mr_note_kind kind, const char *rest, FILE *stream)
{
    size_t shown = 0, count = notes->counts[kind], max = kind == MR_NOTE_IGNORED ? SHOWN_IGNORED : SHOWN;
    char number[32];
    bool bad = kind == MR_NOTE_REJECT || kind == MR_NOTE_LEAK;
    fprintf(stream, "%s%s: %s%s\n", mr_sgr(stream, bad ? MR_RED : MR_YELLOW), mr_note_heads[kind],
            mr_text_count(count, number), mr_sgr(stream, MR_PLAIN));
    for (size_t i = 0; i < notes->count && shown < max; i++) {
        if (notes->items[i].kind != kind)
            continue;
        print_note(&notes->items[i], stream);
        shown++;
    }
    if (count > shown)
        fprintf(stream, "  ... and %s more, %s\n", mr_text_count(count - shown, number),
                count > notes->kept[kind] ? "the first of them in the report" : rest);
    if (mr_note_advice[kind])
        fprintf(stream, "  %s->%s %s\n", mr_sgr(stream, MR_BOLD), mr_sgr(stream, MR_PLAIN), mr_note_advice[kind]);
}

/* `decide`: what the user can change; otherwise the rest.  `rest`: where to find the notes that are not printed. */
static void print_notes(const mr_notes *notes, bool decide, const char *rest, FILE *stream)
{
    for (int kind = 0; kind < MR_NOTE_COUNT; kind++)
        if (notes->counts[kind] && !mr_note_advice[kind] == !decide && kind != MR_NOTE_COMPANION &&
            kind != MR_NOTE_UNACCOUNTED)
            print_kind(notes, (mr_note_kind)kind, rest, stream);
}

static bool has_own_name(const mr_plan_split *split)
{
    return split->alias_count == 0 || (split->alias_count == 1 && strlen(split->name) == split->aliases[0].len &&
                                       !memcmp(split->name, split->aliases[0].name, split->aliases[0].len));
}

/* "train_set", "valid, validation": a split of the source. */
static void add_aliases(const mr_plan_split *split, mr_buf *out)
{
    for (size_t i = 0; i < split->alias_count; i++) {
        mr_buf_add_text(out, i ? ", " : "");
        mr_text_show(out, split->aliases[i].name, split->aliases[i].len);
    }
}

/* With the names that the splits have in the source, if any of them is stored under a different name. */
static mr_status print_splits(const mr_ingest *in, FILE *stream, mr_error *err)
{
    char samples[32], images[32], bytes[32], shards[32];
    bool named = true;
    for (uint32_t s = 0; s < in->plan.split_count; s++)
        named = named && has_own_name(&in->plan.splits[s]);
    mr_table *t = mr_table_new(named ? 5 : 6);
    mr_table_row(t, "split", ">samples", ">images", ">bytes", ">shards", "in the source");
    for (uint32_t s = 0; s < in->plan.split_count; s++) {
        mr_split_sums sums = mr_ingest_split(in, s);
        mr_buf aliases = {0};
        add_aliases(&in->plan.splits[s], &aliases);
        mr_table_row(t, in->plan.splits[s].name, mr_text_count(sums.samples, samples),
                     mr_text_count(sums.images, images), mr_text_bytes(sums.bytes, bytes),
                     mr_text_count(sums.shards, shards), mr_buf_text(&aliases));
        mr_buf_free(&aliases);
    }
    return mr_table_print(t, stream, err);
}

static void print_classes(const mr_ingest *in, FILE *stream)
{
    size_t n = in->plan.class_count;
    char count[32];
    if (n == 0)
        return;
    fprintf(stream, "%s class%s: ", mr_text_count(n, count), n == 1 ? "" : "es");
    for (size_t i = 0; i < n && i < 12; i++) {
        fprintf(stream, "%s", i ? ", " : "");
        mr_term_text(stream, in->plan.classes[i].name);
    }
    fprintf(stream, "%s\n", n > 12 ? ", ..." : "");
}

/* Sums up the seek indexes; false: none were made. */
static bool sum_seeks(const mr_ingest *in, cmd_seek_sums *sums)
{
    const mr_shard **shards = in->seeks ? mr_alloc(in->cut_count, sizeof *shards) : NULL;
    for (size_t i = 0; shards && i < in->cut_count; i++)
        shards[i] = &in->shards[i];
    if (shards)
        *sums = mr_cmd_seek_sum(in->seeks, shards, in->cut_count);
    free(shards);
    return shards != NULL;
}

static void print_seeks(const mr_ingest *in, FILE *stream)
{
    cmd_seek_sums sums;
    MR_AUTO(mr_buf_free) mr_buf words = {0};
    if (!sum_seeks(in, &sums))
        return;
    mr_cmd_seek_words(&sums, &words);
    fprintf(stream, "seek index: %s\n", mr_buf_text(&words));
}

static mr_status print_layout(const mr_ingest *in, FILE *stream, mr_error *err)
{
    const char *variant = mr_plan_variant(&in->plan);
    MR_AUTO(mr_buf_free) mr_buf root = {0};
    mr_text_escape(&root, in->choice.tree.root, in->choice.tree.root_len);
    fprintf(stream, "%slayout %s%s", mr_sgr(stream, MR_BOLD), in->choice.layout->name, variant && *variant ? " (" : "");
    mr_term_text(stream, variant ? variant : "");
    fprintf(stream, "%s%s: ", variant && *variant ? ")" : "", mr_sgr(stream, MR_PLAIN));
    mr_term_text(stream, in->choice.bid.why);
    fprintf(stream, "%s", root.len ? ", root " : "");
    mr_term_text(stream, mr_buf_text(&root));
    fprintf(stream, "\n");
    return mr_buf_status(&root, err, "printing");
}

/* What was looked for between the splits and not found; NULL: there is one split, or leaks have been listed. */
static const char *no_leaks(const mr_ingest *in)
{
    if (in->leaks || in->plan.split_count < 2)
        return NULL;
    if (!in->options->near)
        return "no leaks by equal bytes, near-duplicates not checked (--near-duplicates)";
    return in->near.unreadable || in->near.crowded ? "no leaks among the images that could be compared"
                                                   : "no leaks between splits";
}

static void add_count(mr_buf *out, uint64_t count, const char *what)
{
    char text[32];
    if (count)
        mr_buf_printf(out, "%s%s %s", out->len ? ", " : "", mr_text_count(count, text), what);
}

/* What is not in the dataset: "2 rejected, 5 left out". */
static void add_losses(const mr_ingest *in, mr_buf *out)
{
    add_count(out, in->rejects, "rejected");
    add_count(out, in->ledger.skipped, "left out by --skip-unmatched");
    add_count(out, in->notes.counts[MR_NOTE_MISSING], mr_note_heads[MR_NOTE_MISSING]);
}

/* Reports the absence only of what was looked for. */
static mr_status print_verdict(const mr_ingest *in, FILE *stream, mr_error *err)
{
    const char *leaks = no_leaks(in);
    MR_AUTO(mr_buf_free) mr_buf losses = {0};
    add_losses(in, &losses);
    fprintf(stream, "%s%s%s\n", losses.len ? mr_buf_text(&losses) : "no images rejected", leaks ? ", " : "",
            leaks ? leaks : "");
    return mr_buf_status(&losses, err, "printing");
}

/* "companions left out: 8 masks in train/labels/, 2 documents" */
static mr_status print_companions(const mr_ingest *in, FILE *stream, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf line = {0};
    char count[32];
    for (int kind = 0; kind < MR_COMPANION_COUNT; kind++) {
        const mr_companions *c = &in->ledger.companions[kind];
        if (!c->count)
            continue;
        mr_buf_printf(&line, "%s%s %.*s", line.len ? ", " : "", mr_text_count(c->count, count),
                      (int)strlen(mr_companion_names[kind]) - (c->count == 1), mr_companion_names[kind]);
        const mr_entry *e = mr_source_entry(in->source, c->first);
        const char *slash = memrchr(e->path, '/', e->path_len);
        if (kind == MR_COMPANION_MASK && slash && !c->many_folders) {
            mr_buf_add_text(&line, " in ");
            mr_text_escape(&line, e->path, (size_t)(slash - e->path) + 1);
        }
    }
    if (line.len) {
        fprintf(stream, "%s: ", mr_note_heads[MR_NOTE_COMPANION]);
        mr_term_text(stream, mr_buf_text(&line));
        fprintf(stream, "\n");
    }
    return mr_buf_status(&line, err, "printing");
}

mr_status mr_cmd_ingest_quiet(const mr_ingest *in, FILE *stream, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf losses = {0};
    if (!in->rejects && !in->notes.counts[MR_NOTE_MISSING])
        return MR_OK;
    for (int kind = 0; kind < MR_NOTE_COUNT; kind++)
        if (kind == MR_NOTE_REJECT || kind == MR_NOTE_BAD_NAME || kind == MR_NOTE_COLLISION || kind == MR_NOTE_MISSING)
            add_count(&losses, in->notes.counts[kind], mr_note_heads[kind]);
    fprintf(stream, "millrace: %s: %s\n", in->options->sources[0], mr_buf_text(&losses));
    return mr_buf_status(&losses, err, "printing");
}

mr_status mr_cmd_ingest_summary(const mr_ingest *in, FILE *stream, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    const char *rest = o->dry_run ? in_report : "all in report.json";
    char time[32], hex[65];
    print_notes(&in->notes, true, rest, stream);
    MR_TRY(print_layout(in, stream, err));
    MR_TRY(print_splits(in, stream, err));
    print_classes(in, stream);
    print_notes(&in->notes, false, rest, stream);
    MR_TRY(print_companions(in, stream, err));
    MR_TRY(print_verdict(in, stream, err));
    if (o->dry_run) {
        fprintf(stream, "dry run: nothing was written\n");
        return MR_OK;
    }
    if (in->resumed)
        fprintf(stream, "%llu shard%s reused from an earlier run\n", (unsigned long long)in->resumed,
                plural(in->resumed));
    print_seeks(in, stream);
    mr_hex(in->digest, 32, hex);
    fprintf(stream, "%sdone%s in %s: %s\ndigest %s\n", mr_sgr(stream, MR_GREEN), mr_sgr(stream, MR_PLAIN),
            mr_text_seconds(in->seconds, time), o->target, hex);
    return MR_OK;
}

void mr_cmd_ingest_failure(const mr_ingest *in)
{
    if (in->choice.unknown) {
        fprintf(stderr, "What each layout needs:\n");
        for (size_t i = 0; mr_layouts[i]; i++)
            fprintf(stderr, "  %-11s %s\n", mr_layouts[i]->name, mr_layouts[i]->needs);
    }
    print_notes(&in->notes, true, in_report, stderr);
    print_notes(&in->notes, false, in_report, stderr);
}

json_t *mr_cmd_ingest_sources(const mr_ingest_options *o)
{
    json_t *list = json_array();
    for (size_t i = 0; i < o->source_count; i++)
        json_array_append_new(list, mr_json_path(o->sources[i], strlen(o->sources[i])));
    return list;
}

mr_status mr_cmd_ingest_json(const mr_ingest *in, mr_status status, const mr_error *why, mr_error *err)
{
    char hex[65];
    json_t *doc = mr_ingest_report(in, status == MR_OK && !in->options->dry_run);
    cmd_seek_sums sums;
    json_object_set_new(doc, "sources", mr_cmd_ingest_sources(in->options));
    json_object_set_new(doc, "ok", json_boolean(status == MR_OK));
    json_object_set_new(doc, "error", status == MR_OK ? json_null() : json_string(why->text));
    json_object_set_new(doc, "dry_run", json_boolean(in->options->dry_run));
    json_object_set_new(doc, "shards", json_integer((json_int_t)in->cut_count));
    json_object_set_new(doc, "seconds", json_real(in->seconds));
    if (sum_seeks(in, &sums))
        json_object_set_new(doc, "seek_index", mr_cmd_seek_json(&sums, in->options->seek_every));
    mr_hex(in->digest, 32, hex);
    json_object_set_new(doc, "digest", in->manifest ? json_string(hex) : json_null());
    mr_status printed = mr_json_print(doc, err);
    json_decref(doc);
    return printed;
}
