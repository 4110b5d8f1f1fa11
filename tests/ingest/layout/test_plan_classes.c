/* test_plan_classes.c - classes whose names look like a mistake.
 * Invariant tested: they stay classes of their own, and the report says which ones they are. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

static void test_case_and_spaces(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("Cat/1.jpg", "Cat/2.jpg", "cat/3.jpg", "dog/4.jpg"));
    plan_says(NULL, NULL, "note notes cat: this class differs from \"Cat\" only in case or spaces\n");
    support_touch(plan_dir, NAMES(" dog/5.jpg"));
    plan_says(NULL, NULL,
              "note notes cat: this class differs from \"Cat\" only in case or spaces (2 such names in total)");
    plan_says(NULL, NULL, "classes  dog Cat cat dog\n");
}

static void test_one_name_twice(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("images/1.jpg"));
    plan_file("labels/1.txt", "1 0.5 0.5 0.2 0.2\n");
    plan_file("data.yaml", "names: [cat, cat, category]\ntrain: images\n");
    plan_says(NULL, NULL, "note notes cat: two classes have this name\n");
    plan_file("data.yaml", "names: [cat, category, cats]\ntrain: images\n");
    char *plan = support_plan(plan_dir, NULL, NULL);
    assert_null(strstr(plan, "this name"));
    assert_null(strstr(plan, "differs"));
    free(plan);
}

static void test_numbers(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("0/a.jpg", "1/b.jpg", "2/c.jpg"));
    char *plan = support_plan(plan_dir, NULL, NULL);
    assert_null(strstr(plan, "sorted as text"));
    free(plan);
    support_touch(plan_dir, NAMES("10/d.jpg"));
    plan_says(NULL, NULL,
              "note notes 10: class folders that are numbers are sorted as text, as torchvision does: the "
              "label of this one is 2\n");
    support_touch(plan_dir, NAMES("x/e.jpg"));
    plan = support_plan(plan_dir, NULL, NULL);
    assert_null(strstr(plan, "sorted as text"));
    free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_case_and_spaces, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(test_one_name_twice, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(test_numbers, plan_set_up, plan_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
