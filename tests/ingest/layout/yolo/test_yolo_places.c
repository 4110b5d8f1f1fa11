/* test_yolo_places.c - where a YOLO tree may have its labels, lists and masks.
 * Covers yolo/dirs.c, yolo/labels.c and yolo/settings.c.
 * Invariant tested: a label file is found wherever the format's programs put it, or the tree is refused by name. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/images/image.h"
#include "tests/support/sources/objects.h"

#define YOLO  &mr_layout_yolo
#define LABEL "0 0.5 0.5 0.2 0.4\n"
#define BOX   "[{\"label\":0,\"class\":\"cat\",\"box\":[40,15,20,20]}]"

static void put_all(const char *dir, const char *const *names)
{
    for (; *names; names++)
        support_put(dir, *names, strstr(*names, ".jpg") ? "" : LABEL);
}

static void expect_bid(char *dir, int score)
{
    support_plan p = support_plan_at(YOLO, dir, "", NULL);
    assert_int_equal(p.bid.score, score);
    support_plan_done(&p);
}

/* All samples have the box of LABEL. */
static void expect_boxes(char *dir, const char *samples)
{
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    support_assert_samples(&p, samples);
    for (size_t i = 0; i < p.plan.sample_count; i++)
        support_assert_objects(&p, i, 100, 50, BOX);
    support_plan_done(&p);
}

static void labels_beside_the_images(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *names[8], *samples;
    } trials[] = {
        {"train: train\nval: val\nnames: [cat]\n",
         {"train/a.jpg", "train/a.txt", "val/b.jpg", "val/b.txt"},
         "train train/a.jpg -1 0\nval val/b.jpg -1 0\n"},
        {"train: data/first\nval: [data/second]\nnames: [cat]\n",
         {"data/first/a.jpg", "data/first/a.txt", "data/second/b.jpg", "data/second/b.txt"},
         "train data/first/a.jpg -1 0\nval data/second/b.jpg -1 0\n"},
        {"train: .\nnames: [cat]\n",
         {"a.jpg", "a.txt", "sub/b.jpg", "sub/b.txt"},
         "train a.jpg -1 0\ntrain sub/b.jpg -1 0\n"},
        {"train: ..\\sets\\train\\images\nnames: [cat]\n",
         {"sets/train/images/a.jpg", "sets/train/labels/a.TXT"},
         "train sets/train/images/a.jpg -1 0\n"},
        {"names: [cat]\n", {"a.jpg", "a.txt", "b.jpg", "b.Txt"}, "train a.jpg -1 0\ntrain b.jpg -1 0\n"},
        {"train: images/train\nval: images/val\nnames: [cat]\n",
         {"images/train/a.jpg", "images/train/a.txt", "images/val/b.jpg", "images/val/b.txt"},
         "train images/train/a.jpg -1 0\nval images/val/b.jpg -1 0\n"},
        {"names: [cat]\n",
         {"Images/train/a.jpg", "Labels/train/a.txt", "Images/val/b.jpg", "Labels/val/b.txt"},
         "train Images/train/a.jpg -1 0\nval Images/val/b.jpg -1 0\n"},
        {"names: [cat]\n", {"train/IMAGES/a.jpg", "train/LABELS/a.txt"}, "train train/IMAGES/a.jpg -1 0\n"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        put_all(dir, trials[i].names);
        support_put(dir, "data.yaml", trials[i].yaml);
        expect_boxes(dir, trials[i].samples);
        support_tmpdir_remove(dir);
    }
}

/* Texts that are captions are not YOLO's, whatever stands beside them. */
static void captions_are_not_labels(void **state)
{
    (void)state;
    static const char *const texts[] = {"a cat\n", "0 cats, 5 dogs and 3 birds\n", "1 2 3 4\n", "",
                                        "2023 0.1 0.2 0.3 x\n"};
    for (size_t i = 0; i < MR_COUNT(texts); i++) {
        char *dir = support_tmpdir();
        support_put(dir, "train/a.jpg", "");
        support_put(dir, "train/a.txt", texts[i]);
        expect_bid(dir, 0);
        support_put(dir, "train/b.jpg", "");
        support_put(dir, "train/b.txt", LABEL);
        expect_bid(dir, *texts[i] ? 0 : 84);
        support_tmpdir_remove(dir);
    }
}

static void upper_case(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "data.yaml", "names: [cat]\n");
    support_put(dir, "images/train/A.JPG", "");
    support_put(dir, "labels/train/A.TXT", LABEL);
    expect_boxes(dir, "train images/train/A.JPG -1 0\n");
    support_put(dir, "labels/train/A.txt", LABEL);
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "labels/train/A.TXT", "a label file"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

