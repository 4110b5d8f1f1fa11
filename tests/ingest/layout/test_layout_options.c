/* test_layout_options.c - what all layouts have in common: options without a meaning for a layout, splits that are
 * merged. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

/* ---- options --------------------------------------------------------------------------------------------------- */

/* Each option of layouts is refused by those that have no use for it, by name, and by no other. */
static void an_option_without_a_use_is_refused(void **state)
{
    static const char *const files[] = {"x"};
    static const struct {
        const char *name, *layouts; /* that know it */
        mr_layout_options given;
    } options[] = {
        {"--label-column", "imagenette newyorker hub webdataset table imagefolder", {.label_column = "x"}},
        {"--config", "newyorker hub", {.config = "x"}},
        {"--image-column", "hub webdataset table", {.image_column = "x"}},
        {"--text-column", "hub webdataset table imagefolder", {.text_column = "x"}},
        {"--keep-unlisted",
         "imagenette roboflow coco yolo voc createml ilsvrc table imagefolder",
         {.keep_unlisted = true}},
        {"--annotations", "coco", {.annotations = files, .annotation_count = 1}},
        {"--label-separator", "table imagefolder", {.label_separator = "x"}},
        {"--class-pattern", "table", {.class_pattern = "x"}},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(options); i++)
        for (const mr_layout *const *l = mr_layouts; *l; l++) {
            mr_error err = {0};
            bool known = strstr(options[i].layouts, (*l)->name);
            assert_int_equal(mr_layout_check(*l, &options[i].given, &err), known ? MR_OK : MR_MISUSE);
            if (!known && (!strstr(err.text, options[i].name) || !strstr(err.text, (*l)->name)))
                fail_msg("%s", err.text);
        }
}

static void ingest_says_so(void **state)
{
    static const char *const options[] = {"--config=x", "--image-column=x", "--text-column=x"};
    char *dataset = support_path("%s/dataset", (char *)*state), *source = support_path("%s/source", (char *)*state);
    char *image = support_path("%s/train/a/1.jpg", source);
    support_write_text(image, "");
    for (size_t i = 0; i < MR_COUNT(options); i++) {
        char *said =
            support_path("%.*s: not supported by layout imagenette", (int)strcspn(options[i], "="), options[i]);
        support_expect_refusal(support_millrace("ingest", source, dataset, options[i], (char *)NULL), said);
        free(said);
    }
    assert_false(support_exists(dataset));
    free(image);
    free(source);
    free(dataset);
}

/* ---- labels that are nowhere ----------------------------------------------------------------------------------- */

/* Rows whose paths begin elsewhere are found by no image. */
static void a_label_column_that_labels_nothing_is_refused(void **state)
{
    (void)state;
    static const char *const paths[] = {"imagenette2/train/a/1.jpg", "train\\a\\1.jpg"};
    const mr_layout_options noisy = {.label_column = "noisy"};
    support_touch(plan_dir, NAMES("train/a/1.jpg", "train/b/2.jpg"));
    for (size_t i = 0; i < MR_COUNT(paths); i++) {
        char *csv = support_path("path,noisy\n%s,a\n", paths[i]);
        plan_file("noisy_imagenette.csv", csv);
        plan_is(&noisy, "plan -4: --label-column noisy: no sample has a label there: the column is empty, or its rows "
                        "name none of the images\n");
        free(csv);
    }
    plan_file("noisy_imagenette.csv", "path,noisy\ntrain/a/1.jpg,\ntrain/b/2.jpg,\n");
    plan_says(&noisy, NULL, "plan -4: --label-column noisy: no sample has a label there");
    plan_file("noisy_imagenette.csv", "path,noisy\ntrain/a/1.jpg,b\n");
    plan_says(&noisy, NULL, "\ntrain train/a/1.jpg b - - ");
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

#define MERGED                                                                                                         \
    "note notes val: val (1 sample) and valid (1 sample) are stored as this one split; --split-map keeps them apart "  \
    "or leaves one out\n"

static void splits_that_become_one_are_noted(void **state)
{
    (void)state;
    mr_split_map map = {"valid", "dev"};
    const mr_layout_options options = {.maps = &map, .map_count = 1};
    support_touch(plan_dir, NAMES("train/a/1.jpg", "val/a/2.jpg", "valid/a/3.jpg"));
    plan_says(NULL, NULL, MERGED);
    char *text = support_plan(plan_dir, NULL, &options);
    assert_null(strstr(text, "note"));
    free(text);
    map.to = "val"; /* asked for, yet it may be a split too many */
    text = support_plan(plan_dir, NULL, &options);
    assert_non_null(strstr(text, "note notes val: val (1 sample) and valid (1 sample) are stored as this one split, "
                                 "because of --split-map\n"));
    free(text);
}

/* One name alone, however often it is seen. */
static void one_name_of_val_is_no_remark(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a/1.jpg", "validation/a/3.jpg"));
    char *text = support_plan(plan_dir, NULL, NULL);
    assert_non_null(strstr(text, "\nval validation/a/3.jpg"));
    assert_null(strstr(text, "note"));
    free(text);
}

static void jsonl_of_two_names(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("all_contest_images/1.jpeg"));
    plan_file("m/val.jsonl", "{\"contest_number\":1,\"label\":\"A\"}\n");
    plan_file("m/validation.jsonl", "{\"contest_number\":1,\"label\":\"A\"}\n");
    plan_says(NULL, NULL, "note notes val: val and validation are stored as this one split");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_without_a_use_is_refused),
        IN_TMPDIR(ingest_says_so),
        TEST(a_label_column_that_labels_nothing_is_refused),
        TEST(splits_that_become_one_are_noted),
        TEST(one_name_of_val_is_no_remark),
        TEST(jsonl_of_two_names),
    };
    return cmocka_run_group_tests_name("layout_options", tests, NULL, NULL);
}
