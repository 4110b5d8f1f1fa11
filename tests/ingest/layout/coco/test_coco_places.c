/* test_coco_places.c - COCO: which of several files of the same name an image is.
 * Invariant tested: the folder that the split names wins over images/, images/ wins over the root, and where two
 * files have equal claims the error names both and the option that decides. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/json.h"

#define COCO       &mr_layout_coco
#define MOST_FILES 6

static void put_json(const char *dir, const char *path, const char *file)
{
    char *text = support_path("{\"images\":[{\"id\":1,\"file_name\":\"%s\"}]}", file);
    support_put(dir, path, text);
    free(text);
}

typedef struct tree {
    const char *json, *name;       /* the annotation file, and the file_name of its image */
    const char *files[MOST_FILES]; /* images, the one to be taken first */
} tree;

static char *make(const tree *t)
{
    char *dir = support_tmpdir();
    put_json(dir, t->json, t->name);
    for (size_t i = 0; i < MOST_FILES && t->files[i]; i++)
        support_put(dir, t->files[i], t->files[i]);
    return dir;
}

#define TRAIN "annotations/instances_train2017.json"

static void test_precedence(void **state)
{
    (void)state;
    static const tree trees[] = {
        {TRAIN, "a.jpg", {"train2017/a.jpg", "a.jpg", "images/a.jpg", "annotations/a.jpg", "val2017/a.jpg"}},
        {TRAIN, "a.jpg", {"images/train2017/a.jpg", "a.jpg", "images/a.jpg", "images/val2017/a.jpg", "val2017/a.jpg"}},
        {TRAIN, "a.jpg", {"images/a.jpg", "a.jpg"}},
        {TRAIN, "a.jpg", {"images/a.jpg", "annotations/a.jpg"}},
        {TRAIN, "a.jpg", {"images/a.jpg", "a.jpg", "annotations/a.jpg"}},
        {"instances_train2017.json", "a.jpg", {"images/a.jpg", "a.jpg"}},
        {"instances_train2017.json", "a.jpg", {"train2017/a.jpg", "a.jpg"}},
        {TRAIN, "a.jpg", {"train/a.jpg", "a.jpg", "images/a.jpg"}}, /* a folder without the year */
        {TRAIN, "a.jpg", {"images/train/a.jpg", "a.jpg", "images/a.jpg"}},
        {TRAIN, "a.jpg", {"train2017/a.jpg", "train/a.jpg"}},
        {TRAIN, "x/a.jpg", {"train2017/x/a.jpg", "x/a.jpg", "images/x/a.jpg"}},
        {TRAIN, "train2017/a.jpg", {"train2017/a.jpg", "a.jpg", "images/a.jpg", "val2017/train2017/a.jpg"}},
        {TRAIN, "images/train2017/a.jpg", {"images/train2017/a.jpg", "images/images/train2017/a.jpg"}},
        {TRAIN, "images/a.jpg", {"images/a.jpg", "a.jpg"}},
        {TRAIN, "./a.jpg", {"train2017/a.jpg", "a.jpg"}},
        {TRAIN, "x/../a.jpg", {"images/a.jpg", "a.jpg"}},
        {TRAIN, "val2017/a.jpg", {"val2017/a.jpg", "a.jpg"}}, /* as the json says itself */
    };
    for (size_t i = 0; i < MR_COUNT(trees); i++) {
        char *dir = make(&trees[i]), *expected = support_path("train %s -1 4\n", trees[i].files[0]);
        support_plan p = support_plan_ok(COCO, dir, NULL);
        support_assert_samples(&p, expected);
        support_plan_done(&p);
        free(expected);
        support_tmpdir_remove(dir);
    }
}

