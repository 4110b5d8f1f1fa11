/* sheet.c - one table of a folder: a CSV or TSV as found.
 * Invariant: for a bid no more than the first rows are read, and a row is never cut. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/table/table.h"
#include "ingest/tables/csv_form.h"

enum { LONG_HEAD = 16 << 20, LOOK_AT = 64 };

static const uint64_t sheet_max = (uint64_t)1 << 30;

bool mr_sheet_is_example(const mr_child *child)
{
    return !child->is_dir && strcasestr(child->name, "submission") &&
           mr_name_ends(child->name, child->name_len, ".csv");
}

static bool is_sheet(const mr_child *child)
{
    const char *name = child->name;
    size_t len = child->name_len;
    return !child->is_dir && *name != '.' && !mr_sheet_is_example(child) &&
           (mr_name_ends(name, len, ".csv") || mr_name_ends(name, len, ".tsv"));
}

/* Lists of paths and labels have a blank between them. */
static char delimiter_for(const char *name, const mr_buf *text, char found)
{
    const char *begin = (const char *)text->data, *end = text->len ? memchr(begin, '\n', text->len) : NULL;
    size_t line = end ? (size_t)(end - begin) : text->len;
    if (mr_name_ends(name, strlen(name), ".tsv"))
        return '\t';
    bool blank = mr_name_ends(name, strlen(name), ".txt") && line && !memchr(begin, found, line);
    if (blank && memchr(begin, ' ', line))
        return ' ';
    return found;
}

/* Whether an image of its name is beside a text: then it is its caption. */
static bool has_picture(const mr_tree *t, const mr_child *child)
{
    static const char *const endings[] = {"jpg", "jpeg", "png", "webp", "JPG", "PNG"};
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    for (size_t i = 0; i < MR_COUNT(endings); i++) {
        mr_buf_clear(&path);
        mr_buf_add(&path, child->name, child->name_len - 3);
        mr_buf_add_text(&path, endings[i]);
        if (!path.failed && mr_tree_find(t, mr_buf_text(&path), path.len) != MR_NO_ENTRY)
            return true;
    }
    return false;
}

/* Whether the first line of a .txt is a table's: a cell that names an image, or a column of images, and a delimiter. */
static bool is_text_sheet(const mr_tree *t, const mr_child *child)
{
    enum { HEAD = 1024 };
    mr_error why;
    char delimiter, cell[HEAD];
    if (child->is_dir || !mr_name_ends(child->name, child->name_len, ".txt") || *child->name == '.' ||
        !strncasecmp(child->name, "readme", 6) || has_picture(t, child))
        return false;
    size_t size = (size_t)mr_source_entry(t->source, child->entry)->size, len = size < HEAD - 1 ? size : HEAD - 1;
    MR_AUTO(mr_buf_free) mr_buf head = {0};
    if (!mr_buf_reserve(&head, len + 1) || mr_source_pread(t->source, child->entry, head.data, len, 0, &why) != MR_OK)
        return false;
    head.len = len;
    if (mr_csv_prepare(&head, child->name, &delimiter, &why) != MR_OK || !head.len)
        return false;
    delimiter = delimiter_for(".txt", &head, delimiter);
    const char *line = mr_buf_text(&head);
    size_t end = strcspn(line, "\r\n"), first = 0;
    while (first < end && line[first] != delimiter)
        first++;
    snprintf(cell, sizeof cell, "%.*s", (int)first, line);
    return first < end && (mr_header_names_path(cell) || mr_cell_is_image(cell));
}

static void add_sheet(uint32_t entry, mr_sheet_list *out)
{
    if (out->count < MR_SHEETS_MAX)
        out->entries[out->count++] = entry;
    else
        out->more = true;
}

static void list_in(const mr_tree *t, const char *dir, size_t len, mr_sheet_list *out)
{
    mr_child child = {0};
    while (mr_tree_next(t, dir, len, &child))
        if (is_sheet(&child))
            add_sheet(child.entry, out);
}

