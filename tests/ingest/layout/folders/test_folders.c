/* test_folders.c - imagenette and similar trees: classes, order, splits, detection.
 * Covers folders/class_folders.c, folders/class_names.c, folders/class_nesting.c, folders/split_dirs.c,
 * imagenette/imagenette.c.  */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/archive.h"
#include "tests/support/sources/plan.h"

/* ---- classes and order ---------------------------------------------------------------------------------------- */

static void classes_are_the_union_of_all_splits(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/b/1.jpg", "train/d/2.png", "val/a/3.webp", "val/c/readme.txt", "val/.d/5.jpg",
                                  "train/a/deep/er/6.JPEG", "train/.ipynb_checkpoints/7.jpg", "train/b/.x/8.jpg",
                                  "train/b/.hidden.jpg", "train/b/notes.txt", "LICENSE"));
    plan_is(NULL, "layout imagenette 50: variant image-folder, licence -, classes a b d\n"
                  "train train/a/deep/er/6.JPEG a - - -\n"
                  "train train/b/1.jpg b - - -\n"
                  "train train/d/2.png d - - -\n"
                  "val val/a/3.webp a - - -\n"
                  "note class_notes val: class b has no image in split val\n"
                  "note class_notes val: class d has no image in split val\n"
                  "unused LICENSE\n"
                  "unused train/.ipynb_checkpoints/7.jpg\n"
                  "unused train/b/.hidden.jpg\n"
                  "unused train/b/.x/8.jpg\n"
                  "unused train/b/notes.txt\n"
                  "unused val/.d/5.jpg\n"
                  "unused val/c/readme.txt\n");
}

/* SUN397: the classes church/indoor and church/outdoor, beside abbey. */
static void a_class_that_joins_folders_is_named(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/abbey/1.jpg", "train/church/indoor/2.jpg", "train/church/outdoor/3.jpg"));
    plan_says(NULL, NULL,
              "classes abbey church\n"
              "train train/abbey/1.jpg abbey - - -\n"
              "train train/church/indoor/2.jpg church - - -\n"
              "train train/church/outdoor/3.jpg church - - -\n"
              "note notes church: the images of its folders (such as indoor and outdoor) are all of this class; such "
              "classes: 1\n");
    support_touch(plan_dir, NAMES("train/church/4.jpg")); /* its folders only order its images */
    plan_is(NULL, "layout imagenette 50: variant image-folder, licence -, classes abbey church\n"
                  "train train/abbey/1.jpg abbey - - -\n"
                  "train train/church/4.jpg church - - -\n"
                  "train train/church/indoor/2.jpg church - - -\n"
                  "train train/church/outdoor/3.jpg church - - -\n");
}

/* A folder with a copy of the classes beside it is not one of them. */
static void a_copy_of_the_classes_is_no_class(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("yes/1.jpg", "no/2.jpg", "brain set/yes/1.jpg", "brain set/no/2.jpg"));
    plan_says(NULL, NULL,
              "plan -2: brain set/ holds folders named like the classes beside it (no, yes): is it a copy of them?  "
              "--exclude 'brain set' leaves it out, --class-depth 1 makes it a class of its own");
    plan_says(&(mr_layout_options){.class_depth = 1}, NULL, "classes brain set no yes\n");
    support_touch(plan_dir, NAMES("brain set/maybe/1.jpg"));
    plan_says(NULL, NULL, "classes brain set no yes\n");
}

/* A folder that was moved into a class: one of another class, or of a split. */
static void moved_folders_are_refused(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/cat/1.jpg", "train/cat/dog/2.jpg", "train/dog/3.jpg"));
    plan_says(NULL, NULL,
              "plan -2: train/cat/ holds images and a folder dog, whose images would be of this class as well; "
              "--exclude train/cat/dog leaves out that folder, --class-depth 1 takes all images below a class folder");
    plan_says(&(mr_layout_options){.class_depth = 1}, NULL, "train train/cat/dog/2.jpg cat - - -\n");
    plan_remove("train/cat/dog/2.jpg");
    support_touch(plan_dir, NAMES("train/cat/val/dog/4.jpg"));
    plan_says(NULL, NULL, "plan -2: train/cat/ holds images and a folder val, whose images would be of this class");
}

