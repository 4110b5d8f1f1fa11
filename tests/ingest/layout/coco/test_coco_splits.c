/* test_coco_splits.c - COCO: which annotation files make a split, its name, and how they name pictures. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/json.h"

#define COCO &mr_layout_coco

/* annotations/NAME with an image of this file_name, and one annotation of this category. */
static void put_json(const char *dir, const char *name, const char *file, int category)
{
    char *path = support_path("annotations/%s", name);
    char *text = support_path("{\"images\":[{\"id\":1,\"file_name\":\"%s\"}],\"annotations\":[{\"image_id\":1,"
                              "\"category_id\":%d,\"bbox\":[1,1,2,2]}],\"categories\":[{\"id\":3,\"name\":\"cat\"}]}",
                              file, category);
    support_put(dir, path, text);
    free(text);
    free(path);
}

/* instances_SPLIT.json and its picture SPLIT/a.jpg. */
static void put_split(const char *dir, const char *split)
{
    char *name = support_path("instances_%s.json", split), *image = support_path("%s/a.jpg", split);
    put_json(dir, name, "a.jpg", 3);
    support_put(dir, image, split);
    free(image);
    free(name);
}

static void test_two_files_of_a_kind(void **state)
{
    const char *dir = *state;
    put_split(dir, "train2017");
    put_json(dir, "instances_train2017.JSON", "a.jpg", 3);
    support_plan_fails(COCO, *state, NULL, MR_BAD_DATA,
                       "annotations/instances_train2017.JSON and annotations/"
                       "instances_train2017.json are both the instances of split train2017");
    static const char *const kinds[] = {"captions", "instances", "person_keypoints"};
    for (unsigned i = 0; i < 18; i++) { /* more of them than there are kinds */
        char name[64];
        snprintf(name, sizeof name, "%s_train2017.%c%c%cn", kinds[i % 3], i / 3 & 1 ? 'J' : 'j', i / 3 & 2 ? 'S' : 's',
                 i / 3 & 4 ? 'O' : 'o');
        put_json(dir, name, "a.jpg", 3);
    }
    support_plan_fails(COCO, *state, NULL, MR_BAD_DATA, "are both the ");
}

/* The digits are cut where that leaves every split a name of its own. */
static void test_years(void **state)
{
    const char *dir = *state;
    put_split(dir, "train2014");
    put_split(dir, "train2017");
    put_split(dir, "val2017");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "train2014 train2014/a.jpg -1 0\ntrain2017 train2017/a.jpg -1 0\n"
                               "val val2017/a.jpg -1 0\n");
    assert_int_equal(p.notes.count, 0);
    support_plan_done(&p);

    mr_split_map maps[] = {{"train", "all"}, {"val", "all"}};
    mr_layout_options options = {.maps = maps, .map_count = 2};
    p = support_plan_ok(COCO, *state, &options);
    support_assert_samples(&p, "all train2014/a.jpg -1 0\nall train2017/a.jpg -1 0\nall val2017/a.jpg -1 0\n");
    support_plan_done(&p);

    maps[0] = (mr_split_map){"train2014", "old"};
    options.map_count = 1;
    p = support_plan_ok(COCO, *state, &options);
    support_assert_samples(&p, "old train2014/a.jpg -1 0\ntrain train2017/a.jpg -1 0\nval val2017/a.jpg -1 0\n");
    support_plan_done(&p);

    maps[0] = (mr_split_map){"train2014", ""};
    p = support_plan_ok(COCO, *state, &options);
    support_assert_samples(&p, "train train2017/a.jpg -1 0\nval val2017/a.jpg -1 0\n");
    support_plan_done(&p);
}

/* The annotation files of every year come in one archive: those of a year without pictures change no name. */
static void test_a_year_without_pictures(void **state)
{
    const char *dir = *state;
    put_json(dir, "instances_train2014.json", "none.jpg", 3);
    put_split(dir, "train2017");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "train train2017/a.jpg -1 0\n");
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "train2014", "none of the 1 images"));
    support_plan_done(&p);

    mr_layout_options options = {.keep_unlisted = true};
    support_put(dir, "train2014/unlisted.jpg", "u");
    p = support_plan_ok(COCO, *state, &options);
    support_assert_samples(&p, "train train2017/a.jpg -1 0\ntrain2014 train2014/unlisted.jpg -1 4\n");
    support_plan_done(&p);
}

/* One of the files of a split is missing, as after a download that was interrupted. */
static void test_a_kind_that_a_split_lacks(void **state)
{
    const char *dir = *state;
    put_split(dir, "train2017");
    put_split(dir, "val2017");
    put_json(dir, "captions_val2017.json", "a.jpg", 3);
    support_plan p = support_plan_ok(COCO, *state, NULL);
    assert_true(support_has_note(&p, MR_NOTE_INFO, "train2017",
                                 "no file of captions for this split, where val2017 has one: is it missing?"));
    support_plan_done(&p);
    put_json(dir, "captions_train2017.json", "a.jpg", 3);
    put_json(dir, "image_info_test2017.json", "t.jpg", 3);
    support_put(dir, "test2017/t.jpg", "t");
    p = support_plan_ok(COCO, *state, NULL);
    assert_int_equal(support_notes(&p, MR_NOTE_INFO), 0);
    support_plan_done(&p);
}

