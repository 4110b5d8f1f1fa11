/* test_roboflow_meta.c - Roboflow exports with more than a label: boxes and captions. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

/* ---- coco ----------------------------------------------------------------------------------------------------- */

static void coco_export(void **state)
{
    (void)state;
    support_touch(plan_dir,
                  NAMES("train/a_jpg.rf.1.jpg", "train/b.jpg", "train/extra.jpg", "valid/c.jpg", "test/d.jpg"));
    plan_file("train/_annotations.coco.json",
              "{\"images\":[{\"id\":7,\"file_name\":\"b.jpg\"},{\"id\":3, \"file_name\":\"a_jpg.rf.1.jpg\"},"
              "{\"id\":8,\"file_name\":\"gone.jpg\"},{\"id\":9,\"file_name\":\"b.jpg\"}],"
              "\"categories\":[{\"id\":0,\"name\":\"things\"},{\"id\":9,\"name\":\"cat\"},{\"id\":2,\"name\":\"dog\"}],"
              "\"annotations\":[{\"id\":1,\"image_id\":3,\"category_id\":9,\"area\":1.50},"
              "{\"id\":2,\"image_id\":3,\"category_id\":2,\"area\":0},{\"id\":3,\"image_id\":8,\"category_id\":2}]}");
    plan_file(
        "valid/_annotations.coco.json",
        "{\"images\":[{\"id\":3,\"file_name\":\"c.jpg\"}],"
        "\"categories\":[{\"id\":0,\"name\":\"things\"},{\"id\":5,\"name\":\"cow\"},{\"id\":9,\"name\":\"cat\"}],"
        "\"annotations\":[{\"id\":1,\"image_id\":3,\"category_id\":5},{\"id\":2,\"image_id\":3,\"category_id\":77},"
        "{\"id\":3,\"image_id\":4,\"category_id\":5}]}");
    plan_is(NULL,
            "layout roboflow 95: variant coco, licence -, classes dog=2 cow=5 cat=9\n"
            "train train/a_jpg.rf.1.jpg - a_jpg - ,\"image\":{\"id\":3, \"file_name\":\"a_jpg.rf.1.jpg\"},"
            "\"annotations\":[{\"id\":1,\"image_id\":3,\"category_id\":9,\"area\":1.50},"
            "{\"id\":2,\"image_id\":3,\"category_id\":2,\"area\":0}]\n"
            "train train/b.jpg - - U ,\"image\":{\"id\":7,\"file_name\":\"b.jpg\"},\"annotations\":[]\n"
            "val valid/c.jpg - - - ,\"image\":{\"id\":3,\"file_name\":\"c.jpg\"},\"annotations\":["
            "{\"id\":1,\"image_id\":3,\"category_id\":5},{\"id\":2,\"image_id\":3,\"category_id\":77}]\n"
            "note notes train/_annotations.coco.json: category 0 (things) is used by no annotation: it gets no label\n"
            "note unlisted test/d.jpg: not listed in _annotations.coco.json\n"
            "note missing train/gone.jpg: image 8 of train/_annotations.coco.json (annotations: 1)\n"
            "note collisions train/b.jpg: image 9 of train/_annotations.coco.json has the same file as image 7, "
            "which is used\n"
            "note unlisted train/extra.jpg: not listed in _annotations.coco.json\n"
            "note notes valid/_annotations.coco.json: annotations of a category that is not listed, such as 77: 1\n"
            "note notes valid/_annotations.coco.json: annotations left out, as their images are not listed: 1\n");
    plan_says(&(mr_layout_options){.keep_unlisted = true}, NULL, "test test/d.jpg - - U -\n");
}

static void category_zero_counts_when_it_is_used(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/1.jpg"));
    plan_file("train/_annotations.coco.json",
              "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}],\"categories\":[{\"id\":1,\"name\":\"b\"},"
              "{\"id\":0,\"name\":\"a\"}],\"annotations\":[{\"id\":1,\"image_id\":1,\"category_id\":0}]}");
    plan_says(NULL, NULL, "classes a=0 b=1\n");
    plan_file("train/_annotations.coco.json", "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}],\"annotations\":[],"
                                              "\"categories\":[{\"id\":0,\"name\":\"only\"}]}");
    plan_says(NULL, NULL, "classes only=0\n");
}

static void splits_must_agree_on_category_names(void **state)
{
    (void)state;
    static const char form[] = "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}],\"annotations\":[],"
                               "\"categories\":[{\"id\":4,\"name\":\"%s\"}]}";
    char text[256];
    support_touch(plan_dir, NAMES("train/1.jpg", "valid/1.jpg"));
    snprintf(text, sizeof text, form, "cat");
    plan_file("train/_annotations.coco.json", text);
    snprintf(text, sizeof text, form, "dog");
    plan_file("valid/_annotations.coco.json", text);
    plan_is(NULL, "plan -2: category id 4 is \"cat\" in train/_annotations.coco.json and \"dog\" in "
                  "valid/_annotations.coco.json: the annotation files do not belong together; "
                  "--exclude valid/_annotations.coco.json ingests without it\n");
    plan_file("valid/_annotations.coco.json", "[1]");
    plan_says(NULL, NULL, "plan -2: ");
}

/* ---- clip ----------------------------------------------------------------------------------------------------- */

/* "a b" stands before "a" in the order of paths, and after it in the order of names, which the captions follow. */
static void clip_export(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a b/1.jpg", "train/a/2.jpg", "train/c/3.jpg", "train/a/none.txt",
                                  "valid/c/4.jpg", "valid/b/none.txt", "test/a/5.jpg"));
    plan_file("train/_tokenization.txt", "an \"a\"\r\nan a b\r\n\r\na c\xC3\xA9");
    plan_file("valid/_tokenization.txt", "  only \xFF \n\n");
    plan_is(NULL, "layout roboflow 90: variant clip, licence -, classes a a b c\n"
                  "test test/a/5.jpg a - - -\n"
                  "train train/a b/1.jpg a b - - ,\"captions\":[\"an a b\"]\n"
                  "train train/a/2.jpg a - - ,\"captions\":[\"an \\\"a\\\"\"]\n"
                  "train train/c/3.jpg c - - ,\"captions\":[\"a c\xC3\xA9\"]\n"
                  "val valid/c/4.jpg c - - ,\"captions\":[\"only \\\\xFF\"]\n"
                  "note class_notes val: class a has no image in split val\n"
                  "note class_notes val: class a b has no image in split val\n"
                  "note class_notes test: class a b has no image in split test\n"
                  "note class_notes test: class c has no image in split test\n"
                  "note notes test: no _tokenization.txt: its images have no captions\n"
                  "unused train/a/none.txt\n"
                  "unused valid/b/none.txt\n");
}

static void captions_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a/1.jpg", "train/b/2.jpg"));
    plan_file("train/_tokenization.txt", "a\nb\nc\n");
    plan_is(NULL, "plan -2: train/_tokenization.txt: 3 captions, where 2 class folders hold images: it is unknown "
                  "which caption belongs to which class; --exclude train/_tokenization.txt ingests the images "
                  "without its captions\n");
    plan_file("train/_tokenization.txt", "");
    plan_says(NULL, NULL, "plan -2: train/_tokenization.txt: 0 captions, where 2 ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(coco_export), TEST(category_zero_counts_when_it_is_used), TEST(splits_must_agree_on_category_names),
        TEST(clip_export), TEST(captions_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests_name("layouts_roboflow_meta", tests, NULL, NULL);
}
