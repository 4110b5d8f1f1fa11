/* csv.c - comma-separated lines as spreadsheets export them, parsed in place.
 * Invariant: the write position never overtakes the read position, so a cell and its NUL always fit where the cell and
 * its delimiter were; the last cell has the byte that mr_buf keeps after its length. */
#include "ingest/tables/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/utf8.h"

enum { COLUMNS_MAX = 32768, NAME = 32 };

typedef struct reader {
    char *at, *end; /* not read yet */
    size_t line;    /* the line of `at`, counted from 1 */
    const char *name;
    mr_csv *csv;
    size_t cell_count, cell_capacity;
    char delimiter;
    bool any;     /* rows may have any number of cells */
    size_t added; /* cells that rows lack */
} reader;

static bool is_blank(const reader *r, char c)
{
    return c != r->delimiter && (c == ' ' || c == '\t');
}

/* The length of the line end at `p`: 2 for CRLF, 1 for LF or for a CR at the end of the file, 0 for none. */
static size_t line_end(const reader *r, const char *p)
{
    if (p < r->end && *p == '\n')
        return 1;
    if (p < r->end && *p == '\r')
        return p + 1 == r->end ? 1 : p[1] == '\n' ? 2 : 0;
    return 0;
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && is_blank(r, *r->at))
        r->at++;
}

static mr_status put_cell(reader *r, char *cell, mr_error *err)
{
    if (!MR_GROW(r->csv->cells, r->cell_count, r->cell_capacity))
        return mr_fail_memory(err, "reading a CSV file");
    r->csv->cells[r->cell_count++] = cell;
    return MR_OK;
}

/* From the opening quote to past the closing one; the cell is shifted left over removed quotes. */
static mr_status quoted_cell(reader *r, char **cell, char **cell_end, mr_error *err)
{
    size_t opened = r->line;
    char *to = ++r->at;
    *cell = to;
    for (; r->at < r->end; r->at++) {
        if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"')) {
            r->at++;
            *cell_end = to;
            return MR_OK;
        }
        if (*r->at == '"')
            r->at++;
        if (*r->at == '\n')
            r->line++;
        *to++ = *r->at;
    }
    return mr_fail(err, MR_BAD_DATA, "%s: line %zu: a quoted cell is never closed", r->name, opened);
}

static void plain_cell(reader *r, char **cell, char **cell_end)
{
    *cell = r->at;
    while (r->at < r->end && *r->at != r->delimiter && !line_end(r, r->at))
        r->at++;
    char *end = r->at;
    while (end > *cell && is_blank(r, end[-1]))
        end--;
    *cell_end = end;
}

/* One cell and its delimiter. *last: the row ends here. */
static mr_status read_cell(reader *r, char **out, bool *last, mr_error *err)
{
    char *cell = r->at, *cell_end = r->at;
    skip_blanks(r);
    if (r->at < r->end && *r->at == '"') {
        MR_TRY(quoted_cell(r, &cell, &cell_end, err));
        skip_blanks(r);
        if (r->at < r->end && *r->at != r->delimiter && !line_end(r, r->at))
            return mr_fail(err, MR_BAD_DATA, "%s: line %zu: text after a closing quote", r->name, r->line);
    } else {
        plain_cell(r, &cell, &cell_end);
    }
    size_t newline = line_end(r, r->at);
    *last = r->at == r->end || newline;
    if (newline)
        r->line++;
    r->at += newline ? newline : r->at < r->end;
    *cell_end = '\0';
    *out = cell;
    return MR_OK;
}

