/* test_csv.c - tables as people export them, and files that are not tables. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "ingest/tables/csv.h"

static mr_status parse(const char *bytes, size_t len, mr_csv *csv, mr_error *err)
{
    mr_buf text = {0};
    mr_buf_add(&text, bytes, len);
    mr_status status = mr_csv_parse(&text, "t.csv", csv, err);
    assert_null(text.data); /* taken over, whatever the outcome */
    return status;
}

/* Every cell in brackets, rows on lines of their own. */
static void gives(const char *text, const char *expected)
{
    mr_csv csv = {0};
    mr_error err;
    mr_buf out = {0};
    if (parse(text, strlen(text), &csv, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (size_t c = 0; c < csv.columns; c++)
        mr_buf_printf(&out, "[%s]", csv.header[c]);
    for (size_t r = 0; r < csv.rows; r++) {
        mr_buf_add_text(&out, "\n");
        for (size_t c = 0; c < csv.columns; c++)
            mr_buf_printf(&out, "[%s]", mr_csv_cell(&csv, r, c));
    }
    assert_string_equal(mr_buf_text(&out), expected);
    mr_buf_free(&out);
    mr_csv_free(&csv);
}

static void fails(const char *text, size_t len, const char *words)
{
    mr_csv csv = {0};
    mr_error err = {0};
    assert_int_equal(parse(text, len, &csv, &err), MR_BAD_DATA);
    assert_string_equal(err.text, words);
    assert_null(csv.cells);
}

static void line_ends_make_no_difference(void **state)
{
    (void)state;
    static const char expected[] = "[path][x]\n[a][1]\n[b][2]";
    gives("path,x\na,1\nb,2\n", expected);
    gives("path,x\r\na,1\r\nb,2\r\n", expected);
    gives("path,x\na,1\nb,2", expected);
    gives("path,x\r\na,1\r\nb,2\r", expected);
    gives("\xEF\xBB\xBFpath,x\n\n  \na,1\r\n\r\nb,2\n\n", expected);
}

static void blanks_around_cells_go(void **state)
{
    (void)state;
    gives("filename, a b , c\nx.jpg, 1,\t0 \n", "[filename][a b][c]\n[x.jpg][1][0]");
    gives(" a\n", "[a]");
    gives("a,b,\n,,\n", "[a][b][]\n[][][]");
}

static void quotes_are_undone(void **state)
{
    (void)state;
    gives("a,b\n\"x, \"\"y\"\"\", \" z \" \n", "[a][b]\n[x, \"y\"][ z ]");
    gives("a,b\n\"two\nlines\",\"\"\n", "[a][b]\n[two\nlines][]");
    gives("\"a\"\n\"\"\"\"", "[a]\n[\"]");
    gives("a\n5\" disk\n", "[a]\n[5\" disk]");
    gives("a,b\r\n\"x\",\"y\"\r\n", "[a][b]\n[x][y]");
    gives("a\r\nb\rc\r\n", "[a]\n[b\rc]");
}

static void what_is_no_table_is_named(void **state)
{
    (void)state;
    fails("", 0, "t.csv: empty: there is no header line");
    fails(" \r\n\n", 4, "t.csv: empty: there is no header line");
    fails("a,b\n\n1,2\n1\n", 11, "t.csv: line 4: 1 cells, where the header has 2");
    fails("a,b\n\"1\n\",2\n1,2,3\n", 17, "t.csv: line 4: 3 cells, where the header has 2");
    fails("a\nb\n\"c\nd\n", 9, "t.csv: line 3: a quoted cell is never closed");
    fails("a\n\"b\"c\n", 7, "t.csv: line 2: text after a closing quote");
    fails("a\nb\0c\n", 6, "t.csv: line 2: contains a NUL byte, so it is not a text file");
    fails("a,b,a\n", 6, "t.csv: line 1: the header names the column \"a\" twice: rename or remove one of them");
}

static void columns_are_limited(void **state)
{
    (void)state;
    size_t len = 40000;
    char *text = malloc(len);
    memset(text, ',', len);
    fails(text, len, "t.csv: line 1: 40001 columns, more than 32768");
    free(text);
}

static void columns_are_found_by_name(void **state)
{
    (void)state;
    mr_csv csv = {0};
    mr_error err;
    assert_int_equal(parse("a,b", 3, &csv, &err), MR_OK);
    assert_int_equal(csv.rows, 0);
    assert_int_equal(mr_csv_column(&csv, "a"), 0);
    assert_int_equal(mr_csv_column(&csv, "b"), 1);
    assert_int_equal(mr_csv_column(&csv, "B"), -1);
    mr_csv_free(&csv);
    mr_csv_free(&csv); /* twice is harmless */
}

/* Writes a random cell as one of the forms that stand for it. */
static void put_cell(mr_random *r, mr_buf *out, const char *cell)
{
    bool plain = !strpbrk(cell, ",\"\r\n") && *cell && cell[0] != ' ' && cell[strlen(cell) - 1] != ' ';
    mr_buf_add_text(out, mr_random_below(r, 2) ? "" : " ");
    if (plain && mr_random_below(r, 2)) {
        mr_buf_add_text(out, cell);
    } else {
        mr_buf_add_text(out, "\"");
        for (; *cell; cell++)
            mr_buf_printf(out, *cell == '"' ? "\"\"" : "%c", *cell);
        mr_buf_add_text(out, "\"");
    }
    mr_buf_add_text(out, mr_random_below(r, 2) ? "" : "\t");
}

static void any_table_survives(void **state)
{
    (void)state;
    static const char letters[] = "ab ,\"\r\nz\xC3\xA9";
    mr_random r = support_random();
    for (int trial = 0; trial < 300; trial++) {
        size_t columns = 1 + mr_random_below(&r, 5), rows = mr_random_below(&r, 6);
        char cells[30][8] = {""};
        mr_buf text = {0};
        for (size_t c = 0; c < columns; c++)
            mr_buf_printf(&text, "%sh%zu", c ? "," : "", c);
        for (size_t i = 0; i < columns * rows; i++) {
            size_t len = mr_random_below(&r, 7);
            for (size_t k = 0; k < len; k++)
                cells[i][k] = letters[mr_random_below(&r, sizeof letters - 1)];
            mr_buf_add_text(&text, i % columns ? "," : mr_random_below(&r, 2) ? "\r\n" : "\n");
            put_cell(&r, &text, cells[i]);
        }
        mr_csv csv = {0};
        mr_error err;
        if (mr_csv_parse(&text, "t.csv", &csv, &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_int_equal(csv.rows, rows);
        for (size_t i = 0; i < columns * rows; i++)
            assert_string_equal(mr_csv_cell(&csv, i / columns, i % columns), cells[i]);
        mr_csv_free(&csv);
    }
}

/* Under ASan this finds reads and writes out of bounds; everywhere it finds a table that does not hold together. */
static void any_bytes_end_well(void **state)
{
    (void)state;
    static const char letters[] = "a,\"\"\r\n \t\0\xEF\xBB\xBF";
    mr_random r = support_random();
    for (int trial = 0; trial < 20000; trial++) {
        char text[24];
        size_t len = mr_random_below(&r, sizeof text);
        for (size_t i = 0; i < len; i++)
            text[i] = letters[mr_random_below(&r, trial % 8 ? 8 : sizeof letters - 1)];
        mr_csv csv = {0};
        mr_error err = {0};
        mr_status status = parse(text, len, &csv, &err);
        assert_true(status == MR_OK || (status == MR_BAD_DATA && !strncmp(err.text, "t.csv: ", 7)));
        if (status != MR_OK)
            continue;
        size_t total = 0;
        for (size_t row = 0; row < csv.rows; row++)
            for (size_t c = 0; c < csv.columns; c++)
                total += strlen(mr_csv_cell(&csv, row, c)) + 1;
        assert_true(csv.columns > 0 && total <= len + 1);
        mr_csv_free(&csv);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_ends_make_no_difference),
        cmocka_unit_test(blanks_around_cells_go),
        cmocka_unit_test(quotes_are_undone),
        cmocka_unit_test(what_is_no_table_is_named),
        cmocka_unit_test(columns_are_limited),
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(any_table_survives),
        cmocka_unit_test(any_bytes_end_well),
    };
    return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