/* Nothing tells which: both are named, as the source lists them. */
static void test_ambiguous(void **state)
{
    (void)state;
    static const tree trees[] = {
        {TRAIN, "a.jpg", {"train2017/a.jpg", "images/train2017/a.jpg"}},
        {TRAIN, "a.jpg", {"train2017/a.jpg", "images/train2017/a.jpg", "a.jpg"}},
        {TRAIN, "a.jpg", {"train/a.jpg", "images/train/a.jpg"}},
        {TRAIN, "a.jpg", {"a.jpg", "annotations/a.jpg"}},
        {TRAIN, "x/a.jpg", {"images/x/a.jpg", "x/a.jpg"}},
        {TRAIN, "train2017/a.jpg", {"train2017/a.jpg", "images/train2017/a.jpg"}},
        {TRAIN, "train2017/a.jpg", {"train2017/train2017/a.jpg", "train2017/a.jpg"}},
        {TRAIN, "images/a.jpg", {"images/images/a.jpg", "images/a.jpg"}},
    };
    for (size_t i = 0; i < MR_COUNT(trees); i++) {
        char *dir = make(&trees[i]);
        const char *const *f = trees[i].files;
        support_plan p = support_plan_at(COCO, dir, "", NULL);
        if (p.status != MR_BAD_DATA || !strstr(p.err.text, f[0]) || !strstr(p.err.text, f[1]) ||
            !strstr(p.err.text, "of split train") || !strstr(p.err.text, "--exclude"))
            fail_msg("%s beside %s: status %d, %s", f[0], f[1], p.status, p.err.text);
        support_plan_done(&p);
        support_tmpdir_remove(dir);
    }
}

/* The paths of the message are the source's, so that they can be given to --exclude. */
static void test_ambiguous_below_a_root(void **state)
{
    char *top = *state, *dir = support_path("%s/my data", top);
    put_json(dir, TRAIN, "a.jpg");
    support_put(dir, "train2017/a.jpg", "1");
    support_put(dir, "images/train2017/a.jpg", "2");
    support_plan p = support_plan_at(COCO, top, "my data/", NULL);
    assert_int_equal(p.status, MR_BAD_DATA);
    assert_string_equal(p.err.text, "a.jpg of split train2017 may be my data/train2017/a.jpg or "
                                    "my data/images/train2017/a.jpg: remove one, or leave it out with --exclude "
                                    "'my data/images/train2017'");
    support_plan_done(&p);
    free(dir);
}

/* Folders of other splits are never searched: their pictures may have the same numbers. */
static void test_numbers_collide(void **state)
{
    char *dir = *state;
    put_json(dir, TRAIN, "1.jpg");
    put_json(dir, "annotations/instances_val2017.json", "1.jpg");
    put_json(dir, "annotations/instances_train.json", "1.jpg");
    support_put(dir, "train/1.jpg", "of another annotation file");
    support_put(dir, "val2017/1.jpg", "v");
    support_plan p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "train train/1.jpg -1 4\nval val2017/1.jpg -1 4\n");
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "train2017", "none of the 1 images"));
    support_plan_done(&p);

    support_put(dir, "train2017/2.jpg", "t"); /* its folder is there, and lacks the picture */
    p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "train train/1.jpg -1 4\nval val2017/1.jpg -1 4\n");
    support_plan_done(&p);
}

/* A split with its own folder that finds the rest elsewhere says so. */
static void test_mixed_places_are_told(void **state)
{
    char *dir = *state;
    support_put(dir, TRAIN,
                "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"},{\"id\":2,\"file_name\":\"2.jpg\"},"
                "{\"id\":3,\"file_name\":\"3.jpg\"},{\"id\":4,\"file_name\":\"4.jpg\"}]}");
    support_put(dir, "train2017/1.jpg", "1");
    support_put(dir, "images/2.jpg", "2");
    support_put(dir, "3.jpg", "3");
    support_put(dir, "4.jpg", "4");
    support_plan p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "train 3.jpg -1 4\ntrain 4.jpg -1 4\ntrain images/2.jpg -1 4\n"
                               "train train2017/1.jpg -1 4\n");
    assert_int_equal(support_notes(&p, MR_NOTE_INFO), 1);
    assert_true(support_has_note(&p, MR_NOTE_INFO, "train2017",
                                 "images from several places: 1 from the folder of its "
                                 "name, 1 from images/, 2 loose at the root, in data/ or beside the annotations"));
    support_plan_done(&p);
}