/* cat/, dog/ and test/, where test/ is not a class; trains are. */
static void classes_are_not_named_like_splits(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("cat/1.jpg", "dog/2.jpg", "Test_Images/3.jpg"));
    plan_says(NULL, NULL,
              "plan -2: Test_Images/ is named like a split, and would be a class: --exclude Test_Images leaves it out, "
              "--class-depth 1 makes it a class");
    plan_says(&(mr_layout_options){.class_depth = 1}, NULL, "classes Test_Images cat dog\n");
    plan_remove("Test_Images/3.jpg");
    support_touch(plan_dir, NAMES("train/3.jpg"));
    plan_says(NULL, NULL, "note notes train: a class that is named like a split\n");
}

/* '/' sorts after ' ' and '-': in order of paths "a b/" stands before "a/", in order of names after it. */
static void classes_are_sorted_by_name_not_by_path(void **state)
{
    (void)state;
    support_touch(plan_dir,
                  NAMES("train/a/1.jpg", "train/a b/2.jpg", "train/a-c/3.jpg", "train/\xFFx/4.jpg", "train/B/5.jpg"));
    plan_is(NULL, "layout imagenette 50: variant image-folder, licence -, classes B \\xFFx a a b a-c\n"
                  "train train/B/5.jpg B - - -\n"
                  "train train/a b/2.jpg a b - - -\n"
                  "train train/a-c/3.jpg a-c - - -\n"
                  "train train/a/1.jpg a - - -\n"
                  "train train/\xFFx/4.jpg \\xFFx - - -\n"
                  "note odd_names train/\\xFFx/4.jpg: kept byte for byte\n");
}

static void file_names_never_decide_the_class(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/n01440764/n03888257_1.JPEG", "val/n03888257/ILSVRC2012_val_00000001.JPEG"));
    plan_is(NULL, "layout imagenette 55: variant image-folder, licence -, classes n01440764 n03888257\n"
                  "train train/n01440764/n03888257_1.JPEG n01440764 - - -\n"
                  "val val/n03888257/ILSVRC2012_val_00000001.JPEG n03888257 - - -\n"
                  "note class_notes train: class n03888257 has no image in split train\n"
                  "note class_notes val: class n01440764 has no image in split val\n");
}

static void folders_named_like_splits_are_not_classes(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("bounding_box_test/1.jpg", "bounding_box_train/2.jpg", "query/3.jpg"));
    plan_says(NULL, NULL, "bounding_box_test and bounding_box_train are named like splits, and would become classes");
    plan_says(&(mr_layout_options){.class_depth = 1}, NULL, "classes bounding_box_test bounding_box_train query\n");
    char *pairs = support_path("%s/pairs", plan_dir), *plan;
    support_touch(pairs, NAMES("testA/1.jpg", "testB/1.jpg", "trainA/2.jpg", "trainB/2.jpg"));
    plan = support_plan(pairs, NULL, NULL);
    assert_non_null(strstr(plan, "testA and trainA are named like splits"));
    free(plan);
    free(pairs);
}

static void one_word_of_a_split_may_be_a_class(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("bus/1.jpg", "test_tube/2.jpg", "toy_train/3.jpg", "val_bag/4.jpg"));
    plan_says(NULL, NULL, "classes bus test_tube toy_train val_bag\n");
}

static void images_outside_of_class_folders_are_reported(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a/1.jpg", "train/0.jpg", "test/9.png", "test/8.png"));
    plan_is(NULL, "layout imagenette 50: variant image-folder, licence -, classes a\n"
                  "train train/a/1.jpg a - - -\n"
                  "note unlisted test/8.png: not in a class folder\n"
                  "note unlisted test/9.png: not in a class folder\n"
                  "note unlisted train/0.jpg: not in a class folder\n"
                  "note class_notes test: no class has an image in split test\n");
    plan_is(&(mr_layout_options){.keep_unlisted = true},
            "layout imagenette 50: variant image-folder, licence -, classes a\n"
            "test test/8.png - - U -\n"
            "test test/9.png - - U -\n"
            "train train/0.jpg - - U -\n"
            "train train/a/1.jpg a - - -\n"
            "note unlisted test/8.png: not in a class folder: kept without a label\n"
            "note unlisted test/9.png: not in a class folder: kept without a label\n"
            "note unlisted train/0.jpg: not in a class folder: kept without a label\n"
            "note class_notes test: no class has an image in split test\n");
}

