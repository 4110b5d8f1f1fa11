/* test_outcomes.c - evaluation.jsonl: what is written is read back; lines that are not outcomes are damage.
 * Covers evaluate/searches.c. */
#include "train/evaluate/outcomes.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"dog", "a \"cat\"", "d\xc3\xb6g \\x01"};

static mr_status parse(const char *text, mr_outcomes *out, mr_error *err)
{
    return mr_outcomes_parse(text, strlen(text), "run/evaluation.jsonl", names, 3, out, err);
}

static void test_round_trip_of_classes(void **state)
{
    (void)state;
    mr_class classes[2] = {{.name = (char *)(uintptr_t)names[0]}, {.name = (char *)(uintptr_t)names[1]}};
    const mr_manifest m = {.classes = classes, .class_count = 2};
    mr_class_score each[] = {{31, 0.71, 0.5, 0.25, 0.375}, {.average_precision = -1}};
    mr_outcomes o = {.step = 3, .split = "val", .scores = {.classes = 2, .each = each, .threshold = 0.34}}, back = {0};
    mr_buf text = {0};
    mr_error err;
    assert_int_equal(mr_outcomes_json(&o, &m, &text, &err), MR_OK);
    assert_string_equal(
        mr_buf_text(&text),
        "{\"step\": 3, \"split\": \"val\", \"class\": \"dog\", \"threshold\": 0.34, \"samples\": 31, "
        "\"average_precision\": 0.71, \"precision\": 0.5, \"recall\": 0.25, \"f1\": 0.375}\n"
        "{\"step\": 3, \"split\": \"val\", \"class\": \"a \\\"cat\\\"\", \"threshold\": 0.34, \"samples\": 0, "
        "\"average_precision\": null, \"precision\": 0, \"recall\": 0, \"f1\": 0}\n");
    assert_int_equal(parse((char *)text.data, &back, &err), MR_OK);
    assert_int_equal(back.scores.classes, 3); /* of the model's; the last has no line */
    assert_int_equal(back.scores.each[0].positives, 31);
    assert_true(fabs(back.scores.each[0].average_precision - 0.71) < 1e-6 && back.scores.each[1].average_precision < 0);
    assert_true(back.scores.each[2].positives == 0 && fabs(back.scores.threshold - 0.34) < 1e-6);
    o.scores.classes = 3;
    assert_int_equal(mr_outcomes_json(&o, &m, &text, &err), MR_MISUSE);
    mr_outcomes_release(&back);
    mr_buf_free(&text);
}

static void test_round_trip(void **state)
{
    (void)state;
    mr_class classes[3] = {{.name = (char *)(uintptr_t)names[0]},
                           {.name = (char *)(uintptr_t)names[1]},
                           {.name = (char *)(uintptr_t)names[2]}};
    const mr_manifest m = {.classes = classes, .class_count = 3};
    mr_outcome items[] = {{0, 0, 1, 0.75F, 1.5F}, {7, 2, 2, 1, 0}, {9, 1, 0, 0.5F, INFINITY}};
    mr_search search = {.sample = 4,
                        .words = 0,
                        .words_len = 9,
                        .count = 2,
                        .found = {3, 4},
                        .scores = {0.5F, 0.25F},
                        .right = {false, true}};
    mr_outcomes o = {.step = 12, .split = "val", .items = items, .count = 3, .searches = &search, .search_count = 1};
    mr_outcomes back = {0};
    mr_buf text = {0};
    mr_error err;
    mr_buf_add_text(&o.text, "two \"d\xc3\xb6g\"");
    search.words_len = o.text.len;
    assert_int_equal(mr_outcomes_json(&o, &m, &text, &err), MR_OK);
    mr_buf_text(&text);
    assert_int_equal(parse((char *)text.data, &back, &err), MR_OK);
    assert_int_equal(back.step, 12);
    assert_string_equal(back.split, "val");
    assert_int_equal(back.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(back.items[i].sample, items[i].sample);
        assert_int_equal(back.items[i].label, items[i].label);
        assert_int_equal(back.items[i].predicted, items[i].predicted);
        assert_true(back.items[i].probability == items[i].probability);
    }
    assert_true(back.items[0].loss == 1.5F && isnan(back.items[2].loss)); /* null */
    assert_int_equal(back.search_count, 1);
    assert_int_equal(back.searches[0].count, 2);
    assert_true(back.searches[0].right[1] && !back.searches[0].right[0] && back.searches[0].found[0] == 3);
    assert_memory_equal(back.text.data, o.text.data, o.text.len);
    items[1].label = 3;
    assert_int_equal(mr_outcomes_json(&o, &m, &text, &err), MR_MISUSE);
    mr_outcomes_release(&back);
    mr_buf_free(&o.text);
    mr_buf_free(&text);
}

static void test_damage(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"step\": 1, \"split\": \"val\", \"sample\": 0, \"label\": \"dog\"", "line 1: is truncated"},
        {"\n", "line 1"},
        {"{\"step\": 1, \"split\": \"val\", \"sample\": 0}\n[]\n", "line 2"},
        {"{\"step\": -1, \"split\": \"val\", \"sample\": 0}\n", "\"step\""},
        {"{\"step\": 1, \"sample\": 0}\n", "\"split\""},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        mr_outcomes o = {0};
        mr_error err;
        assert_int_equal(parse(cases[i].text, &o, &err), MR_BAD_DATA);
        if (!strstr(err.text, cases[i].why))
            fail_msg("%s", err.text);
        mr_outcomes_release(&o);
    }
}

/* A line with a class that the run does not have, or without one, is left out. */
static void test_unknown_classes(void **state)
{
    (void)state;
    mr_outcomes o = {0};
    mr_error err;
    assert_int_equal(
        parse("{\"step\": 1, \"split\": \"val\", \"sample\": 0, \"label\": \"horse\", \"predicted\": \"dog\"}\n"
              "{\"step\": 1, \"split\": \"val\", \"sample\": 1, \"label\": 4, \"predicted\": null}\n"
              "{\"step\": 1, \"split\": \"val\", \"sample\": 2, \"label\": \"dog\", \"predicted\": \"dog\"}\n",
              &o, &err),
        MR_OK);
    assert_int_equal(o.count, 1);
    assert_true(o.items[0].sample == 2 && isnan(o.items[0].probability));
    mr_outcomes_release(&o);
    assert_int_equal(mr_outcomes_read("/nonexistent/evaluation.jsonl", names, 3, &o, &err), MR_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_round_trip_of_classes),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_unknown_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
