/* test_voc.c - Pascal VOC trees: where images and XML files may lie, splits, objects, and what may be wrong.
 * Invariant tested: every image is a sample, a reject or in a note; no XML is expanded. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "ingest/layout/common/class_set.h"
#include "tests/support/sources/objects.h"
#include "ingest/layout/voc/voc.h"

#define VOC &mr_layout_voc

static const char dog[] = "<annotation><size><width>100</width><height>50</height></size>"
                          "<object><name> dog </name><part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>"
                          "<bndbox><xmin>11</xmin><ymin>6</ymin><xmax>20</xmax><ymax>15.5</ymax></bndbox></object>"
                          "</annotation>";
static const char odd[] =
    "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<annotation><object><name>c\xE4t</name><bndbox>"
    "<xmin>1</xmin><ymin>2</ymin><xmax>11</xmax><ymax>22</ymax></bndbox>"
    "<polygon><x1>1</x1><y1>2</y1><x2>11</x2><y2>2</y2><x3>11</x3><y3>22</y3></polygon></object>"
    "<object><name>dog</name></object></annotation>";

static void test_beside(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "train/a.rf.1.jpg", "");
    support_put(dir, "train/a.rf.1.xml", odd);
    support_put(dir, "train/b.jpg", "");
    support_put(dir, "train/c.xml", dog);
    support_put(dir, "train/d.jpg", "");
    support_put(dir, "train/d.xml", "<annotation>\n<object></annotation>");
    support_put(dir, "valid/e.png", "");
    support_put(dir, "valid/e.xml", dog);
    support_put(dir, "valid/f.png", "");
    support_put(dir, "valid/f.xml", "<annotation/>");
    support_put(dir, "README.roboflow.txt", "");
    support_plan p = support_plan_ok(VOC, dir, NULL);
    assert_int_equal(p.bid.score, 88);
    support_assert_samples(&p, "train train/a.rf.1.jpg -1 0\ntrain train/b.jpg -1 4\nval valid/e.png -1 0\n"
                               "val valid/f.png -1 4\n");
    assert_int_equal(p.plan.class_count, 2);
    assert_string_equal(p.plan.classes[0].name, "c\xC3\xA4t");
    support_assert_objects(&p, 0, 100, 50,
                           "[{\"label\":0,\"class\":\"c\xC3\xA4t\",\"box\":[1,2,10,20],"
                           "\"polygons\":[[1,2,11,2,11,22]]}]");
    support_assert_objects(&p, 1, 100, 50, "-");
    support_assert_objects(&p, 2, 100, 50, "[{\"label\":1,\"class\":\"dog\",\"box\":[11,6,9,9.5]}]");
    support_assert_objects(&p, 3, 100, 50, "[]");
    support_assert_meta(&p, 3, ",\"voc\":\"<annotation/>\"");
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "train/d.jpg", "train/d.xml: line 2: not XML: mismatched tag"));
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "train/c.xml", "without an image"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "train", "images without an XML, whose objects are unknown: 1"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_development_kit(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    static const char *const names[] = {"1", "2", "3", "4", "5"};
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        char *image = support_path("JPEGImages/%s.jpg", names[i]), *xml = support_path("Annotations/%s.xml", names[i]);
        support_put(dir, image, "");
        support_put(dir, xml, dog);
        free(image);
        free(xml);
    }
    support_put(dir, "ImageSets/Main/train.txt", "2\n1\r\ngone\n");
    support_put(dir, "ImageSets/Main/val.txt", "3\n");
    support_put(dir, "ImageSets/Main/trainval.txt", "1\n2\n3\n");
    support_put(dir, "ImageSets/Main/dog_train.txt", "1  1\n");
    support_put(dir, "ImageSets/Segmentation/val.txt", "1\n4\n");
    support_put(dir, "SegmentationClass/4.png", "");
    support_put(dir, "SegmentationObject/4.png", "");
    support_put(dir, "SegmentationObject/5.png", "");
    support_plan p = support_plan_ok(VOC, dir, NULL);
    assert_int_equal(p.bid.score, 88);
    support_assert_samples(&p, "train JPEGImages/1.jpg -1 0\ntrain JPEGImages/2.jpg -1 0\nval JPEGImages/3.jpg -1 0\n"
                               "val JPEGImages/4.jpg -1 0\n");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "ImageSets",
                                 "images that a list of another folder puts in another split: 1;"));
    support_assert_objects(&p, 0, 100, 50, "[{\"label\":0,\"class\":\"dog\",\"box\":[10,5,10,10.5]}]");
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "gone", "ImageSets/Main/train.txt names it"));
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "JPEGImages/5.jpg",
                                 "not listed in ImageSets/: left out (--keep-unlisted includes it)"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "SegmentationClass",
                                 "masks of segmentation left out, as no sample has their names: 1"));
    mr_mask masks[MR_MASKS_MAX];
    assert_int_equal(p.layout->masks(&p.tree, &p.plan, &p.plan.samples[0], masks), 0);
    assert_int_equal(p.layout->masks(&p.tree, &p.plan, &p.plan.samples[3], masks), 2);
    assert_string_equal(masks[1].name, "SegmentationObject");
    assert_string_equal(mr_source_entry(p.source, masks[1].entry)->path, "SegmentationObject/4.png");
    support_plan_done(&p);
    support_tmpdir_remove(dir);

    const mr_split_map map = {"val", ""};
    dir = support_tmpdir();
    support_put(dir, "JPEGImages/1.jpg", "");
    support_put(dir, "JPEGImages/2.jpg", "");
    support_put(dir, "Annotations/1.xml", dog);
    support_put(dir, "Annotations/2.xml", dog);
    support_put(dir, "ImageSets/Main/trainval.txt", "1\n2\n");
    support_put(dir, "ImageSets/Main/val.txt", "2\n");
    p = support_plan_ok(VOC, dir, &(mr_layout_options){.maps = &map, .map_count = 1});
    support_assert_samples(&p, "train JPEGImages/1.jpg -1 0\n");
    assert_int_equal(support_notes(&p, MR_NOTE_MISSING), 0);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_keep_unlisted(void **state)
{
    (void)state;
    const mr_layout_options keep = {.keep_unlisted = true};
    char *dir = support_tmpdir();
    support_put(dir, "JPEGImages/1.jpg", "");
    support_put(dir, "JPEGImages/2.jpg", "");
    support_put(dir, "SegmentationClass/2.png", "");
    support_put(dir, "Annotations/1.xml", dog);
    support_put(dir, "Annotations/2.xml", dog);
    support_put(dir, "ImageSets/Main/val.txt", "1\n");
    support_plan p = support_plan_ok(VOC, dir, &keep);
    support_assert_samples(&p, "val JPEGImages/1.jpg -1 0\ntrain JPEGImages/2.jpg -1 0\n");
    support_assert_objects(&p, 1, 100, 50, "[{\"label\":0,\"class\":\"dog\",\"box\":[10,5,10,10.5]}]");
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "JPEGImages/2.jpg", "added to train (--keep-unlisted)"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
    dir = support_tmpdir();
    support_put(dir, "train/1.jpg", "");
    support_put(dir, "train/1.xml", dog);
    support_put(dir, "more/2.jpg", "");
    support_put(dir, "more/2.xml", dog);
    p = support_plan_ok(VOC, dir, &keep);
    support_assert_samples(&p, "train train/1.jpg -1 0\ntrain more/2.jpg -1 0\n");
    support_plan_done(&p);
    p = support_plan_ok(VOC, dir, NULL);
    support_assert_samples(&p, "train train/1.jpg -1 0\n");
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_plain_folders(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "images/1.png", "");
    support_put(dir, "annotations/1.xml", dog);
    support_plan p = support_plan_ok(VOC, dir, NULL);
    support_assert_samples(&p, "train images/1.png -1 0\n");
    support_assert_objects(&p, 0, 100, 50, "[{\"label\":0,\"class\":\"dog\",\"box\":[11,6,9,9.5]}]");
    support_plan_done(&p);
    support_tmpdir_remove(dir);
    dir = support_tmpdir();
    support_put(dir, "1.png", "");
    support_put(dir, "1.xml", dog);
    p = support_plan_ok(VOC, dir, NULL);
    assert_int_equal(p.bid.score, 70);
    support_assert_samples(&p, "train 1.png -1 0\n");
    support_plan_done(&p);
    support_tmpdir_remove(dir);
    dir = support_tmpdir();
    support_put(dir, "1.png", "");
    support_put(dir, "1.xml", "<other/>");
    support_plan_fails(VOC, dir, NULL, MR_BAD_DATA, "no Pascal VOC annotations");
    support_tmpdir_remove(dir);
}

/* Entities that grow by ten in each of ten lines. */
static const char laughs[] =
    "<?xml version=\"1.0\"?>\n<!DOCTYPE l [\n<!ENTITY a \"ha\">\n<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">\n"
    "<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\">]>\n<annotation><object><name>&c;</name></object></annotation>";

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } trials[] = {
        {laughs, "line 2: a DOCTYPE"},
        {"<!DOCTYPE a SYSTEM \"http://example.org/x.dtd\"><annotation/>", "line 1: a DOCTYPE"},
        {"<annotation>&x;</annotation>", "line 1: not XML: undefined entity"},
        {"", "line 1: not XML: no element found"},
        {"<annotation>", "not XML"},
        {"<html/>", "not an annotation of Pascal VOC"},
        {"<annotation><object><name>\xFF</name></object></annotation>", "not well-formed"},
    };
    MR_AUTO(mr_voc_annotation_free) mr_voc_annotation a = {0};
    mr_error err;
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        assert_int_equal(mr_voc_parse(trials[i].text, strlen(trials[i].text), &a, &err), MR_BAD_DATA);
        if (!strstr(err.text, trials[i].why))
            fail_msg("%s: %s", trials[i].why, err.text);
    }
    MR_AUTO(mr_buf_free) mr_buf deep = {0}, longer = {0};
    mr_buf_add_text(&deep, "<annotation>");
    for (int i = 0; i < 100000; i++)
        mr_buf_add_text(&deep, "<object>");
    assert_int_equal(mr_voc_parse(deep.data, deep.len, &a, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "more than 32 deep"));
    mr_buf_add_text(&longer, "<annotation><object><name>");
    for (int i = 0; i < 1000; i++)
        mr_buf_add_text(&longer, "0123456789");
    assert_int_equal(mr_voc_parse(longer.data, longer.len, &a, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "more than 4,096 bytes"));
}

