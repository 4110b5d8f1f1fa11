/* test_names.c - classes in the names of files.
 * Invariant tested: a pattern fits a whole name or none of it, and {class} is as long as it can be. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"
#include "ingest/layout/table/table.h"

static void test_match(void **state)
{
    (void)state;
    static const char *const trials[][3] = {
        {"{class}_#", "Abyssinian_12", "Abyssinian"},
        {"{class}_#", "great_pyrenees_100", "great_pyrenees"},
        {"{class}_#", "cat_1_2", "cat_1"},
        {"{class}_#", "cat_", NULL},
        {"{class}_#", "_12", NULL},
        {"{class}_#", "12", NULL},
        {"{class}.#", "cat.0", "cat"},
        {"*_{class}", "a_b_c", "b_c"},
        {"{class}*", "abc", "abc"},
        {"#-{class}-*", "12-x-y-z", "x-y"},
        {"#-{class}-*", "-x-y", NULL},
        {"img#{class}", "img12cat", "2cat"},
        {"{class}", "", NULL},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        size_t at = 0, len = 0;
        const char *name = trials[i][1], *expected = trials[i][2];
        assert_int_equal(mr_class_pattern_match(trials[i][0], name, strlen(name), &at, &len), expected != NULL);
        if (expected && (len != strlen(expected) || memcmp(name + at, expected, len) != 0))
            fail_msg("%s of %s: %.*s", trials[i][0], name, (int)len, name + at);
    }
    char name[600];
    size_t at, len;
    memset(name, '1', sizeof name);
    assert_false(mr_class_pattern_match("{class}#", name, sizeof name, &at, &len));
    assert_true(mr_class_pattern_match("{class}#", name, 255, &at, &len));
}

static void test_plan(void **state)
{
    (void)state;
    const mr_layout_options o = {.class_pattern = "{class}_#"};
    support_touch(plan_dir, NAMES("images/a_b_1.jpg", "images/c_2.jpg", "images/readme.png", "test/c_3.jpg"));
    plan_is(&o, "layout table 98: variant class in the name, licence -, classes a_b c\n"
                "train images/a_b_1.jpg a_b - - -\n"
                "train images/c_2.jpg c - - -\n"
                "test test/c_3.jpg c - - -\n"
                "note unlisted images/readme.png: its name does not fit --class-pattern\n");
    support_touch(plan_dir, NAMES("annotations/trimaps/a_b_1.png", "train_masks/c_2.png", "masks/d_4.png"));
    plan_is(&o, "layout table 98: variant class in the name, licence -, classes a_b c d\n"
                "train images/a_b_1.jpg a_b - - -\n"
                "train images/c_2.jpg c - - -\n"
                "train masks/d_4.png d - - -\n" /* of no picture */
                "test test/c_3.jpg c - - -\n"
                "note unlisted images/readme.png: its name does not fit --class-pattern\n"
                "unused annotations/trimaps/a_b_1.png\n"
                "unused train_masks/c_2.png\n");
    plan_says(&(mr_layout_options){.class_pattern = "{class}+#"}, NULL, "no image has a name that fits");
    plan_says(&(mr_layout_options){.class_pattern = "_#"}, NULL, "a pattern has {class} once");
    plan_says(&(mr_layout_options){.class_pattern = "{class}{class}"}, NULL, "a pattern has {class} once");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_match),
                                       cmocka_unit_test_setup_teardown(test_plan, plan_set_up, plan_tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
