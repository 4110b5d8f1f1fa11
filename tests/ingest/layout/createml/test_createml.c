/* test_createml.c - CreateML: where its json may lie, what is listed and what is not, and bad files.
 * Invariant tested: every image that is listed or is beside the json is a sample or in a note.
 * Covers tables/createml.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/objects.h"

#define CREATEML &mr_layout_createml

static void test_split_folders(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "train/_annotations.createml.json",
                "\xEF\xBB\xBF[{\"image\":\"b.rf.1.jpg\",\"annotations\":[{\"label\":\"eel\",\"coordinates\":"
                "{\"x\":20.5,\"y\":10,\"width\":11,\"height\":4}},{\"label\":\"cat\"},"
                "{\"coordinates\":{\"height\":2,\"width\":2,\"y\":1,\"x\":1},\"more\":{\"x\":5}}]},"
                "{\"annotations\":[],\"image\":\"a.jpg\"},{\"image\":\"gone.jpg\"},{\"image\":\"../valid/c.jpg\"},"
                "{\"image\":\"a.jpg\"},{\"image\":\"d\\u0000.jpg\"}]");
    support_put(dir, "train/a.jpg", "");
    support_put(dir, "train/b.rf.1.jpg", "");
    support_put(dir, "train/e.jpg", "");
    support_put(dir, "valid/c.jpg", "");
    support_put(dir, "valid/_annotations.createml.json",
                "[{\"imagefilename\":\"c.jpg\",\"annotation\":[{\"label\":\"ant\",\"coordinates\":"
                "{\"x\":2,\"y\":2,\"width\":4,\"height\":4}}]}]");
    support_plan p = support_plan_ok(CREATEML, dir, NULL);
    assert_int_equal(p.bid.score, 88);
    support_assert_samples(&p, "train train/a.jpg -1 4\ntrain train/b.rf.1.jpg -1 0\nval valid/c.jpg -1 0\n");
    assert_int_equal(p.plan.class_count, 3);
    support_assert_meta(&p, 0, ",\"createml\":[{\"annotations\":[],\"image\":\"a.jpg\"},{\"image\":\"a.jpg\"}]");
    support_assert_objects(&p, 0, 100, 50, "[]");
    support_assert_objects(&p, 1, 100, 50, "[{\"label\":2,\"class\":\"eel\",\"box\":[15,8,11,4]},{\"box\":[0,0,2,2]}]");
    support_assert_objects(&p, 2, 100, 50, "[{\"label\":0,\"class\":\"ant\",\"box\":[0,0,4,4]}]");
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "gone.jpg", "names it (annotations: 0)"));
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "../valid/c.jpg", "names it"));
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "d\\x00.jpg", "names it"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "", "more entries for images that already have one: 1;"));
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "train/e.jpg", "not listed"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_one_folder(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "boxes.json",
                "[{\"image\":\"a.jpg\",\"annotations\":[{\"label\":\"x\",\"coordinates\":{\"x\":2,\"y\":2,"
                "\"width\":4,\"height\":4}}]}]");
    support_put(dir, "a.jpg", "");
    support_put(dir, "b.jpg", "");
    support_plan p = support_plan_ok(CREATEML, dir, &(mr_layout_options){.keep_unlisted = true});
    assert_int_equal(p.bid.score, 73);
    support_assert_samples(&p, "train a.jpg -1 0\ntrain b.jpg -1 4\n");
    support_assert_objects(&p, 1, 100, 50, "-");
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* Names of images that begin with digits come before "_annotations.createml.json" and "boxes.json". */
static void test_many_images(void **state)
{
    (void)state;
    static const char *const names[] = {"train/_annotations.createml.json", "train/boxes.json"};
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        char *dir = support_tmpdir();
        support_put(dir, names[i],
                    "[{\"image\":\"100.jpg\",\"annotations\":[{\"label\":\"x\",\"coordinates\":{\"x\":2,\"y\":2,"
                    "\"width\":4,\"height\":4}}]}]");
        for (int n = 100; n < 700; n++) {
            char *name = support_path("train/%d.jpg", n);
            support_put(dir, name, "");
            free(name);
        }
        support_plan p = support_plan_ok(CREATEML, dir, NULL);
        assert_int_equal(p.bid.score, i ? 78 : 88);
        support_assert_samples(&p, "train train/100.jpg -1 0\n");
        support_plan_done(&p);
        support_tmpdir_remove(dir);
    }
}

