/* test_coco.c - COCO trees: where images may be, splits, classes, what goes into metas and what into notes. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "tests/support/json.h"

#define COCO       &mr_layout_coco
#define CATEGORIES "\"categories\":[{\"id\":90,\"name\":\"brush\"},{\"id\":1,\"name\":\"person\"}]"

static void images(const char *dir, ...)
{
    va_list args;
    va_start(args, dir);
    for (const char *path; (path = va_arg(args, const char *));)
        support_put(dir, path, path);
    va_end(args);
}

#define END ((char *)NULL)

/* Two splits with three kinds of annotation, gaps in ids, everything that may be wrong with one image. */
static char *full_tree(void)
{
    char *dir = support_tmpdir();
    support_put(dir, "annotations/instances_train2017.json",
                "{\"images\":[{\"id\":7,\"file_name\":\"b.jpg\",\"w\":1.50},{\"id\":2,\"file_name\":\"c.jpg\"},"
                "{\"id\":3,\"file_name\":\"../evil.jpg\"},{\"id\":4,\"file_name\":\"/etc/passwd\"},"
                "{\"id\":5,\"file_name\":\"gone.jpg\"},{\"id\":6,\"file_name\":\"c.jpg\"},"
                "{\"id\":8,\"file_name\":\"a\\u0000.jpg\"}],"
                "\"annotations\":[{\"image_id\":7,\"category_id\":90,\"area\":1e2},{\"image_id\":99,"
                "\"category_id\":1,\"bbox\":[1,1,2,2]},"
                "{\"image_id\":7,\"category_id\":1}]," CATEGORIES "}");
    support_put(dir, "annotations/captions_train2017.json",
                "{\"images\":[{\"id\":7,\"file_name\":\"b.jpg\"},{\"id\":1,\"file_name\":\"a.jpg\",\"only\":\"here\"}],"
                "\"annotations\":[{\"image_id\":7,\"caption\":\"x\"},{\"image_id\":1,\"caption\":\"y\"}]}");
    support_put(dir, "annotations/person_keypoints_val2017.json",
                "{\"images\":[{\"id\":1,\"file_name\":\"v.jpg\"}],\"annotations\":[],"
                "\"categories\":[{\"id\":5,\"name\":\"plane\"},{\"id\":1,\"name\":\"person\"}]}");
    support_put(dir, "annotations/other_train2017.json", "{}");
    images(dir, "train2017/a.jpg", "train2017/b.jpg", "train2017/c.jpg", "train2017/d.jpg", "val2017/v.jpg",
           "val2017/sub/w.png", "test2017/t.jpg", END);
    return dir;
}

