/* test_meta.c - a sample's meta: what is millrace's own at depth one, and what is the source's deeper down.
 * Invariant tested: nothing a source can put into its own members changes a fact. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "shards/format/meta.h"
#include "tests/support/support.h"

static mr_status scan(const char *json, mr_meta_facts *facts, mr_buf *source, mr_error *err)
{
    size_t len = strlen(json);
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, json, len);
    mr_status status = mr_meta_scan(copy, len, facts, source, err);
    free(copy);
    return status;
}

static void test_facts(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        mr_meta_facts facts;
    } trials[] = {
        {"{}", {.label = -1, .highest = -1}},
        {" {\"source\":\"a\"}\n", {.label = -1, .highest = -1}},
        {"{\"source\":\"a\",\"label\":0,\"class\":\"x\"}", {.label = 0, .has_class = true}},
        {"{\"label\":2147483647}", {.label = INT32_MAX, .highest = INT32_MAX}},
        {"{\"labels\":[]}", {.label = -1, .highest = -1, .multi_label = true}},
        {"{\"labels\":[0,9,4]}", {.label = -1, .highest = 9, .multi_label = true}},
        {"{\"unannotated\":true}", {.label = -1, .highest = -1, .unannotated = true}},
        {"{\"unannotated\":false}", {.label = -1, .highest = -1}},
        {"{\"image_of\":9223372036854775807}",
         {.label = -1, .highest = -1, .has_image_of = true, .image_of = INT64_MAX}},
        {"{\"columns\":{\"label\":3,\"labels\":[1],\"image_of\":4,\"unannotated\":true,\"source\":5},\"label\":1}",
         {.label = 1, .highest = 1}},
        {"{\"annotations\":[{\"label\":3},[\"image_of\"],\"source\",null,1e999,-0.5,123456789012345678901234567890]}",
         {.label = -1, .highest = -1}},
        {"{\"\":1,\"label \":2,\"Label\":3,\"labe\":4}", {.label = -1, .highest = -1}},
        {"{\"l\\u0061bel\":5}", {.label = 5, .highest = 5}},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        mr_meta_facts facts;
        const mr_meta_facts *want = &trials[i].facts;
        mr_error err;
        if (scan(trials[i].json, &facts, NULL, &err) != MR_OK)
            fail_msg("%s: %s", trials[i].json, err.text);
        if (facts.label != want->label || facts.multi_label != want->multi_label ||
            facts.unannotated != want->unannotated || facts.has_image_of != want->has_image_of ||
            facts.image_of != want->image_of || facts.highest != want->highest || facts.has_class != want->has_class)
            fail_msg("%s: other facts", trials[i].json);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const trials[] = {
        "",
        " ",
        "{",
        "[]",
        "1",
        "null",
        "true",
        "\"a\"",
        "{}{}",
        "{} x",
        "{\"a\":}",
        "{\"a\":1,}",
        "{'a':1}",
        "nan",
        "{\"label\":-1}",
        "{\"label\":1.0}",
        "{\"label\":1e0}",
        "{\"label\":2147483648}",
        "{\"label\":\"1\"}",
        "{\"label\":null}",
        "{\"label\":true}",
        "{\"label\":[1]}",
        "{\"label\":{}}",
        "{\"label\":99999999999999999999}",
        "{\"labels\":3}",
        "{\"labels\":{}}",
        "{\"labels\":[\"1\"]}",
        "{\"labels\":[[1]]}",
        "{\"labels\":[-1]}",
        "{\"labels\":[{}]}",
        "{\"labels\":[null]}",
        "{\"labels\":null}",
        "{\"labels\":[1],\"label\":1}",
        "{\"image_of\":-1}",
        "{\"image_of\":\"3\"}",
        "{\"image_of\":9223372036854775808}",
        "{\"image_of\":{}}",
        "{\"unannotated\":1}",
        "{\"unannotated\":[]}",
        "{\"source\":1}",
        "{\"source\":null}",
        "{\"source\":[]}",
        "{\"source\":true}",
        "{\"class\":7}",
        "{\"class\":{}}",
        "{\"label\":1,\"label\":1}",
        "{\"source\":\"a\",\"source\":\"a\"}",
        "{\"label\":1,\"lab\\u0065l\":2}",
        "{\"a\":\"\xff\"}",
        "{\"a\":\"\x01\"}",
        /* yajl takes these: a token cut off after the object, characters that are not blanks, invalid UTF-8 */
        "{} \"b",
        "{} t",
        "{} 1",
        "{} \"}",
        "{\f\"a\":1}",
        "{}\v",
        "{\"a\":\"\xC0\x80\"}",
        "{\"a\":\"\xED\xA0\x80\"}",
        "{\"\xF5\x80\x80\x80\":1}",
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        mr_meta_facts facts = {.label = 77};
        mr_error err;
        if (scan(trials[i], &facts, NULL, &err) != MR_BAD_DATA || strncmp(err.text, "meta: ", 6) != 0 ||
            strchr(err.text, '\n'))
            fail_msg("%s was taken, or \"%s\"", trials[i], err.text);
        assert_int_equal(facts.label, 77);
    }
}