static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } trials[] = {
        {"{}", "train/_annotations.createml.json: byte 1: not a CreateML annotation file: it does not hold a list"},
        {"[3]", "its list holds something that is not an object"},
        {"[{\"image\":\"a\",\"image\":\"b\"}]", "duplicate key \"image\" in an object"},
        {"[{\"image\":\"a\"}", "not JSON"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        support_put(dir, "train/_annotations.createml.json", trials[i].text);
        support_put(dir, "train/a.jpg", "");
        support_plan_fails(CREATEML, dir, NULL, MR_BAD_DATA, trials[i].why);
        support_tmpdir_remove(dir);
    }
}

#define BOX(label)       "{\"label\":" label ",\"coordinates\":{\"x\":2,\"y\":2,\"width\":4,\"height\":4}}"
#define ENTRY(name, ...) "{\"image\":\"" name "\",\"annotations\":[" __VA_ARGS__ "]}"
#define CAT              BOX("\"cat\"")

/* A bad value costs its image, and no other. */
static void test_bad_values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path, *why;
    } trials[] = {
        {"null", "train/a.json", "an object without \"image\""},
        {"{}", "train/a.json", "an object without \"image\""},
        {"{\"image\":3}", "train/a.json", "\"image\" is not a string"},
        {"{\"image\":\"\"}", "train/a.json", "\"image\" is empty"},
        {"{\"image\":\"\xFF.jpg\"}", "train/a.json", "text that is not UTF-8"},
        {ENTRY("b.jpg", "{\"label\":true}"), "train/b.jpg", "\"label\" is not a string"},
        {ENTRY("b.jpg", BOX("\"caf\xE9\"")), "train/b.jpg", "text that is not UTF-8"},
        {ENTRY("b.jpg", "{\"coordinates\":{\"x\":NaN}}"), "train/b.jpg", "holds something that is not a number"},
        {ENTRY("b.jpg", "{\"coordinates\":{\"x\":\"1\"}}"), "train/b.jpg", "holds something that is not a number"},
        {ENTRY("b.jpg", "{\"coordinates\":{\"x\":1}}"), "train/b.jpg", "without all of x, y, width and height"},
        {ENTRY("b.jpg", "{\"coordinates\":null}"), "train/b.jpg", "\"coordinates\" is not an object"},
        {ENTRY("b.jpg", "{\"more\":Infinity}"), "train/b.jpg", "byte 141: NaN or Infinity"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir(), *text = support_path("[" ENTRY("a.jpg", CAT) ",%s]", trials[i].text);
        support_put(dir, "train/a.json", text);
        support_put(dir, "train/a.jpg", "");
        support_put(dir, "train/b.jpg", "");
        support_plan p = support_plan_ok(CREATEML, dir, NULL);
        support_assert_samples(&p, "train train/a.jpg -1 0\n");
        assert_int_equal(p.plan.class_count, 1);
        if ((support_notes(&p, MR_NOTE_REJECT) != 1 ||
             !support_has_note(&p, MR_NOTE_REJECT, trials[i].path, trials[i].why)))
            fail_msg("%s: not rejected as: %s", trials[i].text, trials[i].why);
        support_plan_done(&p);
        support_tmpdir_remove(dir);
        free(text);
    }
}

