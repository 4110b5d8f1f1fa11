/* test_leak.c - what is a leak between splits: equal bytes, or one name, one label and pictures that look alike.
 * Invariant: each test draws its own Roboflow export; what is reported is compared to the letter. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/leak.h"

/* ---- two files ------------------------------------------------------------------------------------------------- */

static void test_equal_bytes_are_proof(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/daisy/a_jpg.rf.02.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/rose/other.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_put("test/daisy/b_jpg.rf.03.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_expect(
        "test/daisy/b_jpg.rf.03.jpg: equal bytes (with different labels), in val and test: also valid/rose/other.jpg\n"
        "valid/daisy/a_jpg.rf.02.jpg: equal bytes, in train and val: also train/daisy/a_jpg.rf.01.jpg\n",
        "", 1, 1);
}

/* Within one split they are not a leak, but one of the labels is wrong. */
static void test_contradictions(void **state)
{
    (void)state;
    leak_put("train/daisy/a.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/daisy/b.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/rose/c.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/rose/d.jpg", 3, (alike_edit){0}, ALIKE_JPEG);
    support_result r = support_millrace("ingest", leak_source, "--dry-run", (char *)NULL);
    support_assert_status(&r, 0);
    assert_null(strstr(r.out, "equal bytes, but"));
    support_result_free(&r);
    leak_put("train/rose/e.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/daisy/f.jpg", 3, (alike_edit){0}, ALIKE_JPEG);
    r = support_millrace("ingest", leak_source, "--dry-run", (char *)NULL);
    support_assert_status(&r, 0);
    if (!strstr(r.out, "train/rose/e.jpg: equal bytes, but different labels (2 such images in total), in train: also "
                       "train/daisy/b.jpg\n"))
        fail_msg("%s", r.out);
    support_result_free(&r);
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

/* ---- labels of other exports ----------------------------------------------------------------------------------- */

/* Sets of labels are equal whatever the order of the columns. */
static void test_several_labels(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c"};
    for (unsigned i = 0; i < 3; i++) {
        char *one = support_path("train/%s_jpg.rf.1.jpg", names[i]),
             *two = support_path("valid/%s_jpg.rf.2.jpg", names[i]);
        leak_put(one, 1 + i, (alike_edit){0}, ALIKE_JPEG);
        leak_put(two, 1 + i, (alike_edit){.mirror = true}, ALIKE_JPEG);
        free(one);
        free(two);
    }
    leak_put_text("train/_classes.csv", "filename, red, blue, round\na_jpg.rf.1.jpg, 1, 0, 1\nb_jpg.rf.1.jpg, 1, 1, 0\n"
                                        "c_jpg.rf.1.jpg, 1, 0, 0\n");
    leak_put_text("valid/_classes.csv", "filename, round, red, blue\na_jpg.rf.2.jpg, 1, 1, 0\nb_jpg.rf.2.jpg, 1, 1, 0\n"
                                        "c_jpg.rf.2.jpg, 0, 1, 1\n");
    leak_expect(
        "valid/a_jpg.rf.2.jpg: " LEAK_COPY "train/a_jpg.rf.1.jpg\n",
        "valid/b_jpg.rf.2.jpg: same name, and the images look alike, but different labels, in train and val: also "
        "train/b_jpg.rf.1.jpg\n"
        "valid/c_jpg.rf.2.jpg: same name, and the images look alike, but different labels, in train and val: also "
        "train/c_jpg.rf.1.jpg\n",
        0, 1);
}

/* Boxes move with the pixels, so they are not labels. */
static void test_coco_exports(void **state)
{
    (void)state;
    leak_put("train/a_jpg.rf.1.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/a_jpg.rf.2.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    static const char json[] = "{\"images\":[{\"id\":0,\"file_name\":\"a_jpg.rf.%d.jpg\",\"width\":200,\"height\":150}]"
                               ",\"categories\":[{\"id\":0,"
                               "\"name\":\"pen\"}],\"annotations\":[{\"id\":0,\"image_id\":0,\"category_id\":0,"
                               "\"bbox\":[%d,20,30,40],\"area\":1200,"
                               "\"iscrowd\":0}]}";
    for (int i = 1; i <= 2; i++) {
        char *text = support_path(json, i, i == 1 ? 10 : 160);
        leak_put_text(i == 1 ? "train/_annotations.coco.json" : "valid/_annotations.coco.json", text);
        free(text);
    }
    leak_expect("valid/a_jpg.rf.2.jpg: " LEAK_COPY "train/a_jpg.rf.1.jpg\n", "", 0, 1);
}

/* No label contradicts none. */
static void test_files_without_a_label(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.1.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/daisy/b_jpg.rf.1.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/a_jpg.rf.2.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    support_result r =
        support_millrace("ingest", leak_source, "--dry-run", "--keep-unlisted", "--fail-on-leak=alike", (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.err, "valid/a_jpg.rf.2.jpg: " LEAK_COPY "train/daisy/a_jpg.rf.1.jpg\n"));
    assert_non_null(
        strstr(r.err, "millrace: 1 leak between splits, and --fail-on-leak=alike is given; nothing was written\n"));
    support_result_free(&r);
}

/* ---- how it runs ------------------------------------------------------------------------------------------------ */

static void test_words(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/daisy/a_jpg.rf.02.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    SAYS(leak_dir, 2, "",
         "millrace ingest: --fail-on-leak all: use none, equal or alike\n"
         "Try 'millrace ingest --help'.\n",
         "ingest", "export", "--dry-run", "--fail-on-leak=all");
    SAYS(leak_dir, 2, "", NULL, "ingest", "export", "--dry-run", "--fail-on-leak=");
    SAYS(leak_dir, 1, "",
         "leaks between splits: 1\n"
         "  valid/daisy/a_jpg.rf.02.jpg: equal bytes, in train and val: also train/daisy/a_jpg.rf.01.jpg\n"
         "  -> --exclude removes one of each pair; --fail-on-leak makes leaks an error\n"
         "millrace: 1 leak between splits by equal bytes, and --fail-on-leak is given; nothing was written\n",
         "ingest", "export", "--dry-run", "--fail-on-leak");
}

static void test_real_exports(void **state)
{
    (void)state;
    char *folder = support_data("roboflow/multiclass_panneau");
    if (!folder)
        skip();
    free(leak_source);
    leak_source = folder;
    leak_expect(
        "test/znak1222-_jpg.rf.34ba6c372fd8441de303c151fd9acbba.jpg: copies of one image (they look "
        "alike), in val and test: also valid/znak1222-_jpg.rf.ca42f6d51e348b510a2741d8cd6de6d2.jpg\n",
        "test/images_png.rf.4367fdc755d197b54d2d5ceea29ddfbe.jpg: same name, but different labels and images, in "
        "val and test: also valid/images_png.rf.6d57e82f9ebe32a74b5430d347420375.jpg\n",
        0, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, leak_set_up, leak_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_equal_bytes_are_proof), TEST(test_contradictions), TEST(test_several_labels), TEST(test_coco_exports),
        TEST(test_files_without_a_label), TEST(test_words),          TEST(test_real_exports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
