/* test_coco_trees.c - COCO as other tools arrange it: CVAT, LVIS, minival, several files of one split; bad values.
 * Covers coco/groups.c, coco/names.c, common/coco_classes.c.
 * Invariant tested: every image of every file is a sample of the split that its tool means, or a reject. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/coco/coco.h"
#include "tests/support/json.h"

#define COCO &mr_layout_coco

/* A file that lists these images, with an annotation each; names are JSON, divided by blanks. */
static void put_json(const char *dir, const char *path, const char *names, const char *more)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_buf_add_text(&text, "{\"images\":[");
    int id = 0;
    for (const char *at = names; *at; at += strcspn(at, " "), at += strspn(at, " "), id++)
        mr_buf_printf(&text, "%s{\"id\":%d,\"file_name\":\"%.*s\"}", id ? "," : "", id + 1, (int)strcspn(at, " "), at);
    mr_buf_add_text(&text, "],\"categories\":[{\"id\":1,\"name\":\"cat\"}],\"annotations\":[");
    for (int i = 1; i <= id; i++)
        mr_buf_printf(&text, "%s{\"image_id\":%d,\"category_id\":1,\"bbox\":[1,1,2,2]}", i > 1 ? "," : "", i);
    mr_buf_printf(&text, "%s]}", more);
    support_put(dir, path, mr_buf_text(&text));
}

static void touch(const char *dir, const char *names)
{
    for (const char *at = names; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        char *name = support_path("%.*s", (int)strcspn(at, " "), at);
        support_put(dir, name, "");
        free(name);
    }
}

static void test_one_file_over_folders_of_splits(void **state)
{
    const char *dir = *state;
    touch(dir, "images/train/a.jpg images/train/b.jpg images/val/c.jpg");
    put_json(dir, "annotations/instances_default.json", "train/a.jpg train/b.jpg val/c.jpg", "");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    assert_string_equal(p.bid.refusal, "");
    support_assert_samples(&p,
                           "train images/train/a.jpg -1 0\ntrain images/train/b.jpg -1 0\nval images/val/c.jpg -1 0\n");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "annotations/instances_default.json",
                                 "its name does not give the split, but the folders of its images do"));
    support_plan_done(&p);
    const mr_split_map map = {"train", ""};
    p = support_plan_ok(COCO, *state, &(mr_layout_options){.maps = &map, .map_count = 1});
    support_assert_samples(&p, "val images/val/c.jpg -1 0\n");
    support_plan_done(&p);
    touch(dir, "images/other/d.jpg");
    put_json(dir, "annotations/instances_default.json", "train/a.jpg other/d.jpg", "");
    p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "default images/other/d.jpg -1 0\ndefault images/train/a.jpg -1 0\n");
    support_plan_done(&p);
}

/* What images say of their splits does not divide them, which a note says. */
static void test_splits_in_images(void **state)
{
    char *dir = *state;
    static const char *const second[] = {"test", "train"};
    touch(dir, "a.jpg b.jpg");
    for (int i = 0; i < 2; i++) {
        char *text =
            support_path("{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\",\"split\":\"train\"},{\"id\":2,\"file_name\":"
                         "\"b.jpg\",\"split\":\"%s\"}],\"categories\":[],\"annotations\":[]}",
                         second[i]);
        support_put(dir, "a.json", text);
        support_plan p = support_plan_ok(COCO, dir, NULL);
        assert_int_equal(p.plan.sample_count, 2);
        assert_int_equal(support_has_note(&p, MR_NOTE_INFO, "a.json",
                                          "its images have a member \"split\" (train, test), which is kept in their "
                                          "metas and does not divide them: write a JSON for each split"),
                         i == 0);
        support_plan_done(&p);
        free(text);
    }
}

