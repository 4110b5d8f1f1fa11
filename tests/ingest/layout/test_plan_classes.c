/* test_plan_classes.c - classes whose names look like a mistake.
 * Invariant tested: they stay classes of their own, and the report says which ones they are. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

static void test_case_and_spaces(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("Cat/1.jpg", "Cat/2.jpg", "cat/3.jpg", "dog/4.jpg"));
    plan_says(NULL, NULL, "note notes cat: this class looks like another spelling of \"Cat\"\n");
    support_touch(plan_dir, NAMES(" dog/5.jpg"));
    plan_says(NULL, NULL, "note notes cat: this class looks like another spelling of \"Cat\" (2 such names in total)");
    plan_says(NULL, NULL, "classes  dog Cat cat dog\n");
}

static void test_spellings(void **state)
{
    (void)state;
    static const struct {
        const char *first, *other;
        bool same;
    } trials[] = {
        {"traffic light", "traffic_light", true},
        {"T-Shirt", "t_shirt", true},
        {"cat", "cat (1)", true},
        {"cat", "cat - Copy", true},
        {"cat", "cat copy (12)", true},
        {"01", "1", true},
        {"cat", "cat 1", false},
        {"cat", "cat (old)", false},
        {"pin ()", "pin", false},
        {"0", "00", true},
        {"1-2", "12", false},
        {"a1", "a01", false},
        {"copy", "copy (1)", true},
        {"tshirt", "t-shirt", false},
        {"-", "_", false},
        {"-1", "1", false},
        {"a - b", "a b", true},
        {"caf\xC3\xA9", "cafe\xCC\x81", true},       /* one character, and a letter with a mark */
        {"\xE1\xBA\xA5", "a\xCC\x82\xCC\x81", true}, /* a letter with two marks */
        {"caf\xC3\xA9", "cafe", false},
        {"\xE7\x8C\xAB", "\xE7\x8A\xAC", false}, /* other scripts have no small letters */
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_path("%s/%zu", plan_dir, i), *one = support_path("%s/1.jpg", trials[i].first),
             *two = support_path("%s/2.jpg", trials[i].other);
        support_touch(dir, NAMES(one, two, "zebra/3.jpg"));
        char *text = support_plan(dir, NULL, NULL);
        if ((strstr(text, "another spelling") != NULL) != trials[i].same)
            fail_msg("%s, %s: %s", trials[i].first, trials[i].other, text);
        free(text);
        free(two);
        free(one);
        free(dir);
    }
}

static void test_one_name_twice(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("images/1.jpg"));
    plan_file("labels/1.txt", "1 0.5 0.5 0.2 0.2\n");
    plan_file("data.yaml", "names: [cat, cat, category]\ntrain: images\n");
    plan_says(NULL, NULL, "note notes cat: two classes have this name\n");
    plan_file("data.yaml", "names: [cat, category, cats]\ntrain: images\n");
    plan_lacks("this name");
    plan_lacks("spelling");
}

static void test_numbers(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("0/a.jpg", "1/b.jpg", "2/c.jpg"));
    plan_lacks("sorted as text");
    support_touch(plan_dir, NAMES("10/d.jpg"));
    plan_says(NULL, NULL,
              "note notes 10: class folders that are numbers are sorted as text, as torchvision does: the "
              "label of this one is 2\n");
    support_touch(plan_dir, NAMES("x/e.jpg"));
    plan_lacks("sorted as text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_case_and_spaces, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(test_spellings, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(test_one_name_twice, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(test_numbers, plan_set_up, plan_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
