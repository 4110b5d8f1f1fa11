/* header.c - tables without a header: their first row names an image.
 * Invariant: no row is mistaken for a header, and no header for a row that no image has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/table/table.h"

enum { NAMED = 8 };

static bool is_picture(const mr_picture_index *index, const mr_sheet *s, const char *cell)
{
    uint32_t found[2];
    mr_picture_match match = mr_picture_find(index, cell, s->word, found);
    return match == MR_PICTURE_ONE || match == MR_PICTURE_SEVERAL;
}

/* The column of row 0 that names an image: by the ending of a file, or because the row below does it in the same
 * column; -1: none. */
static int picture_in_header(const mr_sheet *s, const mr_picture_index *index)
{
    for (size_t c = 0; c < s->csv.columns; c++) {
        const char *cell = s->csv.header[c];
        if (mr_cell_is_image(cell))
            return (int)c;
        if (s->csv.rows && !mr_header_names_path(cell) && is_picture(index, s, cell) &&
            is_picture(index, s, mr_sheet_cell(s, 0, c)))
            return (int)c;
    }
    return -1;
}

static bool is_number(const char *cell)
{
    char *end;
    double value = strtod(cell, &end);
    (void)value;
    return end != cell && !*end;
}

/* Whether columns 1 to 4 are numbers, or empty in whole rows: path, x1, y1, x2, y2 and a class, as in RetinaNet. */
static bool has_boxes(const mr_sheet *s)
{
    bool any = false;
    for (size_t r = 0; r <= s->csv.rows; r++)
        for (size_t c = 1; c < 5; c++) {
            const char *cell = s->csv.cells[r * s->csv.columns + c];
            any = any || *cell;
            if (*cell && !is_number(cell))
                return false;
        }
    return any;
}

static const char *cell_of(const mr_sheet *s, size_t row, size_t column)
{
    return s->csv.cells[row * s->csv.columns + column];
}

static bool all_splits(const mr_sheet *s, size_t column)
{
    bool any = false;
    for (size_t r = 0; r <= s->csv.rows; r++) {
        const char *cell = cell_of(s, r, column);
        any = any || *cell;
        if (*cell && !mr_split_word(cell, strlen(cell)))
            return false;
    }
    return any;
}

/* 0, 1, 2 ... or 1, 2, 3 ... */
static bool counts_rows(const mr_sheet *s, size_t column)
{
    unsigned long first = strtoul(cell_of(s, 0, column), NULL, 10);
    for (size_t r = 0; r <= s->csv.rows; r++) {
        char number[24];
        snprintf(number, sizeof number, "%lu", first + (unsigned long)r);
        if (strcmp(cell_of(s, r, column), number) != 0)
            return false;
    }
    return first <= 1 && s->csv.rows > 0;
}

/* file, index, split, and label for the only other one, but in CelebA's list_eval_partition.txt. */
static void name_columns(const mr_sheet *s, size_t picture, const char *names[NAMED])
{
    size_t rest = 0, last = 0;
    for (size_t c = 0; c < s->csv.columns; c++) {
        names[c] = c == picture ? "file" : all_splits(s, c) ? "split" : counts_rows(s, c) ? "index" : NULL;
        rest += !names[c];
        last = names[c] ? last : c;
    }
    for (size_t c = 0; c < s->csv.columns; c++) /* if two are alike, neither is meant */
        for (size_t d = 0; d < c; d++)
            if (names[c] && names[d] && !strcmp(names[c], names[d]))
                names[c] = NULL;
    for (size_t c = 0; c < s->csv.columns && !rest; c++) /* rows in the order of their classes */
        if (names[c] && !strcmp(names[c], "index")) {
            last = c;
            rest = 1;
        }
    if (rest == 1)
        names[last] = strcasestr(s->name, "partition") ? "partition" : "label";
}

mr_status mr_sheet_settle_header(mr_sheet *s, const mr_picture_index *index, mr_error *err)
{
    static const char *const boxes[] = {"file", "x1", "y1", "x2", "y2", "class"};
    const char *names[NAMED] = {NULL};
    int picture = picture_in_header(s, index);
    if (picture < 0) {
        MR_TRY(mr_csv_name_empty(&s->csv, err)); /* as pandas writes an index, and some a last delimiter */
        return mr_csv_check_header(&s->csv, s->name, err);
    }
    s->bare = true;
    if (picture == 0 && (s->csv.columns == 5 || s->csv.columns == 6) && has_boxes(s))
        return mr_csv_without_header(&s->csv, boxes, err);
    if (s->csv.columns > NAMED)
        return mr_csv_without_header(&s->csv, NULL, err);
    name_columns(s, (size_t)picture, names);
    return mr_csv_without_header(&s->csv, names, err);
}
