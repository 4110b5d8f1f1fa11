/* test_voc_lists.c - the lists of ImageSets/ in Pascal VOC trees.
 * Covers voc/sets.c, voc/listed.c.
 * Invariant tested: every name of every list is in its split, and an image of two lists is in both. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "tests/support/json.h"
#include "ingest/layout/voc/voc.h"

#define VOC &mr_layout_voc

static const char dog[] = "<annotation><object><name>dog</name><bndbox><xmin>1</xmin><ymin>6</ymin><xmax>20</xmax>"
                          "<ymax>15</ymax></bndbox></object></annotation>";

typedef struct file {
    const char *name, *text;
} file;

/* A tree of the images a, b, c, d and "e 1" with these lists. */
static void put_tree(const char *dir, const file *lists)
{
    static const char *const names[] = {"a", "b", "c", "d", "e 1"};
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        char *image = support_path("JPEGImages/%s.jpg", names[i]), *xml = support_path("Annotations/%s.xml", names[i]);
        support_put(dir, image, "");
        support_put(dir, xml, dog);
        free(image);
        free(xml);
    }
    for (; lists->name; lists++)
        support_put(dir, lists->name, lists->text);
}

static void expect(const char *samples, const mr_layout_options *options, const file *lists)
{
    char *dir = support_tmpdir();
    put_tree(dir, lists);
    support_plan p = support_plan_ok(VOC, dir, options);
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    for (const char *at = samples; *at; at += at[1] ? 2 : 1) { /* "0a 0b 1c": the split's number, the image */
        const char *name = at[1] == 'e' ? "e 1" : (const char[]){at[1], '\0'};
        mr_buf_printf(&all, "%s JPEGImages/%s.jpg -1 0\n", p.plan.splits[*at - '0'].name, name);
        at++;
        if (!at[1])
            break;
    }
    support_assert_samples(&p, mr_buf_text(&all));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

#define MAIN                 "ImageSets/Main/"
#define EXPECT(samples, ...) expect(samples, NULL, (const file[]){__VA_ARGS__, {NULL, NULL}})

static void test_endings_of_lines(void **state)
{
    (void)state;
    EXPECT("0a 0b 0c 1d", {MAIN "train.txt", "a\rb\rc"},
           {MAIN "val.txt", "\xEF\xBB\xBF"
                            "d\r\n\r\n"});
    EXPECT("0a 0b 0c", {MAIN "train.txt", "\xEF\xBB\xBF"
                                          "a\r\n  b  \n\n\tc\r"});
    EXPECT("0a 0b 0e", {MAIN "train.TXT", "./JPEGImages/a.jpg Annotations/a.xml\nb.jpg\ne 1\n"});
    char *dir = support_tmpdir();
    put_tree(dir, (const file[]){{MAIN "train.txt", "\xFF\xFE"
                                                    "a"},
                                 {NULL, NULL}});
    support_plan_fails(VOC, dir, NULL, MR_BAD_DATA, MAIN "train.txt: the text is UTF-16");
    support_tmpdir_remove(dir);
}

/* Also the word that CVAT has for no split, and a list that is not in Main/. */
static void test_any_name(void **state)
{
    (void)state;
    EXPECT("0a 1b 1c 2d", {MAIN "train.txt", "a"}, {MAIN "default.txt", "b\nc\n"}, {MAIN "train2.txt", "d"});
    EXPECT("0a 1b", {MAIN "valid.txt", "a"}, {MAIN "night.2.txt", "b"}, {MAIN "empty.txt", ""});
    EXPECT("0a 1b", {"train.txt", "a"}, {"validation.txt", "b"}, {"notes.txt", "c"});
    EXPECT("0a 1b", {"train_list.txt", "./JPEGImages/a.jpg ./Annotations/a.xml"}, {"val_list.txt", "b"});
    EXPECT("0a 1b", {"ImageSets/train.txt", "a"}, {"ImageSets/Layout/val.txt", "b 1\n"});
    const mr_split_map map = {"not a split", "odd"};
    const mr_layout_options named = {.maps = &map, .map_count = 1};
    const file lists[] = {{MAIN "train.txt", "a"}, {MAIN "not a split.txt", "c"}, {NULL, NULL}};
    expect("0a 1c", &named, lists);
    char *dir = support_tmpdir();
    put_tree(dir, lists);
    support_plan_fails(VOC, dir, NULL, MR_BAD_DATA, "not a split: not a valid split name: store it under another");
    support_tmpdir_remove(dir);
}

/* Flags say which images show the class; all of them are in the split. */
static void test_lists_of_a_class(void **state)
{
    (void)state;
    EXPECT("0a 0b 1c", {MAIN "cat_train.txt", "a  1\nb -1\n"}, {MAIN "cat_val.txt", "c  0\n"},
           {MAIN "potted_plant_train.txt", "a -1\nb  1\n"});
    EXPECT("0a 1c", {MAIN "train.txt", "a"}, {MAIN "cat_train.txt", "a 1\nb 1\n"}, {MAIN "cat_val.txt", "c 1\n"});
    EXPECT("0b 1a", {MAIN "night.2.txt", "a"}, {MAIN "dog_night.2.txt", "c 1"}, {MAIN "cat_trainval.txt", "b 1"});
    char *dir = support_tmpdir();
    put_tree(dir, (const file[]){{MAIN "train.txt", "a"}, {MAIN "cats.txt", "b 1\n"}, {NULL, NULL}});
    support_plan p = support_plan_ok(VOC, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_INFO, MAIN "cats.txt", "not read: its lines have flags"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* An image of two splits is in both, where ingest finds it as a leak. */
static void test_overlaps(void **state)
{
    (void)state;
    EXPECT("0a 0b 1b 1c", {MAIN "train.txt", "a\nb\na\n"}, {MAIN "val.txt", "b\nc\n"});
    EXPECT("0a 0d 1b 2c", {MAIN "train.txt", "a"}, {MAIN "val.txt", "b"}, {MAIN "test.txt", "c"},
           {MAIN "trainval.txt", "a\nb\nd\n"});
    EXPECT("0a 0c 1c", {MAIN "trainval.txt", "a\nc\n"}, {MAIN "test.txt", "c"});
    EXPECT("0a 1b", {MAIN "train.txt", "a"}, {"ImageSets/Segmentation/val.txt", "a\nb"});
    const mr_split_map out = {"val", ""}; /* what the remark advises */
    expect("0a 0b", &(mr_layout_options){.maps = &out, .map_count = 1},
           (const file[]){{MAIN "train.txt", "a\nb\n"}, {MAIN "val.txt", "b\nc\n"}, {NULL, NULL}});
    const mr_split_map map = {"val", "train"};
    expect("0a 0b 0c", &(mr_layout_options){.maps = &map, .map_count = 1},
           (const file[]){{MAIN "train.txt", "a\nb\n"}, {MAIN "val.txt", "b\nc\n"}, {NULL, NULL}});
    char *dir = support_tmpdir();
    put_tree(dir, (const file[]){{MAIN "train.txt", "a\nb\n"}, {MAIN "val.txt", "b\n"}, {NULL, NULL}});
    support_plan p = support_plan_ok(VOC, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_INFO, "ImageSets",
                                 "images that lists of several splits name, stored in each: 1;"));
    assert_int_equal(support_notes(&p, MR_NOTE_UNLISTED), 3);
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_endings_of_lines), cmocka_unit_test(test_any_name),
                                       cmocka_unit_test(test_lists_of_a_class), cmocka_unit_test(test_overlaps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
