/* test_text.c - path text, UTF-8 and the sentences of failures.
 * Invariant tested: whatever bytes a stranger gives, what is printed is one line of UTF-8 without control characters,
 * and path text gives the very bytes back.
 * Covers base/utf8.c. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/json/json.h"
#include "tests/support/support.h"

static void test_sentences_are_printable(void **state)
{
    (void)state;
    mr_error err;
    assert_int_equal(mr_fail(&err, MR_BAD_DATA,
                             "a\nb\x1b[31m caf\xC3\xA9 \xFF \xC2\x9B"
                             "2J \x7f \\n \xE2\x80\xAE"
                             "a\xE2\x81\xA6"),
                     MR_BAD_DATA);
    assert_string_equal(err.text,
                        "a\\x0Ab\\x1B[31m caf\xC3\xA9 \\xFF \\xC2\\x9B2J \\x7F \\n \\xE2\\x80\\xAEa\\xE2\\x81\\xA6");
    mr_fail_errno(&err, ENOENT, "%s", "a\tb");
    assert_string_equal(err.text, "a\\x09b: No such file or directory");
    mr_fail(&err, MR_BAD_DATA, "outer: %s", err.text);
    assert_string_equal(err.text, "outer: a\\x09b: No such file or directory");
}

/* A sentence that is too long is cut between characters. */
static void test_long_sentences(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        char text[2000];
        mr_error err;
        memset(text, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof text; i += 3)
            memcpy(text + i, "\xE2\x82\xAC", 4);
        mr_fail(&err, MR_BAD_DATA, "%s", text);
        size_t len = strlen(err.text);
        assert_in_range(len, 900, sizeof err.text - 1);
        assert_true(mr_utf8_valid(err.text, len));
        mr_fail(&err, MR_BAD_DATA, "%s: what is wrong", text); /* is not what is cut off */
        len = strlen(err.text);
        assert_true(len > 900 && mr_utf8_valid(err.text, len));
        assert_string_equal(err.text + len - 15, ": what is wrong");
        assert_non_null(strstr(err.text, " ... "));
        memset(text, '\n', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        mr_fail(&err, MR_BAD_DATA, "%s", text);
        assert_null(strchr(err.text, '\n'));
        assert_in_range(strlen(err.text), 900, sizeof err.text - 1);
    }
}

static void test_path_text(void **state)
{
    (void)state;
    mr_random r = support_random();
    for (int i = 0; i < 2000; i++) {
        char bytes[24];
        mr_buf text = {0}, back = {0};
        size_t len = mr_random_below(&r, sizeof bytes + 1);
        mr_random_bytes(&r, bytes, len);
        mr_text_escape(&text, bytes, len);
        assert_true(mr_utf8_valid(mr_buf_text(&text), text.len));
        assert_true(mr_text_unescape(&back, mr_buf_text(&text), text.len));
        assert_int_equal(back.len, len);
        assert_true(len == 0 || memcmp(back.data, bytes, len) == 0);
        mr_buf_free(&text);
        mr_buf_free(&back);
    }
}

/* No bytes are a path text too, and no lack of memory. */
static void test_empty_path(void **state)
{
    (void)state;
    mr_buf quoted = {0};
    json_t *value = mr_json_path("", 0);
    assert_non_null(value);
    assert_string_equal(json_string_value(value), "");
    json_decref(value);
    mr_json_add_path(&quoted, "", 0);
    assert_string_equal(mr_buf_text(&quoted), "\"\"");
    mr_buf_free(&quoted);
}

static void test_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xC3",
                                      "\xC0\x80",
                                      "\xE0\x80\x80",
                                      "\xED\xA0\x80",
                                      "\xF0\x80\x80\x80",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFE",
                                      "\xE2\x82"};
    static const char *const good[] = {"", "a", "\xC3\xA9", "\xE2\x82\xAC", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"};
    for (size_t at = 0; at <= 17; at++) { /* after and within the steps of eight bytes */
        char text[32];
        memset(text, 'x', sizeof text);
        for (size_t i = 0; i < MR_COUNT(bad); i++) {
            strcpy(text + at, bad[i]);
            assert_false(mr_utf8_valid(text, at + strlen(bad[i])));
            text[at + strlen(bad[i])] = 'x';
            assert_false(mr_utf8_valid(text, sizeof text));
        }
        for (size_t i = 0; i < MR_COUNT(good); i++) {
            strcpy(text + at, good[i]);
            assert_true(mr_utf8_valid(text, at + strlen(good[i])));
        }
    }
    assert_int_equal(mr_utf8_cut("ab", 2), 0);
    assert_int_equal(mr_utf8_cut("a\xC3\xA9", 3), 0);
    assert_int_equal(mr_utf8_cut("a\xC3", 2), 1);
    assert_int_equal(mr_utf8_cut("a\xE2\x82", 3), 2);
    assert_int_equal(mr_utf8_mark("\xEF\xBB\xBF", 3), 3);
    assert_int_equal(mr_utf8_mark("\xEF\xBB", 2), 0);
    assert_int_equal(mr_utf8_mark("abc", 3), 0);
    assert_int_equal(mr_utf8_cut("a\xF0\x9F\x98", 4), 3);
    assert_int_equal(mr_utf8_cut("\xF0\x9F\x98\x80", 4), 0);
    assert_int_equal(mr_utf8_cut("", 0), 0);
}

static void test_trim(void **state)
{
    static const struct {
        const char *text, *blanks, *trimmed;
    } cases[] = {{" a b\t", " \t", "a b"}, {"a", " ", "a"},      {" \t ", " \t", ""}, {"", " ", ""},
                 {",a,", " \t,", "a"},     {"\na", " \t", "\na"}};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        const char *text = cases[i].text;
        size_t len = strlen(text), wanted = strlen(cases[i].trimmed);
        mr_text_trim(&text, &len, cases[i].blanks);
        assert_int_equal(len, wanted);
        assert_memory_equal(text, cases[i].trimmed, wanted);
    }
    const char *nul = "\0 ";
    size_t len = 2;
    mr_text_trim(&nul, &len, " ");
    assert_int_equal(len, 1); /* a NUL is not a blank */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences_are_printable),
        cmocka_unit_test(test_long_sentences),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_path_text),
        cmocka_unit_test(test_empty_path),
        cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