static bool skip_blank_line(reader *r)
{
    char *p = r->at;
    while (p < r->end && is_blank(r, *p))
        p++;
    size_t newline = line_end(r, p);
    if (!newline && p < r->end)
        return false;
    r->at = p + newline;
    r->line += newline != 0;
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two columns of one name would become a JSON object with a duplicate key, or a class with two numbers. */
mr_status mr_csv_check_header(const mr_csv *csv, const char *name, mr_error *err)
{
    MR_AUTO(mr_scope_free) char **sorted = mr_alloc(csv->columns, sizeof *sorted);
    if (!sorted)
        return mr_fail_memory(err, "reading a CSV file");
    memcpy(sorted, csv->cells, csv->columns * sizeof *sorted);
    qsort(sorted, csv->columns, sizeof *sorted, by_text);
    for (size_t i = 1; i < csv->columns; i++)
        if (!strcmp(sorted[i - 1], sorted[i]))
            return mr_fail(err, MR_BAD_DATA,
                           "%s: line %zu: the header names the column \"%s\" twice: rename or remove one of them", name,
                           csv->header_line, sorted[i]);
    return MR_OK;
}

/* Completes the row that begins at `first`, of `cells` cells, or cuts it. */
static mr_status settle_row(reader *r, size_t line, size_t first, size_t cells, bool empty, mr_error *err)
{
    mr_csv *csv = r->csv;
    bool odd = cells > csv->columns && !empty;
    r->added += cells < csv->columns ? csv->columns - cells : 0;
    if (r->added > csv->text.len) /* a few bytes are not to become many cells */
        return mr_fail(err, MR_BAD_DATA, "%s: line %zu: %zu cells, where the header has %zu", r->name, line, cells,
                       csv->columns);
    for (size_t c = cells; c < csv->columns; c++) {
        odd = odd || *csv->cells[c]; /* an unnamed last column may be absent */
        MR_TRY(put_cell(r, csv->cells[first] + strlen(csv->cells[first]), err));
    }
    if (!odd)
        return MR_OK;
    if (!MR_GROW(csv->odd, csv->odd_count, csv->odd_capacity))
        return mr_fail_memory(err, "reading a CSV file");
    csv->odd[csv->odd_count++] = (mr_csv_odd){csv->rows, line, cells};
    return MR_OK;
}

static mr_status read_rows(reader *r, mr_error *err)
{
    mr_csv *csv = r->csv;
    while (r->at < r->end) {
        if (skip_blank_line(r))
            continue;
        size_t line = r->line, before = r->cell_count, cells = 0, max = before ? csv->columns : COLUMNS_MAX;
        bool empty = true; /* what is too much */
        for (bool last = false; !last;) {
            char *cell = NULL;
            MR_TRY(read_cell(r, &cell, &last, err));
            if (++cells <= max) /* the others are only counted, for the message */
                MR_TRY(put_cell(r, cell, err));
            else
                empty = empty && !*cell;
        }
        if (!before && cells > COLUMNS_MAX)
            return mr_fail(err, MR_BAD_DATA, "%s: line %zu: %zu columns, more than %d", r->name, line, cells,
                           COLUMNS_MAX);
        csv->header_line = before ? csv->header_line : line;
        if (!before)
            csv->columns = cells;
        else if (cells != csv->columns && !r->any)
            return mr_fail(err, MR_BAD_DATA, "%s: line %zu: %zu cells, where the header has %zu", r->name, line, cells,
                           csv->columns);
        if (before && cells != csv->columns)
            MR_TRY(settle_row(r, line, before, cells, empty, err));
        csv->rows += before > 0;
    }
    if (!csv->columns)
        return mr_fail(err, MR_BAD_DATA, "%s: empty: there is no header line", r->name);
    return r->any ? MR_OK : mr_csv_check_header(csv, r->name, err);
}

mr_status mr_csv_parse(mr_buf *text, const char *name, mr_csv *out, mr_error *err)
{
    return mr_csv_parse_by(text, name, ',', out, err);
}

static mr_status parse(mr_buf *text, const char *name, char delimiter, bool any, mr_csv *out, mr_error *err)
{
    MR_AUTO(mr_csv_free) mr_csv csv = {.text = *text};
    *text = (mr_buf){0};
    mr_buf_text(&csv.text);
    MR_TRY(mr_buf_status(&csv.text, err, "reading a CSV file"));
    char *begin = (char *)csv.text.data;
    reader r = {.at = begin,
                .end = begin + csv.text.len,
                .line = 1,
                .name = name,
                .csv = &csv,
                .delimiter = delimiter,
                .any = any};
    const char *nul = memchr(begin, '\0', csv.text.len);
    if (nul) {
        size_t line = 1;
        for (const char *p = begin; p < nul; p++)
            line += *p == '\n';
        return mr_fail(err, MR_BAD_DATA, "%s: line %zu: contains a NUL byte, so it is not a text file", name, line);
    }
    r.at += mr_utf8_mark(begin, csv.text.len);
    MR_TRY(read_rows(&r, err));
    csv.header = csv.cells;
    *out = csv;
    csv = (mr_csv){0};
    return MR_OK;
}

mr_status mr_csv_parse_by(mr_buf *text, const char *name, char delimiter, mr_csv *out, mr_error *err)
{
    return parse(text, name, delimiter, false, out, err);
}

mr_status mr_csv_parse_any(mr_buf *text, const char *name, char delimiter, mr_csv *out, mr_error *err)
{
    return parse(text, name, delimiter, true, out, err);
}

mr_status mr_csv_without_header(mr_csv *csv, const char *const *names, mr_error *err)
{
    size_t count = (csv->rows + 1) * csv->columns;
    char **cells = mr_realloc(csv->cells, count + csv->columns, sizeof *cells);
    csv->cells = cells ? cells : csv->cells;
    if (!cells || !(csv->names = mr_alloc(csv->columns, NAME)))
        return mr_fail_memory(err, "reading a CSV file");
    memmove(cells + csv->columns, cells, count * sizeof *cells);
    for (size_t c = 0; c < csv->columns; c++) {
        cells[c] = csv->names + c * NAME;
        if (names && names[c])
            snprintf(cells[c], NAME, "%s", names[c]);
        else
            snprintf(cells[c], NAME, "column %zu", c + 1);
    }
    csv->header = cells;
    csv->rows++;
    for (size_t i = 0; i < csv->odd_count; i++)
        csv->odd[i].row++;
    return MR_OK;
}

mr_status mr_csv_name_empty(mr_csv *csv, mr_error *err)
{
    size_t empty = 0;
    for (size_t c = 0; c < csv->columns; c++)
        empty += !*csv->header[c];
    if (empty < 2 || csv->names)
        return MR_OK;
    if (!(csv->names = mr_alloc(csv->columns, NAME)))
        return mr_fail_memory(err, "reading a CSV file");
    for (size_t c = 0; c < csv->columns; c++)
        if (!*csv->header[c]) {
            csv->header[c] = csv->names + c * NAME;
            snprintf(csv->header[c], NAME, "column %zu", c + 1);
        }
    return MR_OK;
}

const mr_csv_odd *mr_csv_odd_row(const mr_csv *csv, size_t row)
{
    size_t low = 0, high = csv->odd_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (csv->odd[mid].row < row)
            low = mid + 1;
        else
            high = mid;
    }
    return low < csv->odd_count && csv->odd[low].row == row ? &csv->odd[low] : NULL;
}

const char *mr_csv_cell(const mr_csv *csv, size_t row, size_t column)
{
    return csv->cells[(row + 1) * csv->columns + column];
}

int mr_csv_column(const mr_csv *csv, const char *name)
{
    for (size_t c = 0; c < csv->columns; c++)
        if (!strcmp(csv->header[c], name))
            return (int)c;
    return -1;
}

void mr_csv_free(mr_csv *csv)
{
    mr_buf_free(&csv->text);
    free(csv->cells);
    free(csv->odd);
    free(csv->names);
    *csv = (mr_csv){0};
}
