/* test_json_lay_out.c - JSON pretty-printed without parsing it into values.
 * Invariant tested: values stay as written, and any bytes are safe. */
#include <stdlib.h>
#include <string.h>

#include "shards/manifest/json_lay_out.h"
#include "tests/support/support.h"

static char *laid_out(const char *json, size_t len, unsigned depth)
{
    mr_buf out = {0};
    char *copy = malloc(len ? len : 1); /* exactly its length, for the sanitizer */
    assert_non_null(copy);
    memcpy(copy, json, len);
    mr_json_lay_out(&out, copy, len, depth);
    assert_false(out.failed);
    char *text = strdup(mr_buf_text(&out));
    mr_buf_free(&out);
    free(copy);
    return text;
}

static void expect(const char *json, unsigned depth, const char *expected)
{
    char *text = laid_out(json, strlen(json), depth);
    assert_string_equal(text, expected);
    free(text);
}

static void a_member_per_line(void **state)
{
    (void)state;
    expect("{\"a\":[1, 2.50],\"b\":{},\"c\":{\"d\":[\"e\"]}}", 0,
           "{\n  \"a\": [1, 2.50],\n  \"b\": {},\n  \"c\": {\n    \"d\": [\n      \"e\"\n    ]\n  }\n}");
    expect("{\"a\":1}", 1, "{\n    \"a\": 1\n  }");
}

static void values_stay_as_written(void **state)
{
    (void)state;
    expect("123456789012345678901234567890", 0, "123456789012345678901234567890");
    expect("\"x \\\" \\\\\"", 0, "\"x \\\" \\\\\"");
    expect("\"a\x7F\"", 0, "\"a\\u007f\"");
}

static void any_prefix_is_safe(void **state)
{
    static const char json[] = "{\"a\\\"\":[1,[2]],\"b\":[\"\\\\\"],\"c\":{\"d\":null}}";
    (void)state;
    for (size_t len = 0; len < sizeof json; len++)
        free(laid_out(json, len, 0));
    expect("]]]}}}", 0, "]]]}}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_per_line),
        cmocka_unit_test(values_stay_as_written),
        cmocka_unit_test(any_prefix_is_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
