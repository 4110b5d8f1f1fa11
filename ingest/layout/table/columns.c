/* columns.c - which column of a table names the images: by its name if one is given, else by its header and its cells.
 * Invariant: if two columns may be meant, neither is chosen: the message names both. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/table/table.h"

enum { ROWS_TRIED = 512, COLUMNS_TRIED = 64 };

static const char *const path_words[] = {"path",   "file_path",  "file",       "file_name", "image",
                                         "images", "image_path", "image_name", "image_id",  "image_index",
                                         "img",    "img_path",   "img_name",   NULL};

static bool same_word(const char *name, const char *word)
{
    for (;;) {
        name += strspn(name, "_- ");
        word += strspn(word, "_");
        if (!*name || !*word)
            return !*name && !*word;
        if (tolower((unsigned char)*name++) != *word++)
            return false;
    }
}

/* "Finding Labels" and "FindingLabels" are finding_labels. */
bool mr_header_among(const char *name, const char *const *words)
{
    while (*words && !same_word(name, *words))
        words++;
    return *words != NULL;
}

bool mr_header_names_path(const char *name)
{
    return mr_header_among(name, path_words);
}

/* ---- paths ---------------------------------------------------------------------------------------------------- */

typedef struct trial { /* which images the cells of a column name */
    uint32_t found[ROWS_TRIED];
    size_t rows, cells, hits;
    bool distinct;
    int rank; /* how good its claim is: by its header, then because each row names another image */
} trial;

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void try_column(const mr_sheet *s, const mr_picture_index *index, size_t column, trial *out)
{
    size_t rows = s->csv.rows, kept = 0;
    uint32_t sorted[ROWS_TRIED] = {0};
    *out = (trial){.rows = rows < ROWS_TRIED ? rows : ROWS_TRIED, .distinct = true};
    for (size_t i = 0; i < out->rows; i++) {
        const char *cell = mr_sheet_cell(s, i * rows / out->rows, column);
        uint32_t found[2];
        mr_picture_match match = mr_picture_find(index, cell, s->word, found);
        bool hit = match == MR_PICTURE_ONE || match == MR_PICTURE_SEVERAL;
        out->cells += *cell != '\0';
        out->hits += hit;
        out->found[i] = hit ? found[0] : MR_NO_ENTRY;
        if (hit)
            sorted[kept++] = found[0];
    }
    qsort(sorted, kept, sizeof *sorted, by_number);
    for (size_t i = 1; i < kept; i++)
        out->distinct = out->distinct && sorted[i] != sorted[i - 1];
}

/* Numbers of rows, as pandas writes them, may be the names of images as well. */
static int claim_of(const mr_sheet *s, size_t column)
{
    static const char *const index_words[] = {"", "index", "unnamed:_0", "idx", NULL};
    const char *name = s->csv.header[column];
    if (mr_header_among(name, path_words))
        return 4;
    return mr_header_among(name, index_words) || (!s->bare && !strncmp(name, "column ", 7)) ? 0 : 2;
}

static bool names_pictures(const trial *t)
{
    return t->hits && t->hits * 2 >= t->cells;
}

static bool same_pictures(const trial *a, const trial *b)
{
    for (size_t i = 0; i < a->rows; i++)
        if (a->found[i] != b->found[i])
            return false;
    return true;
}

/* For a large table of which only a few images are here: the first column headed like paths that names any. */
static int any_path(const mr_sheet *s, const mr_picture_index *index)
{
    uint32_t found[2];
    for (size_t c = 0; c < s->csv.columns && c < COLUMNS_TRIED; c++)
        for (size_t r = 0; r < s->csv.rows && mr_header_among(s->csv.header[c], path_words); r++) {
            mr_picture_match match = mr_picture_find(index, mr_sheet_cell(s, r, c), s->word, found);
            if (match == MR_PICTURE_ONE || match == MR_PICTURE_SEVERAL)
                return (int)c;
        }
    return -1;
}

static mr_status two_paths(const mr_sheet *s, int first, size_t second, mr_error *err)
{
    return mr_fail(err, MR_MISUSE,
                   "%s: the columns %s and %s both name images, and not the same ones; choose one with --image-column",
                   s->name, s->csv.header[first], s->csv.header[second]);
}

mr_status mr_sheet_find_path(mr_sheet *sheet, const mr_picture_index *index, const char *asked, mr_error *err)
{
    MR_AUTO(mr_scope_free) trial *best = mr_alloc(2, sizeof *best);
    trial *now = best ? best + 1 : NULL;
    int second = -1;
    sheet->path = asked ? mr_csv_column(&sheet->csv, asked) : -1;
    if (asked)
        return MR_OK;
    if (!best)
        return mr_fail_memory(err, "looking at a table");
    for (size_t c = 0; c < sheet->csv.columns && c < COLUMNS_TRIED; c++) {
        if (mr_header_names_label(sheet->csv.header[c])) /* numbers may be the names of images, too */
            continue;
        try_column(sheet, index, c, now);
        if (!names_pictures(now) || (sheet->path >= 0 && same_pictures(best, now)))
            continue;
        now->rank = claim_of(sheet, c) + now->distinct;
        if (sheet->path < 0 || now->rank > best->rank) {
            sheet->path = (int)c;
            *best = *now;
            second = -1;
        } else if (now->rank == best->rank) {
            second = second < 0 ? (int)c : second;
        }
    }
    if (sheet->path < 0)
        sheet->path = any_path(sheet, index);
    return second >= 0 ? two_paths(sheet, sheet->path, (size_t)second, err) : MR_OK;
}

bool mr_sheet_claims(const mr_sheet *sheet)
{
    for (size_t c = 0; c < sheet->csv.columns; c++) {
        const char *cell = sheet->csv.rows ? mr_sheet_cell(sheet, 0, c) : "";
        if (mr_header_among(sheet->csv.header[c], path_words) || mr_cell_is_image(cell))
            return true;
    }
    return false;
}
