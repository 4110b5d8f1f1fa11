/* test_yolo.c - YOLO trees: where images and labels may lie, names, tasks, and what may be wrong with them.
 * Covers tables/yaml_file.c.
 * Invariant tested: every image is a sample, a reject or in a note, and a bad line is named by file and number. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/sources/objects.h"
#include "ingest/tables/yaml_file.h"

#define YOLO  &mr_layout_yolo
#define NAMES "names: [cat, dog]\n"

static void test_roboflow(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "data.yaml",
                "train: ../train/images\nval: ../valid/images\ntest: ../gone/images\nnc: 2\n" NAMES
                "roboflow:\n  license: CC BY 4.0\n");
    support_put(dir, "train/images/a.rf.1.jpg", "");
    support_put(dir, "train/images/b.png", "");
    support_put(dir, "train/images/c.jpg", "");
    support_put(dir, "train/images/d.jpg", "");
    support_put(dir, "train/labels/a.rf.1.txt", "0 0.5 0.5 0.2 0.4\r\n\n1 0.25 .5 1e-1 0.5\n");
    support_put(dir, "train/labels/b.txt", "\n");
    support_put(dir, "train/labels/d.txt", "0 0.5 0.5 0.2 0.4\n0 0.5 0.5 0.2\n");
    support_put(dir, "train/labels/gone.txt", "");
    support_put(dir, "valid/images/e.jpg", "");
    support_put(dir, "valid/labels/e.txt", "1 0.5 0.5 1 1");
    support_put(dir, "else/f.jpg", "");
    support_put(dir, "README.roboflow.txt", "");
    support_put(dir, "test_set/images/g.jpg", "");
    support_put(dir, "test_set/labels/g.txt", "");
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_int_equal(p.bid.score, 89);
    assert_string_equal(p.plan.variant, "detection");
    assert_string_equal(p.plan.licence, "CC BY 4.0");
    support_assert_samples(&p, "train train/images/a.rf.1.jpg -1 0\ntrain train/images/b.png -1 4\n"
                               "train train/images/c.jpg -1 4\nval valid/images/e.jpg -1 0\n"
                               "test test_set/images/g.jpg -1 4\n");
    assert_int_equal(p.plan.samples[0].group_len, 1);
    support_assert_meta(&p, 0, ",\"yolo\":[\"0 0.5 0.5 0.2 0.4\",\"1 0.25 .5 1e-1 0.5\"]");
    support_assert_objects(&p, 0, 100, 50,
                           "[{\"label\":0,\"class\":\"cat\",\"box\":[40,15,20,20]},"
                           "{\"label\":1,\"class\":\"dog\",\"box\":[20,12.5,10,25]}]");
    support_assert_objects(&p, 1, 100, 50, "[]");
    support_assert_objects(&p, 2, 100, 50, "[]");
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "train/images/d.jpg", "train/labels/d.txt: line 2: 3 numbers"));
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "train/labels/gone.txt", "without an image"));
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "else/f.jpg", "not in any split"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "data.yaml", "test: ../gone/images is not there"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "train", "images without a label file: 1; they have no objects"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_ultralytics(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "coco8.yaml",
                "path: /home/me/datasets/coco8\ntrain: images/train2017\nval:\n  - images/val2017\n"
                "test: lists/test.txt\nnames:\n  1: dog\n  0: cat\n");
    support_put(dir, "images/train2017/a.jpg", "");
    support_put(dir, "labels/train2017/a.txt", "0 0.1 0.1 0.5 0.1 0.5 0.6\n1 0 0 1 0 1 1 0 1\n0 0.5 0.5 1 1\n");
    support_put(dir, "images/val2017/sub/b.jpg", "");
    support_put(dir, "labels/val2017/sub/b.txt", "0 0.5 0.5 1 1\n");
    support_put(dir, "images/test2017/c.jpg", "");
    support_put(dir, "images/test2017/d.jpg", "");
    support_put(dir, "lists/test.txt", "../images/test2017/d.jpg\n./images/val2017/sub/b.jpg\nimages/gone.jpg\n");
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_string_equal(p.plan.variant, "segmentation");
    support_assert_samples(&p, "train images/train2017/a.jpg -1 0\nval images/val2017/sub/b.jpg -1 0\n"
                               "test images/test2017/d.jpg -1 4\ntest images/val2017/sub/b.jpg -1 0\n");
    assert_string_equal(p.plan.classes[1].name, "dog");
    support_assert_objects(
        &p, 0, 100, 200,
        "[{\"label\":0,\"class\":\"cat\",\"box\":[10,20,40,100],\"polygons\":[[10,20,50,20,50,120]]},"
        "{\"label\":1,\"class\":\"dog\",\"box\":[0,0,100,200],"
        "\"polygons\":[[0,0,100,0,100,200,0,200]]},"
        "{\"label\":0,\"class\":\"cat\",\"box\":[0,0,100,200]}]");
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "images/gone.jpg", "lists/test.txt names it"));
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "images/test2017/c.jpg", "not in any split"));
    support_plan_done(&p);
    support_put(dir, "elsewhere/e.jpg", "");
    p = support_plan_ok(YOLO, dir, &(mr_layout_options){.keep_unlisted = true});
    support_assert_samples(&p, "train elsewhere/e.jpg -1 4\ntrain images/train2017/a.jpg -1 0\n"
                               "val images/val2017/sub/b.jpg -1 0\ntest images/test2017/c.jpg -1 4\n"
                               "test images/test2017/d.jpg -1 4\ntest images/val2017/sub/b.jpg -1 0\n");
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "images/test2017/c.jpg", "added to test (--keep-unlisted)"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* Roboflow's exports for Darknet. */
static void test_darknet(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "README.roboflow.txt", "");
    support_put(dir, "train/_darknet.labels", "cat\r\nred dog\n");
    support_put(dir, "valid/_darknet.labels", "cat\r\nred dog\n");
    support_put(dir, "train/a.jpg", "");
    support_put(dir, "train/a.txt", "1 0.5 0.5 0.2 0.4\n");
    support_put(dir, "train/b.jpg", "");
    support_put(dir, "valid/c.jpg", "");
    support_put(dir, "valid/c.txt", "0 0.5 0.5 0.2 0.4\n");
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_int_equal(p.bid.score, 84);
    support_assert_samples(&p, "train train/a.jpg -1 0\ntrain train/b.jpg -1 4\nval valid/c.jpg -1 0\n");
    assert_int_equal(p.plan.class_count, 2);
    support_assert_objects(&p, 0, 100, 50, "[{\"label\":1,\"class\":\"red dog\",\"box\":[40,15,20,20]}]");
    assert_int_equal(support_notes(&p, MR_NOTE_INFO), 1);
    support_plan_done(&p);
    support_put(dir, "valid/_darknet.labels", "red dog\r\ncat\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA,
                       "valid/_darknet.labels: line 1: class 0 is \"red dog\", in train/_darknet.labels it is "
                       "\"cat\": correct one of them, or leave it out with --exclude");
    support_put(dir, "train/_darknet.labels", "cat\n\ndog\n\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "train/_darknet.labels: has a blank line before the last class");
    support_tmpdir_remove(dir);
}

