/* rows.c - from the images of tables to samples.
 * Invariant: every image is a sample or in a note. */
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/table/placing.h"

typedef struct named_split { /* as the source names it */
    const char *name;
    size_t len;
    uint32_t split;
} named_split;

typedef struct build {
    mr_placing p;
    named_split splits[MR_SPLITS_MAX];
    size_t split_count;
} build;

static const mr_sheet *sheet_of(const build *b, uint64_t aux)
{
    return &b->p.st->sheets[aux >> 32];
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

static mr_status find_split(build *b, const char *name, named_split **out)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < b->split_count; i++)
        if (b->splits[i].len == len && !memcmp(b->splits[i].name, name, len)) {
            *out = &b->splits[i];
            return MR_OK;
        }
    if (b->split_count == MR_COUNT(b->splits))
        return mr_fail(b->p.err, MR_BAD_DATA, "%.100s: the tables name more than %d splits, the limit for a dataset",
                       name, MR_SPLITS_MAX);
    b->splits[b->split_count] = (named_split){name, len, MR_NO_ENTRY};
    *out = &b->splits[b->split_count++];
    return MR_OK;
}

/* Whether the tables have all that makes the image a sample. */
static bool is_listed(const build *b, size_t picture)
{
    return b->p.row_of[picture] && (!b->p.st->division || mr_placing_division(&b->p, picture));
}

/* The name of the image's split; NULL: it is not a sample. */
static const char *picture_split(const build *b, size_t picture)
{
    uint64_t row = b->p.row_of[picture];
    uint32_t entry = b->p.index->entries[picture];
    if (b->p.rejected[picture] || (!is_listed(b, picture) && !b->p.options->keep_unlisted))
        return NULL;
    const char *divided = mr_placing_division(&b->p, picture);
    if (divided)
        return divided;
    if (row)
        return mr_placing_split(&b->p, sheet_of(b, row), (uint32_t)row - 1, entry);
    const char *word = mr_picture_split(b->p.index, entry);
    return word ? word : "train";
}

/* Whether the folder of an image may give its split. */
static bool folders_count(const build *b)
{
    bool count = b->p.options->keep_unlisted;
    for (size_t i = 0; i < b->p.st->sheet_count; i++)
        count = count || (!b->p.st->sheets[i].word && b->p.st->sheets[i].split < 0);
    return count && !b->p.st->division;
}

/* Train, val and test come first, whatever the order of the rows. */
static mr_status open_splits(build *b)
{
    named_split *split;
    if (folders_count(b))
        mr_picture_note_splits(b->p.index, b->p.plan->notes);
    for (size_t i = 0; i < b->p.index->count; i++) {
        const char *name = picture_split(b, i);
        if (name)
            MR_TRY(find_split(b, name, &split));
    }
    for (size_t rank = 0; rank < 4; rank++)
        for (size_t i = 0; i < b->split_count; i++)
            if (mr_split_rank(mr_split_word(b->splits[i].name, b->splits[i].len)) == rank)
                MR_TRY(mr_plan_split_get(b->p.plan, b->p.options, b->splits[i].name, b->splits[i].len,
                                         &b->splits[i].split, b->p.err));
    return MR_OK;
}

/* ---- samples --------------------------------------------------------------------------------------------------- */

static mr_status add_picture(build *b, size_t picture)
{
    uint64_t row = b->p.row_of[picture];
    mr_sample s = {.entry = b->p.index->entries[picture], .label = -1, .aux = row};
    named_split *split = NULL;
    const char *name = picture_split(b, picture);
    if (name)
        MR_TRY(find_split(b, name, &split));
    b->p.plan->used[s.entry] = b->p.rejected[picture] ? MR_USE_REJECTED : MR_USE_TAKEN;
    if (split && split->split == MR_NO_ENTRY) {
        b->p.plan->used[s.entry] = MR_USE_LEFT_OUT;
        return MR_OK;
    }
    s.split = split ? split->split : 0;
    if (!is_listed(b, picture) && !b->p.rejected[picture])
        return mr_folder_unlisted(b->p.tree, b->p.options, b->p.plan, s.split, s.entry,
                                  row ? "not in the table of splits" : "not in any table", NULL, b->p.err);
    if (!split)
        return MR_OK;
    const mr_sheet *sheet = sheet_of(b, row);
    MR_TRY(mr_table_judge(b->p.st, b->p.plan, sheet, (uint32_t)row - 1, &s, &b->p.labels, b->p.err));
    return mr_plan_add(b->p.plan, &s, b->p.err);
}

static mr_status add_pictures(build *b)
{
    for (size_t i = 0; i < b->p.index->count; i++)
        MR_TRY(add_picture(b, i));
    for (size_t i = 0; i < b->split_count; i++)
        if (b->splits[i].split == MR_NO_ENTRY)
            mr_note_add(b->p.plan->notes, MR_NOTE_INFO, b->splits[i].name, b->splits[i].len, 0,
                        "split left out by --split-map");
    return MR_OK;
}

static void end_build(build *b)
{
    mr_placing_free(&b->p);
}

mr_status mr_table_rows(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                        mr_error *err)
{
    mr_table_state *st = plan->state;
    MR_AUTO(end_build)
    build b = {.p = {.tree = t, .options = o, .index = index, .plan = plan, .st = st, .err = err}};
    MR_TRY(mr_placing_open(&b.p));
    MR_TRY(mr_table_classes(st, o, plan, err));
    for (size_t i = 0; i < st->sheet_count; i++)
        MR_TRY(mr_place_sheet(&b.p, i));
    MR_TRY(open_splits(&b));
    MR_TRY(add_pictures(&b));
    plan->notes->failed = plan->notes->failed || b.p.path.failed;
    return MR_OK;
}