/* The folder without the year is a split's own: what it does not list is of that split. */
static void test_folder_without_year(void **state)
{
    char *dir = *state;
    mr_layout_options keep = {.keep_unlisted = true};
    put_json(dir, TRAIN, "a.jpg");
    put_json(dir, "annotations/captions_train2017.json", "a.jpg");
    support_put(dir, "train/a.jpg", "a");
    support_put(dir, "train/b.jpg", "b");
    support_plan p = support_plan_ok(COCO, dir, &keep);
    assert_int_equal(p.bid.score, 90);
    assert_string_equal(p.bid.refusal, "");
    support_assert_samples(&p, "train train/a.jpg -1 4\ntrain train/b.jpg -1 4\n");
    support_plan_done(&p);
}

static void test_other_case(void **state)
{
    char *dir = *state;
    put_json(dir, TRAIN, "sub/a.jpg");
    support_put(dir, "images/ba.jpg", "b");
    support_put(dir, "val2017/a.jpg", "c"); /* another split's */
    support_plan p = support_plan_at(COCO, dir, "", NULL);
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "train2017", "exist, such as sub/a.jpg (looked in train2017/"));
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "train2017", "beside the annotation files)"));
    support_plan_done(&p);
    support_put(dir, "images/A.JPG", "a");
    p = support_plan_at(COCO, dir, "", NULL);
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "train2017",
                                 "; images/A.JPG is there, but differs in the case of letters"));
    support_plan_done(&p);
}

/* Where no usual place has an image of the split, its name alone finds it, but not one of another split. */
static void test_anywhere(void **state)
{
    char *dir = *state;
    put_json(dir, "a.json", "1.jpg");
    support_put(dir, "my photos/1.jpg", "p");
    support_plan p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "train my photos/1.jpg -1 4\n");
    assert_true(
        support_has_note(&p, MR_NOTE_INFO, "train", "found by their names alone, the first is my photos/1.jpg"));
    support_plan_done(&p);

    put_json(dir, "b_val.json", "1.jpg");
    p = support_plan_at(COCO, dir, "", NULL);
    assert_int_equal(p.status, MR_BAD_DATA);
    assert_non_null(strstr(p.err.text, "the images of split val are in no usual place, and"));
    assert_non_null(strstr(p.err.text, "my photos/1.jpg, found by its name alone, is one of another split"));
    support_plan_done(&p);

    support_put(dir, "val/1.jpg", "v");
    p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "train my photos/1.jpg -1 4\nval val/1.jpg -1 4\n");
    support_plan_done(&p);

    support_put(dir, "other/1.jpg", "o");
    p = support_plan_at(COCO, dir, "", NULL);
    assert_int_equal(p.status, MR_BAD_DATA);
    assert_non_null(strstr(p.err.text, "may be"));
    support_plan_done(&p);
}

/* The images of another split are not those of a split that has none. */
static void test_anywhere_but_in_other_splits(void **state)
{
    char *dir = *state;
    put_json(dir, "a_val.json", "1.jpg");
    support_put(dir, "train_photos/1.jpg", "t");
    support_plan p = support_plan_at(COCO, dir, "", NULL);
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "val", "none of the 1 images"));
    support_plan_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_ambiguous),
        IN_TMPDIR(test_ambiguous_below_a_root),
        IN_TMPDIR(test_numbers_collide),
        IN_TMPDIR(test_mixed_places_are_told),
        IN_TMPDIR(test_folder_without_year),
        IN_TMPDIR(test_other_case),
        IN_TMPDIR(test_anywhere),
        IN_TMPDIR(test_anywhere_but_in_other_splits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