static void test_folds(void **state)
{
    const char *dir = *state;
    support_put(dir, "images/a.jpg", "a");
    for (int i = 1; i <= 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "instances_fold%d.json", i);
        put_json(dir, name, "a.jpg", 3);
    }
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "fold1 images/a.jpg -1 0\nfold2 images/a.jpg -1 0\nfold3 images/a.jpg -1 0\n");
    assert_int_equal(p.notes.count, 0);
    support_plan_done(&p);
}

static void test_two_names_of_val(void **state)
{
    put_split(*state, "val2017");
    put_split(*state, "validation");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "val val2017/a.jpg -1 0\nval validation/a.jpg -1 0\n");
    assert_int_equal(p.notes.count, 1);
    assert_true(support_has_note(&p, MR_NOTE_INFO, "val", "val and validation are stored as this one split"));
    support_plan_done(&p);
}

/* What a name means inside the folder counts, not how it is written; paths of another place count by their ends. */
static void test_unusual_file_names(void **state)
{
    static const struct {
        const char *name;
        bool found, rejected;
    } cases[] = {
        {"./a.jpg", true, false},
        {"x/../a.jpg", true, false},
        {"x//b.jpg", true, false},
        {"x/./b.jpg", true, false},
        {"./val/x/b.jpg", true, false},
        {"../val/a.jpg", true, false},
        {"/a.jpg", true, false},
        {"/home/me/x/b.jpg", true, false},
        {"/home/me/train/a.jpg", false, false},
        {"", false, true},
        {".", false, true},
        {"x/..", false, true},
        {"a.jpg\\u0000", false, true},
        {"x\\\\b.jpg", true, false},
        {"C:\\\\me\\\\val\\\\a.jpg", true, false},
        {"..\\\\a.jpg", true, false},
        {"https://h.org/x/b.jpg?size=1", true, false},
        {"s3://bucket/a.jpg", true, false},
        {"file:///d/val/a.jpg", true, false},
        {"/data/local-files/?d=val/a.jpg", true, false},
        {"http://h/x/%62%2Ejpg", true, false},
        {"%61.jpg", true, false},
        {"x%2Fb.jpg", true, false},
        {"x/100%.jpg", true, false},
        {"%62.jpg", false, false},
        {"me/val/a.jpg", true, false},
        {"me/a.jpg", false, false},
        {"/me/c.jpg", false, false},
    };
    const char *dir = *state;
    support_put(dir, "val/a.jpg", "a");
    support_put(dir, "val/x/b.jpg", "b");
    support_put(dir, "val/x/100%.jpg", "c");
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        put_json(dir, "instances_val.json", cases[i].name, 3);
        support_plan p = support_plan_ok(COCO, *state, NULL);
        if (p.plan.sample_count != cases[i].found || support_notes(&p, MR_NOTE_REJECT) != cases[i].rejected ||
            support_notes(&p, MR_NOTE_MISSING) != (!cases[i].found && !cases[i].rejected))
            fail_msg("\"%s\": %zu samples, %zu rejects, %zu missing", cases[i].name, p.plan.sample_count,
                     support_notes(&p, MR_NOTE_REJECT), support_notes(&p, MR_NOTE_MISSING));
        support_plan_done(&p);
    }
}

/* Among files that share as much with the name, the one in the split's own folder is right; else none is. */
static void test_names_that_fit_several_files(void **state)
{
    const char *dir = *state;
    support_put(dir, "one/a.jpg", "a");
    support_put(dir, "two/a.jpg", "b");
    put_json(dir, "instances_val.json", "/mnt/two/a.jpg", 3);
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "val two/a.jpg -1 0\n");
    support_plan_done(&p);
    put_json(dir, "instances_val.json", "/mnt/a.jpg", 3);
    support_plan_fails(COCO, *state, NULL, MR_BAD_DATA,
                       "\"file_name\" mnt/a.jpg of the annotation files may be one/a.jpg or two/a.jpg: in the JSON, "
                       "name the images by their paths from the root");
    put_json(dir, "instances_val.json", "one/a.jpg", 3); /* as advised */
    p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "val one/a.jpg -1 0\n");
    support_plan_done(&p);
}

static void test_unknown_category(void **state)
{
    support_put(*state, "val/a.jpg", "a");
    put_json(*state, "instances_val.json", "a.jpg", 555);
    support_plan p = support_plan_ok(COCO, *state, NULL);
    assert_true(support_has_note(&p, MR_NOTE_INFO, "annotations/instances_val.json",
                                 "annotations of a category that is not listed, such as 555: 1"));
    support_plan_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_two_files_of_a_kind),
        IN_TMPDIR(test_years),
        IN_TMPDIR(test_a_year_without_pictures),
        IN_TMPDIR(test_a_kind_that_a_split_lacks),
        IN_TMPDIR(test_folds),
        IN_TMPDIR(test_two_names_of_val),
        IN_TMPDIR(test_unusual_file_names),
        IN_TMPDIR(test_unknown_category),
        IN_TMPDIR(test_names_that_fit_several_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
