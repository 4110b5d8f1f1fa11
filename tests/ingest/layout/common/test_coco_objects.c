/* test_coco_objects.c - objects of COCO: ids that are strings, and the segments of panoptic annotations.
 * Invariant tested: an object's id is the source's JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "tests/support/sources/objects.h"

#define COCO &mr_layout_coco

static void put_image(const char *dir, char name)
{
    char path[] = "train/?.jpg";
    path[6] = name;
    support_put(dir, path, path);
}

static void ids_may_be_strings(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "annotations/instances_train.json",
                "{\"annotations\":[{\"id\":\"x1\",\"image_id\":\"img/a\",\"category_id\":\"c2\",\"bbox\":[0,0,5,5]},"
                "{\"id\":\"4\",\"image_id\":\"7\",\"category_id\":\"c1\",\"bbox\":[1,1,5,5]},"
                "{\"id\":9,\"image_id\":\"gone\",\"category_id\":\"c1\",\"bbox\":[1,1,5,5]}],"
                "\"images\":[{\"id\":\"img/a\",\"file_name\":\"a.jpg\"},{\"id\":7,\"file_name\":\"b.jpg\"}],"
                "\"categories\":[{\"id\":\"c1\",\"name\":\"one\"},{\"id\":\"c2\",\"name\":\"two\"}]}");
    support_put(dir, "annotations/captions_train.json",
                "{\"images\":[{\"id\":\"img/b\",\"file_name\":\"c.jpg\"},{\"id\":\"img/a\",\"file_name\":\"a.jpg\"}],"
                "\"annotations\":[{\"image_id\":\"img/a\",\"caption\":\"both\"}]}");
    for (const char *c = "abc"; *c; c++)
        put_image(dir, *c);
    support_plan p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "train train/a.jpg -1 0\ntrain train/b.jpg -1 0\ntrain train/c.jpg -1 4\n");
    assert_true(!p.plan.classes[0].has_id && !p.plan.classes[1].has_id);
    support_assert_objects(&p, 0, 9, 9, "[{\"label\":0,\"class\":\"two\",\"box\":[0,0,5,5],\"id\":\"x1\"}]");
    support_assert_objects(&p, 1, 9, 9, "[{\"label\":1,\"class\":\"one\",\"box\":[1,1,5,5],\"id\":\"4\"}]");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "annotations/instances_train.json",
                                 "annotations left out, as their images are not listed: 1"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

#define PANOPTIC(segments)                                                                                             \
    "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}],\"annotations\":[{\"image_id\":1,\"file_name\":\"a.png\","       \
    "\"segments_info\":" segments "}],\"categories\":[{\"id\":1,\"name\":\"cat\"},{\"id\":9,\"name\":\"sky\"}]}"
#define SEGMENTS                                                                                                       \
    "[{\"id\":3226956,\"category_id\":1,\"iscrowd\":1,\"bbox\":[1,2,3,4],\"area\":9},"                                 \
    "{\"id\":6979964,\"category_id\":9,\"iscrowd\":0,\"bbox\":[0,0,30,4],\"area\":90}]"

static void segments_are_objects(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    put_image(dir, 'a');
    support_put(dir, "panoptic_train.json", PANOPTIC(SEGMENTS));
    support_plan p = support_plan_ok(COCO, dir, NULL);
    assert_string_equal(p.plan.variant_text, "panoptic");
    support_assert_objects(&p, 0, 40, 30,
                           "[{\"label\":0,\"class\":\"cat\",\"box\":[1,2,3,4],\"crowd\":true,\"id\":3226956},"
                           "{\"label\":1,\"class\":\"sky\",\"box\":[0,0,30,4],\"id\":6979964}]");
    support_assert_meta(&p, 0,
                        ",\"image\":{\"id\":1,\"file_name\":\"a.jpg\"},\"panoptic\":[{\"image_id\":1,"
                        "\"file_name\":\"a.png\",\"segments_info\":" SEGMENTS "}]");
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "panoptic_train.json",
                                 "annotated images without a PNG in panoptic_train/: 1 of 1, such as a.jpg"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* What instances shows already, panoptic does not show again. */
