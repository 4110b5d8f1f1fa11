/* fuzz_csv.c - comma-separated lines.
 * Promises: every cell is a text inside the file's own bytes, columns are found by their names, and the same cells
 * come back when they are written out with every one in quotes. */
#include "tests/fuzz/fuzz.h"
#include "ingest/tables/csv_form.h"
#include "ingest/tables/csv.h"

static void add_quoted(mr_buf *out, const char *cell)
{
    mr_buf_add(out, "\"", 1);
    for (; *cell; cell++)
        mr_buf_add(out, *cell == '"' ? "\"\"" : cell, *cell == '"' ? 2 : 1);
    mr_buf_add(out, "\"", 1);
}

static void check_inside(const mr_csv *csv, const char *cell)
{
    const char *begin = (const char *)csv->text.data, *end = begin + csv->text.len;
    FUZZ_MUST(cell >= begin && cell <= end);
    FUZZ_MUST(strlen(cell) <= (size_t)(end - cell));
}

static void check_round_trip(const mr_csv *csv)
{
    mr_buf text = {0};
    mr_csv again;
    mr_error err;
    for (size_t i = 0; i < (csv->rows + 1) * csv->columns; i++) {
        add_quoted(&text, csv->cells[i]);
        mr_buf_add_text(&text, (i + 1) % csv->columns ? "," : "\r\n");
    }
    FUZZ_MUST(!text.failed);
    FUZZ_MUST(mr_csv_parse(&text, "again.csv", &again, &err) == MR_OK);
    FUZZ_MUST(again.columns == csv->columns && again.rows == csv->rows);
    for (size_t i = 0; i < (csv->rows + 1) * csv->columns; i++)
        FUZZ_MUST(strcmp(csv->cells[i], again.cells[i]) == 0);
    mr_csv_free(&again);
}

/* With tabs or semicolons between the cells. */
static void check_delimiter(const uint8_t *data, size_t size, char delimiter)
{
    mr_buf text = {0};
    mr_csv csv = {0};
    mr_error err;
    mr_buf_add(&text, data, size);
    if (mr_csv_parse_by(&text, "fuzz.tsv", delimiter, &csv, &err) == MR_OK) {
        for (size_t i = 0; i < (csv.rows + 1) * csv.columns; i++)
            check_inside(&csv, csv.cells[i]);
        check_round_trip(&csv);
    }
    mr_csv_free(&csv);
}

/* As tables of any origin are read. */
static void check_any(const uint8_t *data, size_t size)
{
    mr_buf text = {0};
    mr_csv csv = {0};
    mr_error err;
    char delimiter;
    mr_buf_add(&text, data, size);
    if (mr_csv_prepare(&text, "fuzz.csv", &delimiter, &err) == MR_OK &&
        mr_csv_parse_any(&text, "fuzz.csv", delimiter, &csv, &err) == MR_OK) {
        for (size_t i = 0; i < (csv.rows + 1) * csv.columns; i++)
            check_inside(&csv, csv.cells[i]);
        FUZZ_MUST(csv.odd_count <= csv.rows);
        FUZZ_MUST(mr_csv_without_header(&csv, NULL, &err) == MR_OK);
        check_round_trip(&csv);
    }
    mr_buf_free(&text);
    mr_csv_free(&csv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_buf text = {0};
    mr_csv csv = {0};
    mr_error err;
    mr_buf_add(&text, data, size);
    check_delimiter(data, size, '\t');
    check_delimiter(data, size, ';');
    check_any(data, size);
    mr_status status = mr_csv_parse(&text, "fuzz.csv", &csv, &err);
    FUZZ_MUST(text.data == NULL && text.len == 0);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_BAD_DATA);
        fuzz_refused(status, &err);
        return 0;
    }
    FUZZ_MUST(csv.columns > 0);
    for (size_t c = 0; c < csv.columns; c++) {
        check_inside(&csv, csv.header[c]);
        if (c < 100)
            FUZZ_MUST(mr_csv_column(&csv, csv.header[c]) == (int)c);
    }
    for (size_t r = 0; r < csv.rows; r++)
        for (size_t c = 0; c < csv.columns; c++)
            check_inside(&csv, mr_csv_cell(&csv, r, c));
    check_round_trip(&csv);
    mr_csv_free(&csv);
    return 0;
}
