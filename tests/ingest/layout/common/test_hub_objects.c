/* test_hub_objects.c - the column "objects" of rows: lists side by side, and what may be wrong with them.
 * Invariant tested: an object is what all lists say about it, and what cannot be read is counted. */
#include <stdlib.h>
#include <string.h>

#include "ingest/layout/common/hub_objects.h"
#include "ingest/layout/common/label_census.h"
#include "tests/support/sources/hub.h"
#include "tests/support/sources/objects.h"

static void expect(const char *row, bool numbered, const char *classes, const char *objects, uint64_t unreadable)
{
    mr_plan plan = {0};
    mr_class_set set = {0};
    mr_objects out = {0};
    mr_buf text = {0};
    mr_error err;
    if (mr_hub_objects_classes(row, strlen(row), "f", &set, &plan, &err) != MR_OK)
        fail_msg("%s", err.text);
    if (!numbered)
        assert_int_equal(mr_plan_classes_in_order(&plan, &err), MR_OK);
    for (size_t i = 0; i < plan.class_count; i++)
        mr_buf_printf(&text, "%s ", plan.classes[i].name);
    assert_string_equal(mr_buf_text(&text), classes);
    assert_int_equal(mr_hub_objects_read(row, strlen(row), "f", &plan, numbered, &out, &err), MR_OK);
    mr_buf_clear(&text);
    if (out.known)
        mr_objects_write(&out, plan.classes, plan.class_count, &text);
    assert_string_equal(mr_buf_text(&text), objects);
    assert_int_equal(out.unreadable, unreadable);
    mr_buf_free(&text);
    mr_objects_free(&out);
    mr_class_set_free(&set);
    mr_plan_free(&mr_layout_hub, &plan);
}

static void test_lists(void **state)
{
    (void)state;
    expect(
        "{\"objects\":{\"bbox\":[[1,2,3.5,4],[]],\"categories\":[\"dog\",\"ant\"],\"crowd\":[true,false],"
        "\"polygons\":[[[1,2,3,4,5,6]],[]],\"keypoints\":[[],[7,8,2,9,9,0]]}}",
        false, "ant dog ",
        ",\"objects\":[{\"label\":1,\"class\":\"dog\",\"box\":[1,2,3.5,4],\"polygons\":[[1,2,3,4,5,6]],\"crowd\":true},"
        "{\"label\":0,\"class\":\"ant\",\"keypoints\":[[7,8,2],[9,9,0]]}]",
        0);
    expect("{\"objects\":{\"bbox\":[[0,0,1,1]],\"category\":[null],\"oriented\":[[1,2,3,4,5,6,7,8]]}}", false, "",
           ",\"objects\":[{\"box\":[0,0,1,1],\"oriented_box\":[1,2,3,4,5,6,7,8]}]", 0);
    expect("{\"objects\":{\"bbox\":[],\"categories\":[]}}", false, "", ",\"objects\":[]", 0);
    expect("{\"n\":\"objects\"}", false, "", "", 0);
    expect("{\"objects\":[{\"bbox\":[0,0,1,1],\"category\":\"b\"},{\"bbox\":[1,0,1,1],\"category\":\"a\"}]}", false,
           "a b ",
           ",\"objects\":[{\"label\":1,\"class\":\"b\",\"box\":[0,0,1,1]},{\"label\":0,\"class\":\"a\",\"box\":[1,0,1,"
           "1]}]",
           0);
}

static void test_numbers_keep_their_order(void **state)
{
    (void)state;
    expect("{\"objects\":{\"categories\":[10,9.0,-1,\"x\",100000]}}", false, "9 10 100000 x ",
           ",\"objects\":[{\"label\":1,\"class\":\"10\"},{\"label\":0,\"class\":\"9\"},{},"
           "{\"label\":3,\"class\":\"x\"},{\"label\":2,\"class\":\"100000\"}]",
           0);
}

