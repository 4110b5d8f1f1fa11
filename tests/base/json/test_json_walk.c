/* test_json_walk.c - walks through documents beside jansson's tree of them.
 * Covers base/json/json_walk.c.
 * Invariant tested: every member, item and text is the tree's, however the document is written; one that is cut short
 * ends in a failure, without a byte read past its end. */
#include <jansson.h>
#include <string.h>

#include "base/json/json_walk.h"
#include "base/random.h"
#include "tests/support/support.h"

static size_t below(mr_random *r, size_t n)
{
    return (size_t)mr_random_below(r, n);
}

static json_t *any_text(mr_random *r)
{
    static const char *const parts[] = {"a", "\"", "\\", "\n", "/", "é", "漢", "😀", "]", "}", ",", " ", "\x01", "\\\""};
    char text[64] = "";
    for (size_t n = below(r, 8); n--;)
        strcat(text, parts[below(r, MR_COUNT(parts))]);
    return json_string(text);
}

static json_t *any_value(mr_random *r, unsigned depth)
{
    json_t *out;
    switch (below(r, depth ? 7 : 5)) {
    case 0:
        return any_text(r);
    case 1:
        return json_integer((json_int_t)below(r, 2000) - 1000);
    case 2:
        return json_real((double)below(r, 1000) / 8 - 60);
    case 3:
        return json_boolean(below(r, 2));
    case 4:
        return json_null();
    case 5:
        out = json_array();
        for (size_t n = below(r, 5); n--;)
            json_array_append_new(out, any_value(r, depth - 1));
        return out;
    default:
        out = json_object();
        for (size_t n = below(r, 5); n--;) {
            json_t *key = any_text(r);
            json_object_set_new(out, json_string_value(key), any_value(r, depth - 1));
            json_decref(key);
        }
        return out;
    }
}

static void same_text(mr_json_span span, const char *text)
{
    mr_buf decoded = {0};
    assert_true(mr_json_is_text(span));
    assert_true(mr_json_decode(span, &decoded));
    assert_string_equal(mr_buf_text(&decoded), text);
    assert_true(mr_json_equals(span, text));
    mr_buf_add(&decoded, "x", 1);
    assert_false(mr_json_equals(span, mr_buf_text(&decoded)));
    mr_buf_free(&decoded);
}

static void same(mr_json_span span, json_t *tree)
{
    if (json_is_string(tree)) {
        same_text(span, json_string_value(tree));
        return;
    }
    if (!json_is_object(tree) && !json_is_array(tree)) {
        char *text = json_dumps(tree, JSON_ENCODE_ANY);
        assert_int_equal(span.end - span.at, strlen(text));
        assert_memory_equal(span.at, text, strlen(text));
        free(text);
        return;
    }
    mr_json_walk walk = mr_json_walk_of(span);
    mr_json_span key, value;
    size_t found = 0;
    int more;
    for (; (more = mr_json_next(&walk, &key, &value)) == 1; found++) {
        if (json_is_array(tree)) {
            same(value, json_array_get(tree, found));
            continue;
        }
        mr_buf name = {0};
        assert_true(mr_json_decode(key, &name));
        json_t *member = json_object_get(tree, mr_buf_text(&name));
        assert_non_null(member);
        same_text(key, mr_buf_text(&name));
        same(value, member);
        mr_buf_free(&name);
    }
    assert_int_equal(more, 0);
    assert_ptr_equal(walk.at, span.end);
    assert_int_equal(found, json_is_array(tree) ? json_array_size(tree) : json_object_size(tree));
}

static void a_walk_finds_what_the_tree_has(void **state)
{
    static const size_t styles[] = {0, JSON_COMPACT, JSON_INDENT(3), JSON_ENSURE_ASCII, JSON_ESCAPE_SLASH};
    mr_random r = support_random();
    (void)state;
    for (int i = 0; i < 2000; i++) {
        json_t *tree = any_value(&r, 4);
        char *text = json_dumps(tree, JSON_ENCODE_ANY | styles[below(&r, MR_COUNT(styles))]);
        size_t len = strlen(text);
        char *exact = malloc(len); /* without the NUL, so that a sanitizer sees one byte too far */
        memcpy(exact, text, len);
        assert_ptr_equal(mr_json_skip(exact, exact + len), exact + len);
        same((mr_json_span){exact, exact + len}, tree);
        free(exact);
        free(text);
        json_decref(tree);
    }
}