static void folders_without_splits_are_one_split(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("b/1.jpg", "a/2.jpg", "a/deep/3.jpg", "c/deep/4.jpg", "top.jpg", ".git/5.jpg"));
    plan_is(NULL, "layout imagenette 20: variant image-folder without splits, licence -, classes a b c\n"
                  "train a/2.jpg a - - -\n"
                  "train a/deep/3.jpg a - - -\n"
                  "train b/1.jpg b - - -\n"
                  "train c/deep/4.jpg c - - -\n"
                  "note notes a: the images of its folders (such as deep) are also of this class; such classes: 1\n"
                  "note unlisted top.jpg: not in a class folder\n"
                  "unused .git/5.jpg\n");
    const mr_split_map map = {"train", "all"};
    plan_says(&(mr_layout_options){.maps = &map, .map_count = 1}, NULL, "\nall a/2.jpg a - - -\n");
}

/* ---- bids ----------------------------------------------------------------------------------------------------- */

static void one_folder_of_images_is_no_layout(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("a/1.jpg", "b/readme.txt"));
    plan_says(NULL, NULL, "choose: no layout");
    plan_says(NULL, "imagenette", "layout imagenette 0: variant image-folder without splits, licence -, classes a\n");
}

static void without_class_folders_the_way_out_is_named(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/1.jpg", "val/2.jpg"));
    plan_says(NULL, NULL, "choose: no layout");
    plan_says(NULL, "imagenette", "plan -2: train: no class folder with images (train/CLASS/IMAGE) found");
}

static void marks_of_roboflow_keep_imagenette_away(void **state)
{
    (void)state;
    static const char *const marks[] = {"README.roboflow.txt", "README.dataset.txt", "train/a/x_jpg.rf.01.jpg",
                                        "valid/a/2.jpg"};
    for (size_t i = 0; i < MR_COUNT(marks); i++) {
        char *inner = support_path("%s/%zu", plan_dir, i), *text;
        support_touch(inner, NAMES("train/a/1.jpg", "train/b/2.jpg", marks[i]));
        text = support_plan(inner, NULL, NULL);
        if (strncmp(text, "layout roboflow ", 16))
            fail_msg("%s: %s", marks[i], text);
        free(text);
        free(inner);
    }
}

static void an_archive_gives_the_same_plan(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("in/top/train/a/1.jpg", "in/top/val/b/2.jpg", "in/top/train/a b/3.jpg"));
    plan_file("in/top/noisy_imagenette.csv", "path,noisy_labels_1\nval/b/2.jpg,a\n");
    char *inner = support_path("%s/in", plan_dir), *expected = support_plan(inner, NULL, NULL);
    static const char *const kinds[] = {"tar", "tar.gz", "zip"};
    assert_non_null(strstr(expected, "val val/b/2.jpg b - - ,\"columns\":{\"noisy_labels_1\":\"a\"}\n"));
    for (size_t i = 0; i < MR_COUNT(kinds); i++) {
        char *archive = support_path("%s/a.%s", plan_dir, kinds[i]);
        support_archive_tree(archive, kinds[i], inner, true);
        support_assert_plan(archive, NULL, expected);
        free(archive);
    }
    free(inner);
    free(expected);
}

/* ---- options -------------------------------------------------------------------------------------------------- */

static void options_of_other_layouts_are_refused(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a/1.jpg"));
    plan_says(&(mr_layout_options){.label_column = "x"}, NULL, "plan -4: --label-column x: there is no noisy_");
    plan_says(&(mr_layout_options){.config = "x"}, NULL, "plan -4: --config: not supported by layout imagenette");
}

/* ---- splits --------------------------------------------------------------------------------------------------- */

static void mapped(const char *from, const char *to, const char *words)
{
    const mr_split_map map = {from, to};
    plan_says(&(mr_layout_options){.maps = &map, .map_count = 1}, NULL, words);
}

static void splits_are_stored_under_mapped_names(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a/1.jpg", "validation/a/2.jpg", "test/a/3.jpg"));
    plan_says(NULL, NULL, "\ntest test/a/3.jpg a - - -\ntrain train/a/1.jpg a - - -\nval validation/a/2.jpg a - - -\n");
    mapped("test", "val", "\nval test/a/3.jpg a - - -\ntrain train/a/1.jpg a - - -\nval validation/a/2.jpg a - - -\n");
    mapped("test", "valid", "\nval test/a/3.jpg a - - -\n");
    mapped("validation", "dev", "\ndev validation/a/2.jpg a - - -\n");
    mapped("val", "dev", "\ndev validation/a/2.jpg a - - -\n");
    mapped("tset", "val",
           "plan -4: --split-map tset=val: the source has no split 'tset'; it has: test, train, validation");
    mapped("test", "../x", "plan -4: --split-map test=../x: a split name has at most");
    mapped("test", "",
           "classes a\ntrain train/a/1.jpg a - - -\nval validation/a/2.jpg a - - -\n"
           "note notes test: left out by --split-map: 1 file\n");
}

