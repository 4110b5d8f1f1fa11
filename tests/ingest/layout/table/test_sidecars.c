/* test_sidecars.c - captions in texts beside the pictures.
 * Invariant tested: a caption is one file of UTF-8, and the label files of YOLO are not captions. */
#include "support/plan.h"

static void test_captions(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg", "3.jpg", "4.jpg"));
    plan_file("1.txt", "a \"red\" box\r\n");
    plan_file("2.txt", "b\nc\n");
    plan_file("3.txt", "\n");
    plan_file("9.txt", "of nothing");
    plan_is(NULL, "layout table 15: variant captions, licence -, classes\n"
                  "train 1.jpg - - - ,\"captions\":[\"a \\\"red\\\" box\"]\n"
                  "train 2.jpg - - - ,\"captions\":[\"b\\nc\"]\n"
                  "train 3.jpg - - - -\n"
                  "note unlisted 4.jpg: no .txt of its name is beside it\n"
                  "unused 9.txt\n");
}

static void test_numbers(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg"));
    plan_file("1.txt", "0 0.5 0.5 1e-1 0.25\n");
    plan_says(NULL, NULL, "no layout fits");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_captions), TEST(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
