/* ledger.c - gives each file of the source its fate, once the plan is made.
 * Invariant: what the plan says about a file comes first, then the options, then the file's name, and only a file that
 * nothing else explains is opened, for its first bytes. */
#include "ingest/pipeline/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/pipeline/ledger_parts.h"

enum { NOTED_UNLISTED = 1, NOTED_REJECTED = 2, NOTED_MISSING = 4 };
enum { UNDECIDED = MR_FATE_COUNT };

/* ---- what the plan says ------------------------------------------------------------------------------------------ */

static bool is_reject(mr_note_kind kind)
{
    return kind == MR_NOTE_REJECT || kind == MR_NOTE_BAD_NAME || kind == MR_NOTE_COLLISION;
}

/* Marks the entries with this beginning: the files of a row, or those beside an image that belong to it. */
static void mark_run(mr_book *b, const mr_buf *begin, uint8_t noted)
{
    const mr_source *s = b->in->source;
    const char *path = (const char *)begin->data;
    for (uint32_t n = mr_source_lower(s, path, begin->len); n < mr_source_count(s); n++) {
        const mr_entry *e = mr_source_entry(s, n);
        if (e->path_len < begin->len || memcmp(e->path, path, begin->len) != 0)
            return;
        if (path[begin->len - 1] == '/' || !mr_is_named_image(b->in, n))
            b->noted[n] |= noted;
    }
}

/* "train/1.jpg" rejects "train/1.json" as well, and "rows.parquet/000001" the files in it. */
static void mark_rejected(mr_book *b, uint32_t entry, const char *path, size_t len)
{
    MR_AUTO(mr_buf_free) mr_buf begin = {0};
    if (entry == MR_NO_ENTRY) {
        mr_buf_add(&begin, b->in->choice.tree.root, b->in->choice.tree.root_len);
        mr_buf_add(&begin, path, len);
        mr_buf_add_text(&begin, "/");
    } else {
        const mr_entry *e = mr_source_entry(b->in->source, entry);
        size_t stem_len;
        const char *stem = mr_stem(e->path, e->path_len, &stem_len);
        mr_buf_add(&begin, e->path, (size_t)(stem + stem_len - e->path));
        mr_buf_add_text(&begin, ".");
    }
    b->in->notes.failed = b->in->notes.failed || begin.failed;
    if (!begin.failed)
        mark_run(b, &begin, NOTED_REJECTED);
}

/* A note's path is one under the root, or from the top level of the source. */
static void mark(mr_book *b, const char *path, size_t len, uint8_t noted)
{
    mr_tree whole = mr_tree_at(b->in->source, "", 0);
    uint32_t entry = mr_tree_find(&b->in->choice.tree, path, len);
    if (entry == MR_NO_ENTRY)
        entry = mr_tree_find(&whole, path, len);
    if (entry != MR_NO_ENTRY)
        b->noted[entry] |= noted;
    if (noted == NOTED_REJECTED)
        mark_rejected(b, entry, path, len);
}

/* Reads the notes that the plan added. */
static mr_status read_notes(mr_book *b, size_t from, mr_error *err)
{
    const mr_notes *notes = &b->in->notes;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    for (size_t i = from; i < notes->count; i++) {
        const mr_note *n = &notes->items[i];
        uint8_t noted = n->kind == MR_NOTE_UNLISTED  ? NOTED_UNLISTED
                        : n->kind == MR_NOTE_MISSING ? NOTED_MISSING
                        : is_reject(n->kind)         ? NOTED_REJECTED
                                                     : 0;
        if (!noted)
            continue;
        mr_buf_clear(&path);
        if (!mr_text_unescape(&path, n->path, strlen(n->path)) || !path.len)
            continue;
        mark(b, (const char *)path.data, path.len, noted);
    }
    return mr_buf_status(&path, err, "accounting for the source");
}

