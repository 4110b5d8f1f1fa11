/* test_sidecars.c - captions in texts beside the pictures.
 * Invariant tested: a caption is one file of UTF-8, and the label files of YOLO are not captions. */
#include "tests/support/sources/plan.h"

static void test_captions(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg", "3.jpg", "4.jpg"));
    plan_file("1.txt", "a \"red\" box\r\n");
    plan_file("2.txt", "b\nc\n");
    plan_file("3.txt", "\n");
    plan_file("9.txt", "of nothing");
    plan_file("notes.txt", "mine");
    plan_is(NULL, "layout table 15: variant captions, licence -, classes\n"
                  "train 1.jpg - - - ,\"captions\":[\"a \\\"red\\\" box\"]\n"
                  "train 2.jpg - - - ,\"captions\":[\"b\\nc\"]\n"
                  "train 3.jpg - - - -\n"
                  "note unlisted 4.jpg: no .txt file of the same name beside it\n"
                  "note missing 9.txt: a caption without an image of the same name\n"
                  "note notes captions: empty: 1; their images have none\n"
                  "unused 9.txt\n"
                  "unused notes.txt\n");
}

/* Folders of captioned pictures are not classes, and a byte order mark is not part of a text. */
static void test_folders(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("x/10_dog/1.jpg", "x/10_dog/2.jpg", "x/5_cat/1.jpg"));
    plan_file("x/10_dog/1.txt", "\xEF\xBB\xBF"
                                "a dog\n");
    plan_file("x/10_dog/2.caption", "two dogs");
    plan_file("x/5_cat/1.txt", "\xEF\xBB\xBF");
    plan_is(NULL, "layout table 30: variant captions, licence -, classes\n"
                  "train x/10_dog/1.jpg - - - ,\"captions\":[\"a dog\"]\n"
                  "train x/10_dog/2.jpg - - - ,\"captions\":[\"two dogs\"]\n"
                  "train x/5_cat/1.jpg - - - -\n"
                  "note notes captions: empty: 1; their images have none\n");
}

static void test_bad_texts(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg", "2.jpg", "3.jpg"));
    plan_file("1.txt", "caf\xE9");
    plan_file("2.txt", "\xFF\xFE"
                       "a");
    plan_file("3.txt", "good");
    plan_is(NULL, "layout table 15: variant captions, licence -, classes\n"
                  "train 3.jpg - - - ,\"captions\":[\"good\"]\n"
                  "note rejects 1.jpg: 1.txt: not UTF-8 text\n"
                  "note rejects 2.jpg: 2.txt: not UTF-8 text\n");
}

static void test_numbers(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.jpg"));
    plan_file("1.txt", "0 0.5 0.5 1e-1 0.25\n");
    plan_says(NULL, NULL, "layout yolo ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_captions), TEST(test_folders), TEST(test_bad_texts),
                                       TEST(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