/* What --split-map leaves out is left out wherever it is, so that nothing is left to account for. */
static void test_a_split_that_is_left_out(void **state)
{
    const char *dir = *state;
    const mr_split_map map = {"val", ""};
    touch(dir, "images/a.jpg images/b.jpg images/c.jpg");
    put_json(dir, "annotations/instances_train.json", "a.jpg", "");
    put_json(dir, "annotations/instances_val.json", "b.jpg a.jpg", "");
    support_plan p = support_plan_ok(COCO, *state, &(mr_layout_options){.maps = &map, .map_count = 1});
    support_assert_samples(&p, "train images/a.jpg -1 0\n");
    uint32_t b = mr_tree_find(&p.tree, "images/b.jpg", strlen("images/b.jpg"));
    assert_int_equal(p.plan.used[b], MR_USE_LEFT_OUT);
    assert_int_equal(p.plan.used[b + 1], MR_USE_NONE);
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "images/c.jpg", "not in any annotation file of its split"));
    support_plan_done(&p);
}

static void test_pairs_of_cvat(void **state)
{
    const char *dir = *state;
    touch(dir, "images/train/a.jpg images/val/b.jpg");
    put_json(dir, "annotations/instances_default.json", "train/a.jpg", "");
    put_json(dir, "annotations/val_instances_default.json", "val/b.jpg", "");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "train images/train/a.jpg -1 0\nval images/val/b.jpg -1 0\n");
    support_plan_done(&p);
}

static void test_minival(void **state)
{
    const char *dir = *state;
    touch(dir, "val2014/a.jpg val2014/b.jpg train2014/c.jpg");
    put_json(dir, "annotations/instances_train2014.json", "c.jpg", "");
    put_json(dir, "annotations/instances_minival2014.json", "a.jpg", "");
    put_json(dir, "annotations/instances_valminusminival2014.json", "b.jpg", "");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(
        &p, "minival val2014/a.jpg -1 0\ntrain train2014/c.jpg -1 0\nvalminusminival val2014/b.jpg -1 0\n");
    support_plan_done(&p);
    put_json(dir, "annotations/instances_val2014.json", "a.jpg b.jpg", "");
    p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "minival val2014/a.jpg -1 0\ntrain train2014/c.jpg -1 0\nval val2014/a.jpg -1 0\n"
                               "val val2014/b.jpg -1 0\nvalminusminival val2014/b.jpg -1 0\n");
    support_plan_done(&p);
}

static void test_parts_of_one_split(void **state)
{
    const char *dir = *state, *given[] = {"train_a.json", "train_b.json"};
    const mr_layout_options both = {.annotations = given, .annotation_count = 2};
    touch(dir, "images/a.jpg images/b.jpg images/c.jpg");
    put_json(dir, given[0], "a.jpg b.jpg", "");
    put_json(dir, given[1], "c.jpg", "");
    support_plan_fails(COCO, *state, NULL, MR_BAD_DATA,
                       "--annotations train_a.json --annotations train_b.json reads both");
    support_plan p = support_plan_ok(COCO, *state, &both);
    support_assert_samples(&p, "train images/a.jpg -1 0\ntrain images/b.jpg -1 0\ntrain images/c.jpg -1 0\n");
    assert_int_equal(support_notes(&p, MR_NOTE_UNLISTED), 0);
    support_plan_done(&p);
    put_json(dir, given[1], "b.jpg c.jpg", "");
    p = support_plan_ok(COCO, *state, &both);
    assert_int_equal(support_notes(&p, MR_NOTE_COLLISION), 1);
    support_plan_done(&p);
    const char *parts[] = {"instances_train_part1.json", "instances_train-00002-of-00003.json",
                           "instances_train_3.json", "instances_train_2014.json"};
    for (size_t i = 0; i < 4; i++) {
        char *image = support_path("images/%zu.jpg", i), *name = support_path("%zu.jpg", i);
        touch(dir, image);
        put_json(dir, parts[i], name, "");
        free(image);
        free(name);
    }
    p = support_plan_ok(COCO, *state, &(mr_layout_options){.annotations = parts, .annotation_count = 4});
    support_assert_samples(&p, "train images/0.jpg -1 0\ntrain images/1.jpg -1 0\ntrain images/2.jpg -1 0\n"
                               "train_2014 images/3.jpg -1 0\n");
    support_plan_done(&p);
}