static void a_split_that_is_left_out_has_no_classes(void **state)
{
    (void)state;
    const mr_split_map map = {"test", ""};
    support_touch(plan_dir, NAMES("train/b/1.jpg", "test/a/3.jpg"));
    plan_is(&(mr_layout_options){.maps = &map, .map_count = 1},
            "layout imagenette 50: variant image-folder, licence -, classes b\n"
            "train train/b/1.jpg b - - -\n"
            "note notes test: left out by --split-map: 1 file\n");
}

/* ---- plan helpers --------------------------------------------------------------------------------------------- */

static void classes_are_found_in_any_order(void **state)
{
    (void)state;
    mr_plan plan = {0};
    mr_error err;
    char name[8];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "c%d", (i * 7) % 20);
        assert_int_equal(mr_plan_class(&plan, name, strlen(name), false, 0, &err), MR_OK);
    }
    assert_int_equal(mr_plan_classes_place(&plan, &err), MR_OK);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "c%d", i);
            int32_t found = mr_plan_class_find(&plan, name, strlen(name));
            assert_in_range(found, 0, plan.class_count - 1);
            assert_string_equal(plan.classes[found].name, name);
        }
        assert_int_equal(mr_plan_class_find(&plan, "c20", 3), -1);
        assert_int_equal(mr_plan_class_find(&plan, "", 0), -1);
        mr_plan_classes_sort(&plan);
    }
    assert_int_equal(plan.class_count, 20);
    for (size_t i = 1; i < plan.class_count; i++)
        assert_true(strcmp(plan.classes[i - 1].name, plan.classes[i].name) < 0);
    mr_plan_free(NULL, &plan);
}

static void real_imagenette(void **state)
{
    (void)state;
    static const char classes[] = "n01440764 n02102040 n02979186 n03000684 n03028079 n03394916 n03417042 n03425413 "
                                  "n03445777 n03888257";
    char *data = support_data("imagenette/imagenette_shaped");
    if (!data)
        skip();
    char *text = support_plan_counts(data, NULL);
    char *expected = support_path("layout imagenette 95: variant imagenette, licence -, classes %s; train 150, val 60; "
                                  "0 notes, 1 unused\n",
                                  classes);
    assert_string_equal(text, expected);
    free(text);
    /* A quarter of the labels is wrong on purpose: some differ from the folder, none is unknown. */
    text = support_plan(data, NULL, &(mr_layout_options){.label_column = "noisy_labels_25"});
    assert_non_null(strstr(text, "\ntrain train/n02979186/n02979186_22675.JPEG n03000684 - - ,"));
    assert_null(strstr(text, " - - U "));
    free(text);
    free(expected);
    free(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(classes_are_the_union_of_all_splits),
        TEST(a_class_that_joins_folders_is_named),
        TEST(a_copy_of_the_classes_is_no_class),
        TEST(moved_folders_are_refused),
        TEST(classes_are_not_named_like_splits),
        TEST(classes_are_sorted_by_name_not_by_path),
        TEST(file_names_never_decide_the_class),
        TEST(folders_named_like_splits_are_not_classes),
        TEST(one_word_of_a_split_may_be_a_class),
        TEST(images_outside_of_class_folders_are_reported),
        TEST(folders_without_splits_are_one_split),
        TEST(one_folder_of_images_is_no_layout),
        TEST(without_class_folders_the_way_out_is_named),
        TEST(marks_of_roboflow_keep_imagenette_away),
        TEST(an_archive_gives_the_same_plan),
        TEST(options_of_other_layouts_are_refused),
        TEST(splits_are_stored_under_mapped_names),
        TEST(a_split_that_is_left_out_has_no_classes),
        TEST(classes_are_found_in_any_order),
        TEST(real_imagenette),
    };
    return cmocka_run_group_tests_name("layouts_folder", tests, NULL, NULL);
}