static void put_long(const char *dir, const char *name, off_t len)
{
    char *path = support_path("%s/%s", dir, name);
    assert_int_equal(truncate(path, len), 0);
    free(path);
}

static void test_long_files(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "JPEGImages/a.jpg", "");
    support_put(dir, "JPEGImages/b.jpg", "");
    support_put(dir, "Annotations/a.xml", "<annotation/>");
    support_put(dir, "Annotations/b.xml", "<annotation/>");
    support_put(dir, "ImageSets/Main/train.txt", "a\nb\n");
    put_long(dir, "Annotations/b.xml", MR_VOC_XML_MAX + 1);
    support_plan p = support_plan_ok(VOC, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "JPEGImages/b.jpg", "Annotations/b.xml: longer than 16 MiB"));
    support_plan_done(&p);
    put_long(dir, "ImageSets/Main/train.txt", ((off_t)64 << 20) + 1);
    support_plan_fails(VOC, dir, NULL, MR_BAD_DATA, "ImageSets/Main/train.txt: longer than 64 MiB");
    support_tmpdir_remove(dir);
}

static void test_many_classes(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_buf_add_text(&text, "<annotation>");
    for (int i = 0; i <= MR_CLASS_SET_MAX; i++)
        mr_buf_printf(&text, "<object><name>%d</name></object><object><name>%d</name></object>", i, i);
    mr_buf_add_text(&text, "</annotation>");
    support_put(dir, "train/a.jpg", "");
    support_put(dir, "train/a.xml", mr_buf_text(&text));
    support_plan_fails(VOC, dir, NULL, MR_BAD_DATA, "more than 65536 classes");
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside),          cmocka_unit_test(test_keep_unlisted),
                                       cmocka_unit_test(test_development_kit), cmocka_unit_test(test_plain_folders),
                                       cmocka_unit_test(test_hostile),         cmocka_unit_test(test_long_files),
                                       cmocka_unit_test(test_many_classes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
