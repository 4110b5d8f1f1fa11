/* test_flat.c - pictures without labels.
 * Invariant tested: the layout wins by itself only where nothing else in the source may say what pictures show. */
#include "tests/support/sources/plan.h"

static void test_alone(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("2.jpg", "1.png", "README.md", ".hidden.jpg"));
    plan_is(NULL, "layout flat 5: variant pictures, licence -, classes\n"
                  "train 1.png - - - -\ntrain 2.jpg - - - -\nunused .hidden.jpg\nunused README.md\n");
}

static void test_container(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("images/1.jpg"));
    plan_says(NULL, NULL, "layout flat 5");
}

static void test_what_may_be_labels(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "a.json"));
    plan_says(NULL, NULL, "no layout fits");
    plan_says(NULL, "flat", "layout flat 5: variant pictures, licence -, classes\ntrain 1.jpg - - - -\n");
}

static void test_folders(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/1.jpg", "val/2.jpg"));
    plan_says(NULL, NULL, "no layout fits");
    plan_says(NULL, "flat", "train train/1.jpg - - - -\nval val/2.jpg - - - -\n");
    const mr_split_map map = {"val", ""};
    plan_says(&(mr_layout_options){.maps = &map, .map_count = 1}, "flat", "split left out by --split-map");
}

static void test_one_class(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("dogs/1.jpg"));
    plan_says(NULL, NULL, "no layout fits");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_alone), TEST(test_container), TEST(test_what_may_be_labels),
                                       TEST(test_folders), TEST(test_one_class)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
