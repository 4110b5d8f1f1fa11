/* test_report.c - a list of problems, and its verdict, JSON and JUnit XML.
 * Invariant tested: every text is valid UTF-8, and valid XML where it is XML. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "shards/verify/formats.h"
#include "shards/verify/parts.h"

static void verdicts(void **state)
{
    mr_verify_shard shard = {.name = "train-00000", .samples = 4};
    mr_verify_report r = {.shards = &shard, .shard_count = 1};
    (void)state;
    assert_true(mr_verify_ok(&r) && mr_verify_whole(&r));
    mr_problem_add(&r.problems, MR_PROBLEM_EXTRA, NULL, MR_NO_SAMPLE, NULL, "extra");
    assert_true(!mr_verify_ok(&r) && mr_verify_whole(&r));
    mr_problem_add(&shard.problems, MR_PROBLEM_SEEK, shard.name, MR_NO_SAMPLE, NULL, "seek");
    assert_false(mr_verify_whole(&r));
    assert_true(mr_verify_only(&shard, 1u << MR_PROBLEM_SEEK));
    assert_null(mr_verify_refused(&r));
    mr_problem_add(&shard.problems, MR_PROBLEM_RECORD, shard.name, 2, "a.jpg", "record");
    shard.problems.items[1].refused = true;
    assert_false(mr_verify_only(&shard, 1u << MR_PROBLEM_SEEK));
    assert_ptr_equal(mr_verify_refused(&r), &shard.problems.items[1]);
    assert_int_equal(mr_verify_problem_count(&r), 3);
    mr_problems_free(&r.problems);
    mr_problems_free(&shard.problems);
}

static void problems_survive_json(void **state)
{
    mr_problems list = {0}, back = {0};
    (void)state;
    mr_problem_add(&list, MR_PROBLEM_RECORD, "train-00000", 7, "a\\\\xFF.jpg", "its %s differs", "image");
    mr_problem_add(&list, MR_PROBLEM_EXTRA, NULL, MR_NO_SAMPLE, NULL, "name \xFF");
    list.items[0].refused = true;
    json_t *array = json_array();
    assert_true(mr_problems_json(&list, array));
    for (size_t i = 0; i < 2; i++) {
        assert_true(mr_problem_unjson(json_array_get(array, i), &back));
        assert_int_equal(back.items[i].kind, list.items[i].kind);
        assert_int_equal(back.items[i].sample, list.items[i].sample);
        assert_int_equal(back.items[i].refused, i == 0);
        assert_string_equal(back.items[i].detail, list.items[i].detail);
    }
    assert_string_equal(back.items[0].source, "a\\\\xFF.jpg");
    assert_null(back.items[1].shard);
    json_decref(array);
    mr_problems_free(&list);
    mr_problems_free(&back);
}

static void json_keys_stay(void **state)
{
    mr_verify_shard shard = {.name = "train-00000", .samples = 4, .damaged = 3};
    mr_verify_report r = {.shards = &shard, .shard_count = 1, .samples = 4};
    json_t *doc = NULL;
    (void)state;
    mr_problem_add(&shard.problems, MR_PROBLEM_RECORD, shard.name, 2, NULL, "record");
    assert_int_equal(mr_verify_json(&r, &doc, NULL), MR_OK);
    assert_int_equal(json_integer_value(json_object_get(doc, "records_hit")), 3);
    const json_t *damaged = json_array_get(json_object_get(doc, "damaged"), 0);
    assert_int_equal(json_integer_value(json_object_get(damaged, "hit")), 3);
    json_decref(doc);
    mr_problems_free(&shard.problems);
}

static void xml_has_no_forbidden_characters(void **state)
{
    mr_verify_report r = {.shard_count = 0};
    mr_buf xml = {0};
    (void)state;
    mr_problem_add(&r.problems, MR_PROBLEM_EXTRA, NULL, MR_NO_SAMPLE, NULL, "<\"&'> \x01 \xEF\xBF\xBE");
    assert_int_equal(mr_verify_junit(&r, NULL, "ds", &xml, NULL), MR_OK);
    assert_non_null(strstr(mr_buf_text(&xml), "&lt;&quot;&amp;&#39;&gt; ? ?"));
    mr_buf_free(&xml);
    assert_int_equal(mr_verify_junit(NULL, "<why>", "ds", &xml, NULL), MR_OK);
    assert_non_null(strstr(mr_buf_text(&xml), "<error message=\"&lt;why&gt;\"/>"));
    mr_buf_free(&xml);
    mr_problems_free(&r.problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(problems_survive_json),
        cmocka_unit_test(json_keys_stay),
        cmocka_unit_test(xml_has_no_forbidden_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