static void test_full_tree(void **state)
{
    (void)state;
    char *dir = full_tree();
    support_plan p = support_plan_ok(COCO, dir, NULL);
    assert_int_equal(p.bid.score, 90);
    assert_string_equal(p.bid.refusal, "");
    assert_string_equal(p.plan.variant_text, "instances+captions+person_keypoints");
    support_assert_samples(&p, "train train2017/a.jpg -1 0\ntrain train2017/b.jpg -1 0\ntrain train2017/c.jpg -1 4\n"
                               "val val2017/v.jpg -1 4\n");
    assert_int_equal(p.plan.class_count, 3);
    assert_string_equal(p.plan.classes[0].name, "person");
    assert_string_equal(p.plan.classes[1].name, "plane");
    assert_true(p.plan.classes[2].has_id && p.plan.classes[2].id == 90);
    support_assert_meta(&p, 0,
                        ",\"image\":{\"id\":1,\"file_name\":\"a.jpg\",\"only\":\"here\"},\"instances\":[],"
                        "\"captions\":[{\"image_id\":1,\"caption\":\"y\"}]");
    support_assert_meta(&p, 1,
                        ",\"image\":{\"id\":7,\"file_name\":\"b.jpg\",\"w\":1.50},\"instances\":["
                        "{\"image_id\":7,\"category_id\":90,\"area\":1e2},{\"image_id\":7,\"category_id\":1}],"
                        "\"captions\":[{\"image_id\":7,\"caption\":\"x\"}]");
    support_assert_meta(&p, 3, ",\"image\":{\"id\":1,\"file_name\":\"v.jpg\"},\"person_keypoints\":[]");
    assert_true(p.plan.samples[1].meta_bytes > 100 && p.plan.samples[1].meta_bytes < 250);

    assert_int_equal(support_notes(&p, MR_NOTE_BAD_NAME), 0);
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "../evil.jpg", "id 3"));
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "/etc/passwd",
                                 "id 4 of split train2017: this path is from another machine, and no image"));
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "a\\x00.jpg", "id 8"));
    assert_int_equal(support_notes(&p, MR_NOTE_MISSING), 3);
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "gone.jpg", "train2017"));
    assert_int_equal(support_notes(&p, MR_NOTE_COLLISION), 1);
    assert_true(support_has_note(&p, MR_NOTE_COLLISION, "train2017/c.jpg", "twice"));
    assert_int_equal(support_notes(&p, MR_NOTE_UNLISTED), 2);
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "train2017/d.jpg", "--keep-unlisted"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "annotations/instances_train2017.json",
                                 "annotations left out, as their images are not listed: 1"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_keep_unlisted(void **state)
{
    (void)state;
    char *dir = full_tree();
    mr_layout_options options = {.keep_unlisted = true};
    support_plan p = support_plan_ok(COCO, dir, &options);
    support_assert_samples(&p, "train train2017/a.jpg -1 0\ntrain train2017/b.jpg -1 0\ntrain train2017/c.jpg -1 4\n"
                               "train train2017/d.jpg -1 4\nval val2017/sub/w.png -1 4\nval val2017/v.jpg -1 4\n");
    support_assert_meta(&p, 3, "");
    assert_int_equal(support_notes(&p, MR_NOTE_UNLISTED), 2);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_split_map(void **state)
{
    (void)state;
    char *dir = full_tree();
    mr_split_map maps[] = {{"train2017", "dev"}, {"val", "test"}};
    mr_layout_options options = {.maps = maps, .map_count = 2};
    support_plan p = support_plan_ok(COCO, dir, &options);
    support_assert_samples(&p, "dev train2017/a.jpg -1 0\ndev train2017/b.jpg -1 0\ndev train2017/c.jpg -1 4\n"
                               "test val2017/v.jpg -1 4\n");
    support_plan_done(&p);

    maps[0] = (mr_split_map){"train", ""}; /* left out: neither parsed nor missed */
    support_put(dir, "annotations/captions_train2017.json", "damaged");
    p = support_plan_ok(COCO, dir, &options);
    support_assert_samples(&p, "test val2017/v.jpg -1 4\n");
    assert_int_equal(p.plan.split_count, 1);
    assert_int_equal(p.plan.class_count, 2);
    assert_true(support_has_note(&p, MR_NOTE_INFO, "train2017", "--split-map"));
    assert_int_equal(support_notes(&p, MR_NOTE_UNLISTED), 1);
    support_plan_done(&p);

    maps[0] = (mr_split_map){"train", "all"};
    maps[1] = (mr_split_map){"val2017", "all"};
    support_put(dir, "annotations/captions_train2017.json", "{\"images\":[{\"id\":50,\"file_name\":\"v.jpg\"}]}");
    images(dir, "train2017/v.jpg", END);
    p = support_plan_ok(COCO, dir, &options);
    support_assert_samples(&p, "all train2017/b.jpg -1 0\nall train2017/c.jpg -1 4\nall train2017/v.jpg -1 4\n"
                               "all val2017/v.jpg -1 4\n");
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_stored_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"train2017", "train"}, {"val", "val"},         {"validation", "val"},        {"train_2014", "train"},
        {"2017", "2017"},       {"default", "default"}, {"test-dev2017", "test-dev"}, {"unlabeled2017", "unlabeled"},
    };
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        char *dir = support_tmpdir(), *path = support_path("annotations/instances_%s.json", names[i][0]);
        support_put(dir, path, "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}]}");
        images(dir, "images/a.jpg", END);
        support_plan p = support_plan_ok(COCO, dir, NULL);
        assert_int_equal(p.plan.split_count, 1);
        assert_string_equal(p.plan.splits[0].name, names[i][1]);
        support_plan_done(&p);
        free(path);
        support_tmpdir_remove(dir);
    }
}

