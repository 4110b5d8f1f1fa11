/* test_masks.c - masks from PNGs beside the pictures into metas, byte for byte.
 * Invariant tested: a mask is left out and counted unless it is an intact PNG; the picture stays. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json/json.h"
#include "tests/support/images/image.h"

static void put(const char *dir, const char *name, const picture *p, size_t len)
{
    support_writef(p->bytes, len, "%s/src/%s", dir, name);
}

static void put_text(const char *dir, const char *name, const char *text)
{
    support_write_textf(text, "%s/src/%s", dir, name);
}

/* The sample's meta; NULL where it has no masks. */
static json_t *masks_of(const char *dst, const char *number)
{
    support_result r = support_millrace("show", "--json", dst, "train", number, (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *masks = json_incref(json_object_get(json_object_get(doc, "meta"), "masks"));
    json_decref(doc);
    support_result_free(&r);
    return masks;
}

static void assert_mask(const json_t *masks, const char *name, const char *source, const picture *png)
{
    mr_buf text = {0};
    json_t *mask = json_object_get(masks, name);
    assert_non_null(mask);
    mr_base64_add(&text, png->bytes, png->len);
    assert_string_equal(json_string_value(json_object_get(mask, "source")), source);
    assert_string_equal(json_string_value(json_object_get(mask, "png")), mr_buf_text(&text));
    mr_buf_free(&text);
}

static json_t *report_of(const char *dst)
{
    char *path = support_path("%s/report.json", dst);
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    free(path);
    return doc;
}

static json_int_t count_of(const json_t *report, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(report, "objects"), key));
}

static void masks_of_voc(void **state)
{
    char *src = support_path("%s/src", (char *)*state), *dst = support_path("%s/dst", (char *)*state);
    picture image = make_jpeg((jpeg_kind){.width = 40, .height = 30, .components = 3});
    picture good = make_png(40, 30, 3, 8, false), other = make_png(30, 40, 3, 8, false);
    for (char name[] = "JPEGImages/1.jpg"; name[11] <= '5'; name[11]++) {
        put(*state, name, &image, image.len);
        char *xml = support_path("Annotations/%c.xml", name[11]);
        put_text(*state, xml, "<annotation/>");
        free(xml);
    }
    put(*state, "SegmentationClass/1.png", &good, good.len);
    put(*state, "SegmentationObject/1.png", &other, other.len);
    put(*state, "SegmentationObject/2.png", &good, good.len - 3);
    put(*state, "SegmentationClass/3.png", &image, image.len);
    put(*state, "SegmentationClass/9.png", &good, good.len);
    put_text(*state, "ImageSets/Segmentation/train.txt", "1\n2\n3\n4\n5\n");
    support_expect(0, "ingest", "--quiet", src, dst, (char *)NULL);
    json_t *masks = masks_of(dst, "0"), *report = report_of(dst);
    assert_int_equal(json_object_size(masks), 2);
    assert_mask(masks, "SegmentationClass", "SegmentationClass/1.png", &good);
    assert_mask(masks, "SegmentationObject", "SegmentationObject/1.png", &other);
    for (char number[] = "1"; *number <= '4'; ++*number)
        assert_null(masks_of(dst, number));
    assert_int_equal(count_of(report, "masks"), 2);
    assert_int_equal(count_of(report, "masks_resized"), 1);
    assert_int_equal(count_of(report, "masks_unreadable"), 2);
    char *text = json_dumps(report, JSON_ENCODE_ANY);
    assert_non_null(strstr(text, "masks of a different size from their image: 1 in 1 image, of which this"));
    assert_non_null(strstr(text, "masks of segmentation left out, as no sample has their names: 1"));
    support_expect(0, "verify", "--deep", dst, (char *)NULL);
    free(text);
    json_decref(masks);
    json_decref(report);
    picture_free(&image);
    picture_free(&good);
    picture_free(&other);
    free(src);
    free(dst);
}

static void masks_of_coco(void **state)
{
    char *src = support_path("%s/src", (char *)*state), *dst = support_path("%s/dst", (char *)*state);
    picture exif = make_exif(false, 3, 1, 6);
    picture image = make_jpeg((jpeg_kind){.width = 40, .height = 30, .components = 3, .exif = &exif});
    picture panoptic = make_png(30, 40, 2, 8, false), stuff = make_png(40, 30, 0, 8, false);
    put(*state, "train2017/1.jpg", &image, image.len);
    put(*state, "annotations/panoptic_train2017/0001.png", &panoptic, panoptic.len);
    put(*state, "stuff_train2017_pixelmaps/1.png", &stuff, stuff.len);
    put_text(
        *state, "annotations/panoptic_train2017.json",
        "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}],\"annotations\":[{\"image_id\":1,\"file_name\":\"0001.png\","
        "\"segments_info\":[]}],\"categories\":[]}");
    put_text(*state, "annotations/stuff_train2017.json",
             "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}],\"annotations\":[{\"image_id\":1,\"category_id\":92,"
             "\"bbox\":[1,1,5,5]}],\"categories\":[{\"id\":92,\"name\":\"banner\"}]}");
    support_expect(0, "ingest", "--quiet", src, dst, (char *)NULL);
    json_t *masks = masks_of(dst, "0"), *report = report_of(dst);
    assert_mask(masks, "panoptic", "annotations/panoptic_train2017/0001.png", &panoptic);
    assert_mask(masks, "stuff", "stuff_train2017_pixelmaps/1.png", &stuff);
    assert_int_equal(count_of(report, "masks"), 2);
    assert_int_equal(count_of(report, "masks_resized"), 0); /* EXIF turns the picture */
    assert_int_equal(count_of(report, "masks_unreadable"), 0);
    json_decref(masks);
    json_decref(report);
    picture_free(&exif);
    picture_free(&image);
    picture_free(&panoptic);
    picture_free(&stuff);
    free(src);
    free(dst);
}

static int set_up(void **state)
{
    *state = support_tmpdir();
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(masks_of_voc, set_up, tear_down),
        cmocka_unit_test_setup_teardown(masks_of_coco, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