static uint8_t planned(const mr_book *b, uint32_t n)
{
    const mr_ingest *in = b->in;
    mr_use use = (mr_use)in->plan.used[n];
    if (use == MR_USE_MASK)
        return MR_FATE_MASK;
    if (b->noted[n] & NOTED_UNLISTED)
        return UNDECIDED;
    if (use == MR_USE_REJECTED || (b->noted[n] & NOTED_REJECTED && (use == MR_USE_NONE || mr_is_named_image(in, n))))
        return MR_FATE_REJECTED;
    if (use == MR_USE_TAKEN) /* an image that a layout claims without making it a sample was only inspected */
        return mr_is_named_image(in, n) ? UNDECIDED : MR_FATE_ANNOTATION;
    if (use == MR_USE_LEFT_OUT || (in->options->for_layout.root && !mr_book_inside(in, n)))
        return MR_FATE_LEFT_OUT;
    return UNDECIDED;
}

static void settle_planned(mr_book *b)
{
    const mr_plan *plan = &b->in->plan;
    uint32_t entries = mr_source_count(b->in->source);
    bool tells = b->in->choice.layout->meta || b->in->choice.layout->objects;
    memset(b->fates, UNDECIDED, entries);
    for (size_t i = 0; i < plan->sample_count; i++) {
        const mr_sample *s = &plan->samples[i];
        b->fates[s->entry] = MR_FATE_SAMPLE;
        b->labelled = b->labelled || s->label >= 0 || (tells && !(s->flags & MR_FLAG_UNANNOTATED));
    }
    for (uint32_t n = 0; n < entries; n++) {
        if (b->fates[n] != MR_FATE_SAMPLE)
            b->fates[n] = planned(b, n);
        bool kept = b->fates[n] <= MR_FATE_MASK;
        b->kept[n + 1] = b->kept[n] + kept;
    }
}

/* ---- what the files say ------------------------------------------------------------------------------------------ */

static void add_companion(mr_book *b, uint32_t n, mr_companion kind)
{
    const mr_source *s = b->in->source;
    mr_companions *c = &b->in->ledger.companions[kind];
    const mr_entry *e = mr_source_entry(s, n), *first = mr_source_entry(s, c->count ? c->first : n);
    size_t stem_len, folder = (size_t)(mr_stem(e->path, e->path_len, &stem_len) - e->path);
    size_t first_folder = (size_t)(mr_stem(first->path, first->path_len, &stem_len) - first->path);
    if (!c->count++)
        c->first = n;
    c->many_folders = c->many_folders || folder != first_folder || memcmp(e->path, first->path, folder) != 0;
    b->fates[n] = MR_FATE_COMPANION;
    bool inside = mr_book_inside(b->in, n);
    size_t skip = inside ? b->in->choice.tree.root_len : 0;
    mr_note_add(&b->in->notes, MR_NOTE_COMPANION, e->path + skip, e->path_len - skip, e->size, "one of the %s",
                mr_companion_names[kind]);
}

/* Class folders make splits whose other images --keep-unlisted includes. */
static bool is_in_split(const mr_book *b, const mr_entry *e)
{
    const mr_plan *plan = &b->in->plan;
    size_t root = b->in->choice.tree.root_len;
    const char *path = e->path + root;
    for (size_t s = 0; plan->by_folder && !plan->flat && s < plan->split_count; s++)
        for (size_t k = 0; k < plan->splits[s].alias_count; k++) {
            const mr_split_alias *a = &plan->splits[s].aliases[k];
            if (e->path_len - root > a->len && path[a->len] == '/' && !memcmp(path, a->name, a->len))
                return true;
        }
    return false;
}

/* With --layout flat the user says that annotations do not matter, with --annotations and --split-list which of them
 * do. */
static bool is_unwanted(const mr_ingest *in, const mr_format *format)
{
    const mr_layout_options *o = &in->options->for_layout;
    bool flat = in->options->layout && in->choice.layout == &mr_layout_flat;
    return flat || (format->kind & MR_FORMAT_CHOSEN && o->annotation_count) ||
           (format->kind & MR_FORMAT_LIST && o->list_count);
}

