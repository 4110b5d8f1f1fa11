/* test_json_repair.c - values that are not JSON in a file that otherwise is.
 * Covers tables/json_file.c.
 * Invariant tested: a text keeps its length, a word is found wherever a chunk ends, and strings keep what looks like
 * one. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "tests/support/json.h"
#include "ingest/tables/json_repair.h"

static void expect(const char *text, const char *repaired, size_t flaws)
{
    MR_AUTO(mr_json_repair_free) mr_json_repair r = {0};
    char *copy = strdup(text);
    assert_non_null(copy);
    mr_json_repair_bytes(&r, copy, strlen(copy), 100);
    assert_string_equal(copy, repaired);
    assert_int_equal(r.count, flaws);
    for (size_t i = 0; i < flaws; i++)
        assert_true(r.flaws[i].at >= 100 && copy[r.flaws[i].at - 100] != text[r.flaws[i].at - 100]);
    free(copy);
}

static void test_words(void **state)
{
    (void)state;
    expect("[1,NaN,2]", "[1,\"N\",2]", 1);
    expect("[nan,-NaN]", "[\"n\",\"-N\"]", 2);
    expect("[Infinity,-Infinity]", "[\"Infini\",\"-Infini\"]", 2);
    expect("{\"NaN\":\"a NaN\",\"b\\\"NaN\":1}", "{\"NaN\":\"a NaN\",\"b\\\"NaN\":1}", 0);
    expect("{\"a\\\\\":NaN}", "{\"a\\\\\":\"N\"}", 1);
    expect("[null,true,Nan]", "[null,true,Nan]", 0);
    expect("[\"caf\xE9\",\"\xC3\xA9\",\"\xE2\x82\"]", "[\"caf?\",\"\xC3\xA9\",\"??\"]", 3);
}

static void test_places(void **state)
{
    (void)state;
    MR_AUTO(mr_json_repair_free) mr_json_repair r = {0};
    char text[] = "[NaN,\"\xFF\",NaN]";
    size_t next = 0;
    mr_json_repair_bytes(&r, text, strlen(text), 0);
    assert_int_equal(r.count, 3);
    assert_null(mr_json_repair_find(&r, &next, 0, 1));
    assert_int_equal(mr_json_repair_find(&r, &next, 0, 5)->at, 1);
    assert_true(mr_json_repair_find(&r, &next, 2, 8)->text);
    assert_null(mr_json_repair_find(&r, &next, 7, 9));
    assert_int_equal(mr_json_repair_find(&r, &next, 7, 10)->at, 9);
    assert_null(mr_json_repair_find(&r, &next, 10, 100));
}

/* A file is read in chunks of 256 KiB. */
static void test_ends_of_chunks(void **state)
{
    (void)state;
    static const char *const values[] = {"NaN", "-Infinity", "\"caf\xE9\"", "\"\xC3\xA9 NaN\""};
    static const char before[] = "{\"images\":[{\"id\":1,\"file_name\":\"a\"},{\"id\":2,\"file_name\":\"b\",\"x\":";
    enum { CHUNK = 256 << 10 };
    for (size_t v = 0; v < MR_COUNT(values); v++)
        for (size_t back = 0; back <= strlen(values[v]) + 1; back++) {
            MR_AUTO(mr_buf_free) mr_buf text = {0};
            mr_buf_add_text(&text, before);
            while (text.len < CHUNK - back)
                mr_buf_add(&text, " ", 1);
            mr_buf_add_text(&text, values[v]);
            mr_buf_add_text(&text, "}]}");
            support_coco o = support_coco_parse(text.data, text.len);
            bool bad = v < 3;
            if (o.status != MR_OK || o.file->bad_count != bad || (bad && o.file->bads[0].image_id != 2))
                fail_msg("%s, %zu bytes before the end of a chunk: %s", values[v], back, o.err.text);
            support_coco_done(&o);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_ends_of_chunks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