static void test_tasks(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "data.yaml", "kpt_shape: [2, 3]\n" NAMES);
    support_put(dir, "images/a.jpg", "");
    support_put(dir, "labels/a.txt", "1 0.5 0.5 0.2 0.4 0.1 0.2 2 0 0 0\n");
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_string_equal(p.plan.variant, "pose");
    support_assert_objects(&p, 0, 100, 50,
                           "[{\"label\":1,\"class\":\"dog\",\"box\":[40,15,20,20],\"keypoints\":[[10,10,2],[0,0,0]]}]");
    support_plan_done(&p);
    support_tmpdir_remove(dir);

    dir = support_tmpdir();
    support_put(dir, "data.yaml", NAMES);
    support_put(dir, "train/images/a.jpg", "");
    support_put(dir, "train/labels/a.txt", "0 0.1 0 0.5 0.2 0.4 0.6 0 0.4\n");
    p = support_plan_ok(YOLO, dir, NULL);
    assert_string_equal(p.plan.variant, "oriented boxes");
    support_assert_objects(
        &p, 0, 100, 50,
        "[{\"label\":0,\"class\":\"cat\",\"box\":[0,0,50,30],\"oriented_box\":[10,0,50,10,40,30,0,20]}]");
    support_plan_done(&p);
    support_tmpdir_remove(dir);

    dir = support_tmpdir();
    support_put(dir, "data.yaml", NAMES);
    support_put(dir, "train/images/a.jpg", "");
    support_put(dir, "train/labelTxt/a.txt", "imagesource:x\ngsd:1\n10 0 50 10 40 30 0 20 dog 1\n");
    p = support_plan_ok(YOLO, dir, NULL);
    support_assert_objects(
        &p, 0, 100, 50,
        "[{\"label\":1,\"class\":\"dog\",\"box\":[0,0,50,30],\"oriented_box\":[10,0,50,10,40,30,0,20]}]");
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_without_names(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "images/val/a.jpg", "");
    support_put(dir, "labels/val/a.txt", "3 0.5 0.5 0.2 0.4\n");
    support_put(dir, "images/test/b.jpg", "");
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_int_equal(p.plan.class_count, 4);
    assert_string_equal(p.plan.classes[3].name, "3");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "", "named by their numbers"));
    support_assert_samples(&p, "val images/val/a.jpg -1 0\ntest images/test/b.jpg -1 4\n");
    support_assert_objects(&p, 1, 100, 50, "-");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "test", "the split has no labels"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_bad_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line, *why;
    } trials[] = {
        {"x 0.5 0.5 0.2 0.4", "\"x\" is not a class number"},
        {"0.5 0.5 0.5 0.2 0.4", "class 0.5 is not an integer"},
        {"-1 0.5 0.5 0.2 0.4", "class -1"},
        {"2 0.5 0.5 0.2 0.4", "class 2, but the dataset has 2"},
        {"1e9 0.5 0.5 0.2 0.4", "class 1e+09"},
        {"65536 0.5 0.5 0.2 0.4", "class 65536 is not an integer from 0 to 65535"},
        {"0 2.01 0.5 0.2 0.4", "2.01 is not a part of the image"},
        {"0 0.5 -1.01 0.2 0.4", "-1.01 is not a part of the image"},
        {"0 0.5 0.5 0.2 nan", "\"nan\" is not a number"},
        {"0 0.5 0.5 0.2 0x1", "\"0x1\" is not a number"},
        {"0 0.5 0.5 0.2 1e999", "\"1e999\" is not a number"},
        {"0 0.5 0.5 0.2 .", "\".\" is not a number"},
        {"0 320 0.5 0.2 0.4", "320 is not a part of the image"},
        {"0", "0 numbers after the class"},
        {"0 0.5 0.5 0.2 0.4 0.9", "5 numbers after the class"},
        {"0 0.5 0.5 0.2 0.4 0.9 0.1 0.1", "7 numbers"},
        {"\xFF\xFE", "\"\\xFF\\xFE\" is not a class number"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir(), *text = support_path("0 0.5 0.5 0.2 0.4\n\n%s\n", trials[i].line);
        support_put(dir, "data.yaml", NAMES);
        support_put(dir, "images/a.jpg", "");
        support_put(dir, "labels/a.txt", text);
        support_plan p = support_plan_ok(YOLO, dir, NULL);
        char *why = support_path("labels/a.txt: line 3: %s", trials[i].why);
        if (!support_has_note(&p, MR_NOTE_REJECT, "images/a.jpg", why))
            fail_msg("%s: %s", trials[i].line, p.notes.count ? p.notes.items[0].detail : "taken");
        assert_int_equal(p.plan.sample_count, 0);
        free(text);
        free(why);
        support_plan_done(&p);
        support_tmpdir_remove(dir);
    }
}