static void test_depth(void **state)
{
    (void)state;
    mr_error err;
    for (size_t depth = 999; depth <= 5000; depth = depth == 999 ? 1000 : depth + 4000) {
        mr_meta_facts facts;
        mr_buf text = {0};
        mr_buf_add_text(&text, "{\"a\":");
        for (size_t i = 0; i < depth; i++)
            mr_buf_add_text(&text, "[");
        for (size_t i = 0; i < depth; i++)
            mr_buf_add_text(&text, "]");
        mr_buf_add_text(&text, "}");
        assert_int_equal(scan(mr_buf_text(&text), &facts, NULL, &err), depth == 999 ? MR_OK : MR_BAD_DATA);
        mr_buf_free(&text);
    }
    assert_non_null(strstr(err.text, "1000 deep"));
}

/* Every byte that a file name can hold comes back as it was. */
static void test_begin_and_back(void **state)
{
    (void)state;
    mr_random r = support_random();
    for (int trial = 0; trial < 500; trial++) {
        char path[40];
        size_t len = 1 + mr_random_below(&r, sizeof path - 1);
        mr_random_bytes(&r, path, len);
        mr_meta_facts facts = {.label = trial % 3 - 1,
                               .unannotated = trial % 5 == 0,
                               .has_image_of = trial % 7 == 0,
                               .image_of = (uint64_t)trial},
                      back;
        mr_buf json = {0}, source = {0}, bytes = {0};
        mr_error err;
        mr_meta_begin(&json, path, len, &facts, facts.label >= 0 ? "a \"class\"\\\n" : NULL);
        mr_buf_add_text(&json, ",\"columns\":{\"label\":9}}");
        if (scan(mr_buf_text(&json), &back, &source, &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_true(back.label == facts.label && back.unannotated == facts.unannotated &&
                    back.has_image_of == facts.has_image_of && (!back.has_image_of || back.image_of == facts.image_of));
        assert_true(mr_text_unescape(&bytes, mr_buf_text(&source), source.len));
        assert_int_equal(bytes.len, len);
        assert_memory_equal(bytes.data, path, len);
        mr_buf_free(&json);
        mr_buf_free(&source);
        mr_buf_free(&bytes);
    }
    mr_buf json = {0};
    mr_meta_begin(&json, "n01/a.JPEG", 10, &(mr_meta_facts){.label = 3, .has_image_of = true, .image_of = 17}, "n01");
    assert_string_equal(mr_buf_text(&json), "{\"source\":\"n01/a.JPEG\",\"label\":3,\"class\":\"n01\",\"image_of\":17");
    mr_buf_free(&json);
}

static void test_damage(void **state)
{
    (void)state;
    static const char good[] =
        "{\"source\":\"a\\u00e9/\\\\x00.png\",\"label\":3,\"class\":\"n01\",\"annotations\":"
        "[{\"bbox\":[1.5,2,3e1,-4],\"rle\":\"ab\\n\",\"crowd\":true,\"x\":null}],\"image_of\":2}";
    mr_random r = support_random();
    size_t bad = 0;
    for (int trial = 0; trial < 5000; trial++) {
        char text[sizeof good];
        mr_buf source = {0};
        mr_meta_facts facts = {.label = 0};
        memcpy(text, good, sizeof good);
        for (uint64_t i = 0; i <= mr_random_below(&r, 3); i++)
            text[mr_random_below(&r, sizeof good - 1)] = (char)mr_random_below(&r, 256);
        bad += scan(text, &facts, &source, NULL) != MR_OK;
        assert_true(facts.label >= -1);
        mr_buf_free(&source);
    }
    assert_true(bad > 1000 && bad < 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),          cmocka_unit_test(test_refusals), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_begin_and_back), cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
