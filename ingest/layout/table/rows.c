/* rows.c - from the rows of tables to samples.
 * Invariant: every row and every picture is a sample or in a note; a picture with two different labels, or in two
 * splits, is rejected. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "format/format.h"
#include "layout/folder_names.h"
#include "table/table.h"

typedef struct named_split { /* as the source names it */
    const char *name;
    size_t len;
    uint32_t split;
} named_split;

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    const mr_picture_index *index;
    mr_plan *plan;
    mr_table_state *st;
    uint64_t *row_of;   /* by picture: sheet << 32 | row + 1; 0: none */
    uint8_t *conflicts; /* by picture */
    named_split splits[MR_SPLITS_MAX];
    size_t split_count;
    size_t placed; /* rows of the current sheet */
    mr_buf labels, more, path;
    mr_error *err;
} build;

static const mr_sheet *sheet_of(const build *b, uint64_t aux)
{
    return &b->st->sheets[aux >> 32];
}

static const char *picture_path(const build *b, size_t picture, size_t *len)
{
    return mr_tree_path(b->tree, b->index->entries[picture], len);
}

/* ---- rows to pictures ------------------------------------------------------------------------------------------ */

/* The split's name in the source: of the row, of the table, of a folder; else train. */
static mr_status split_name(const build *b, const mr_sheet *s, size_t row, uint32_t entry, const char **name)
{
    if (s->split >= 0) {
        *name = mr_sheet_cell(s, row, (size_t)s->split);
        if (**name)
            return MR_OK;
        return mr_fail(b->err, MR_BAD_DATA, "%s: row %zu has no split in column %s; complete the row, or remove it",
                       s->name, row + 1, s->csv.header[s->split]);
    }
    const char *folder = s->word ? NULL : mr_picture_split(b->tree, entry);
    *name = s->word ? s->word : folder ? folder : "train";
    return MR_OK;
}

static mr_status same_row(build *b, uint64_t first, const mr_sheet *s, size_t row, size_t picture, bool *same)
{
    const mr_sheet *other = sheet_of(b, first);
    size_t other_row = (uint32_t)first - 1;
    const char *one, *two;
    MR_TRY(split_name(b, other, other_row, b->index->entries[picture], &one));
    MR_TRY(split_name(b, s, row, b->index->entries[picture], &two));
    MR_TRY(mr_table_row_labels(b->st, b->plan, other, other_row, &b->labels, b->err));
    MR_TRY(mr_table_row_labels(b->st, b->plan, s, row, &b->more, b->err));
    *same = !strcmp(one, two) && b->labels.len == b->more.len &&
            (!b->more.len || !memcmp(b->labels.data, b->more.data, b->more.len));
    return MR_OK;
}

static mr_status place(build *b, size_t number, size_t row, uint32_t picture)
{
    const mr_sheet *s = &b->st->sheets[number], *other;
    uint64_t first = b->row_of[picture];
    size_t len;
    bool same;
    b->placed++;
    if (!first) {
        b->row_of[picture] = (uint64_t)number << 32 | (row + 1);
        return MR_OK;
    }
    const char *path = picture_path(b, picture, &len);
    other = sheet_of(b, first);
    MR_TRY(same_row(b, first, s, row, picture, &same));
    if (same)
        mr_note_add(b->plan->notes, MR_NOTE_COLLISION, path, len, 0,
                    "row %zu of %s names it again: row %u of %s counts", row + 1, s->name, (uint32_t)first,
                    other->name);
    else if (!b->conflicts[picture])
        mr_note_add(b->plan->notes, MR_NOTE_REJECT, path, len,
                    mr_source_entry(b->tree->source, b->index->entries[picture])->size,
                    "row %u of %s and row %zu of %s give it different labels or splits", (uint32_t)first, other->name,
                    row + 1, s->name);
    b->conflicts[picture] = b->conflicts[picture] || !same;
    return MR_OK;
}