/* Three boxes on one line would have as many numbers as a polygon. */
static void test_line_ends(void **state)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(ends); i++) {
        char *dir = support_tmpdir(), text[80];
        support_put(dir, "data.yaml", "train: images\n" NAMES);
        support_put(dir, "images/a.jpg", "");
        snprintf(text, sizeof text, "0 .5 .5 .2 .2%s1 .5 .5 .1 .1%s1 .5 .5 .4 .4%s", ends[i], ends[i], ends[i]);
        support_put(dir, "labels/a.txt", text);
        support_plan p = support_plan_ok(YOLO, dir, NULL);
        assert_string_equal(p.plan.variant, "detection");
        support_assert_meta(&p, 0, ",\"yolo\":[\"0 .5 .5 .2 .2\",\"1 .5 .5 .1 .1\",\"1 .5 .5 .4 .4\"]");
        support_plan_done(&p);
        support_tmpdir_remove(dir);
    }
}

static void test_bad_yaml(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } trials[] = {
        {"names: [a, b]\nnc: 3\n", "data.yaml: line 2: nc is 3, but names has 2 classes"},
        {"names: {0: a, 2: b}\n", "class 2 where one before it is missing"},
        {"names: {0: a, 0: b}\n", "line 1: \"0\" occurs twice"},
        {"names: {0: a, 00: b}\n", "class 0 twice"},
        {"names: {x: a}\n", "line 1: a key of names is not a class number"},
        {"names: [[a]]\n", "line 1: a class name is a list"},
        {"names: cat\n", "neither a list nor a map"},
        {"names: [a, '']\n", "line 1: a class has no name"},
        {"names:\n  0: a\n  1:", "line 3: a class has no name"},
        {"nc: many\n", "nc is not a number"},
        {"nc: 65537\n", "nc is not a number"},
        {"kpt_shape: 17\n", "kpt_shape is not"},
        {"kpt_shape: [17, 4]\n", "kpt_shape is not"},
        {"kpt_shape: [10001, 3]\n", "kpt_shape is not"},
        {"- a\n", "not dataset settings"},
        {"names: [a\n", "not YAML"},
        {"a: &x 1\nnames: [*x]\n", "an alias"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        support_put(dir, "data.yaml", trials[i].text);
        support_put(dir, "images/a.jpg", "");
        support_put(dir, "labels/a.txt", "");
        support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, trials[i].why);
        support_tmpdir_remove(dir);
    }
}

