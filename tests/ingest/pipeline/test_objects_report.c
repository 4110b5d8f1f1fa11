/* test_objects_report.c - objects from COCO annotations to metas, report and inspect.
 * Invariant tested: every odd object is counted, and none is dropped but where its place cannot be read. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "tests/support/images/image.h"

static void put_jpeg(const char *dir, const char *name, unsigned width, unsigned height, uint32_t orientation)
{
    picture exif = make_exif(false, 3, 1, orientation);
    picture p = make_jpeg((jpeg_kind){.width = width, .height = height, .components = 3, .exif = &exif});
    support_writef(p.bytes, p.len, "%s/%s", dir, name);
    picture_free(&p);
    picture_free(&exif);
}

static const char annotations[] =
    "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\",\"width\":100,\"height\":50},"
    "{\"id\":2,\"file_name\":\"b.jpg\",\"width\":50,\"height\":100},{\"id\":3,\"file_name\":\"c.jpg\"},"
    "{\"id\":4,\"file_name\":\"d.jpg\",\"width\":99,\"height\":50}],"
    "\"categories\":[{\"id\":3,\"name\":\"cat\"},{\"id\":9,\"name\":\"dog\"}],\"annotations\":["
    "{\"id\":1,\"image_id\":1,\"category_id\":9,\"bbox\":[1.0,2.25,30,4.10],\"iscrowd\":0,"
    "\"segmentation\":[[1,2,3,4,5,6.5],[],[1,2,3]]},"
    "{\"id\":2,\"image_id\":1,\"category_id\":3,\"bbox\":[90,40,20,5],\"iscrowd\":1,"
    "\"segmentation\":{\"counts\":[1,2,4997],\"size\":[50,100]}},"
    "{\"id\":3,\"image_id\":1,\"category_id\":3,\"bbox\":[1,1,0,5]},"
    "{\"id\":4,\"image_id\":1,\"category_id\":7,\"bbox\":[5,5,5,5]},"
    "{\"id\":5,\"image_id\":1,\"category_id\":7,\"bbox\":[5.0,5,5,5]},"
    "{\"id\":6,\"image_id\":1,\"category_id\":3,\"bbox\":[1,1,1e300,5]},"
    "{\"id\":7,\"image_id\":1,\"category_id\":3,\"segmentation\":[[1,2,11,2,11,22]]},"
    "{\"id\":8,\"image_id\":2,\"category_id\":3,\"bbox\":[30,10,3,4],\"keypoints\":[30,10,2,0,0,0]},"
    "{\"id\":10,\"image_id\":4,\"category_id\":9},"
    "{\"id\":9,\"image_id\":4,\"category_id\":3,\"bbox\":[1,1,2,2]}]}";

static const char *const expected[] = {
    "[{\"label\":1,\"class\":\"dog\",\"box\":[1,2.25,30,4.1],\"polygons\":[[1,2,3,4,5,6.5]],\"id\":1},"
    "{\"label\":0,\"class\":\"cat\",\"box\":[90,40,20,5],\"crowd\":true,\"id\":2},"
    "{\"label\":0,\"class\":\"cat\",\"box\":[1,1,0,5],\"id\":3},{\"box\":[5,5,5,5],\"id\":4},"
    "{\"box\":[5,5,5,5],\"id\":5},"
    "{\"label\":0,\"class\":\"cat\",\"box\":[1,2,10,20],\"polygons\":[[1,2,11,2,11,22]],\"id\":7}]",
    "[{\"label\":0,\"class\":\"cat\",\"box\":[10,17,4,3],\"keypoints\":[[10,20,2],[0,0,0]],\"id\":8}]",
    "[]",
    "[{\"label\":1,\"class\":\"dog\",\"id\":10},{\"label\":0,\"class\":\"cat\",\"box\":[1,1,2,2],\"id\":9}]",
};

static void make_tree(const char *dir)
{
    put_jpeg(dir, "src/train/a.jpg", 100, 50, 1);
    put_jpeg(dir, "src/train/b.jpg", 100, 50, 6);
    put_jpeg(dir, "src/train/c.jpg", 100, 50, 1);
    put_jpeg(dir, "src/train/d.jpg", 100, 50, 1);
    support_put(dir, "src/annotations/instances_train.json", annotations);
}

static json_t *parse(const char *text)
{
    json_t *doc = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(doc);
    return doc;
}

static void expect_number(const json_t *doc, const char *key, json_int_t number)
{
    if (json_integer_value(json_object_get(doc, key)) != number)
        fail_msg("%s is %lld", key, (long long)json_integer_value(json_object_get(doc, key)));
}

static void check_metas(const char *dst)
{
    for (size_t i = 0; i < MR_COUNT(expected); i++) {
        char number[16];
        snprintf(number, sizeof number, "%zu", i);
        support_result r = support_millrace("show", "--json", dst, "train", number, (char *)NULL);
        support_assert_status(&r, 0);
        char *want = support_path("\"objects\":%s}", expected[i]);
        if (!strstr(r.out, want))
            fail_msg("%s\nhas not\n%s", r.out, want);
        free(want);
        support_result_free(&r);
    }
}

static void check_counts(const json_t *doc)
{
    expect_number(doc, "pictures", 4);
    expect_number(doc, "pictures_without", 1);
    expect_number(doc, "objects", 9);
    expect_number(doc, "boxes", 8);
    expect_number(doc, "polygons", 2);
    expect_number(doc, "keypoints", 1);
    expect_number(doc, "crowds", 1);
    expect_number(doc, "leave_picture", 1);
    expect_number(doc, "empty", 1);
    expect_number(doc, "repeated", 1);
    expect_number(doc, "without_class", 2);
    expect_number(doc, "without_place", 1);
}

static void check_report(const char *dst)
{
    char *path = support_path("%s/report.json", dst);
    char *text = (char *)support_read(path, NULL);
    json_t *doc = parse(text), *objects = json_object_get(doc, "objects");
    check_counts(objects);
    expect_number(objects, "unreadable", 2);
    expect_number(objects, "turned", 1);
    expect_number(objects, "resized", 2);
    assert_non_null(strstr(text, "objects that extend more than a pixel beyond their image: 1 in 1 image"));
    assert_non_null(strstr(text, "objects in images that EXIF rotates"));
    json_decref(doc);
    free(text);
    free(path);
}

static void check_inspect(const char *dst)
{
    support_result r = support_millrace("inspect", "--objects", "--json", dst, (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = parse(r.out), *train = json_object_get(json_object_get(doc, "objects"), "train");
    check_counts(train);
    expect_number(train, "no_class", 2);
    expect_number(train, "small", 8);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(train, "classes"), 0)), 5);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(train, "classes"), 1)), 2);
    json_decref(doc);
    support_result_free(&r);
    r = support_millrace("inspect", "--objects", dst, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "(no class)"));
    support_result_free(&r);
}

static void test_objects(void **state)
{
    char *src = support_path("%s/src", (char *)*state), *dst = support_path("%s/dst", (char *)*state);
    make_tree(*state);
    support_expect(0, "ingest", "--quiet", src, dst, (char *)NULL);
    check_metas(dst);
    check_report(dst);
    check_inspect(dst);
    support_expect(0, "verify", "--deep", dst, (char *)NULL);
    free(src);
    free(dst);
}

/* Shards of one picture each, by two ranks: the same bytes, and the same counts in the report. */
static void test_ranks(void **state)
{
    char *src = support_path("%s/src", (char *)*state), *one = support_path("%s/one", (char *)*state);
    char *two = support_path("%s/two", (char *)*state);
    make_tree(*state);
    support_expect(0, "ingest", "--quiet", "--shard-size", "4KiB", src, one, (char *)NULL);
    support_result r = support_mpirun(
        2, (const char *const[]){support_millrace_path(), "ingest", "--quiet", "--shard-size", "4KiB", src, two, NULL});
    support_assert_status(&r, 0);
    support_result_free(&r);
    char *first = support_path("%s/report.json", one), *second = support_path("%s/report.json", two);
    support_assert_same_file(first, second);
    assert_true(support_dataset_hash(one) == support_dataset_hash(two));
    free(first);
    free(second);
    free(src);
    free(one);
    free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(test_objects), IN_TMPDIR(test_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