/* The picture at exactly this path, from the table's folder. */
static mr_picture_match find_beside(build *b, const mr_sheet *s, const char *cell, uint32_t *found)
{
    if (!mr_path_beside(s->name, strlen(s->name), cell, &b->path))
        return *cell ? MR_PICTURE_OUTSIDE : MR_PICTURE_NONE;
    uint32_t entry = mr_tree_find(b->tree, mr_buf_text(&b->path), b->path.len);
    size_t low = 0, high = b->index->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (b->index->entries[mid] < entry)
            low = mid + 1;
        else
            high = mid;
    }
    *found = (uint32_t)low;
    return low < b->index->count && b->index->entries[low] == entry ? MR_PICTURE_ONE : MR_PICTURE_NONE;
}

static mr_status several(const build *b, const mr_sheet *s, size_t row, const char *cell, const uint32_t found[2])
{
    size_t len[2];
    const char *one = picture_path(b, found[0], &len[0]), *two = picture_path(b, found[1], &len[1]);
    return mr_fail(b->err, MR_BAD_DATA,
                   "%s: row %zu: \"%.200s\" may be %.*s or %.*s; write the path into the table, or leave one out with "
                   "--leave-out",
                   s->name, row + 1, cell, (int)len[0], one, (int)len[1], two);
}

static mr_status place_row(build *b, size_t number, size_t row)
{
    const mr_sheet *s = &b->st->sheets[number];
    const char *cell = mr_sheet_cell(s, row, (size_t)s->path), *word = s->word;
    uint32_t found[2] = {0};
    size_t len = strlen(cell);
    if (s->split >= 0) {
        const char *split = mr_sheet_cell(s, row, (size_t)s->split);
        word = mr_split_word(split, strlen(split));
    }
    mr_picture_match match = s->beside ? find_beside(b, s, cell, found) : mr_picture_find(b->index, cell, word, found);
    switch (match) {
    case MR_PICTURE_ONE:
        return place(b, number, row, found[0]);
    case MR_PICTURE_SEVERAL:
        return several(b, s, row, cell, found);
    case MR_PICTURE_OUTSIDE:
        mr_note_add(b->plan->notes, MR_NOTE_BAD_NAME, cell, len, 0, "row %zu of %s: leads out of the dataset", row + 1,
                    s->name);
        return MR_OK;
    case MR_PICTURE_NONE:
        break;
    }
    mr_note_add(b->plan->notes, MR_NOTE_MISSING, len ? cell : s->name, len ? len : strlen(s->name), 0,
                len ? "row %zu of %s names it" : "row %zu of %s names no picture: the cell is empty", row + 1, s->name);
    return MR_OK;
}

static mr_status place_sheet(build *b, size_t number)
{
    const mr_sheet *s = &b->st->sheets[number];
    b->placed = 0;
    b->plan->used[s->entry] = MR_USE_TAKEN;
    for (size_t row = 0; row < s->csv.rows; row++)
        MR_TRY(place_row(b, number, row));
    if (b->placed)
        return MR_OK;
    if (!s->csv.rows)
        return mr_fail(b->err, MR_BAD_DATA, "%s: has no row below its header", s->name);
    return mr_fail(b->err, MR_BAD_DATA,
                   "%s: none of its %zu rows names a picture of the source; column %s begins with "
                   "\"%.200s\"",
                   s->name, s->csv.rows, s->csv.header[s->path], mr_sheet_cell(s, 0, (size_t)s->path));
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
        return mr_fail(b->err, MR_BAD_DATA, "%.100s: the tables name more than the %d splits that a dataset may have",
                       name, MR_SPLITS_MAX);
    b->splits[b->split_count] = (named_split){name, len, MR_NO_ENTRY};
    *out = &b->splits[b->split_count++];
    return MR_OK;
}

static int rank_of(const named_split *s)
{
    static const char *const words[] = {"train", "val", "test"};
    const char *word = mr_split_word(s->name, s->len);
    int rank = 0;
    while (rank < 3 && (!word || strcmp(word, words[rank]) != 0))
        rank++;
    return rank;
}

