/* test_split_lists.c - splits that text files list.
 * Invariant tested: each sample is in the split of the list that names it, and what is in no list is noted. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"
#include "tests/support/images/image.h"

#define LISTS(...)                                                                                                     \
    (mr_layout_options)                                                                                                \
    {                                                                                                                  \
        .lists = (const mr_split_map[]){__VA_ARGS__},                                                                  \
        .list_count = sizeof((const mr_split_map[]){__VA_ARGS__}) / sizeof(mr_split_map)                               \
    }
#define HEAD "layout imagenette 20: variant image-folder without splits, licence -, classes pie tea\n"

/* Two classes of two images; one name has a space. */
static int put_images(void **state)
{
    plan_set_up(state);
    support_touch(plan_dir, NAMES("images/pie/1.jpg", "images/pie/2.png", "images/tea/1.jpg", "images/tea/my cat.jpg"));
    return 0;
}

static void test_forms_of_lines(void **state)
{
    (void)state;
    /* Without an ending and with a label; with both, and CR LF; from the root of the source; a whole path. */
    plan_file("meta/test.txt", "\xEF\xBB\xBFpie/1 0\n\n");
    plan_file("meta/train.txt", "tea/my cat.jpg\r\npie/2.png,7\r\n/data/images/tea/1.jpg\r\n");
    const mr_layout_options o = LISTS({"meta/test.txt", "test"}, {"meta/train.txt", "train"});
    plan_is(&o, HEAD "test pie/1.jpg pie - - -\n"
                     "train pie/2.png pie - - -\n"
                     "train tea/1.jpg tea - - -\n"
                     "train tea/my cat.jpg tea - - -\n");
    char *counts = support_plan_counts(plan_dir, &o);
    assert_non_null(strstr(counts, "train 3, test 1; 0 notes, 0 unused")); /* in the usual order of splits */
    free(counts);
}

static void test_images_in_no_list(void **state)
{
    (void)state;
    plan_file("a.lst", "pie/1\ntea/1\nsoup/1\n");
    plan_file("b.lst", "pie/2\n");
    mr_layout_options o = LISTS({"a.lst", "val"}, {"b.lst", ""});
    plan_is(&o, HEAD "val pie/1.jpg pie - - -\n"
                     "val tea/1.jpg tea - - -\n"
                     "note missing soup/1: line 3 of a.lst: no such image\n"
                     "note unlisted tea/my cat.jpg: in none of the lists: left out of split train\n"
                     "unused images/tea/my cat.jpg\n");
    o.keep_unlisted = true;
    plan_says(&o, NULL, "train tea/my cat.jpg tea - - -\n");
    plan_says(&o, NULL, "in none of the lists: kept in split train");
}

/* An image that the lists of VOC put into two splits is one sample of the split that is asked for. */
static void test_a_layout_with_splits(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("JPEGImages/1.jpg", "JPEGImages/2.jpg"));
    static const char xml[] = "<annotation><filename>%d.jpg</filename><object><name>cat</name><bndbox><xmin>1</xmin>"
                              "<ymin>1</ymin><xmax>4</xmax><ymax>4</ymax></bndbox></object></annotation>";
    for (int i = 1; i <= 2; i++) {
        char *name = support_path("Annotations/%d.xml", i), *text = support_path(xml, i);
        plan_file(name, text);
        free(name);
        free(text);
    }
    plan_file("ImageSets/Main/train.txt", "1\n2\n");
    plan_file("ImageSets/Main/val.txt", "2\n");
    plan_file("mine.txt", "1\n2\n");
    mr_layout_options o = LISTS({"mine.txt", "test"});
    o.root = ".";
    char *counts = support_plan_counts(plan_dir, &(mr_layout_options){.root = "."});
    assert_non_null(strstr(counts, "train 2, val 1"));
    free(counts);
    counts = support_plan_counts(plan_dir, &o);
    assert_non_null(strstr(counts, "test 2;"));
    free(counts);
}

/* Two lists may be one split, and name an image twice; two splits may not. */
static void test_an_image_in_two_lists(void **state)
{
    (void)state;
    plan_file("a.txt", "pie/1\npie/2\npie/1\n");
    plan_file("b.txt", "tea/1\nmy cat\npie/2\n");
    plan_says(&LISTS({"a.txt", "train"}, {"b.txt", "train"}), NULL,
              "note notes train: a.txt and b.txt are stored as this one split, because of --split-list");
    plan_says(&LISTS({"a.txt", "train"}, {"b.txt", "val"}), NULL,
              "b.txt: line 3: images/pie/2.png is in a.txt too; an image has one split");
    plan_says(&LISTS({"a.txt", "train"}, {"b.txt", ""}), NULL, "is in a.txt too");
}

