/* test_coco_segmentation.c - the forms in which tools write polygons, masks and crowds.
 * Covers common/coco_segmentation.c.
 * Invariant tested: a form that is known gives the polygons that it means; any other is counted, and gives none. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/coco/coco.h"
#include "tests/support/json.h"

#define SQUARE "1,1,5,1,5,5"
#define POINTS "[1,1],[5,1],[5,5]"

/* The objects of one annotation with these members, as in its meta. */
static void expect(const char *members, const char *objects, uint64_t unreadable)
{
    char *dir = support_tmpdir();
    char *json =
        support_path("{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"}],\"categories\":[{\"id\":1,\"name\":\"c\"}],"
                     "\"annotations\":[{\"image_id\":1,%s}]}",
                     members);
    support_put(dir, "train/a.jpg", "");
    support_put(dir, "annotations/instances_train.json", json);
    support_plan p = support_plan_ok(&mr_layout_coco, dir, NULL);
    MR_AUTO(mr_objects_free) mr_objects o = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    const mr_stored picture = {5, 4, 1};
    assert_int_equal(p.plan.sample_count, 1);
    assert_int_equal(p.layout->objects(&p.tree, &p.plan, &p.plan.samples[0], &picture, &o, NULL), MR_OK);
    mr_objects_write(&o, p.plan.classes, p.plan.class_count, &text);
    if (strcmp(mr_buf_text(&text), objects) != 0 || o.unreadable != unreadable)
        fail_msg("%s: %s, %d unreadable; expected %s", members, mr_buf_text(&text), (int)o.unreadable, objects);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
    free(json);
}

static void test_polygons(void **state)
{
    (void)state;
    static const char one[] = ",\"objects\":[{\"box\":[1,1,4,4],\"polygons\":[[" SQUARE "]]}]";
    static const char two[] = ",\"objects\":[{\"box\":[1,1,6,6],\"polygons\":[[" SQUARE "],[2,2,7,2,7,7]]}]";
    static const char none[] = ",\"objects\":[]";
    expect("\"segmentation\":[[" SQUARE "]]", one, 0);
    expect("\"segmentation\":[" SQUARE "]", one, 0);
    expect("\"segmentation\":[" POINTS "]", one, 0);
    expect("\"segmentation\":[[" POINTS "]]", one, 0);
    expect("\"segmentation\":[[" SQUARE "],[2,2,7,2,7,7]]", two, 0);
    expect("\"segmentation\":[[" POINTS "],[[2,2],[7,2],[7,7]]]", two, 0);
    expect("\"segmentation\":[]", ",\"objects\":[{}]", 0);
    expect("\"segmentation\":[[]]", ",\"objects\":[{}]", 0);
    expect("\"segmentation\":[[1,1],[5,1]]", none, 1);
    expect("\"segmentation\":[1,1,5,1]", none, 1);
    expect("\"segmentation\":[1,1,5,1,5]", none, 1);
    expect("\"segmentation\":[[[1,1,1],[5,1,1]]]", none, 1);
    expect("\"segmentation\":[[" SQUARE "],[1,1]]", one, 1);
    expect("\"segmentation\":[" POINTS ",[" SQUARE "]]", none, 1);
    expect("\"segmentation\":[[1,1,\"5\",1,5,5]]", none, 1);
    expect("\"segmentation\":[" SQUARE ",[" SQUARE "]]",
           ",\"objects\":[{\"box\":[1,1,4,4],\"polygons\":[[" SQUARE "],[" SQUARE "]]}]", 1);
}

static void test_masks(void **state)
{
    (void)state;
    static const char box[] = ",\"objects\":[{\"box\":[1,1,2,2]}]";
    expect("\"bbox\":[1,1,2,2],\"segmentation\":[{\"size\":[4,5],\"counts\":[5,10,5]}]", box, 0);
    expect(
        "\"segmentation\":[{\"size\":[4,5],\"counts\":[5,10.0,5]},{\"counts\":[20],\"size\":[4,5]}],\"bbox\":[1,1,2,2]",
        box, 0);
    expect("\"segmentation\":[{\"size\":[4,5],\"counts\":[5,10,6]}],\"bbox\":[1,1,2,2]", box, 1);
}

static void test_crowds(void **state)
{
    (void)state;
    static const char crowd[] = ",\"objects\":[{\"box\":[1,1,2,2],\"crowd\":true}]";
    static const char single[] = ",\"objects\":[{\"box\":[1,1,2,2]}]";
#define CROWD(value) "\"iscrowd\":" value ",\"bbox\":[1,1,2,2]"
    expect(CROWD("1"), crowd, 0);
    expect(CROWD("1.0"), crowd, 0);
    expect(CROWD("true"), crowd, 0);
    expect(CROWD("\"1\""), crowd, 0);
    expect(CROWD("\"true\""), crowd, 0);
    expect(CROWD("0"), single, 0);
    expect(CROWD("false"), single, 0);
    expect(CROWD("\"0\""), single, 0);
    expect(CROWD("null"), single, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_polygons), cmocka_unit_test(test_masks),
                                       cmocka_unit_test(test_crowds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