/* A file of this length, all zeros, that takes no room. */
static void put_long(const char *dir, const char *name, off_t len)
{
    char *path = support_path("%s/%s", dir, name);
    support_put(dir, name, "");
    assert_int_equal(truncate(path, len), 0);
    free(path);
}

static void test_long_files(void **state)
{
    (void)state;
    const off_t most = (off_t)64 << 20;
    char *dir = support_tmpdir();
    support_put(dir, "data.yaml", NAMES "train: list.txt\n");
    support_put(dir, "images/a.jpg", "");
    support_put(dir, "list.txt", "images/a.jpg\n");
    put_long(dir, "labels/a.txt", most / 4 + 1);
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "images/a.jpg", "labels/a.txt: longer than 16 MiB"));
    support_plan_done(&p);
    put_long(dir, "list.txt", most + 1);
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "list.txt: longer than 64 MiB");
    put_long(dir, "data.yaml", MR_YAML_MAX + 1);
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "data.yaml: longer than 1 MiB");
    support_tmpdir_remove(dir);
}

static void test_split_map(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    const mr_split_map maps[] = {{"valid", ""}, {"test", "val"}};
    const mr_layout_options o = {.maps = maps, .map_count = 2};
    support_put(dir, "data.yaml", "train: train/images\nval: valid/images\n" NAMES);
    support_put(dir, "train/images/a.jpg", "");
    support_put(dir, "train/labels/a.txt", "");
    support_put(dir, "valid/images/b.jpg", "");
    support_put(dir, "valid/labels/b.txt", "");
    support_put(dir, "test/images/c.jpg", "");
    support_put(dir, "test/labels/c.txt", "");
    support_plan p = support_plan_ok(YOLO, dir, &o);
    support_assert_samples(&p, "train train/images/a.jpg -1 4\nval test/images/c.jpg -1 4\n");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "valid/images", "left out by --split-map"));
    assert_int_equal(support_notes(&p, MR_NOTE_MISSING), 0);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* Layouts that read parts of such trees leave them to this one. */
static void test_detection(void **state)
{
    (void)state;
    char *data = support_data("roboflow");
    if (!data) {
        print_message("no roboflow/ in MILLRACE_DATA: real samples skipped\n");
        skip();
    }
    static const struct {
        const char *path, *words;
    } trials[] = {
        {"yolov8_pakcoy", "\"layout\": \"yolo\""},
        {"datumaro_synthetic_all_formats/roboflow_dataset/yolo", "\"variant\": \"detection\""},
        {"datumaro_synthetic_all_formats/roboflow_dataset/yolo_obb", "\"variant\": \"oriented boxes\""},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *path = support_path("%s/%s", data, trials[i].path);
        support_result r = support_millrace("ingest", "--dry-run", "--json", path, "/nowhere", (char *)NULL);
        support_assert_status(&r, 0);
        if (!strstr(r.out, trials[i].words))
            fail_msg("%s", r.out);
        support_result_free(&r);
        free(path);
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_darknet),   cmocka_unit_test(test_roboflow),      cmocka_unit_test(test_ultralytics),
        cmocka_unit_test(test_tasks),     cmocka_unit_test(test_without_names), cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_bad_yaml),  cmocka_unit_test(test_long_files),    cmocka_unit_test(test_split_map),
        cmocka_unit_test(test_detection), cmocka_unit_test(test_line_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