static void test_lists_that_cannot_be(void **state)
{
    (void)state;
    plan_file("a.txt", "1\n");
    plan_file("names.txt", "pie\ntea\n");
    plan_says(&LISTS({"a.txt", "train"}), NULL, "a.txt: line 1: 1 may be images/");
    plan_says(&LISTS({"names.txt", "train"}), NULL, "--split-list names.txt: it names none of the images");
    plan_says(&LISTS({"meta/a.txt", "train"}), NULL, "--split-list meta/a.txt=train: the source has no such file");
}

static void put_image(const char *dir, const char *name, unsigned width)
{
    picture p = make_jpeg((jpeg_kind){.width = width, .height = 9, .components = 3});
    char *path = support_path("%s/%s", dir, name);
    support_write(path, p.bytes, p.len);
    picture_free(&p);
    free(path);
}

/* As a user meets them: the refusal names the option, which settles all lists of the folder. */
static void test_what_is_advised(void **state)
{
    static const char *const names[] = {"images/pie/1.jpg", "images/pie/2.jpg", "images/tea/3.jpg", "images/tea/4.jpg"};
    static const char advised[] = "--split-list lists/test1.txt=test,lists/train1.txt=train";
    char *source = support_path("%s/src", (char *)*state), *target = support_path("%s/out", (char *)*state);
    for (unsigned i = 0; i < MR_COUNT(names); i++)
        put_image(source, names[i], 20 + i);
    support_put(source, "lists/train1.txt", "pie/1.jpg\ntea/3.jpg\n");
    support_put(source, "lists/test1.txt", "pie/2.jpg\ntea/4.jpg\n");
    support_put(source, "lists/train2.txt", "pie/2.jpg\ntea/3.jpg\n");
    support_put(source, "lists/test2.txt", "pie/1.jpg\ntea/4.jpg\n");
    support_expect_refusal(support_millrace("ingest", source, target, (char *)NULL), advised);
    support_expect(0, "ingest", source, target, "--split-list", strchr(advised, ' ') + 1, (char *)NULL);
    support_result r = support_millrace("inspect", "--json", target, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "\"split_list\": {\n   \"lists/test1.txt\": \"test\","));
    support_result_free(&r);
    free(source);
    free(target);
}

/* Oxford's pets have lines without folders and endings, which are in no known format: a remark. */
static void test_lists_of_bare_names(void **state)
{
    static const char remark[] = "part/test.txt: lists images of one split, and is not read; --split-list "
                                 "part/test.txt=test,part/trainval.txt=train makes splits";
    const char *dir = *state;
    put_image(dir, "a_1.jpg", 20);
    put_image(dir, "a_2.jpg", 21);
    put_image(dir, "b_3.jpg", 22);
    support_put(dir, "part/test.txt", "a_2 1 1\n");
    support_put(dir, "part/trainval.txt", "a_1 1 1\nb_3 2 1\n");
    support_put(dir, "part/other_test.txt", "a_1 1 1\nc_9 2 1\n");
    support_result r = support_millrace("ingest", dir, "--dry-run", "--class-pattern", "{class}_#", (char *)NULL);
    support_assert_status(&r, 0);
    if (!strstr(r.out, remark))
        fail_msg("%s", r.out);
    support_result_free(&r);
    r = support_millrace("ingest", dir, "--dry-run", "--class-pattern", "{class}_#", "--split-list",
                         "part/test.txt=test,part/trainval.txt=train", (char *)NULL);
    support_assert_status(&r, 0);
    assert_null(strstr(r.out, "lists images of one split"));
    support_result_free(&r);
}

#define PLANNED(test) cmocka_unit_test_setup_teardown(test, put_images, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_layout_with_splits, plan_set_up, plan_tear_down),
        PLANNED(test_forms_of_lines),
        PLANNED(test_images_in_no_list),
        PLANNED(test_an_image_in_two_lists),
        PLANNED(test_lists_that_cannot_be),
        IN_TMPDIR(test_what_is_advised),
        IN_TMPDIR(test_lists_of_bare_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
