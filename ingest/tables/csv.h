/* csv.h - comma-separated lines as spreadsheets export them.
 * Invariant: cells are slices of the text given to mr_csv_parse(); they are the same with LF or CRLF, with or without a
 * final newline and blanks after commas.  Quoted cells ("a, ""b""") follow RFC 4180. */
#ifndef MR_CSV_H
#define MR_CSV_H

#include "base/buf.h"

typedef struct mr_csv {
    mr_buf text;          /* the file, rewritten in place: cells NUL-terminated, quotes undone */
    char **cells;         /* rows * columns pointers into text; row 0 is the header */
    size_t columns, rows; /* rows without the header: cell(r, c) for r in 0..rows-1 */
    char **header;
    size_t header_line;
    struct mr_csv_odd *odd; /* from mr_csv_parse_any(): rows with another number of cells, ascending */
    size_t odd_count, odd_capacity;
    char *names; /* names given to the columns of a table without a header */
} mr_csv;

typedef struct mr_csv_odd {
    size_t row, line, cells;
} mr_csv_odd;

/* Takes over `text`. Blank lines are skipped; blanks around unquoted cells and a byte order mark are removed.
 * MR_BAD_DATA, naming the file (`name`) and line: a row with a different number of cells, an unclosed quote, a NUL
 * byte, no header. */
mr_status mr_csv_parse(mr_buf *text, const char *name, mr_csv *out, mr_error *err);
/* The same with a delimiter other than the comma: ';' or a tab. */
mr_status mr_csv_parse_by(mr_buf *text, const char *name, char delimiter, mr_csv *out, mr_error *err);
/* The same for tables of any origin: a row with more or fewer cells is completed or cut, and listed in `odd`, unless
 * what it has too many or lacks is empty; names of columns may occur twice. */
mr_status mr_csv_parse_any(mr_buf *text, const char *name, char delimiter, mr_csv *out, mr_error *err);
/* MR_BAD_DATA: two columns have one name. */
mr_status mr_csv_check_header(const mr_csv *csv, const char *name, mr_error *err);
/* What was the header becomes the first row, and the columns have these names; those that are NULL, or
 * all if `names` is: "column 1", ... */
mr_status mr_csv_without_header(mr_csv *csv, const char *const *names, mr_error *err);
/* Names the columns whose names are empty "column 1", ... if there are several. */
mr_status mr_csv_name_empty(mr_csv *csv, mr_error *err);
/* The entry of a row in `odd`; NULL: it has as many cells as the header. */
const mr_csv_odd *mr_csv_odd_row(const mr_csv *csv, size_t row);
const char *mr_csv_cell(const mr_csv *csv, size_t row, size_t column);
int mr_csv_column(const mr_csv *csv, const char *name); /* -1: none */
void mr_csv_free(mr_csv *csv);

#endif
