/* test_labels.c - COCO for classification.  Covers common/label_list.c.
 * Invariant tested: categories of annotations that mark no place are labels; one place in any file makes all of them
 * objects. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/json.h"

#define COCO &mr_layout_coco

#define CATEGORIES                                                                                                     \
    "\"categories\":[{\"id\":9,\"name\":\"fox\"},{\"id\":4,\"name\":\"empty\"},{\"id\":7,\"name\":\"deer\"}]"

/* NAME lists images a.jpg, b.jpg ... with these annotations. */
static void put_json(const char *dir, const char *name, int images, const char *annotations)
{
    char list[400] = "";
    for (int i = 0; i < images; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s{\"id\":\"i%d\",\"file_name\":\"%c.jpg\"}",
                 i ? "," : "", i, 'a' + i);
    char *text = support_path("{\"images\":[%s],\"annotations\":[%s]," CATEGORIES "}", list, annotations);
    support_put(dir, name, text);
    free(text);
    for (int i = 0; i < images; i++) {
        char image[] = {(char)('a' + i), '.', 'j', 'p', 'g', 0};
        support_put(dir, image, image);
    }
}

static void test_labels(void **state)
{
    put_json(*state, "x.json", 5,
             "{\"image_id\":\"i0\",\"category_id\":9},{\"image_id\":\"i1\",\"category_id\":4,\"bbox\":[],"
             "\"segmentation\":[]},"
             "{\"image_id\":\"i2\",\"category_id\":9},{\"image_id\":\"i2\",\"category_id\":7},{\"image_id\":\"i2\","
             "\"category_id\":9},{\"image_id\":\"i3\",\"category_id\":7,\"keypoints\":null},"
             "{\"image_id\":\"i3\",\"category_id\":7}");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    assert_string_equal(p.plan.variant_text, "labels");
    support_assert_samples(&p,
                           "train a.jpg 2 0\ntrain b.jpg 0 0\ntrain c.jpg -1 2\ntrain d.jpg 1 0\ntrain e.jpg -1 4\n");
    char *meta = support_plan_meta(&p, 2), *single = support_plan_meta(&p, 0);
    assert_non_null(strstr(meta, "\"labels\":[1,2],\"classes\":[\"deer\",\"fox\"]"));
    assert_null(strstr(single, "\"labels\""));
    assert_null(strstr(meta, "\"objects\""));
    free(single);
    free(meta);
    support_plan_done(&p);
}

/* An annotation of a category that is not listed gives its image no label. */
static void test_a_category_that_is_not_listed(void **state)
{
    put_json(*state, "x.json", 2, "{\"image_id\":\"i0\",\"category_id\":9},{\"image_id\":\"i1\",\"category_id\":5}");
    support_plan p = support_plan_ok(COCO, *state, NULL);
    support_assert_samples(&p, "train a.jpg 2 0\ntrain b.jpg -1 4\n");
    assert_true(
        support_has_note(&p, MR_NOTE_INFO, "x.json", "annotations of a category that is not listed, such as 5: 1"));
    support_plan_done(&p);
}

static void test_one_place_makes_objects(void **state)
{
    static const char *const places[] = {"\"bbox\":[1,1,2,2]", "\"segmentation\":[[1,1,5,1,5,5]]",
                                         "\"segmentation\":{\"counts\":\"0\",\"size\":[1,1]}", "\"keypoints\":[1,1,2]"};
    for (size_t i = 0; i < MR_COUNT(places); i++) {
        char *one = support_path("{\"image_id\":\"i0\",\"category_id\":9},{\"image_id\":\"i0\",\"category_id\":4,%s}",
                                 places[i]);
        put_json(*state, "x.json", 1, one);
        support_plan p = support_plan_ok(COCO, *state, NULL);
        assert_string_equal(p.plan.variant_text, "instances");
        support_assert_samples(&p, "train a.jpg -1 0\n");
        support_plan_done(&p);
        free(one);
    }
}

/* ... in any of the files. */
static void test_a_place_in_another_split(void **state)
{
    char *dir = *state;
    put_json(dir, "instances_train.json", 1, "{\"image_id\":\"i0\",\"category_id\":9}");
    put_json(dir, "instances_val.json", 1, "{\"image_id\":\"i0\",\"category_id\":9}");
    support_plan p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "train a.jpg 2 0\nval a.jpg 2 0\n");
    support_plan_done(&p);
    put_json(dir, "instances_val.json", 1, "{\"image_id\":\"i0\",\"category_id\":9,\"bbox\":[1,1,2,2]}");
    p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "train a.jpg -1 0\nval a.jpg -1 0\n");
    support_plan_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_labels),
        IN_TMPDIR(test_a_category_that_is_not_listed),
        IN_TMPDIR(test_one_place_makes_objects),
        IN_TMPDIR(test_a_place_in_another_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