/* One image, every place that it may have. */
static void test_places(void **state)
{
    (void)state;
    static const struct {
        const char *json, *name, *image;
        int score;
    } places[] = {
        {"annotations/instances_val2017.json", "a.jpg", "val2017/a.jpg", 90},
        {"annotations/instances_val2017.json", "a.jpg", "images/val2017/a.jpg", 90},
        {"annotations/instances_val2017.json", "a.jpg", "images/a.jpg", 90},
        {"annotations/instances_val2017.json", "a.jpg", "a.jpg", 90},
        {"annotations/instances_val2017.json", "a.jpg", "annotations/a.jpg", 90},
        {"annotations/instances_val2017.json", "x/y/a.jpg", "val2017/x/y/a.jpg", 90},
        {"annotations/instances_val2017.json", "val2017/a.jpg", "val2017/a.jpg", 90},
        {"annotations/instances_val2017.json", "images/val2017/a.jpg", "images/val2017/a.jpg", 90},
        {"annotations/captions_val.json", "a.jpg", "val/a.jpg", 90},
        {"annotations/image_info_val2017.json", "a.jpg", "val2017/a.jpg", 90},
        {"instances_val2017.json", "a.jpg", "a.jpg", 85},
        {"instances_val2017.json", "a.jpg", "val2017/a.jpg", 85},
    };
    for (size_t i = 0; i < MR_COUNT(places); i++) {
        char *dir = support_tmpdir(), *sub = support_path("%s/deep/er", dir);
        char *json = support_path("{\"images\":[{\"id\":1,\"file_name\":\"%s\"}]}", places[i].name);
        support_put(sub, places[i].json, json);
        images(sub, places[i].image, END);
        support_plan p = support_plan_at(COCO, dir, "deep/er/", NULL);
        char *expected = support_path("val %s -1 4\n", places[i].image);
        assert_int_equal(p.status, MR_OK);
        assert_int_equal(p.bid.score, places[i].score);
        assert_string_equal(p.bid.refusal, "");
        support_assert_samples(&p, expected);
        assert_int_equal(p.notes.count, 0);
        support_plan_done(&p);
        free(expected);
        free(json);
        free(sub);
        support_tmpdir_remove(dir);
    }
}

/* Beside the annotation files an unlisted image has a split only if one group alone has images there. */
static void test_unlisted_beside(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_layout_options options = {.keep_unlisted = true};
    support_put(dir, "instances_train.json", "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}]}");
    images(dir, "a.jpg", "b.jpg", "x/c.jpg", END);
    support_plan p = support_plan_ok(COCO, dir, &options);
    support_assert_samples(&p, "train a.jpg -1 4\ntrain b.jpg -1 4\n");
    assert_int_equal(support_notes(&p, MR_NOTE_UNLISTED), 1);
    support_plan_done(&p);

    support_put(dir, "instances_val.json", "{\"images\":[{\"id\":1,\"file_name\":\"c.jpg\"}]}");
    images(dir, "c.jpg", END);
    p = support_plan_ok(COCO, dir, &options);
    support_assert_samples(&p, "train a.jpg -1 4\nval c.jpg -1 4\n");
    assert_int_equal(support_notes(&p, MR_NOTE_UNLISTED), 0);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* test-dev2017 lists images of test2017 once more, unless it has a folder of its own. */
static void test_dev_subset(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "annotations/image_info_test-dev2017.json", "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}]}");
    images(dir, "test2017/a.jpg", "test2017/b.jpg", END);
    support_plan p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "test-dev test2017/a.jpg -1 4\n");
    assert_int_equal(support_notes(&p, MR_NOTE_UNLISTED), 1);
    support_plan_done(&p);

    support_put(dir, "annotations/image_info_test2017.json",
                "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"},{\"id\":2,\"file_name\":\"b.jpg\"}]}");
    p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "test test2017/a.jpg -1 4\ntest test2017/b.jpg -1 4\n");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "test-dev2017", "left out"));
    support_assert_meta(&p, 1, ",\"image\":{\"id\":2,\"file_name\":\"b.jpg\"}");
    support_plan_done(&p);

    support_put(dir, "annotations/image_info_x-dev.json", "{\"images\":[{\"id\":1,\"file_name\":\"c.jpg\"}]}");
    images(dir, "test-dev2017/a.jpg", "images/x-dev/c.jpg", "images/x/d.jpg", END);
    p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "test-dev test-dev2017/a.jpg -1 4\ntest test2017/a.jpg -1 4\ntest test2017/b.jpg -1 4\n"
                               "x-dev images/x-dev/c.jpg -1 4\n");
    assert_int_equal(support_notes(&p, MR_NOTE_INFO), 0);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* A split whose images were not downloaded is one note, not one an image, and no empty split. */
