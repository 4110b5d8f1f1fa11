/* test_voc_places.c - where the XML of an image may be in a Pascal VOC tree, and XML files that contradict each other.
 * Covers voc/places.c, voc/annotation.c.
 * Invariant tested: an image whose XML is there never becomes one without objects, and no contradiction is resolved in
 * silence. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "tests/support/sources/objects.h"
#include "ingest/layout/voc/voc.h"

#define VOC &mr_layout_voc

#define BOX(a, b, c, d) "<bndbox><xmin>" a "</xmin><ymin>" b "</ymin><xmax>" c "</xmax><ymax>" d "</ymax></bndbox>"
#define DOG(box)        "<object><name>dog</name>" box "</object>"
#define XML(...)        "<annotation>" __VA_ARGS__ "</annotation>"

static const char dog[] = XML(DOG(BOX("11", "6", "20", "15")));

static const char from_one[] = "[{\"label\":0,\"class\":\"dog\",\"box\":[10,5,10,10]}]";
static const char from_zero[] = "[{\"label\":0,\"class\":\"dog\",\"box\":[11,6,9,9]}]";

/* Files with empty contents are images, others hold the dog; every sample must have it. */
static void expect(int score, const char *samples, const char *objects, const char *const *files)
{
    char *dir = support_tmpdir();
    for (; *files; files++)
        support_put(dir, *files, strcasestr(*files, ".xml") ? dog : "");
    support_plan p = support_plan_ok(VOC, dir, NULL);
    assert_int_equal(p.bid.score, score);
    support_assert_samples(&p, samples);
    for (size_t i = 0; i < p.plan.sample_count; i++)
        support_assert_objects(&p, i, 100, 50, objects);
    assert_int_equal(support_notes(&p, MR_NOTE_MISSING), 0);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}
#define EXPECT(score, samples, objects, ...) expect(score, samples, objects, (const char *const[]){__VA_ARGS__, NULL})

static void test_where_labels_would_be(void **state)
{
    (void)state;
    EXPECT(91, "train images/1.png -1 0\n", from_zero, "images/1.png", "labels/1.xml", "labels/classes.txt",
           "labels/2.xml.bak", "images/notes.txt");
    EXPECT(91, "train train/images/1.png -1 0\nval valid/images/2.png -1 0\n", from_zero, "train/images/1.png",
           "train/labels/1.xml", "valid/images/2.png", "valid/labels/2.xml");
    char *dir = support_tmpdir();
    support_put(dir, "images/1.png", "");
    support_put(dir, "labels/1.txt", "");
    support_put(dir, "labels/1.xml", dog);
    support_plan_fails(VOC, dir, NULL, MR_BAD_DATA, "no Pascal VOC annotations");
    support_tmpdir_remove(dir);
}

