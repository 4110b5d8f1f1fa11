/* test_files.c - annotation files with names of their own: found by looking inside, or named by --annotations.
 * Covers tables/coco_head.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

#define ONE(name)                                                                                                      \
    "{\"images\":[{\"id\":1,\"file_name\":\"" name "\"}],\"annotations\":[{\"id\":3,\"image_id\":1,\"category_id\":2," \
    "\"bbox\":[1,2,3,4]}],\"categories\":[{\"id\":2,\"name\":\"cat\"}]}"
#define META "\"instances\":[{\"id\":3,\"image_id\":1,\"category_id\":2,\"bbox\":[1,2,3,4]}]"

/* As other tools arrange them. */
static void any_name_and_folder_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *json, *listed, *image, *split;
    } trials[] = {
        {"annotations.json", "1.jpg", "images/1.jpg", "train"},   /* by hand */
        {"result.json", "images/1.jpg", "images/1.jpg", "train"}, /* Label Studio */
        {"_annotations.coco.json", "1.jpg", "1.jpg", "train"},    /* Roboflow, without split folders */
        {"labels.json", "1.jpg", "data/1.jpg", "train"},          /* FiftyOne */
        {"annotations/instances_default.json", "1.jpg", "images/default/1.jpg", "default"}, /* CVAT, Datumaro */
        {"annotations/val.json", "1.jpg", "val/1.jpg", "val"},
        {"annotations/coco_val2014_v2.json", "1.jpg", "images/val2014/1.jpg", "val"},
        {"test/labels.json", "1.jpg", "test/images/1.jpg", "test"},
        {"validation/labels.json", "1.jpg", "validation/data/1.jpg", "val"}, /* FiftyOne's exports */
        {"train_annotations.json", "a/b/1.jpg", "a/b/1.jpg", "train"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_path("%s/%zu", plan_dir, i), *json = support_path("%s/%s", dir, trials[i].json);
        char *head = support_path("{\"images\":[{\"id\":1,\"file_name\":\"%s\"}],", trials[i].listed);
        char *text = support_path("%s%s", head, strchr(ONE(""), ']') + 2);
        support_write_text(json, text);
        support_touch(dir, NAMES(trials[i].image));
        char *found = support_plan(dir, NULL, NULL),
             *want = support_path("\n%s %s - - - ", trials[i].split, trials[i].image);
        if (strncmp(found, "layout coco ", 12) || !strstr(found, want) || !strstr(found, META))
            fail_msg("%s: %s", trials[i].json, found);
        free(found);
        free(want);
        free(text);
        free(head);
        free(json);
        free(dir);
    }
}

/* Wherever its sections begin, and not where only words are alike. */
static void sections_in_any_order_are_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool coco;
    } trials[] = {
        {"{\"annotations\":[{\"image_id\":1}],\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}]}", true},
        {"{\"info\":{},\"categories\":[{\"name\":\"a\",\"id\":1}],\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}]}",
         true},
        {"\xEF\xBB\xBF{\"images\":[{\"license\":1,\"file_name\":\"1.jpg\",\"id\":1}]}", true},
        {"{\"images\":[\"file_name\"]}", false},
        {"{\"x\":{\"images\":[{\"file_name\":\"1.jpg\"}]}}", false},
        {"{\"categories\":[{\"name\":\"a\",\"id\":1}]}", false},
        {"{\"images\":\"file_name\"", false},
        {"[{\"image_id\":1}]", false},
        {"", false},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_path("%s/%zu", plan_dir, i), *json = support_path("%s/my.json", dir);
        support_write_text(json, trials[i].text);
        support_touch(dir, NAMES("1.jpg"));
        char *found = support_plan(dir, NULL, NULL);
        if (trials[i].coco != !strncmp(found, "layout coco ", 12))
            fail_msg("%s: %s", trials[i].text, found);
        free(found);
        free(json);
        free(dir);
    }
}

/* Files with COCO's own names count alone, and the kind of others is what they hold. */
static void tasks_of_the_same_images_are_merged(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("images/1.jpg"));
    plan_file("annotations/boxes.json", ONE("1.jpg"));
    plan_file("annotations/texts.json", "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}],"
                                        "\"annotations\":[{\"image_id\":1,\"caption\":\"x\"}]}");
    plan_says(NULL, NULL, META ",\"captions\":[{\"image_id\":1,\"caption\":\"x\"}]");
    plan_file("annotations/more.json", ONE("1.jpg"));
    plan_says(NULL, NULL,
              "annotations/boxes.json and annotations/more.json are both the instances of split train; "
              "--annotations annotations/boxes.json --annotations annotations/more.json reads both; "
              "--exclude annotations/more.json keeps the other");
    plan_file("annotations/captions_train.json", "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}],"
                                                 "\"annotations\":[{\"image_id\":1,\"caption\":\"y\"}]}");
    plan_says(NULL, NULL, ",\"captions\":[{\"image_id\":1,\"caption\":\"y\"}]");
    plan_says(NULL, NULL, "\nunused annotations/boxes.json");
}

static void given_files_count_alone(void **state)
{
    (void)state;
    mr_layout_options o = {.annotations = (const char *[]){"deep/in/boxes.json", "deep/in/val.json"},
                           .annotation_count = 2};
    support_touch(plan_dir, NAMES("images/1.jpg", "deep/in/2.jpg"));
    plan_file("annotations/instances_test.json", "damaged");
    plan_file("deep/in/boxes.json", ONE("1.jpg"));
    plan_file("deep/in/val.json", ONE("2.jpg"));
    plan_says(&o, "coco", "\ntrain images/1.jpg ");
    plan_says(&o, "coco", "\nval deep/in/2.jpg ");
    o.annotations = (const char *[]){"deep/gone.json"};
    o.annotation_count = 1;
    plan_says(&o, "coco", "plan -4: --annotations deep/gone.json: the source has no such file");
    plan_file("deep/gone.json", "{\"images\":1}");
    plan_says(&o, "coco", "deep/gone.json: byte 11: \"images\" is not a list");
}

/* A JSON on disk, in the source or not, and a path inside an archive. */
static void the_option_takes_any_file(void **state)
{
    char *source = support_path("%s/source", (char *)*state), *json = support_path("%s/beside.json", (char *)*state);
    char *inner = support_path("%s/labels/in.json", source), *dataset = support_path("%s/dataset", (char *)*state);
    char *image = support_path("%s/images/1.jpg", source);
    support_write_text(json, ONE("1.jpg"));
    support_write_text(inner, ONE("1.jpg"));
    support_write_text(image, "");
    const char *const given[] = {json, inner, "labels/in.json"};
    for (size_t i = 0; i < MR_COUNT(given); i++)
        support_expect_refusal(support_millrace("ingest", source, dataset, "--annotations", given[i], (char *)NULL),
                               "images/1.jpg: an empty file"); /* it was found */
    support_expect_refusal(support_millrace("ingest", source, dataset, "--annotations", "labels/no.json", (char *)NULL),
                           "--annotations labels/no.json: the source has no such file");
    free(image);
    free(dataset);
    free(inner);
    free(json);
    free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_name_and_folder_is_found, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(sections_in_any_order_are_recognised, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(tasks_of_the_same_images_are_merged, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(given_files_count_alone, plan_set_up, plan_tear_down),
        IN_TMPDIR(the_option_takes_any_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