static void test_split_without_images(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "annotations/instances_train2017.json",
                "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"},{\"id\":2,\"file_name\":\"b.jpg\"}]}");
    support_put(dir, "annotations/instances_val2017.json", "{\"images\":[{\"id\":1,\"file_name\":\"v.jpg\"}]}");
    images(dir, "val2017/v.jpg", END);
    support_plan p = support_plan_ok(COCO, dir, NULL);
    assert_int_equal(p.plan.split_count, 1);
    assert_string_equal(p.plan.splits[0].name, "val");
    assert_int_equal(support_notes(&p, MR_NOTE_MISSING), 1);
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "train2017", "none of the 2 images"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_contradictions(void **state)
{
    (void)state;
    char *dir = full_tree();
    mr_layout_options column = {.label_column = "x"};
    support_plan_fails(COCO, dir, &column, MR_MISUSE, "--label-column");
    support_put(dir, "annotations/person_keypoints_val2017.json",
                "{\"images\":[{\"id\":1,\"file_name\":\"v.jpg\"}],\"categories\":[{\"id\":90,\"name\":\"comb\"}]}");
    support_plan_fails(COCO, dir, NULL, MR_BAD_DATA, "category id 90 is \"brush\" in annotations/instances_train2017");
    support_tmpdir_remove(dir);

    dir = full_tree();
    support_put(dir, "annotations/captions_train2017.json", "{\"images\":[{\"id\":7,\"file_name\":\"c.jpg\"}]}");
    support_plan_fails(COCO, dir, NULL, MR_BAD_DATA, "image id 7 is b.jpg in annotations/instances_train");
    support_put(dir, "annotations/captions_train2017.json", "{\"images\":[");
    support_plan_fails(COCO, dir, NULL, MR_BAD_DATA, "annotations/captions_train2017.json: byte 11: not JSON");
    support_tmpdir_remove(dir);
}

static void test_bids(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "train/n1/a.jpg", "x");
    support_put(dir, "notes_instances.json", "{}");
    support_put(dir, "instances_.json", "{}");
    support_plan p = support_plan_at(COCO, dir, "", NULL);
    assert_int_equal(p.bid.score, 0);
    assert_int_equal(p.status, MR_BAD_DATA); /* as under --layout coco */
    support_plan_done(&p);

    support_put(dir, "instances_val2014_fakebbox100_results.json", " \n[{\"image_id\":1}]");
    p = support_plan_at(COCO, dir, "", NULL);
    assert_int_equal(p.bid.score, 40);
    assert_non_null(strstr(p.bid.refusal, "result files"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);

    dir = support_tmpdir();
    support_put(dir, "annotations/instances_val2017.json", "{\"images\":[]}");
    support_put(dir, "annotations/instances_val2017_results.json", "[]");
    p = support_plan_at(COCO, dir, "", NULL);
    assert_int_equal(p.bid.score, 60);
    assert_non_null(strstr(p.bid.refusal, "val2017/"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* Whatever the real tree holds: every image is a sample, metas are JSON, numbers are spelled as in the source. */
static void test_real_tree(void **state)
{
    (void)state;
    char *data = support_data("coco/coco2017_mini_free");
    if (!data)
        skip();
    support_plan p = support_plan_ok(COCO, data, NULL);
    assert_int_equal(p.bid.score, 90);
    assert_true(p.plan.sample_count > 0);
    for (size_t i = 0; i < p.plan.sample_count; i++) {
        char *meta = support_plan_meta(&p, i), *doc = support_path("{%s}", meta + 1);
        json_t *json;
        if (mr_json_parse(doc, strlen(doc), "meta", &json, &p.err) != MR_OK)
            fail_msg("%s", p.err.text);
        json_t *image = json_object_get(json, "image"), *list = json_object_get(json, "instances");
        size_t len;
        const char *path = mr_tree_path(&p.tree, p.plan.samples[i].entry, &len);
        assert_string_equal(strrchr(path, '/') + 1, json_string_value(json_object_get(image, "file_name")));
        for (size_t k = 0; k < json_array_size(list); k++)
            assert_true(json_equal(json_object_get(json_array_get(list, k), "image_id"), json_object_get(image, "id")));
        json_decref(json);
        free(meta);
        free(doc);
    }
    support_plan_done(&p);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_tree),      cmocka_unit_test(test_keep_unlisted),
        cmocka_unit_test(test_split_map),      cmocka_unit_test(test_stored_names),
        cmocka_unit_test(test_places),         cmocka_unit_test(test_unlisted_beside),
        cmocka_unit_test(test_dev_subset),     cmocka_unit_test(test_split_without_images),
        cmocka_unit_test(test_contradictions), cmocka_unit_test(test_bids),
        cmocka_unit_test(test_real_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
