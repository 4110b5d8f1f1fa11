/* test_base64.c - the examples of RFC 4648, section 10, and every byte, both ways.
 * Invariant tested: a text is read only if it is the one that its bytes are written as. */
#include <string.h>

#include "base/base64.h"
#include "tests/support/support.h"

static void assert_base64(const char *bytes, size_t len, const char *expected)
{
    mr_buf out = {0};
    mr_buf_add_text(&out, "<");
    mr_base64_add(&out, bytes, len);
    mr_buf_add_text(&out, ">");
    assert_int_equal(out.len, strlen(expected) + 2);
    assert_memory_equal(out.data + 1, expected, strlen(expected));
    mr_buf read = {0};
    mr_buf_add_text(&read, "<");
    assert_true(mr_base64_read(expected, strlen(expected), &read));
    assert_int_equal(read.len, len + 1);
    assert_memory_equal(read.data + 1, bytes, len);
    mr_buf_free(&read);
    mr_buf_free(&out);
}

static void test_examples(void **state)
{
    (void)state;
    static const char *const expected[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (size_t len = 0; len < MR_COUNT(expected); len++)
        assert_base64("foobar", len, expected[len]);
    assert_base64("\xFB\xFF\xBF", 3, "+/+/");
    assert_base64("\0\0\0", 3, "AAAA");
}

static void test_every_length(void **state)
{
    (void)state;
    mr_random r = support_random();
    for (size_t len = 0; len < 200; len++) {
        char bytes[200];
        mr_buf text = {0}, read = {0};
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)mr_random_u64(&r);
        mr_base64_add(&text, bytes, len);
        assert_true(mr_base64_read((const char *)text.data, text.len, &read));
        assert_int_equal(read.len, len);
        if (len)
            assert_memory_equal(read.data, bytes, len);
        mr_buf_free(&text);
        mr_buf_free(&read);
    }
}

static void test_other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"A",    "Zg",   "Zg=",       "Zg==Zg==", "Z===", "====", "Zh==",
                                        "Zm9=", "Zm9 ", "Zm9v\nZg=", "Zm-v",     "Zm_v", "Z=m9", "=m9v"};
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        mr_buf out = {0};
        assert_false(mr_base64_read(wrong[i], strlen(wrong[i]), &out));
        mr_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples), cmocka_unit_test(test_every_length),
                                       cmocka_unit_test(test_other_texts_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
