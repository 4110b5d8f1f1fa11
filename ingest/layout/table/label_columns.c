/* label_columns.c - which columns of a table hold labels and texts: by their names if some are given, else by their
 * headers and cells.
 * Invariant: if two columns may be meant, neither is chosen: the message names both. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/table/table.h"

enum { COLUMNS_NAMED = 64 };

static const char *const label_words[] = {"label",    "labels",     "class",         "classes",     "class_name",
                                          "class_id", "category",   "category_name", "category_id", "species",
                                          "breed",    "target",     "diagnosis",     "dx",          "finding_labels",
                                          "tags",     "label_name", "label_id",      NULL};
static const char *const text_words[] = {"caption", "captions", "text", "description", "sentence", "comment", NULL};
static const char *const other_words[] = {"",    "id",     "index",   "width", "height",
                                          "url", "source", "license", "size",  NULL};

bool mr_header_names_label(const char *name)
{
    return mr_header_among(name, label_words);
}

static void list_columns(const mr_sheet *s, mr_buf *out)
{
    for (size_t c = 0; c < s->csv.columns && c < COLUMNS_NAMED; c++)
        mr_buf_printf(out, "%s%s", c ? ", " : "", s->csv.header[c]);
}

/* ---- labels ---------------------------------------------------------------------------------------------------- */

static mr_status add_label(mr_sheet *s, size_t column, mr_error *err)
{
    if (!s->labels)
        s->labels = mr_alloc(MR_SHEET_LABELS_MAX, sizeof *s->labels);
    if (!s->labels)
        return mr_fail_memory(err, "looking at a table");
    if (s->label_count == MR_SHEET_LABELS_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: more than %d label columns, the limit for a table", s->name,
                       MR_SHEET_LABELS_MAX);
    s->labels[s->label_count++] = column;
    return MR_OK;
}

static mr_status no_column(const mr_sheet *s, const char *option, const char *name, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf there = {0};
    list_columns(s, &there);
    return mr_fail(err, MR_MISUSE, "%s %s: %s has no such column; choose from: %.600s", option, name, s->name,
                   mr_buf_text(&there));
}

/* "label", or "cat,dog" for several; a column whose own name has a comma is taken first. */
static mr_status asked_labels(mr_sheet *s, const char *asked, mr_error *err)
{
    int column = mr_csv_column(&s->csv, asked);
    if (column >= 0)
        return add_label(s, (size_t)column, err);
    MR_AUTO(mr_scope_free) char *copy = strdup(asked);
    char *rest = NULL;
    if (!copy)
        return mr_fail_memory(err, "looking at a table");
    for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        column = mr_csv_column(&s->csv, name);
        if (column < 0 && s->label_count)
            return no_column(s, "--label-column", name, err);
        if (column < 0)
            return MR_OK; /* one of several tables may have no labels */
        MR_TRY(add_label(s, (size_t)column, err));
    }
    return MR_OK;
}

enum { FLAG_NONE, FLAG_ON, FLAG_OFF, FLAG_MINUS };

static int flag_of(const char *cell)
{
    int flag = mr_sheet_flag(cell);
    if (flag == 1)
        return FLAG_ON;
    if (!strcmp(cell, "-1") || !strcmp(cell, "-1.0"))
        return FLAG_MINUS;
    return flag == 0 || mr_value_of(cell, strlen(cell)).kind == MR_VALUE_NONE ? FLAG_OFF : FLAG_NONE;
}

/* Whether the cells are 0 and 1, or -1 and 1; where all three occur, -1 may mean "not known". */
static bool all_flags(const mr_sheet *s, const size_t *columns, size_t count)
{
    bool zero = false, minus = false;
    for (size_t r = 0; r < s->csv.rows; r++)
        for (size_t c = 0; c < count; c++) {
            const char *cell = mr_sheet_cell(s, r, columns[c]);
            int flag = flag_of(cell);
            zero = zero || (flag == FLAG_OFF && mr_value_of(cell, strlen(cell)).kind != MR_VALUE_NONE);
            minus = minus || flag == FLAG_MINUS;
            if (flag == FLAG_NONE || (zero && minus))
                return false;
        }
    return s->csv.rows > 0;
}

static bool is_number(const char *cell)
{
    char *end;
    strtod(cell, &end);
    return end != cell && !*end;
}

/* Refuses columns of numbers other than flags; `other`: names a number that is neither 0 nor 1. */
static mr_status refuse_numbers(const mr_sheet *s, bool other, mr_error *err)
{
    for (size_t i = 0; i < s->label_count; i++)
        for (size_t r = 0; r < s->csv.rows; r++) {
            const char *cell = mr_sheet_cell(s, r, s->labels[i]);
            int flag = flag_of(cell);
            if (is_number(cell) && (!other || flag == FLAG_NONE || flag == FLAG_MINUS))
                return mr_fail(err, MR_MISUSE,
                               "--label-column: several label columns must hold only 0 and 1, only -1 and 1, or class "
                               "names; row %zu of %s has \"%.40s\" in column %s",
                               r + 1, s->name, cell, s->csv.header[s->labels[i]]);
        }
    return MR_OK;
}