static void test_folders_of_splits(void **state)
{
    (void)state;
    EXPECT(88, "train train/JPEGImages/1.png -1 0\n", from_one, "train/JPEGImages/1.png", "train/Annotations/1.xml");
    EXPECT(84, "test images/test/1.png -1 0\ntrain images/train/2.png -1 0\n", from_zero, "images/train/2.png",
           "images/test/1.png", "annotations/train/2.xml", "annotations/test/1.xml");
    EXPECT(88, "train train/1.png -1 0\n", from_zero, "train/1.png", "train/annotations/1.xml");
    EXPECT(70, "train 1.png -1 0\n", from_zero, "1.png", "Annotations/1.xml");
    EXPECT(84, "train images/a/2.png -1 0\n", from_zero, "images/a/2.png", "annotations/a/2.XML");
    EXPECT(84, "train JPEGImages/cat/2.png -1 0\ntrain JPEGImages/dog/3.png -1 0\n", from_one, "JPEGImages/cat/2.png",
           "JPEGImages/dog/3.png", "Annotations/2.xml", "Annotations/3.xml");
    char *dir = support_tmpdir();
    support_put(dir, "train/JPEGImages/1.png", "");
    support_put(dir, "train/Annotations/1.xml", dog);
    support_put(dir, "train/SegmentationClass/1.png", "");
    support_put(dir, "train/SegmentationClass/2.png", "");
    support_put(dir, "valid/2.png", "");
    support_put(dir, "valid/2.xml", dog);
    support_plan p = support_plan_ok(VOC, dir, NULL);
    mr_mask masks[MR_MASKS_MAX];
    support_assert_samples(&p, "train train/JPEGImages/1.png -1 0\nval valid/2.png -1 0\n");
    support_assert_objects(&p, 0, 100, 50, from_one);
    support_assert_objects(&p, 1, 100, 50, from_zero);
    assert_int_equal(p.layout->masks(&p.tree, &p.plan, &p.plan.samples[0], masks), 1);
    assert_int_equal(p.layout->masks(&p.tree, &p.plan, &p.plan.samples[1], masks), 0);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* Where pixels are numbered from depends on a folder's name: a remark if the tree is otherwise the development kit's.
 */
static void test_folders_of_other_names(void **state)
{
    static const struct {
        const char *images, *more, *noted;
    } cases[] = {
        {"JPEGImages", "ImageSets/Main/train.txt", NULL},
        {"images", "ImageSets/Main/train.txt", "images"},
        {"images", "train.txt", NULL},
        {"train/JPEGImages", "valid/2.xml", "valid"},
        {"train/JPEGImages", "valid/more/3.xml", NULL},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *dir = support_tmpdir(), *image = support_path("%s/1.png", cases[i].images);
        bool split = !strncmp(image, "train/", 6), valid = strstr(cases[i].more, "2.xml");
        support_put(dir, image, "");
        support_put(dir, split ? "train/Annotations/1.xml" : "Annotations/1.xml", dog);
        support_put(dir, cases[i].more, valid ? dog : "1\n");
        if (valid)
            support_put(dir, "valid/2.png", "");
        support_plan p = support_plan_ok(VOC, dir, NULL);
        const char *noted = cases[i].noted ? cases[i].noted : split ? "valid" : cases[i].images;
        assert_int_equal(support_has_note(&p, MR_NOTE_INFO, noted, "read as edges between pixels, from 0, unless"),
                         cases[i].noted != NULL);
        support_plan_done(&p);
        support_tmpdir_remove(dir);
        free(image);
    }
}

/* ---- what contradicts itself ------------------------------------------------------------------------------------- */

static void rejected(const char *xml, const char *why)
{
    char *dir = support_tmpdir();
    support_put(dir, "train/1.png", "");
    support_put(dir, "train/1.xml", xml);
    support_put(dir, "train/2.png", "");
    support_put(dir, "train/2.xml", dog);
    support_plan p = support_plan_ok(VOC, dir, NULL);
    support_assert_samples(&p, "train train/2.png -1 0\n");
    if (!support_has_note(&p, MR_NOTE_REJECT, "train/1.png", why))
        fail_msg("%s: not rejected as: %s", xml, why);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

static void test_bad_values_reject_one_image(void **state)
{
    (void)state;
    rejected(XML("\n<object><name>a</name><name>b</name>" BOX("1", "2", "3", "4") "</object>"),
             "train/1.xml: line 2: an object with two names");
    rejected(XML(DOG(BOX("1", "2", "3", "4") BOX("5", "6", "7", "8"))), "line 1: an object with two bndbox");
    rejected(XML(DOG("<bndbox><xmin>1</xmin><xmin>2</xmin></bndbox>")), "a bndbox with a duplicate side");
    rejected(XML(DOG(BOX("nan", "2", "3", "4"))), "a side of a bndbox is not a number");
    rejected(XML(DOG(BOX("1", "", "3", "4"))), "a side of a bndbox is not a number");
    rejected(XML(DOG(BOX("1", "2", "1e999", "4"))), "a side of a bndbox is not a number");
    rejected(XML(DOG("<robndbox><cx>1</cx></robndbox>")), "line 1: a robndbox, the rotated box of roLabelImg");
    rejected(XML(DOG("<bndbox><xmin>1</xmin></bndbox>")), "a bndbox without all of xmin, ymin, xmax and ymax");
}

static void test_two_xmls(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "JPEGImages/1.png", "");
    support_put(dir, "JPEGImages/1.xml", dog);
    support_put(dir, "Annotations/1.xml", dog);
    support_put(dir, "JPEGImages/2.png", "");
    support_put(dir, "Annotations/2.xml", XML("<filename>3.png</filename>"));
    support_put(dir, "JPEGImages/3.png", "");
    support_put(dir, "Annotations/3.xml", XML("<filename>2.png</filename>"));
    support_put(dir, "JPEGImages/4.jpg", "");
    support_put(dir, "JPEGImages/4.png", "");
    support_put(dir, "Annotations/4.xml", XML("<filename>before-renaming.png</filename>"));
    support_plan p = support_plan_ok(VOC, dir, NULL);
    support_assert_samples(&p, "train JPEGImages/2.png -1 4\ntrain JPEGImages/3.png -1 4\n"
                               "train JPEGImages/4.jpg -1 4\ntrain JPEGImages/4.png -1 4\n");
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "JPEGImages/1.png",
                                 "has several annotations, but only one may be kept: Annotations/1.xml, "
                                 "JPEGImages/1.xml"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "Annotations/2.xml",
                                 "2 XML files, this one the first, with the <filename> of another image"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "Annotations/4.xml", "1 XML file, this one, of several images"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* ---- boxes ------------------------------------------------------------------------------------------------------- */

static void expect_boxes(const char *xml, const char *folder, const char *objects, uint64_t reversed)
{
    char *dir = support_tmpdir(), *image = support_path("%s/1.png", folder);
    support_put(dir, image, "");
    support_put(dir, "Annotations/1.xml", xml);
    support_plan p = support_plan_ok(VOC, dir, NULL);
    MR_AUTO(mr_objects_free) mr_objects o = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    const mr_stored picture = {100, 50, 1};
    assert_int_equal(p.layout->objects(&p.tree, &p.plan, &p.plan.samples[0], &picture, &o, NULL), MR_OK);
    mr_objects_settle(&o, &picture);
    mr_objects_write(&o, p.plan.classes, p.plan.class_count, &text);
    assert_string_equal(mr_buf_text(&text), objects);
    assert_int_equal(o.reversed, reversed);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
    free(image);
}

static void test_sides_in_the_wrong_order(void **state)
{
    (void)state;
    const char *xml = XML(DOG(BOX("30", "2", "9", "12")) DOG(BOX("4", "8", "6", "3")) DOG(BOX("5", "5", "5", "5")));
    expect_boxes(xml, "JPEGImages",
                 ",\"objects\":[{\"label\":0,\"class\":\"dog\",\"box\":[8,1,22,11]},"
                 "{\"label\":0,\"class\":\"dog\",\"box\":[3,2,3,6]},{\"label\":0,\"class\":\"dog\",\"box\":[4,4,1,1]}]",
                 2);
    expect_boxes(xml, "images",
                 ",\"objects\":[{\"label\":0,\"class\":\"dog\",\"box\":[9,2,21,10]},"
                 "{\"label\":0,\"class\":\"dog\",\"box\":[4,3,2,5]},{\"label\":0,\"class\":\"dog\",\"box\":[5,5,0,0]}]",
                 2);
    /* A box of less than a pixel, as the export writes it. */
    expect_boxes(XML(DOG(BOX("11", "6", "10.5", "6"))), "JPEGImages",
                 ",\"objects\":[{\"label\":0,\"class\":\"dog\",\"box\":[10,5,0.5,1]}]", 0);
}

static void test_polygons_without_a_box(void **state)
{
    (void)state;
    expect_boxes(XML("<object><name>dog</name><polygon><x1>1</x1><y1>2</y1><x2>11</x2><y2>2</y2><x3>11</x3><y3>22</y3>"
                     "</polygon></object>"),
                 "images",
                 ",\"objects\":[{\"label\":0,\"class\":\"dog\",\"box\":[1,2,10,20],"
                 "\"polygons\":[[1,2,11,2,11,22]]}]",
                 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_where_labels_would_be),
                                       cmocka_unit_test(test_folders_of_splits),
                                       cmocka_unit_test(test_folders_of_other_names),
                                       cmocka_unit_test(test_bad_values_reject_one_image),
                                       cmocka_unit_test(test_two_xmls),
                                       cmocka_unit_test(test_sides_in_the_wrong_order),
                                       cmocka_unit_test(test_polygons_without_a_box)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
