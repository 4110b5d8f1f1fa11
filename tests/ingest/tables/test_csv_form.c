/* test_csv_form.c - tables of any origin: marks, delimiters, line ends, rows of different lengths, no header.
 * Covers tables/csv_form.c and mr_csv_parse_any().  Invariant tested: a cell is never changed or moved to another
 * column. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "ingest/tables/csv_form.h"
#include "ingest/tables/csv.h"

/* The delimiter, cells in brackets, rows on lines of their own, "!line=cells" after odd ones. */
static void gives(const char *bytes, const char *expected)
{
    mr_csv csv = {0};
    mr_error err;
    mr_buf text = {0}, out = {0};
    char delimiter = 0;
    mr_buf_add_text(&text, bytes);
    assert_int_equal(mr_csv_prepare(&text, "t.csv", &delimiter, &err), MR_OK);
    if (mr_csv_parse_any(&text, "t.csv", delimiter, &csv, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_buf_printf(&out, "%c", delimiter);
    for (size_t i = 0; i < (csv.rows + 1) * csv.columns; i++) {
        const mr_csv_odd *odd = i >= csv.columns ? mr_csv_odd_row(&csv, i / csv.columns - 1) : NULL;
        mr_buf_printf(&out, "%s[%s]", i % csv.columns ? "" : "\n", csv.cells[i]);
        if (odd && i % csv.columns == csv.columns - 1)
            mr_buf_printf(&out, "!%zu=%zu", odd->line, odd->cells);
    }
    assert_string_equal(mr_buf_text(&out), expected);
    mr_buf_free(&out);
    mr_buf_free(&text);
    mr_csv_free(&csv);
}

static void delimiters_are_found(void **state)
{
    (void)state;
    gives("a,b\n1;2,3\n", ",\n[a][b]\n[1;2][3]");
    gives("a;b\n1,5;3\n", ";\n[a][b]\n[1,5][3]");
    gives("a\tb\n1,2;3\t4\n", "\t\n[a][b]\n[1,2;3][4]");
    gives("a| b\n1| x, y\n2| z\n", "|\n[a][b]\n[1][x, y]\n[2][z]");
    gives("a,b\n\"1;2;3\",4\n", ",\n[a][b]\n[1;2;3][4]");
    gives("a;b,c\n1;2\n3;4\n", ";\n[a][b,c]\n[1][2]\n[3][4]");
    gives("a\nb\n", ",\n[a]\n[b]");
}

static void marks_and_line_ends_go(void **state)
{
    (void)state;
    gives("\xEF\xBB\xBFsep=;\r\na;b\r\n1;2\r\n", ";\n[a][b]\n[1][2]");
    gives("sep=|\na|b\n1|2,3", "|\n[a][b]\n[1][2,3]");
    gives("SEP=,\n\na,b;c\n1,2", ",\n[a][b;c]\n[1][2]");
    gives("a,b\r1,2\r3,4\r", ",\n[a][b]\n[1][2]\n[3][4]");
    mr_buf text = {0};
    mr_error err = {0};
    char delimiter;
    mr_buf_add(&text,
               "\xFF\xFE"
               "a\0",
               4);
    assert_int_equal(mr_csv_prepare(&text, "t.csv", &delimiter, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "t.csv: the text is UTF-16"));
    mr_buf_free(&text);
}

static void rows_of_other_lengths_are_listed(void **state)
{
    (void)state;
    gives("a,b\n1\n1,2,3\n1,2,,\n1,2\n", ",\n[a][b]\n[1][]!2=1\n[1][2]!3=3\n[1][2]\n[1][2]");
    gives("a,b,\n1,2\n1\n", ",\n[a][b][]\n[1][2][]\n[1][][]!3=1");
}

/* A wide header and many short rows would need memory far beyond the file's size. */
static void cells_that_are_added_are_limited(void **state)
{
    (void)state;
    mr_buf text = {0};
    mr_csv csv = {0};
    mr_error err = {0};
    for (int i = 0; i < 9999; i++)
        mr_buf_add_text(&text, "a,");
    mr_buf_add_text(&text, "a\n");
    for (int i = 0; i < 9999; i++)
        mr_buf_add_text(&text, "b\n");
    assert_int_equal(mr_csv_parse_any(&text, "t.csv", ',', &csv, &err), MR_BAD_DATA);
    assert_string_equal(err.text, "t.csv: line 6: 1 cells, where the header has 10000");
}

static void a_header_is_added(void **state)
{
    static const char *const names[] = {"x", "y"};
    (void)state;
    for (int named = 0; named < 2; named++) {
        mr_csv csv = {0};
        mr_error err;
        mr_buf text = {0};
        mr_buf_add_text(&text, "1,2\n3\n");
        assert_int_equal(mr_csv_parse_any(&text, "t.csv", ',', &csv, &err), MR_OK);
        assert_int_equal(mr_csv_without_header(&csv, named ? names : NULL, &err), MR_OK);
        assert_string_equal(csv.header[1], named ? "y" : "column 2");
        assert_int_equal(csv.rows, 2);
        assert_string_equal(mr_csv_cell(&csv, 0, 1), "2");
        assert_string_equal(mr_csv_cell(&csv, 1, 0), "3");
        assert_null(mr_csv_odd_row(&csv, 0));
        assert_int_equal(mr_csv_odd_row(&csv, 1)->line, 2);
        mr_csv_free(&csv);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delimiters_are_found),
        cmocka_unit_test(marks_and_line_ends_go),
        cmocka_unit_test(rows_of_other_lengths_are_listed),
        cmocka_unit_test(cells_that_are_added_are_limited),
        cmocka_unit_test(a_header_is_added),
    };
    return cmocka_run_group_tests_name("csv form", tests, NULL, NULL);
}