/* The tables among the first texts: a folder of a million labels is not opened for them. */
static void list_texts(const mr_tree *t, mr_sheet_list *out)
{
    mr_child child = {0};
    for (size_t texts = 0; texts < LOOK_AT && mr_tree_next(t, "", 0, &child);) {
        texts += !child.is_dir && mr_name_ends(child.name, child.name_len, ".txt");
        if (is_text_sheet(t, &child))
            add_sheet(child.entry, out);
    }
    out->texts = out->count > 0;
}

void mr_sheet_find(const mr_tree *t, mr_sheet_list *out)
{
    mr_child child = {0};
    *out = (mr_sheet_list){0};
    list_in(t, "", 0, out);
    bool here = out->count > 0;
    while (!here && mr_tree_next(t, "", 0, &child))
        if (child.is_dir && mr_split_word(child.name, child.name_len))
            list_in(t, child.name, child.name_len, out);
    child = (mr_child){0};
    here = out->count > 0;
    while (!here && mr_tree_next(t, "", 0, &child))
        if (child.is_dir && mr_folder_container(child.name, child.name_len) == MR_CONTAINER_SURE)
            list_in(t, child.name, child.name_len, out);
    if (!out->count)
        list_texts(t, out);
}

/* The split in "train.csv", "trainLabels.csv", "labels-val.csv"; NULL: none, or more than one. */
static const char *split_in(const char *name)
{
    mr_split_token token = mr_split_token_of(name, strcspn(name, "."));
    return token.several ? NULL : token.split;
}

static mr_status parse(const char *name, mr_buf *text, mr_csv *out, mr_error *err)
{
    char delimiter;
    MR_TRY(mr_csv_prepare(text, name, &delimiter, err));
    delimiter = delimiter_for(name, text, delimiter);
    MR_TRY(mr_csv_parse_any(text, name, delimiter, out, err));
    const mr_csv_odd *odd = out->odd;
    if (!out->odd_count || out->odd_count < out->rows)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "%s: line %zu: %zu cells, where the header has %zu", name, odd->line, odd->cells,
                   out->columns);
}

static mr_status read_head(const mr_tree *t, uint32_t entry, size_t most, mr_buf *text, mr_error *err)
{
    uint64_t size = mr_source_entry(t->source, entry)->size;
    size_t len = size < most ? (size_t)size : most;
    mr_buf_clear(text);
    if (!mr_buf_reserve(text, len))
        return mr_fail_memory(err, "looking at a table");
    MR_TRY(mr_source_pread(t->source, entry, text->data, len, 0, err));
    text->len = len;
    return MR_OK;
}

/* Rows may be cut in a quoted cell: then the first half is tried, down to a line. */
static mr_status parse_head(const char *name, const mr_buf *head, bool cut, mr_csv *out, mr_error *err)
{
    size_t len = head->len;
    mr_status status = MR_BAD_DATA;
    for (int trial = 0; trial < 8 && len; trial++, len /= 2) {
        const char *end = cut || trial ? memrchr(head->data, '\n', len) : NULL;
        mr_buf text = {0};
        if ((cut || trial) && !end)
            break;
        len = end ? (size_t)(end - (const char *)head->data) + 1 : len;
        mr_buf_add(&text, head->data, len);
        status = parse(name, &text, out, err);
        mr_buf_free(&text);
        if (status != MR_BAD_DATA || !cut)
            return status;
    }
    return status == MR_OK ? status : mr_fail(err, MR_BAD_DATA, "%s: no complete row at its start", name);
}

