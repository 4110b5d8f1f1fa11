/* ledger_notes.c - what the ledger says about files that are not lost, but that the user may not expect.
 * Invariant: each file that is neither in the dataset nor left out by an option has a note.  */
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/name_pattern.h"
#include "ingest/pipeline/ledger_parts.h"
#include "ingest/source/names.h"
#include "ingest/tables/lines.h"

enum { LIST_LINES = 8 };

uint64_t mr_rejects(const mr_ingest *in)
{
    const size_t *counts = in->notes.counts;
    return (uint64_t)counts[MR_NOTE_REJECT] + counts[MR_NOTE_BAD_NAME] + counts[MR_NOTE_COLLISION] -
           in->ledger.harmless;
}

/* Two archives of one dataset both have a README. */
static void count_harmless(mr_ingest *in)
{
    for (size_t i = 0; i < in->notes.count; i++) {
        const mr_note *n = &in->notes.items[i];
        bool named = n->kind == MR_NOTE_BAD_NAME || n->kind == MR_NOTE_COLLISION;
        in->ledger.harmless += named && mr_companion_by_name(n->path, strlen(n->path)) != MR_COMPANION_COUNT;
    }
}

/* Notes the files that became nothing, but for those that the plan has noted. */
static void note_rest(mr_book *b)
{
    const mr_tree *t = &b->in->choice.tree;
    for (uint32_t n = 0; n < mr_source_count(b->in->source); n++) {
        const mr_entry *e = mr_source_entry(b->in->source, n);
        bool inside = mr_book_inside(b->in, n), left = b->fates[n] == MR_FATE_UNACCOUNTED;
        size_t skip = inside ? t->root_len : 0;
        if (left ? !b->noted[n] : b->fates[n] == MR_FATE_OTHER)
            mr_note_add(&b->in->notes, left ? MR_NOTE_UNACCOUNTED : MR_NOTE_IGNORED, e->path + skip, e->path_len - skip,
                        e->size, "%s", inside ? "not part of the layout" : "outside the dataset's root");
    }
}

/* Masks among the samples: whether people wear masks, or these are of pixels, only the user knows. */
static mr_status note_masks(mr_book *b, mr_error *err)
{
    const mr_plan *plan = &b->in->plan;
    const mr_entry *first = NULL;
    size_t count = 0, base;
    char text[32];
    for (size_t i = 0; i < plan->sample_count; i++) {
        const mr_entry *e = mr_source_entry(b->in->source, plan->samples[i].entry);
        const char *stem = mr_mask_name(e->path, e->path_len, &base);
        if (!stem)
            continue;
        MR_TRY(mr_book_stems(b, true, err));
        if (mr_stems_have(&b->of_samples, stem, base))
            first = count++ ? first : e;
    }
    if (!count)
        return MR_OK;
    MR_AUTO(mr_buf_free) mr_buf option = {0}, pattern = {0};
    const char *stem = mr_mask_name(first->path, first->path_len, &base);
    mr_buf_add(&pattern, first->path, (size_t)(stem - first->path));
    mr_buf_add_text(&pattern, "*");
    mr_buf_add_text(&pattern, stem + base);
    mr_source_leave_out(mr_buf_text(&pattern), pattern.len, &option);
    mr_note_add(&b->in->notes, MR_NOTE_INFO, first->path, first->path_len, first->size,
                "%s sample%s named like the mask of another; if they are masks, %s leaves those of this folder out",
                mr_text_count(count, text), count == 1 ? " is" : "s are", mr_buf_text(&option));
    return mr_buf_status(&option, err, "accounting for the source");
}

/* Images without labels whose names seem to have them. */
static void note_names(mr_ingest *in)
{
    MR_AUTO(mr_buf_free) mr_buf hint = {0};
    if (in->choice.layout == &mr_layout_flat)
        mr_name_pattern_hint(in->source, &hint);
    if (hint.len)
        mr_note_add(&in->notes, MR_NOTE_INFO, "", 0, 0, "%s", mr_buf_text(&hint));
    in->notes.failed = in->notes.failed || hint.failed;
}

/* Whether each of its first lines begins with the name of a sample's image, with or without ending. */
static bool lists_samples(const mr_book *b, uint32_t n)
{
    char head[4096];
    const uint64_t size = mr_source_entry(b->in->source, n)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head, lines = 0, stem_len;
    if (mr_source_pread(b->in->source, n, head, len, 0, NULL) != MR_OK)
        return false;
    for (mr_lines l = mr_lines_of(head, len); lines < LIST_LINES && mr_lines_next(&l); lines++) {
        const char *stem = mr_stem(l.line, mr_lines_word(&l), &stem_len);
        if (!mr_stems_have(&b->of_samples, stem, stem_len))
            return false;
    }
    return lines > 0;
}

/* Where all samples are one split, lists of others may say that some are for tests. */
static mr_status note_lists(mr_book *b, mr_error *err)
{
    static const char *const ends[] = {".txt", ".lst", NULL};
    MR_AUTO(mr_list_options_free) mr_list_options lists = {0};
    const mr_entry *first = NULL;
    if (b->in->plan.split_count != 1 || b->in->options->for_layout.list_count || b->in->options->share_count)
        return MR_OK;
    MR_TRY(mr_book_stems(b, true, err));
    for (uint32_t n = 0; n < mr_source_count(b->in->source); n++) {
        const mr_entry *e = mr_source_entry(b->in->source, n);
        size_t before = lists.count;
        if (b->fates[n] == MR_FATE_OTHER && mr_name_ends_in(e->path, e->path_len, ends) && lists_samples(b, n))
            mr_list_options_add(&lists, e->path);
        first = before || !lists.count ? first : e;
    }
    if (first)
        mr_note_add(&b->in->notes, MR_NOTE_INFO, first->path, first->path_len, first->size,
                    "lists images of one split, and is not read; --split-list %s makes splits of such lists",
                    mr_buf_text(&lists.text));
    return mr_buf_status(&lists.text, err, "accounting for the source");
}

static void note_skipped(mr_ingest *in)
{
    char count[32];
    if (in->ledger.skipped)
        mr_note_add(&in->notes, MR_NOTE_INFO, "", 0, 0, "left out by --skip-unmatched: %s file%s",
                    mr_text_count(in->ledger.skipped, count), in->ledger.skipped == 1 ? "" : "s");
}

mr_status mr_book_note(mr_book *b, mr_error *err)
{
    count_harmless(b->in);
    note_skipped(b->in);
    note_rest(b);
    note_names(b->in);
    MR_TRY(note_lists(b, err));
    return note_masks(b, err);
}
