/* test_newyorker_labels.c - contest rows: which column makes classes, and which values do.
 * Covers common/labels.c, common/class_set.c. */
#include <string.h>

#include "ingest/layout/common/class_set.h"
#include "tests/support/json.h"

#define NEWYORKER &mr_layout_newyorker
#define IMAGES    "all_contest_images/"

static void put_images(const char *dir)
{
    support_put(dir, IMAGES "1.jpeg", "one");
    support_put(dir, IMAGES "2.jpg", "two");
    support_put(dir, IMAGES "30.png", "thirty");
}

/* Letters make classes; a text does not; nor do more letters than the alphabet has. */
static void test_label_rule(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_buf text = {0};
    put_images(dir);
    for (int i = 0; i < 26; i++)
        mr_buf_printf(&text, "{\"contest_number\":1,\"label\":\"%c\"}\n", 'Z' - i);
    support_put(dir, "m/train.jsonl", mr_buf_text(&text));
    support_plan p = support_plan_ok(NEWYORKER, dir, NULL);
    assert_int_equal(p.plan.class_count, 26);
    assert_int_equal(p.plan.samples[0].label, 25);
    assert_int_equal(p.plan.samples[25].label, 0);
    support_plan_done(&p);

    static const char *const more[] = {"\"a\"", "\"Two dogs talk.\"", "5", "\"\\u00e9\"", "\"?\"", "\"A\\u0000\""};
    size_t len = text.len;
    for (size_t i = 0; i < MR_COUNT(more); i++) {
        text.len = len;
        mr_buf_printf(&text, "{\"contest_number\":1,\"label\":%s}\n", more[i]);
        support_put(dir, "m/train.jsonl", mr_buf_text(&text));
        p = support_plan_ok(NEWYORKER, dir, NULL);
        assert_int_equal(p.plan.class_count, 0);
        assert_int_equal(p.plan.sample_count, 27);
        for (size_t k = 0; k < p.plan.sample_count; k++)
            assert_int_equal(p.plan.samples[k].label, -1);
        support_plan_done(&p);
    }
    mr_buf_free(&text);
    support_tmpdir_remove(dir);
}

static void test_label_column(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_layout_options options = {.label_column = "winner"};
    put_images(dir);
    support_put(dir, "m/train.jsonl",
                "{\"contest_number\":1,\"winner\":\"the crowd\",\"label\":\"A\",\"n\":10,\"x\":1.5,\"list\":[1]}\n"
                "{\"contest_number\":2,\"winner\":\"editors\",\"label\":\"B\",\"n\":9}\n"
                "{\"contest_number\":1,\"winner\":\"the crowd\",\"label\":\"B\",\"n\":9}\n"
                "{\"contest_number\":1,\"label\":\"B\",\"n\":-1}\n");
    support_plan p = support_plan_ok(NEWYORKER, dir, &options);
    support_assert_samples(&p, "train " IMAGES "1.jpeg 1 0\ntrain " IMAGES "2.jpg 0 0\ntrain " IMAGES "1.jpeg 1 0\n"
                               "train " IMAGES "1.jpeg -1 0\n");
    assert_string_equal(p.plan.classes[1].name, "the crowd");
    support_plan_done(&p);

    options.label_column = "n"; /* numbers are those of their classes, and -1 means no class */
    p = support_plan_ok(NEWYORKER, dir, &options);
    assert_int_equal(p.plan.class_count, 11);
    assert_int_equal(p.plan.samples[0].label, 10);
    assert_int_equal(p.plan.samples[1].label, 9);
    assert_int_equal(p.plan.samples[3].label, -1);
    support_plan_done(&p);
    options.label_column = "contest_number";
    p = support_plan_ok(NEWYORKER, dir, &options);
    assert_int_equal(p.plan.class_count, 3);
    support_plan_done(&p);
    options.label_column = "x";
    p = support_plan_ok(NEWYORKER, dir, &options);
    assert_string_equal(p.plan.classes[p.plan.samples[0].label].name, "1.5");
    support_plan_done(&p);

    options.label_column = "wrong";
    support_plan_fails(NEWYORKER, dir, &options, MR_MISUSE, "contest_number, winner, label, n, x, list");
    options.label_column = "list";
    support_plan_fails(NEWYORKER, dir, &options, MR_MISUSE, "line 1 has a list or an object there");
    support_tmpdir_remove(dir);
}

static void test_too_many_classes(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_layout_options options = {.label_column = "id"};
    mr_buf text = {0};
    put_images(dir);
    for (int i = 0; i < MR_CLASS_SET_MAX; i++)
        mr_buf_printf(&text, "{\"contest_number\":1,\"id\":\"r%d\"}\n", i);
    support_put(dir, "m/train.jsonl", mr_buf_text(&text));
    support_plan p = support_plan_ok(NEWYORKER, dir, &options);
    assert_int_equal(p.plan.class_count, MR_CLASS_SET_MAX);
    support_plan_done(&p);
    mr_buf_add_text(&text, "{\"contest_number\":1,\"id\":\"one more\"}\n");
    support_put(dir, "m/train.jsonl", mr_buf_text(&text));
    support_plan_fails(NEWYORKER, dir, &options, MR_MISUSE, "more than 65536 different labels");
    mr_buf_free(&text);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_label_rule),
        cmocka_unit_test(test_label_column),
        cmocka_unit_test(test_too_many_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