mr_status mr_sheet_read(const mr_tree *t, uint32_t entry, bool head, mr_sheet *out, mr_error *err)
{
    size_t len;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    uint64_t size = mr_source_entry(t->source, entry)->size;
    *out = (mr_sheet){
        .entry = entry, .name = mr_tree_path(t, entry, &len), .path = -1, .split = -1, .text = -1, .utf8 = true};
    const char *slash = memrchr(out->name, '/', len);
    out->word = split_in(slash ? slash + 1 : out->name);
    if (!out->word)
        out->word = mr_folder_split(t, entry);
    if (head) {
        MR_TRY(read_head(t, entry, MR_SHEET_HEAD, &text, err));
        mr_status status = parse_head(out->name, &text, size > text.len, &out->csv, err);
        if ((status == MR_OK && out->csv.rows) || status == MR_SYSTEM || size <= text.len)
            return status;
        mr_csv_free(&out->csv); /* its rows are long */
        MR_TRY(read_head(t, entry, LONG_HEAD, &text, err));
        return parse_head(out->name, &text, size > text.len, &out->csv, err);
    }
    if (size > sheet_max)
        return mr_fail(err, MR_BAD_DATA, "%s: %" PRIu64 " bytes, more than 1 GiB, the limit for a table", out->name,
                       size);
    MR_TRY(mr_source_read(t->source, entry, &text, err));
    out->utf8 = mr_utf8_valid(mr_buf_text(&text), text.len);
    MR_TRY(parse(out->name, &text, &out->csv, err));
    return out->csv.rows < UINT32_MAX ? MR_OK : mr_fail(err, MR_BAD_DATA, "%s: too many rows", out->name);
}

void mr_sheet_free(mr_sheet *sheet)
{
    mr_csv_free(&sheet->csv);
    free(sheet->labels);
    free(sheet->next);
    for (size_t i = 0; i < sheet->fault_count; i++)
        free(sheet->faults[i].why);
    free(sheet->faults);
    free(sheet->at);
    free(sheet->len);
    *sheet = (mr_sheet){0};
}

const char *mr_sheet_cell(const mr_sheet *sheet, size_t row, size_t column)
{
    return mr_csv_cell(&sheet->csv, row, column);
}

size_t mr_sheet_next_row(const mr_sheet *sheet, size_t row)
{
    return sheet->next ? sheet->next[row - 1] : 0;
}

/* ---- damaged rows ----------------------------------------------------------------------------------------------- */

static int by_row(const void *a, const void *b)
{
    const mr_sheet_fault *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

/* What is wrong with a row that names an image; false: nothing. */
bool mr_sheet_fault_of(const mr_sheet *s, size_t row, char why[MR_SHEET_FAULT])
{
    const mr_sheet_fault key = {.row = row}, *fault = NULL;
    const mr_csv_odd *odd = mr_csv_odd_row(&s->csv, row);
    double box[4];
    *why = '\0';
    if (s->fault_count)
        fault = bsearch(&key, s->faults, s->fault_count, sizeof key, by_row);
    if (fault)
        snprintf(why, MR_SHEET_FAULT, "%s", fault->why);
    if (odd)
        snprintf(why, MR_SHEET_FAULT, "line %zu: %zu cells, where the header has %zu", odd->line, odd->cells,
                 s->csv.columns);
    for (size_t c = 0; c < s->csv.columns && !s->utf8 && !*why; c++)
        if ((int)c != s->path && !mr_utf8_valid(mr_sheet_cell(s, row, c), strlen(mr_sheet_cell(s, row, c))))
            snprintf(why, MR_SHEET_FAULT, "row %zu: column %.80s is not UTF-8", row + 1, s->csv.header[c]);
    if (!*why && s->boxes.form && mr_sheet_box(s, row, box) == MR_BOX_BAD)
        snprintf(why, MR_SHEET_FAULT, "row %zu: its %s", row + 1,
                 s->boxes.form == MR_BOX_VIA ? "shape is neither a rectangle nor a polygon"
                                             : "box is not four numbers");
    if (!*why && s->split >= 0 && !*mr_sheet_split(s, row))
        snprintf(why, MR_SHEET_FAULT, "row %zu has no split in column %.80s", row + 1, s->csv.header[s->split]);
    return *why;
}