static mr_status check_several(mr_sheet *s, mr_error *err)
{
    s->flags = s->label_count > 1 && all_flags(s, s->labels, s->label_count);
    if (s->label_count < 2 || s->flags)
        return MR_OK;
    MR_TRY(refuse_numbers(s, true, err));
    return refuse_numbers(s, false, err);
}

/* Masks, depths: another image in each row. */
static bool names_files(const mr_sheet *s, size_t column)
{
    const char *cell = s->csv.rows ? mr_sheet_cell(s, 0, column) : "";
    return mr_name_is_image(cell, strlen(cell));
}

/* Columns of which no header says what they are. */
static mr_status guess_labels(mr_sheet *s, mr_notes *notes, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf names = {0};
    MR_AUTO(mr_scope_free) size_t *rest = mr_alloc(s->csv.columns, sizeof *rest);
    size_t count = 0;
    if (!rest)
        return mr_fail_memory(err, "looking at a table");
    for (size_t c = 0; c < s->csv.columns; c++)
        if ((int)c != s->path && (int)c != s->split && (int)c != s->text &&
            !mr_header_among(s->csv.header[c], other_words) && !mr_header_names_path(s->csv.header[c]) &&
            !mr_header_is_partition(s->csv.header[c]) && !mr_sheet_is_side(s, c) && !names_files(s, c))
            rest[count++] = c;
    if ((count == 1 && s->text < 0) || (count > 1 && all_flags(s, rest, count))) {
        for (size_t i = 0; i < count; i++)
            MR_TRY(add_label(s, rest[i], err));
        return MR_OK;
    }
    for (size_t i = 0; i < count && i < COLUMNS_NAMED; i++)
        mr_buf_printf(&names, "%s%s", i ? ", " : "", s->csv.header[rest[i]]);
    if (count && s->text < 0)
        mr_note_add(notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "no column is named like a label: samples have none; --label-column accepts one or more of: %s",
                    mr_buf_text(&names));
    return mr_buf_status(&names, err, "looking at a table");
}

static mr_status named_labels(mr_sheet *s, mr_error *err)
{
    for (size_t c = 0; c < s->csv.columns; c++) {
        if ((int)c == s->path || mr_sheet_is_side(s, c) || !mr_header_names_label(s->csv.header[c]))
            continue;
        if (s->label_count)
            return mr_fail(err, MR_MISUSE,
                           "%s: the columns %s and %s both look like labels; choose one with --label-column", s->name,
                           s->csv.header[s->labels[0]], s->csv.header[c]);
        MR_TRY(add_label(s, c, err));
    }
    return MR_OK;
}

/* ---- other columns ---------------------------------------------------------------------------------------------- */

int mr_sheet_column_among(const mr_sheet *s, const char *const *words)
{
    for (size_t c = 0; c < s->csv.columns; c++)
        if ((int)c != s->path && mr_header_among(s->csv.header[c], words))
            return (int)c;
    return -1;
}

/* Labels that people verified: 0 says that the image does not show it. Source: "Image labels" of Open Images V7,
 * https://storage.googleapis.com/openimages/web/download_v7.html */
static int find_confidence(const mr_sheet *s)
{
    static const char *const confidence[] = {"confidence", NULL}, *const label[] = {"labelname", NULL};
    int column = mr_sheet_column_among(s, confidence);
    return column > 0 && mr_sheet_column_among(s, label) >= 0 ? column : 0;
}

bool mr_sheet_denies(const mr_sheet *s, size_t row)
{
    mr_value v = {.kind = MR_VALUE_NONE};
    if (s->confidence) {
        const char *cell = mr_sheet_cell(s, row, (size_t)s->confidence);
        v = mr_value_of(cell, strlen(cell));
    }
    return v.kind == MR_VALUE_WHOLE && !strcmp(v.name, "0");
}

mr_status mr_sheet_find_others(mr_sheet *s, const mr_layout_options *o, mr_notes *notes, mr_error *err)
{
    MR_TRY(mr_sheet_find_split(s, notes, err));
    s->confidence = find_confidence(s);
    s->text = o->text_column ? mr_csv_column(&s->csv, o->text_column) : mr_sheet_column_among(s, text_words);
    if (o->text_column && s->text < 0)
        return no_column(s, "--text-column", o->text_column, err);
    MR_TRY(mr_sheet_find_boxes(s, o, err));
    bool via = s->boxes.form == MR_BOX_VIA && s->boxes.at[1] >= 0;
    if (!o->label_column && via)
        return add_label(s, (size_t)s->boxes.at[1], err);
    if (o->label_column)
        MR_TRY(asked_labels(s, o->label_column, err));
    else
        MR_TRY(named_labels(s, err));
    if (!o->label_column && !s->label_count && !s->beside)
        MR_TRY(guess_labels(s, notes, err));
    return check_several(s, err);
}
