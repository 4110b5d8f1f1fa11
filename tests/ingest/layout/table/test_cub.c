/* test_cub.c - the lists of CUB-200-2011.
 * Invariant tested: every image has a class and a split, or the list that lacks it is named. */
#include "tests/support/sources/plan.h"

static void put_lists(void)
{
    plan_file("images.txt", "2 002.b/x_2.jpg\r\n1 001.a/x_1.jpg\n\n");
    plan_file("image_class_labels.txt", "1 1\n2 2\n");
    plan_file("classes.txt", "1 001.a\n2 002.b\n3 003.c\n");
    plan_file("train_test_split.txt", "1 1\n2 0\n");
}

static void test_lists(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("images/001.a/x_1.jpg", "images/002.b/x_2.jpg", "attributes.txt"));
    put_lists();
    plan_is(NULL, "layout table 90: variant cub, licence -, classes 001.a 002.b\n"
                  "train images/001.a/x_1.jpg 001.a - - ,\"columns\":{\"image_id\":\"1\",\"class\":\"001.a\",\"split\":"
                  "\"train\"}\n"
                  "test images/002.b/x_2.jpg 002.b - - ,\"columns\":{\"image_id\":\"2\",\"class\":\"002.b\",\"split\":"
                  "\"test\"}\n"
                  "unused attributes.txt\n");
    plan_file("classes.txt", "1 a b\n2 c\n");
    plan_says(NULL, NULL, "classes a b c\n");
    plan_file("bounding_boxes.txt", "1 60.0 27.0 325.0 304.0\n2 1 2 3 4\n");
    plan_says(NULL, NULL,
              "train images/001.a/x_1.jpg a b - - ,\"columns\":{\"image_id\":\"1\",\"class\":\"a b\",\"split\":"
              "\"train\",\"x\":\"60.0\",\"y\":\"27.0\",\"width\":\"325.0\",\"height\":\"304.0\"}\n");
    plan_file("bounding_boxes.txt", "1 60.0 27.0 325.0 304.0\n2 1 2 x 4\n");
    plan_says(NULL, NULL, "note rejects images/002.b/x_2.jpg: images.txt: row 2: its box is not four numbers\n");
    plan_file("bounding_boxes.txt", "1 60.0 27.0 325.0 304.0\n2 1 2\n");
    plan_says(NULL, NULL, "bounding_boxes.txt: number 2 has \"1 2\", not x, y, width and height");
    plan_file("bounding_boxes.txt", "1 60.0 27.0 325.0 304.0\n");
    plan_says(NULL, NULL, "bounding_boxes.txt: has no line for number 2");
}

static void test_bad_lists(void **state)
{
    (void)state;
    static const char *const trials[][3] = {
        {"images.txt", "1 001.a/x_1.jpg\n1 002.b/x_2.jpg\n", "images.txt: number 1 occurs twice"},
        {"images.txt", "x\n", "images.txt: line 1: not a number and a text"},
        {"images.txt", "1 \n", "images.txt: line 1: not a number and a text"},
        {"images.txt", "1 a\tb.jpg\n", "images.txt: line 1: not a number and a text"},
        {"images.txt", "99999999999999999999 a.jpg\n", "images.txt: line 1: not a number and a text"},
        {"images.txt", "", "images.txt: has no row"},
        {"images.txt", "1 ../../x_1.jpg\n2 002.b/x_2.jpg\n", "note bad_names ../../x_1.jpg"},
        {"image_class_labels.txt", "1 1\n", "image_class_labels.txt: has no line for number 2"},
        {"image_class_labels.txt", "1 1\n2 x\n", "image_class_labels.txt: class \"x\" is not a number"},
        {"classes.txt", "1 001.a\n", "classes.txt: has no line for number 2"},
        {"train_test_split.txt", "1 1\n", "train_test_split.txt: has no line for number 2"},
        {"train_test_split.txt", "1 1\n2 2\n", "number 2 has \"2\", neither 0 (test) nor 1 (train)"},
    };
    support_touch(plan_dir, NAMES("images/001.a/x_1.jpg", "images/002.b/x_2.jpg"));
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        put_lists();
        plan_file(trials[i][0], trials[i][1]);
        plan_says(NULL, NULL, trials[i][2]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_lists), TEST(test_bad_lists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