/* The name of the picture's split; NULL: it is not a sample. */
static mr_status picture_split(const build *b, size_t picture, const char **name)
{
    uint64_t row = b->row_of[picture];
    uint32_t entry = b->index->entries[picture];
    *name = NULL;
    if (b->conflicts[picture])
        return MR_OK;
    if (row)
        return split_name(b, sheet_of(b, row), (uint32_t)row - 1, entry, name);
    if (b->options->keep_unlisted) {
        const char *word = mr_picture_split(b->tree, entry);
        *name = word ? word : "train";
    }
    return MR_OK;
}

/* Train, val and test come first, whatever the order of the rows. */
static mr_status open_splits(build *b)
{
    const char *name;
    named_split *split;
    for (size_t i = 0; i < b->index->count; i++) {
        MR_TRY(picture_split(b, i, &name));
        if (name)
            MR_TRY(find_split(b, name, &split));
    }
    for (int rank = 0; rank < 4; rank++)
        for (size_t i = 0; i < b->split_count; i++)
            if (rank_of(&b->splits[i]) == rank)
                MR_TRY(mr_plan_split_get(b->plan, b->options, b->splits[i].name, b->splits[i].len, &b->splits[i].split,
                                         b->err));
    return MR_OK;
}

/* ---- samples --------------------------------------------------------------------------------------------------- */

static mr_status add_picture(build *b, size_t picture)
{
    uint64_t row = b->row_of[picture];
    mr_sample s = {.entry = b->index->entries[picture], .label = -1, .aux = row};
    named_split *split = NULL;
    const char *name;
    MR_TRY(picture_split(b, picture, &name));
    if (name)
        MR_TRY(find_split(b, name, &split));
    b->plan->used[s.entry] = MR_USE_TAKEN;
    if (split && split->split == MR_NO_ENTRY) {
        b->plan->used[s.entry] = MR_USE_LEFT_OUT;
        return MR_OK;
    }
    s.split = split ? split->split : 0;
    if (!row)
        return mr_folder_unlisted(b->tree, b->options, b->plan, s.split, s.entry, "in no row of a table", NULL, b->err);
    if (!split)
        return MR_OK;
    const mr_sheet *sheet = sheet_of(b, row);
    MR_TRY(mr_table_judge(b->st, b->plan, sheet, (uint32_t)row - 1, &s, &b->labels, b->err));
    return mr_plan_add(b->plan, &s, b->err);
}

static mr_status add_pictures(build *b)
{
    for (size_t i = 0; i < b->index->count; i++)
        MR_TRY(add_picture(b, i));
    for (size_t i = 0; i < b->split_count; i++)
        if (b->splits[i].split == MR_NO_ENTRY)
            mr_note_add(b->plan->notes, MR_NOTE_INFO, b->splits[i].name, b->splits[i].len, 0,
                        "split left out by --split-map");
    return MR_OK;
}

static void end_build(build *b)
{
    free(b->row_of);
    free(b->conflicts);
    mr_buf_free(&b->labels);
    mr_buf_free(&b->more);
    mr_buf_free(&b->path);
}

mr_status mr_table_rows(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                        mr_error *err)
{
    mr_table_state *st = plan->state;
    MR_AUTO(end_build) build b = {.tree = t, .options = o, .index = index, .plan = plan, .st = st, .err = err};
    b.row_of = mr_alloc(index->count + 1, sizeof *b.row_of);
    b.conflicts = mr_alloc(index->count + 1, 1);
    if (!b.row_of || !b.conflicts)
        return mr_fail_memory(err, "reading tables");
    MR_TRY(mr_table_classes(st, o, plan, err));
    for (size_t i = 0; i < st->sheet_count; i++)
        MR_TRY(place_sheet(&b, i));
    MR_TRY(open_splits(&b));
    MR_TRY(add_pictures(&b));
    plan->notes->failed = plan->notes->failed || b.path.failed;
    return MR_OK;
}