static bool ends(mr_json_span span)
{
    mr_json_walk walk = mr_json_walk_of(span);
    mr_json_span key, value;
    int more;
    while ((more = mr_json_next(&walk, &key, &value)) == 1)
        if ((*value.at == '{' || *value.at == '[') && !ends(value))
            return false;
    return more == 0;
}

static void what_is_cut_short_is_a_failure(void **state)
{
    mr_random r = support_random();
    (void)state;
    for (int i = 0; i < 300; i++) {
        json_t *tree = json_pack("{s:o,s:o}", "a", any_value(&r, 3), "b", any_value(&r, 3));
        char *text = json_dumps(tree, i % 2 ? JSON_ENSURE_ASCII : JSON_COMPACT);
        for (size_t len = 1; len < strlen(text); len++) {
            char *cut = malloc(len);
            memcpy(cut, text, len);
            assert_null(mr_json_skip(cut, cut + len));
            assert_false(ends((mr_json_span){cut, cut + len}));
            free(cut);
        }
        free(text);
        json_decref(tree);
    }
}

static void expect_text(const char *written, const char *text)
{
    mr_json_span span = {written, written + strlen(written)};
    mr_buf out = {0};
    assert_int_equal(mr_json_decode(span, &out), text != NULL);
    if (text)
        assert_string_equal(mr_buf_text(&out), text);
    mr_buf_free(&out);
}

static void escapes_are_those_of_json(void **state)
{
    (void)state;
    expect_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t");
    expect_text("\"\\u00e9\\u6F22\\ud83d\\ude00\"", "é漢😀");
    expect_text("\"\\ud83d\"", "\xEF\xBF\xBD"); /* half of a pair */
    expect_text("\"\\ude00x\"", "\xEF\xBF\xBD"
                                "x"); /* the other half */
    expect_text("\"\\ud83d\\ud83d\\ude00\"", "\xEF\xBF\xBD😀");
    expect_text("\"\\ud83d\\u0041\"", "\xEF\xBF\xBD"
                                      "A");
    expect_text("\"\\x41\"", NULL);
    expect_text("\"\\u12g4\"", NULL);
    expect_text("\"\\u123\"", NULL);
}

static void what_is_no_object_ends_in_a_failure(void **state)
{
    static const char *const bad[] = {"{\"a\" 1}", "{\"a\":}", "{a:1}", "{\"a\":1 \"b\":2}", "{\"a\":1,}",
                                      "[1 2]",     "[,1]",     "[1,]",  "{\"a\":1]",         "[1}"};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(bad); i++)
        if (ends((mr_json_span){bad[i], bad[i] + strlen(bad[i])}))
            fail_msg("%s is walked through", bad[i]);
}

static void a_member_is_found_by_its_name(void **state)
{
    static const struct {
        const char *object, *value; /* NULL: what is found is `found` alone */
        int found;
    } cases[] = {
        {"{\"b\":[1],\"a\": 2}", "2}", 1},
        {"{\"\\u0061\":3}", "3}", 1},
        {"{\"a\":", "", 1},
        {"{\"a\":4,", "4,", 1},
        {"{}", NULL, 0},
        {"{\"b\":{\"a\":1}}", NULL, 0},
        {"[\"a\"]", NULL, -1},
        {"", NULL, -1},
        {"{\"b\":[1,\"a\":2}", NULL, -1},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        const char *object = cases[i].object, *value;
        int found = mr_json_member(object, object + strlen(object), "a", &value);
        if (found != cases[i].found || (cases[i].value && strcmp(value, cases[i].value) != 0))
            fail_msg("%s: %d, at %s", object, found, found == 1 ? value : "-");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_finds_what_the_tree_has), cmocka_unit_test(what_is_cut_short_is_a_failure),
        cmocka_unit_test(escapes_are_those_of_json),      cmocka_unit_test(what_is_no_object_ends_in_a_failure),
        cmocka_unit_test(a_member_is_found_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
