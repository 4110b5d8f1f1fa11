/* test_pieces.c - the split of texts into pieces; classes of characters; bytes that are not UTF-8.
 * Invariant tested: expected values were worked out from the pattern, or are examples of the Unicode standard. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/support/support.h"
#include "train/text/parts.h"

static void assert_pieces(const char *text, const char *expected)
{
    mr_classes classes;
    mr_buf out = {0};
    size_t len = strlen(text);
    mr_classes_fill(&classes);
    for (size_t at = 0, end; at < len; at = end) {
        end = mr_piece_end(&classes, text, len, at);
        assert_true(end > at && end <= len);
        mr_buf_add_text(&out, at ? "|" : "");
        mr_buf_add(&out, text + at, end - at);
    }
    assert_string_equal(mr_buf_text(&out), expected);
    mr_buf_free(&out);
}

static void test_pieces(void **state)
{
    (void)state;
    assert_pieces("Hello world", "Hello| world");
    assert_pieces("Hello  world ", "Hello| | world| ");
    assert_pieces("a\n\n  b\t\nc", "a|\n\n | b|\t|\n|c");
    assert_pieces("   ", "   ");
    assert_pieces("don't WE'LL they've I'm 'tis 'd'x", "don|'t| WE|'|LL| they|'ve| I|'m| '|tis| '|d|'|x");
    assert_pieces("x='re're'r'", "x|='|re|'re|'|r|'");
    assert_pieces("3.14 2nd  $5!?", "3|.|14| 2|nd| | $|5|!?");
    assert_pieces("caf\xC3\xA9 na\xC3\xAFve \xE6\x9D\xB1\xE4\xBA\xAC 2\xC2\xBD",
                  "caf\xC3\xA9| na\xC3\xAFve| \xE6\x9D\xB1\xE4\xBA\xAC| 2\xC2\xBD");
    assert_pieces("e\xCC\x81"
                  "a",
                  "e|\xCC\x81|a"); /* a mark is not a letter */
    assert_pieces("a\xC2\xA0"
                  "b",
                  "a|\xC2\xA0|b"); /* white space, but no blank */
    assert_pieces("a\xC2\xA0 b", "a|\xC2\xA0| b");
    assert_pieces("a \xC2\xA0"
                  "b",
                  "a| |\xC2\xA0|b");
    assert_pieces("a\xE1\xA0\x8E"
                  "b",
                  "a|\xE1\xA0\x8E|b"); /* U+180E is none since Unicode 6.3 */
    assert_pieces(" \xE1\xA0\x8E"
                  "b",
                  " \xE1\xA0\x8E|b");
    assert_pieces(" \x1F"
                  "b",
                  " \x1F|b");
    assert_pieces(" \xC2\x85"
                  "b",
                  " |\xC2\x85|b");
    assert_pieces(" \xF0\x9F\x98\x80\xF0\x9F\x98\x80 x", " \xF0\x9F\x98\x80\xF0\x9F\x98\x80| x");
}

/* As many as Unicode 16.0 has (DerivedGeneralCategory.txt and PropList.txt give the numbers), and no run has moved: the
 * hash is of the classes that the `tokenizers` package confirmed. */
static void test_classes(void **state)
{
    (void)state;
    size_t counts[4] = {0};
    uint8_t *classes = mr_alloc(0x110000, 1);
    assert_non_null(classes);
    for (uint32_t code = 0; code < 0x110000; code++) {
        classes[code] = mr_class_of(code);
        counts[classes[code] & MR_CLASS]++;
    }
    assert_int_equal(counts[MR_LETTER], 141028);
    assert_int_equal(counts[MR_NUMBER], 1911);
    assert_int_equal(counts[MR_SPACE], 25);
    assert_true(mr_hash64(classes, 0x110000) == 0xCBB05B00D6D84443u);
    free(classes);
}

/* Each maximal part is one U+FFFD; examples of the Unicode Standard 16.0, tables 3-8 to 3-11, and Python's answers. */
static void test_mending(void **state)
{
    static const struct {
        const char *text, *repaired; /* '?' stands for U+FFFD */
    } cases[] = {
        {"a\xFF", "a?"},
        {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "????????A"},
        {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "????????A"},
        {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "?????A??B"},
        {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "????A"},
        {"\xE6\x9D", "?"},
        {"\xF0\x9F\x98", "?"},
        {"\xF0\x9F\x98\x80\x80", "\xF0\x9F\x98\x80?"},
        {"\xC3", "?"},
        {"\xC3\xA9\xC3(", "\xC3\xA9?("},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        mr_buf wanted = {0}, got = {0};
        for (const char *p = cases[i].repaired; *p; p++)
            mr_buf_add(&wanted, *p == '?' ? "\xEF\xBF\xBD" : p, *p == '?' ? 3 : 1);
        mr_utf8_repair(cases[i].text, strlen(cases[i].text), &got);
        assert_string_equal(mr_buf_text(&got), mr_buf_text(&wanted));
        mr_buf_free(&got);
        mr_buf_free(&wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_mending),
    };
    return cmocka_run_group_tests_name("tokenizer_pieces", tests, NULL, NULL);
}
