/* test_lines.c - the lines of a text.
 * Invariant tested: however the lines of a file end, they are the same lines with the same numbers. */
#include <string.h>

#include "ingest/tables/lines.h"
#include "tests/support/support.h"

/* "1:a 3:b": number and text of each line. */
static const char *lines(const char *text, size_t len)
{
    static char out[256];
    size_t at = 0;
    *out = '\0';
    for (mr_lines l = mr_lines_of(text, len); mr_lines_next(&l);)
        at +=
            (size_t)snprintf(out + at, sizeof out - at, "%s%d:%.*s", at ? " " : "", (int)l.number, (int)l.len, l.line);
    return out;
}

#define LINES(TEXT) lines(TEXT, sizeof(TEXT) - 1)

static void test_ends(void **state)
{
    (void)state;
    assert_string_equal(LINES("a\nb\nc"), "1:a 2:b 3:c");
    assert_string_equal(LINES("a\r\nb\r\nc\r\n"), "1:a 2:b 3:c");
    assert_string_equal(LINES("a\rb\rc\r"), "1:a 2:b 3:c");
    assert_string_equal(LINES("a\n\rb"), "1:a 3:b");
}

static void test_blanks(void **state)
{
    (void)state;
    assert_string_equal(LINES(" a \n\t\n\n \tb c\t"), "1:a 4:b c");
    assert_string_equal(LINES("\r\n\r\na"), "3:a");
    assert_string_equal(LINES(""), "");
    assert_string_equal(LINES(" \n \t"), "");
    assert_string_equal(lines(NULL, 0), "");
}

static void test_marks(void **state)
{
    (void)state;
    assert_string_equal(LINES("\xEF\xBB\xBF"
                              "a\nb"),
                        "1:a 2:b");
    assert_string_equal(LINES("\xEF\xBB\xBF"), "");
    assert_string_equal(LINES("\xEF\xBB"), "1:\xEF\xBB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_blanks),
        cmocka_unit_test(test_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