/* What several files and entries say about an image adds up; a copy says nothing new. */
static void test_entries_are_joined(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "a.jpg", "");
    support_put(dir, "b.jpg", "");
    support_put(dir, "one.json", "[" ENTRY("a.jpg", CAT) "," ENTRY("a.jpg", BOX("7")) "]");
    support_put(dir, "two.json", "[" ENTRY("b.jpg", CAT) "," ENTRY("a.jpg", CAT) "]");
    support_plan p = support_plan_ok(CREATEML, dir, NULL);
    support_assert_samples(&p, "train a.jpg -1 0\ntrain b.jpg -1 0\n");
    support_assert_objects(&p, 0, 100, 50,
                           "[{\"label\":1,\"class\":\"cat\",\"box\":[0,0,4,4]},"
                           "{\"label\":0,\"class\":\"7\",\"box\":[0,0,4,4]}]");
    support_assert_objects(&p, 1, 100, 50, "[{\"label\":1,\"class\":\"cat\",\"box\":[0,0,4,4]}]");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "", "more entries for images that already have one: 1;"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "", "entries that repeat another for the same image exactly: 1;"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* Images in class folders, or named by a path of another machine, where only one has the name. */
static void test_images_below_the_file(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "train/cat/a.jpg", "");
    support_put(dir, "train/cat/b.jpg", "");
    support_put(dir, "train/dog/b.jpg", "");
    support_put(dir, "train/dog/c.jpg", "");
    support_put(dir, "valid/d.jpg", "");
    support_put(dir, "train/boxes.json",
                "[" ENTRY("a.jpg", CAT) "," ENTRY("b.jpg", CAT) "," ENTRY("C:\\\\me\\\\dog\\\\b.jpg", CAT) "," ENTRY(
                    "/me/c.jpg", CAT) "," ENTRY("d.jpg", CAT) "," ENTRY("cow/c.jpg", CAT) "]");
    support_plan p = support_plan_ok(CREATEML, dir, NULL);
    support_assert_samples(&p, "train train/cat/a.jpg -1 0\ntrain train/dog/b.jpg -1 0\ntrain train/dog/c.jpg -1 0\n");
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "b.jpg", "may be train/cat/b.jpg or train/dog/b.jpg"));
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "d.jpg", "names it (annotations: 1)"));
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "cow/c.jpg", "names it"));
    support_plan_done(&p);
    support_put(dir, "train/boxes.json", "[" ENTRY("cat/b.jpg", CAT) "]"); /* as advised */
    p = support_plan_ok(CREATEML, dir, NULL);
    support_assert_samples(&p, "train train/cat/b.jpg -1 0\n");
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_a_file_above_the_splits(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "train/a.jpg", "");
    support_put(dir, "val/a.jpg", "");
    support_put(dir, "boxes.json", "[" ENTRY("train/a.jpg", CAT) "," ENTRY("val/a.jpg", CAT) "]");
    support_plan p = support_plan_ok(CREATEML, dir, NULL);
    support_assert_samples(&p, "train train/a.jpg -1 0\nval val/a.jpg -1 0\n");
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_long_name(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *name = malloc(4098);
    assert_non_null(name);
    memset(name, 'a', 4097);
    name[4097] = '\0';
    char *text = support_path("[{\"image\":\"%s\"}]", name);
    support_put(dir, "train/_annotations.createml.json", text);
    support_put(dir, "train/a.jpg", "");
    support_plan p = support_plan_ok(CREATEML, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "train/_annotations.createml.json", "more than 4,096 bytes"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
    free(name);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_split_folders),
                                       cmocka_unit_test(test_one_folder),
                                       cmocka_unit_test(test_bad_files),
                                       cmocka_unit_test(test_many_images),
                                       cmocka_unit_test(test_long_name),
                                       cmocka_unit_test(test_bad_values),
                                       cmocka_unit_test(test_entries_are_joined),
                                       cmocka_unit_test(test_images_below_the_file),
                                       cmocka_unit_test(test_a_file_above_the_splits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