static void tasks_show_an_object_once(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    put_image(dir, 'a');
    support_put(dir, "panoptic_train.json", PANOPTIC(SEGMENTS));
    support_put(dir, "panoptic_train/a.png", "");
    support_put(dir, "instances_train.json",
                "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}],\"annotations\":[{\"id\":5,\"image_id\":1,"
                "\"category_id\":1,\"bbox\":[1,2,3,4]}],\"categories\":[{\"id\":1,\"name\":\"cat\"}]}");
    support_plan p = support_plan_ok(COCO, dir, NULL);
    support_assert_objects(&p, 0, 40, 30,
                           "[{\"label\":0,\"class\":\"cat\",\"box\":[1,2,3,4],\"id\":5},"
                           "{\"label\":1,\"class\":\"sky\",\"box\":[0,0,30,4],\"id\":6979964}]");
    mr_mask masks[MR_MASKS_MAX];
    assert_int_equal(p.layout->masks(&p.tree, &p.plan, &p.plan.samples[0], masks), 1);
    assert_string_equal(masks[0].name, "panoptic");
    assert_true(p.plan.used[masks[0].entry]);
    assert_int_equal(support_notes(&p, MR_NOTE_MISSING) + support_notes(&p, MR_NOTE_UNLISTED), 0);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* A mask that does not fill the picture is counted; the box of its object stays. */
static void masks_must_fill_their_picture(void **state)
{
    (void)state;
    static const struct {
        const char *mask;
        uint64_t bad;
    } trials[] = {
        {"{\"counts\":[5,10,5],\"size\":[4,5]}", 0},
        {"{\"size\":[4,5],\"counts\":[5,10,5]}", 0},
        {"{\"size\":[3,4],\"counts\":\"11221NN\"}", 1}, /* of another picture */
        {"{\"counts\":[5,10,6],\"size\":[4,5]}", 1},
        {"{\"counts\":[5,10.5,4.5],\"size\":[4,5]}", 1},
        {"{\"counts\":[99999999999999999999],\"size\":[4,5]}", 1},
        {"{\"counts\":[5,-10,25],\"size\":[4,5]}", 1},
        {"{\"counts\":{\"a\":[20]},\"size\":[4,5]}", 1},
        {"{\"counts\":[20]}", 1},
        {"{}", 0},
        {"null", 0},
        {"\"x\"", 0},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        char *json =
            support_path("{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\",\"width\":5,\"height\":4}],\"annotations\":"
                         "[{\"image_id\":1,\"category_id\":1,\"bbox\":[1,1,2,2],\"segmentation\":%s}],"
                         "\"categories\":[{\"id\":1,\"name\":\"cat\"}]}",
                         trials[i].mask);
        MR_AUTO(mr_objects_free) mr_objects o = {0};
        mr_error err;
        put_image(dir, 'a');
        support_put(dir, "instances_train.json", json);
        support_plan p = support_plan_ok(COCO, dir, NULL);
        assert_int_equal(p.layout->objects(&p.tree, &p.plan, &p.plan.samples[0], &(mr_stored){5, 4, 1}, &o, &err),
                         MR_OK);
        if (o.count != 1 || !o.items[0].has_box || o.unreadable != trials[i].bad)
            fail_msg("%s: %zu objects, %d bad", trials[i].mask, o.count, (int)o.unreadable);
        support_plan_done(&p);
        support_tmpdir_remove(dir);
        free(json);
    }
}

static void odd_segments_are_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *json, *objects;
    } trials[] = {
        {PANOPTIC("[]"), "[]"},
        {PANOPTIC("null"), "[]"},
        {PANOPTIC("[[1,[2,{\"id\":3}]],7,\"x\"]"), "[]"},
        {PANOPTIC("{\"a\":{\"id\":3}}"), "[{\"id\":3}]"},
        {PANOPTIC("[{\"id\":1,\"category_id\":1,\"bbox\":[1e999,1,1,1]},[3],{\"id\":\"s\"}]"), "[{\"id\":\"s\"}]"},
        {PANOPTIC("[{\"category_id\":4,\"bbox\":[1,1,2,2]}]"), "[{\"box\":[1,1,2,2]}]"},
        {PANOPTIC("[],\"segmentation\":[[1,1,9,1,9,9]],\"bbox\":[1,1,2,2]"), "[]"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        put_image(dir, 'a');
        support_put(dir, "panoptic_train.json", trials[i].json);
        support_plan p = support_plan_ok(COCO, dir, NULL);
        support_assert_objects(&p, 0, 40, 30, trials[i].objects);
        support_plan_done(&p);
        support_tmpdir_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_may_be_strings),
        cmocka_unit_test(segments_are_objects),
        cmocka_unit_test(tasks_show_an_object_once),
        cmocka_unit_test(odd_segments_are_left_out),
        cmocka_unit_test(masks_must_fill_their_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