static void test_what_cannot_be_read(void **state)
{
    (void)state;
    expect("{\"objects\":{\"bbox\":[[0,0,1],[0,0,1,\"a\"],5,[0,0,1e99,1],[0,0,1,1]],\"categories\":[\"a\"]}}", false,
           "a ", ",\"objects\":[{\"box\":[0,0,1,1]}]", 4);
    expect("{\"objects\":{\"bbox\":[[0,0,1,1]],\"polygons\":[[[1,2],[1,2,3,null,5,6]]],\"keypoints\":[[1,2,7]]}}",
           false, "", ",\"objects\":[{\"box\":[0,0,1,1]}]", 3);
    expect("{\"objects\":[{\"bbox\":[0,0,1]},7]}", false, "", ",\"objects\":[{}]", 1);
    mr_plan plan = {0};
    mr_objects out = {0};
    mr_error err;
    assert_int_equal(mr_hub_objects_read("{\"objects\":", 11, "f", &plan, false, &out, &err), MR_BAD_DATA);
}

/* The classes are the dataset's where pictures have no label. */
static void test_imagefolder(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "1.png", "");
    support_put(dir, "2.png", "");
    support_put(dir, "metadata.jsonl",
                "{\"file_name\":\"1.png\",\"objects\":{\"bbox\":[[1,2,3,4]],\"categories\":[\"dog\"]}}\n"
                "{\"file_name\":\"2.png\",\"objects\":{\"bbox\":[],\"categories\":[]}}\n");
    support_plan p = support_plan_ok(&mr_layout_imagefolder, dir, NULL);
    support_assert_objects(&p, 0, 10, 10, "[{\"label\":0,\"class\":\"dog\",\"box\":[1,2,3,4]}]");
    support_assert_objects(&p, 1, 10, 10, "[]");
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* Parquet: numbers, whose names are in the schema. */
static void test_hub(void **state)
{
    (void)state;
    const support_row rows[] = {
        {.json = "{\"objects\":{\"bbox\":[[0,0,1,1],[1,1,2,2]],\"categories\":[1,0]}}", .width = 4},
        {.json = "{\"objects\":{\"bbox\":[[0,0,1,1]],\"categories\":[7]}}", .width = 5},
    };
    support_hub_file(
        hub_source, "train.parquet",
        "{\"rows\":%zu,\"image\":\"image\",\"columns\":[\"objects\"],\"label\":null,\"objects\":[\"z\",\"a\"]}", rows,
        2);
    hub_ingest(0, "2 classes: z, a", NULL, NULL);
    json_t *meta = hub_meta("train", "0");
    char *objects = json_dumps(json_object_get(meta, "objects"), JSON_COMPACT);
    assert_string_equal(
        objects, "[{\"label\":1,\"class\":\"a\",\"box\":[0,0,1,1]},{\"label\":0,\"class\":\"z\",\"box\":[1,1,2,2]}]");
    free(objects);
    json_decref(meta);
    meta = hub_meta("train", "1");
    assert_null(json_object_get(json_array_get(json_object_get(meta, "objects"), 0), "label"));
    json_decref(meta);
}

/* Numbers without names are their own names, in numeric order; objects may be a list of objects. */
static void test_hub_without_names(void **state)
{
    (void)state;
    const support_row rows[] = {
        {.json = "{\"objects\":[{\"bbox\":[0,0,1,1],\"category\":10},{\"bbox\":[1,1,2,2],\"category\":-1}]}",
         .width = 4},
        {.json = "{\"objects\":[{\"bbox\":[0,0,1,1],\"category\":9.0}]}", .width = 5},
    };
    support_hub_file(hub_source, "train.parquet",
                     "{\"rows\":%zu,\"image\":\"image\",\"columns\":[\"objects\"],\"label\":null,\"objects\":null}",
                     rows, 2);
    hub_ingest(0, "2 classes: 9, 10", NULL, NULL);
    json_t *meta = hub_meta("train", "0");
    char *objects = json_dumps(json_object_get(meta, "objects"), JSON_COMPACT);
    assert_string_equal(objects, "[{\"label\":1,\"class\":\"10\",\"box\":[0,0,1,1]},{\"box\":[1,1,2,2]}]");
    free(objects);
    json_decref(meta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_numbers_keep_their_order),
        cmocka_unit_test(test_what_cannot_be_read),
        cmocka_unit_test(test_imagefolder),
        cmocka_unit_test_setup_teardown(test_hub, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_hub_without_names, hub_set_up, hub_tear_down),
    };
    return cmocka_run_group_tests_name("hub objects", tests, NULL, NULL);
}
