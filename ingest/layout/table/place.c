/* place.c - from the rows of tables to the images that they name.
 * Invariant: every row belongs to an image or is named in a note.  Rows that contradict one another reject their image:
 * two splits, or two labels where few images have several. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/table/placing.h"

/* In a list of classes, with a row for each class of an image, at least this many images have several. */
enum { LISTED_MIN = 2, LISTED_PART = 4 };

static const char *picture_path(const mr_placing *p, size_t picture, size_t *len)
{
    return mr_tree_path(p->tree, p->index->entries[picture], len);
}

static void reject(mr_placing *p, size_t picture, const char *why, size_t first, size_t second, const mr_sheet *other,
                   const mr_sheet *s)
{
    size_t len;
    const char *path = picture_path(p, picture, &len);
    uint64_t bytes = mr_source_entry(p->tree->source, p->index->entries[picture])->size;
    if (!p->rejected[picture])
        mr_note_add(p->plan->notes, MR_NOTE_REJECT, path, len, bytes, "row %zu of %s and row %zu of %s give it %s",
                    first, other->name, second, s->name, why);
    p->rejected[picture] = 1;
}

const char *mr_placing_split(const mr_placing *p, const mr_sheet *s, size_t row, uint32_t entry)
{
    if (s->split >= 0)
        return mr_sheet_split(s, row);
    const char *folder = s->word ? NULL : mr_picture_split(p->index, entry);
    return s->word ? s->word : folder ? folder : "train";
}

const char *mr_placing_division(const mr_placing *p, size_t picture)
{
    uint32_t row = p->divided[picture];
    return row ? mr_sheet_split(&p->st->sheets[p->st->division - 1], row - 1) : NULL;
}

/* ---- several rows of an image ----------------------------------------------------------------------------------- */

static bool equal_rows(const mr_sheet *s, size_t a, size_t b)
{
    for (size_t c = 0; c < s->csv.columns; c++)
        if (strcmp(mr_sheet_cell(s, a, c), mr_sheet_cell(s, b, c)) != 0)
            return false;
    return true;
}

static mr_status append(mr_placing *p, mr_sheet *s, size_t row, uint32_t picture)
{
    if (!s->next && !(s->next = mr_alloc(s->csv.rows, sizeof *s->next)))
        return mr_fail_memory(p->err, "reading tables");
    s->next[p->last[picture] - 1] = (uint32_t)row + 1;
    p->last[picture] = (uint32_t)row + 1;
    return MR_OK;
}

/* Whether both rows have the same labels, or one of them, or its table, has none. */
static mr_status same_labels(mr_placing *p, const mr_sheet *other, size_t other_row, const mr_sheet *s, size_t row,
                             bool *same)
{
    MR_TRY(mr_table_row_labels(p->st, p->plan, other, other_row, false, &p->labels, p->err));
    MR_TRY(mr_table_row_labels(p->st, p->plan, s, row, false, &p->more, p->err));
    bool equal = p->labels.len == p->more.len && (!p->more.len || !memcmp(p->labels.data, p->more.data, p->more.len));
    bool silent = other != s && (!other->label_count || !s->label_count);
    *same = equal || silent || (other == s && !s->flags && (!p->labels.len || !p->more.len));
    return MR_OK;
}

static void repeated(mr_placing *p, const mr_sheet *other, size_t first, const mr_sheet *s, size_t row,
                     uint32_t picture)
{
    size_t len;
    const char *path = picture_path(p, picture, &len);
    mr_note_add(p->plan->notes, MR_NOTE_COLLISION, path, len, 0, "row %zu of %s names it again: row %zu of %s is used",
                row + 1, s->name, first + 1, other->name);
}

static mr_status another_row(mr_placing *p, size_t number, size_t row, uint32_t picture)
{
    mr_sheet *s = &p->st->sheets[number], *other = &p->st->sheets[p->row_of[picture] >> 32];
    size_t first = (uint32_t)p->row_of[picture] - 1, last = p->last[picture] - 1;
    uint32_t entry = p->index->entries[picture];
    bool same, boxes = s->boxes.form && s == other;
    bool lines = s->at && (!s->text_name || s->objects); /* several rows of JSON lines are read as captions only */
    bool apart = strcmp(mr_placing_split(p, other, first, entry), mr_placing_split(p, s, row, entry)) != 0;
    MR_TRY(same_labels(p, other, first, s, row, &same));
    p->again += s != other && !apart;
    if (apart || (!same && !boxes && (s != other || lines || s->flags))) {
        reject(p, picture, "different labels or splits", first + 1, row + 1, other, s);
        return MR_OK;
    }
    if (!same && !boxes && !p->differs[picture])
        p->differs[picture] = (uint32_t)row + 1;
    bool equal = s != other || lines || (!s->at && (equal_rows(s, first, row) || equal_rows(s, last, row)));
    if (equal && s == other && !s->at && s->text >= 0)
        p->repeats++;
    else if (equal && !boxes) {
        repeated(p, other, first, s, row, picture);
        return MR_OK;
    }
    return append(p, s, row, picture);
}

