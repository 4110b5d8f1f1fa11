/* test_buf.c - the growing buffer.
 * Invariant tested: after a failed allocation nothing more is appended, and what was there before stays. */
#include <string.h>

#include "base/buf.h"
#include "tests/support/support.h"

static void test_pieces_are_appended(void **state)
{
    (void)state;
    mr_random random = support_random();
    uint8_t expected[4096];
    mr_buf buf = {0};
    size_t len = 0;
    for (unsigned i = 0; i < 100; i++) {
        uint8_t piece[40];
        size_t n = mr_random_below(&random, sizeof piece + 1);
        for (size_t k = 0; k < n; k++)
            piece[k] = (uint8_t)mr_random_below(&random, 256);
        mr_buf_add(&buf, piece, n);
        memcpy(expected + len, piece, n);
        len += n;
    }
    assert_int_equal(buf.len, len);
    assert_memory_equal(buf.data, expected, len);
    assert_int_equal(mr_buf_text(&buf)[len], '\0');
    mr_buf_free(&buf);
    assert_null(buf.data);
}

static void test_text_and_formats(void **state)
{
    (void)state;
    mr_buf buf = {0};
    assert_string_equal(mr_buf_text(&buf), "");
    mr_buf_add_text(&buf, "step ");
    mr_buf_printf(&buf, "%05d%s", 42, "");
    mr_buf_printf(&buf, "%s", "");
    assert_string_equal(mr_buf_text(&buf), "step 00042");
    mr_buf_clear(&buf);
    mr_buf_printf(&buf, "%1000d", 7);
    assert_int_equal(buf.len, 1000);
    assert_string_equal(mr_buf_text(&buf) + 998, " 7");
    mr_buf_free(&buf);
}

static void test_a_failure_stays_until_cleared(void **state)
{
    (void)state;
    mr_error err;
    mr_buf buf = {0};
    mr_buf_add_text(&buf, "kept");
    assert_false(mr_buf_reserve(&buf, SIZE_MAX)); /* the sum overflows */
    assert_false(mr_buf_reserve(&buf, 1));        /* it has failed */
    mr_buf_add_text(&buf, "lost");
    mr_buf_printf(&buf, "%s", "lost");
    assert_int_equal(buf.len, 4);
    assert_memory_equal(buf.data, "kept", 4);
    assert_string_equal(mr_buf_text(&buf), "");
    assert_int_equal(mr_buf_status(&buf, &err, "a report"), MR_SYSTEM);
    assert_non_null(strstr(err.text, "a report"));
    mr_buf_clear(&buf);
    mr_buf_add_text(&buf, "again");
    assert_string_equal(mr_buf_text(&buf), "again");
    assert_int_equal(mr_buf_status(&buf, &err, "a report"), MR_OK);
    mr_buf_free(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_appended),
        cmocka_unit_test(test_text_and_formats),
        cmocka_unit_test(test_a_failure_stays_until_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