/* An image, or an annotation of a known format: a mask, skipped, or left. */
static mr_status settle_found(mr_book *b, uint32_t n, const mr_format *format, mr_error *err)
{
    const mr_entry *e = mr_source_entry(b->in->source, n);
    size_t stem_len;
    const char *stem = mr_stem(e->path, e->path_len, &stem_len);
    MR_TRY(mr_book_stems(b, true, err));
    if (!format && b->labelled && mr_companion_is_mask(e->path, e->path_len, &b->of_samples)) {
        add_companion(b, n, MR_COMPANION_MASK);
        return MR_OK;
    }
    if (format && is_unwanted(b->in, format)) {
        b->fates[n] = MR_FATE_LEFT_OUT;
        return MR_OK;
    }
    bool unmatched = !format || (format->kind & MR_FORMAT_PER_IMAGE && !mr_stems_have(&b->of_samples, stem, stem_len));
    mr_leftover left = {.path = e->path,
                        .entry = n,
                        .format = format,
                        .keepable = b->noted[n] & NOTED_UNLISTED || (!format && mr_is_named_image(b->in, n) &&
                                                                     mr_book_inside(b->in, n) && is_in_split(b, e)),
                        .skippable = unmatched && mr_book_inside(b->in, n)};
    if (left.skippable && b->in->options->for_layout.skip_unmatched) {
        b->fates[n] = MR_FATE_LEFT_OUT;
        b->in->plan.used[n] = MR_USE_LEFT_OUT;
        b->in->ledger.skipped++;
        return MR_OK;
    }
    if (!MR_GROW(b->items, b->count, b->capacity))
        return mr_fail_memory(err, "accounting for the source");
    b->items[b->count++] = left;
    b->fates[n] = MR_FATE_UNACCOUNTED;
    return MR_OK;
}

/* Names without endings are looked up among those of all images, which is not done for any number of texts. */
static bool may_name_stems(mr_book *b, const mr_entry *e)
{
    enum { TEXTS_MAX = 64 };
    if (mr_name_ends(e->path, e->path_len, ".txt"))
        return b->texts++ < TEXTS_MAX;
    return mr_name_ends(e->path, e->path_len, ".csv") || mr_name_ends(e->path, e->path_len, ".tsv");
}

/* A file that the layout knows as an annotation by its place. */
static const mr_format unknown = {.name = "annotation", .names = "annotations", .kind = MR_FORMAT_PER_IMAGE};

static mr_status settle_rest(mr_book *b, uint32_t n, mr_error *err)
{
    const mr_entry *e = mr_source_entry(b->in->source, n);
    mr_companion kind = mr_companion_by_name(e->path, e->path_len);
    if (kind != MR_COMPANION_COUNT) {
        add_companion(b, n, kind);
        return MR_OK;
    }
    if (mr_is_named_image(b->in, n))
        return settle_found(b, n, NULL, err);
    mr_content c = mr_content_of(b->in->source, n, NULL);
    if (!c.image && !c.format && may_name_stems(b, e)) {
        MR_TRY(mr_book_stems(b, false, err));
        c = mr_content_of(b->in->source, n, &b->of_images);
    }
    if (!c.image && !c.format && b->noted[n] & NOTED_MISSING)
        c.format = &unknown;
    if (c.image || c.format)
        return settle_found(b, n, c.format, err);
    b->fates[n] = MR_FATE_OTHER;
    return MR_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void end_book(mr_book *b)
{
    free(b->fates);
    free(b->noted);
    free(b->kept);
    free(b->items);
    mr_stems_free(&b->of_samples);
    mr_stems_free(&b->of_images);
}

mr_status mr_ledger_settle(mr_ingest *in, size_t notes_before, mr_error *err)
{
    uint32_t entries = mr_source_count(in->source);
    MR_AUTO(end_book)
    mr_book b = {.in = in,
                 .fates = mr_alloc(entries, 1),
                 .noted = mr_alloc(entries, 1),
                 .kept = mr_alloc((size_t)entries + 1, sizeof *b.kept)};
    if (!b.fates || !b.noted || !b.kept)
        return mr_fail_memory(err, "accounting for the source");
    MR_TRY(read_notes(&b, notes_before, err));
    settle_planned(&b);
    for (uint32_t n = 0; n < entries; n++)
        if (b.fates[n] == UNDECIDED)
            MR_TRY(settle_rest(&b, n, err));
    for (uint32_t n = 0; n < entries; n++)
        in->ledger.fates[b.fates[n]]++;
    MR_TRY(mr_book_note(&b, err));
    return mr_leftovers_check(&b, err);
}