static mr_status divide(mr_placing *p, const mr_sheet *s, size_t row, uint32_t picture)
{
    const char *first = mr_placing_division(p, picture);
    size_t len;
    if (first && strcmp(first, mr_sheet_split(s, row)) != 0)
        return mr_fail(p->err, MR_BAD_DATA, "%s: row %zu and row %zu give %.300s different splits", s->name,
                       (size_t)p->divided[picture], row + 1, picture_path(p, picture, &len));
    p->divided[picture] = (uint32_t)row + 1;
    return MR_OK;
}

static mr_status place(mr_placing *p, size_t number, size_t row, uint32_t picture)
{
    p->placed++;
    if (number + 1 == p->st->division)
        return divide(p, &p->st->sheets[number], row, picture);
    if (p->row_of[picture])
        return another_row(p, number, row, picture);
    p->row_of[picture] = (uint64_t)number << 32 | (row + 1);
    p->last[picture] = (uint32_t)row + 1;
    return MR_OK;
}

/* Rows with different labels are a list of classes where that is usual; else the image is rejected. */
static void settle_labels(mr_placing *p, size_t number)
{
    const mr_sheet *s = &p->st->sheets[number];
    size_t pictures = 0, listed = 0;
    for (size_t i = 0; i < p->index->count; i++) {
        bool here = p->row_of[i] && p->row_of[i] >> 32 == number;
        pictures += here;
        listed += here && p->differs[i];
    }
    if (listed >= LISTED_MIN && listed * LISTED_PART >= pictures) {
        mr_note_add(p->plan->notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "it has a row for each label of an image: %zu of %zu images have several labels", listed, pictures);
        return;
    }
    for (size_t i = 0; i < p->index->count && listed; i++)
        if (p->row_of[i] && p->row_of[i] >> 32 == number && p->differs[i])
            reject(p, i, "different labels or splits", (uint32_t)p->row_of[i], p->differs[i], s, s);
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

/* The image at exactly this path, from the table's folder. */
static mr_picture_match find_beside(mr_placing *p, const mr_sheet *s, const char *cell, uint32_t *found)
{
    if (!mr_path_beside(s->name, strlen(s->name), cell, &p->path))
        return *cell ? MR_PICTURE_OUTSIDE : MR_PICTURE_NONE;
    uint32_t entry = mr_tree_find(p->tree, mr_buf_text(&p->path), p->path.len);
    size_t at = mr_picture_place(p->index, entry);
    *found = (uint32_t)at;
    return at < p->index->count ? MR_PICTURE_ONE : MR_PICTURE_NONE;
}

static mr_status several(const mr_placing *p, const mr_sheet *s, size_t row, const char *cell, const uint32_t found[2])
{
    size_t len[2];
    const char *one = picture_path(p, found[0], &len[0]), *two = picture_path(p, found[1], &len[1]);
    return mr_fail(p->err, MR_BAD_DATA,
                   "%s: row %zu: \"%.200s\" may be %.*s or %.*s; write the path into the table, or leave one out with "
                   "--exclude",
                   s->name, row + 1, cell, (int)len[0], one, (int)len[1], two);
}

/* An image of a bad row is rejected, once. */
static void bad_row(mr_placing *p, const mr_sheet *s, const char *why, bool found, uint32_t picture)
{
    size_t len = strlen(s->name);
    const char *path = found ? picture_path(p, picture, &len) : s->name;
    if (!found)
        mr_note_add(p->plan->notes, MR_NOTE_REJECT, path, len, 0, "%s", why);
    else if (!p->rejected[picture])
        mr_note_add(p->plan->notes, MR_NOTE_REJECT, path, len,
                    mr_source_entry(p->tree->source, p->index->entries[picture])->size, "%s%s%s",
                    s->fault_count ? "" : s->name, s->fault_count ? "" : ": ", why);
    if (found)
        p->rejected[picture] = 1;
}

static void note_denied(const mr_placing *p, const mr_sheet *s)
{
    size_t denied = 0;
    for (size_t r = 0; r < s->csv.rows && s->confidence; r++)
        denied += mr_sheet_denies(s, r);
    if (denied)
        mr_note_add(p->plan->notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "rows of confidence 0, which say what an image does not show, and give it no label: %zu", denied);
}

/* Shows the first row, which is like the others. */
static void note_foreign(const mr_placing *p, const mr_sheet *s)
{
    const char *cell = s->csv.rows ? mr_sheet_cell(s, 0, (size_t)s->path) : "";
    if (!s->beside && (*cell == '/' || strchr(cell, '\\') || strstr(cell, "://")))
        mr_note_add(p->plan->notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "its paths are from another machine; images are matched by the ends of their paths: %.200s", cell);
    size_t above = s->beside ? 0 : mr_picture_above(p->index, cell);
    if (above)
        mr_note_add(p->plan->notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "its paths begin with %.*s, which is taken for the folder of the table: %.200s", (int)above, cell,
                    cell);
}

static mr_status place_row(mr_placing *p, size_t number, size_t row)
{
    const mr_sheet *s = &p->st->sheets[number];
    const char *cell = mr_sheet_cell(s, row, (size_t)s->path), *word = s->word;
    uint32_t found[2] = {0};
    size_t len = strlen(cell);
    char why[MR_SHEET_FAULT];
    if (s->split >= 0) {
        const char *split = mr_sheet_split(s, row);
        word = mr_split_word(split, strlen(split));
    }
    mr_picture_match match = s->beside ? find_beside(p, s, cell, found) : mr_picture_find(p->index, cell, word, found);
    if (mr_sheet_fault_of(s, row, why)) {
        bad_row(p, s, why, match == MR_PICTURE_ONE, found[0]);
        return MR_OK;
    }
    if (match == MR_PICTURE_ONE)
        return place(p, number, row, found[0]);
    if (match == MR_PICTURE_SEVERAL)
        return several(p, s, row, cell, found);
    if (match == MR_PICTURE_OUTSIDE)
        mr_note_add(p->plan->notes, MR_NOTE_BAD_NAME, cell, len, 0, "row %zu of %s: leads out of the dataset", row + 1,
                    s->name);
    else
        mr_note_add(p->plan->notes, MR_NOTE_MISSING, len ? cell : s->name, len ? len : strlen(s->name), 0,
                    len ? "row %zu of %s names it" : "row %zu of %s names no image: the cell is empty", row + 1,
                    s->name);
    return MR_OK;
}

mr_status mr_place_sheet(mr_placing *p, size_t number)
{
    const mr_sheet *s = &p->st->sheets[number];
    p->placed = p->repeats = p->again = 0;
    p->plan->used[s->entry] = MR_USE_TAKEN;
    for (size_t row = 0; row < s->csv.rows; row++)
        MR_TRY(place_row(p, number, row));
    if (p->again * 2 > p->placed)
        return mr_fail(p->err, MR_MISUSE,
                       "%s: %zu of the %zu images that it lists are in another table of the same split, too; leave one "
                       "of the tables out with --exclude",
                       s->name, p->again, p->placed);
    settle_labels(p, number);
    note_foreign(p, s);
    note_denied(p, s);
    if (p->repeats)
        mr_note_add(p->plan->notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "rows identical to another row of the same image: %zu; their captions are kept", p->repeats);
    if (p->placed)
        return MR_OK;
    if (!s->csv.rows)
        return mr_fail(p->err, MR_BAD_DATA, "%s: has no rows", s->name);
    return mr_fail(p->err, MR_BAD_DATA,
                   "%s: none of its %zu rows names an image of the source; column %s begins with \"%.200s\"", s->name,
                   s->csv.rows, s->csv.header[s->path], mr_sheet_cell(s, 0, (size_t)s->path));
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

mr_status mr_placing_open(mr_placing *p)
{
    size_t count = p->index->count + 1;
    p->row_of = mr_alloc(count, sizeof *p->row_of);
    p->last = mr_alloc(count, sizeof *p->last);
    p->differs = mr_alloc(count, sizeof *p->differs);
    p->rejected = mr_alloc(count, 1);
    p->divided = mr_alloc(count, sizeof *p->divided);
    bool there = p->row_of && p->last && p->differs && p->rejected && p->divided;
    return there ? MR_OK : mr_fail_memory(p->err, "reading tables");
}

void mr_placing_free(mr_placing *p)
{
    free(p->row_of);
    free(p->divided);
    free(p->last);
    free(p->differs);
    free(p->rejected);
    mr_buf_free(&p->labels);
    mr_buf_free(&p->more);
    mr_buf_free(&p->path);
}