/* data.yaml says what a split is; a folder of its name is not added. */
static void a_split_from_elsewhere(void **state)
{
    (void)state;
    static const char *const names[] = {"images/train/a.jpg", "labels/train/a.txt", "images/val/b.jpg",
                                        "labels/val/b.txt", NULL};
    char *dir = support_tmpdir();
    put_all(dir, names);
    support_put(dir, "data.yaml", "names: [cat]\ntrain: images/train\nval: images/train\n");
    expect_boxes(dir, "train images/train/a.jpg -1 0\nval images/train/a.jpg -1 0\n");
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "images/val/b.jpg", "not in any split"));
    support_plan_done(&p);
    support_put(dir, "data.yaml", "names: [cat]\ntrain: images/train\n");
    expect_boxes(dir, "train images/train/a.jpg -1 0\nval images/val/b.jpg -1 0\n");
    support_tmpdir_remove(dir);
}

static void darknet_lists(void **state)
{
    (void)state;
    static const char *const names[] = {"obj_train_data/a.jpg", "obj_train_data/a.txt", "obj_train_data/b.jpg",
                                        "obj_train_data/b.txt", NULL};
    char *dir = support_tmpdir();
    put_all(dir, names);
    support_put(dir, "train.txt",
                "\xEF\xBB\xBF"
                "data/obj_train_data/a.jpg\r\n");
    support_put(dir, "val.txt", "data\\obj_train_data\\b.jpg\r/home/me/gone.jpg");
    support_put(dir, "obj.names", "cat\n");
    const char *samples = "train obj_train_data/a.jpg -1 0\nval obj_train_data/b.jpg -1 0\n";
    expect_boxes(dir, samples);
    support_put(dir, "obj.data",
                "classes = 1\ntrain=data/train.txt\n# the other\nvalid  = data/val.txt\nnames = data/obj.names\n"
                "backup = backup/\n");
    expect_boxes(dir, samples);
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "/home/me/gone.jpg", "val.txt names it"));
    assert_int_equal(support_notes(&p, MR_NOTE_INFO), 0);
    support_plan_done(&p);
    support_put(dir, "train.txt", "data/obj_train_data/a.jpg\nobj_train_data/a.jpg\n");
    p = support_plan_ok(YOLO, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_INFO, "obj.data", "a split names 1 image again: each is used once"));
    support_plan_done(&p);
    support_put(dir, "voc.names", "aeroplane\n"); /* Darknet comes with it */
    expect_boxes(dir, samples);
    support_put(dir, "obj.data", "classes = 1\ntrain = a\ntrain = b\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "obj.data: line 3: \"train\" occurs twice, first in line 2");
    support_put(dir, "obj.data", "classes = 2\nnames = obj.names\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "obj.data: line 1: nc is 2, but names has 1 classes");
    support_put(dir, "obj.data", "names = gone.names\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "obj.data: line 1: names is neither");
    support_put(dir, "obj.data", "names = obj.names\ntrain\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "obj.data: line 2: not KEY = VALUE");
    support_tmpdir_remove(dir);
}

static void dota(void **state)
{
    (void)state;
    static const char text[] = "imagesource:GoogleEarth\ngsd:0.14\n10 0 50 10 40 30 0 20 small-vehicle 0\n"
                               "10.5 0 50 10 40 30 0 20 ground track field 1\n10 0 50 10 40 30 0 20 plane\n";
    static const char *const folders[] = {"labelTxt", "labelTxt-v1.5", "labels"};
    for (size_t i = 0; i < MR_COUNT(folders); i++) {
        char *dir = support_tmpdir(), *name = support_path("train/%s/a.txt", folders[i]);
        support_put(dir, "train/images/a.png", "");
        support_put(dir, name, text);
        support_plan p = support_plan_ok(YOLO, dir, NULL);
        assert_string_equal(p.plan.variant, "oriented boxes");
        assert_int_equal(p.plan.class_count, 3);
        support_assert_objects(
            &p, 0, 100, 50,
            "[{\"label\":2,\"class\":\"small-vehicle\",\"box\":[0,0,50,30],\"oriented_box\":[10,0,50,10,40,30,0,20]},"
            "{\"label\":0,\"class\":\"ground track "
            "field\",\"box\":[0,0,50,30],\"oriented_box\":[10.5,0,50,10,40,30,0,20]},"
            "{\"label\":1,\"class\":\"plane\",\"box\":[0,0,50,30],\"oriented_box\":[10,0,50,10,40,30,0,20]}]");
        assert_int_equal(support_notes(&p, MR_NOTE_INFO), 0);
        support_plan_done(&p);
        support_put(dir, "classes.txt", "plane\nsmall-vehicle\n");
        p = support_plan_ok(YOLO, dir, NULL);
        assert_true(support_has_note(&p, MR_NOTE_REJECT, "train/images/a.png",
                                     "line 4: \"ground track field\" is not a class of the dataset"));
        support_plan_done(&p);
        support_tmpdir_remove(dir);
        free(name);
    }
}

static void two_label_files(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "data.yaml", "names: [cat]\n");
    support_put(dir, "train/images/a.png", "");
    support_put(dir, "train/labels/a.txt", LABEL);
    support_put(dir, "train/labelTxt/a.txt", "10 0 50 10 40 30 0 20 cat 0\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA,
                       "train/images/a.png: has two label files, train/labels/a.txt and train/labelTxt/a.txt; "
                       "--exclude train/labelTxt leaves out the second one's folder");
    support_tmpdir_remove(dir);
}

/* PNGs of the images' names are masks, not objects. */
static void masks(void **state)
{
    static const char *const folders[] = {"labels", "masks", "annotations"};
    picture p = make_png(16, 12, 2, 8, false), mask = make_png(16, 12, 0, 8, false);
    for (size_t i = 0; i < MR_COUNT(folders); i++) {
        char *root = support_path("%s/%s", (char *)*state, folders[i]), *ds = support_path("%s.mr", root);
        for (unsigned n = 0; n < 2; n++) {
            char *image = support_path("%s/%s/images/a.png", root, n ? "val" : "train");
            char *label = support_path("%s/%s/%s/a.png", root, n ? "val" : "train", folders[i]);
            support_write(image, p.bytes, p.len);
            support_write(label, mask.bytes, mask.len);
            free(image);
            free(label);
        }
        support_result r = support_millrace("ingest", root, ds, "--json", (char *)NULL);
        support_assert_status(&r, 0);
        assert_non_null(strstr(r.out, "\"variant\": \"masks\""));
        assert_non_null(strstr(r.out, "2 images have a mask, which is kept in their meta and makes no object"));
        support_result_free(&r);
        r = support_millrace("show", "--json", ds, "train", "0", (char *)NULL);
        char *member =
            support_path("\"masks\":{\"%s\":{\"source\":\"train/%s/a.png\",\"png\":\"", folders[i], folders[i]);
        if (!strstr(r.out, member) || strstr(r.out, "\"objects\""))
            fail_msg("%s", r.out);
        support_result_free(&r);
        free(member);
        free(root);
        free(ds);
    }
    picture_free(&p);
    picture_free(&mask);
}

/* What a message says to leave out is what makes the tree good. */
static void advice_to_leave_out(void **state)
{
    static const struct {
        const char *file, *text, *says, *leave_out;
    } trials[] = {
        {"classes.txt", "dog\n", "or leave it out with --exclude", "classes.txt"},
        {"train/labelTxt/a.txt", "1 1 9 1 9 9 1 9 cat 0\n", "--exclude train/labelTxt", "train/labelTxt"},
        {"train/labels/gone.txt", LABEL, "--exclude train/labels/gone.txt", "train/labels/gone.txt"},
        {"second.yaml", "names: [dog]\n", "leave one out with --exclude", "second.yaml"},
    };
    picture p = make_jpeg((jpeg_kind){.width = 16, .height = 12, .components = 3});
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *root = support_path("%s/%zu", (char *)*state, i), *image = support_path("%s/train/images/a.jpg", root);
        support_write(image, p.bytes, p.len);
        support_put(root, "train/labels/a.txt", LABEL);
        support_put(root, "pets.yaml", "names: [cat]\n");
        support_put(root, trials[i].file, trials[i].text);
        support_result r = support_millrace("ingest", "--dry-run", root, "/nowhere", (char *)NULL);
        support_assert_status(&r, 1);
        if (!strstr(r.err, trials[i].says))
            fail_msg("%s", r.err);
        support_result_free(&r);
        support_expect(0, "ingest", "--dry-run", "--quiet", root, "/nowhere", "--exclude", trials[i].leave_out,
                       (char *)NULL);
        free(root);
        free(image);
    }
    picture_free(&p);
}

/* Labels of another format in labels/ are that format's. */
static void other_labels_are_no_bid(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "images/a.jpg", "");
    support_put(dir, "labels/a.xml", "<annotation/>");
    expect_bid(dir, 0);
    support_put(dir, "labels/classes.txt", "cat\n");
    expect_bid(dir, 0);
    support_put(dir, "train.txt", "images/a.jpg\n"); /* other datasets have such lists, too */
    expect_bid(dir, 0);
    support_put(dir, "labels/a.txt", "");
    expect_bid(dir, 85);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_beside_the_images),
        cmocka_unit_test(captions_are_not_labels),
        cmocka_unit_test(upper_case),
        cmocka_unit_test(darknet_lists),
        cmocka_unit_test(a_split_from_elsewhere),
        cmocka_unit_test(dota),
        cmocka_unit_test(two_label_files),
        IN_TMPDIR(masks),
        IN_TMPDIR(advice_to_leave_out),
        cmocka_unit_test(other_labels_are_no_bid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