static void test_urls_of_lvis(void **state)
{
    const char *dir = *state;
    touch(dir, "train2017/a.jpg val2017/b.jpg");
    support_put(dir, "annotations/lvis_v1_val.json",
                "{\"images\":[{\"id\":1,\"coco_url\":\"http://images.cocodataset.org/train2017/a.jpg\"},"
                "{\"id\":2,\"coco_url\":\"http://images.cocodataset.org/val2017/b.jpg\"}],"
                "\"categories\":[{\"id\":1,\"name\":\"cat\"}],\"annotations\":[]}");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "val train2017/a.jpg -1 4\nval val2017/b.jpg -1 4\n");
    support_plan_done(&p);
}

static void test_bad_values_reject_their_image(void **state)
{
    const char *dir = *state;
    touch(dir, "train/a.jpg train/b.jpg train/c.jpg");
    put_json(dir, "annotations/instances_train.json", "a.jpg b.jpg c.jpg",
             ",{\"image_id\":2,\"category_id\":1,\"bbox\":[1,NaN,2,2]},{\"image_id\":3,\"category_id\":null},"
             "{\"image_id\":null}");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "train train/a.jpg -1 0\n");
    assert_int_equal(support_notes(&p, MR_NOTE_REJECT), 3);
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "train/b.jpg", "annotations/instances_train.json: byte "));
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "train/b.jpg", "\"bbox\" holds something that is not a number"));
    assert_true(
        support_has_note(&p, MR_NOTE_REJECT, "train/c.jpg", "\"category_id\" is neither a number nor a string"));
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "annotations/instances_train.json", "\"image_id\" is neither"));
    support_assert_meta(
        &p, 0,
        ",\"image\":{\"id\":1,\"file_name\":\"a.jpg\"},\"instances\":[{\"image_id\":1,\"category_id\":1,"
        "\"bbox\":[1,1,2,2]}]");
    support_plan_done(&p);
    put_json(dir, "annotations/instances_train.json", "a.jpg caf\xE9.jpg", "");
    p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "train train/a.jpg -1 0\n");
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "annotations/instances_train.json", "text that is not UTF-8"));
    assert_int_equal(support_notes(&p, MR_NOTE_MISSING), 0);
    support_plan_done(&p);
    support_put(dir, "annotations/instances_train.json",
                "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"},{\"id\":2,\"file_name\":\"b.jpg\"}],"
                "\"categories\":[{\"id\":1,\"name\":\"\"},{\"id\":2,\"name\":\"x\"}],"
                "\"annotations\":[{\"image_id\":1,\"category_id\":1},{\"image_id\":2,\"category_id\":2}]}");
    p = support_plan_ok(COCO, *state, NULL);
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "train/a.jpg", "a category's name is empty"));
    assert_int_equal(p.plan.sample_count, 1);
    support_plan_done(&p);
}

static void test_licences(void **state)
{
    const char *dir = *state;
    touch(dir, "train/a.jpg val/a.jpg");
    support_put(dir, "annotations/instances_train.json",
                "{\"licenses\":[{\"id\":1,\"name\":\"CC BY 4.0\",\"url\":\"http://x\"},{\"name\":\"CC BY 4.0\"},"
                "{\"name\":null},{\"id\":NaN},7,null],\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}]}");
    support_put(dir, "annotations/instances_val.json",
                "{\"licenses\":[{\"name\":\"No\\nRestrictions\"},{\"name\":\"CC BY 4.0\"}],"
                "\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}]}");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    assert_string_equal(p.plan.licence, "CC BY 4.0, No\\x0ARestrictions");
    assert_int_equal(support_notes(&p, MR_NOTE_REJECT), 0);
    support_plan_done(&p);
    support_put(dir, "annotations/instances_train.json",
                "{\"licenses\":{\"name\":\"x\"},\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}]}");
    support_put(dir, "annotations/instances_val.json",
                "{\"licenses\":null,\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}]}");
    p = support_plan_ok(COCO, *state, NULL);
    assert_null(p.plan.licence);
    support_plan_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_one_file_over_folders_of_splits),
        IN_TMPDIR(test_splits_in_images),
        IN_TMPDIR(test_pairs_of_cvat),
        IN_TMPDIR(test_a_split_that_is_left_out),
        IN_TMPDIR(test_minival),
        IN_TMPDIR(test_parts_of_one_split),
        IN_TMPDIR(test_urls_of_lvis),
        IN_TMPDIR(test_bad_values_reject_their_image),
        IN_TMPDIR(test_licences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
