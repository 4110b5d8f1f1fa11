/* test_ilsvrc.c - ImageNet: where its pictures and tables may lie, which table decides, and bad tables.
 * Invariant tested: a label of val comes from a table that names its synset, and never from the order of a list. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/sources/objects.h"

#define ILSVRC  &mr_layout_ilsvrc
#define MAPPING "n01440764 tench, Tinca tinca\nn01443537 goldfish, \"Carassius\" auratus\n"
#define TRUTH   "ILSVRC2012_validation_ground_truth.txt"

static void put_train(const char *dir, const char *at)
{
    static const char *const names[] = {"n01440764/n01440764_11.JPEG", "n01443537/n01443537_2.JPEG"};
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        char *path = support_path("%s%s", at, names[i]);
        support_put(dir, path, "");
        free(path);
    }
}

static void test_kaggle(void **state)
{
    char *dir = *state;
    put_train(dir, "ILSVRC/Data/CLS-LOC/train/");
    support_put(dir, "ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000001.JPEG", "");
    support_put(dir, "ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000002.JPEG", "");
    support_put(dir, "ILSVRC/Data/CLS-LOC/test/ILSVRC2012_test_00000001.JPEG", "");
    support_put(dir, "ILSVRC/Annotations/CLS-LOC/val/ILSVRC2012_val_00000001.xml", "<annotation/>");
    support_put(dir, "ILSVRC/ImageSets/CLS-LOC/val.txt", "ILSVRC2012_val_00000001 1\n");
    support_put(dir, "LOC_synset_mapping.txt", MAPPING);
    support_put(dir, "LOC_val_solution.csv",
                "ImageId,PredictionString\nILSVRC2012_val_00000002,n01440764 1 2 31 42 n01443537 0 0 5 6 \n"
                "ILSVRC2012_val_00000001,n01443537 x 2 31 42 \nILSVRC2012_val_00000003,n01443537 \n");
    support_put(dir, "LOC_train_solution.csv", "ImageId,PredictionString\nn01440764_11,n01440764 5 5 20 30 \n");
    support_plan p = support_plan_ok(ILSVRC, dir, NULL);
    assert_int_equal(p.bid.score, 92);
    assert_int_equal(p.plan.class_count, 2);
    support_assert_samples(&p, "train ILSVRC/Data/CLS-LOC/train/n01440764/n01440764_11.JPEG 0 0\n"
                               "train ILSVRC/Data/CLS-LOC/train/n01443537/n01443537_2.JPEG 1 0\n"
                               "val ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000001.JPEG 1 0\n"
                               "val ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000002.JPEG 0 0\n"
                               "test ILSVRC/Data/CLS-LOC/test/ILSVRC2012_test_00000001.JPEG -1 4\n");
    support_assert_meta(&p, 1, ",\"ilsvrc\":{\"words\":\"goldfish, \\\"Carassius\\\" auratus\"}");
    support_assert_meta(&p, 3,
                        ",\"ilsvrc\":{\"words\":\"tench, Tinca tinca\",\"boxes\":\"n01440764 1 2 31 42 n01443537 0 0 5 "
                        "6\"}");
    support_assert_meta(&p, 4, "");
    support_assert_objects(&p, 0, 100, 50, "[{\"label\":0,\"class\":\"n01440764\",\"box\":[5,5,15,25]}]");
    support_assert_objects(&p, 1, 100, 50, "-");
    support_assert_objects(&p, 2, 100, 50, "[]");
    support_assert_objects(&p, 3, 100, 50,
                           "[{\"label\":0,\"class\":\"n01440764\",\"box\":[1,2,30,40]},"
                           "{\"label\":1,\"class\":\"n01443537\",\"box\":[0,0,5,6]}]");
    assert_true(support_has_note(&p, MR_NOTE_MISSING, "", "1 of 4 images that tables list are not samples"));
    assert_true(support_has_note(&p, MR_NOTE_INFO, "Annotations", "with ImageSets: 2 files"));
    support_plan_done(&p);
}

/* What the archives of image-net.org hold, unpacked into one folder each, and all into one. */
static void test_downloads(void **state)
{
    static const char *const forms[][3] = {{"train/", "val/", "test/"},
                                           {"ILSVRC2012_img_train/", "ILSVRC2012_img_val/", "ILSVRC2012_img_test/"},
                                           {"", "", "test/"}};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(forms); i++) {
        char *dir = support_tmpdir(), *val = support_path("%sILSVRC2012_val_00000002.JPEG", forms[i][1]);
        char *test = support_path("%sILSVRC2012_test_00000001.JPEG", forms[i][2]);
        put_train(dir, forms[i][0]);
        support_put(dir, val, "");
        support_put(dir, test, "");
        support_put(dir, "ILSVRC2012_devkit_t12/data/" TRUTH, "1\n2\n");
        support_put(dir, "map_clsloc.txt", "n01443537 2 goldfish\nn01440764 1 tench\n");
        support_plan p = support_plan_ok(ILSVRC, dir, NULL);
        char *expected = support_path("train %sn01440764/n01440764_11.JPEG 0 0\ntrain %sn01443537/n01443537_2.JPEG 1 "
                                      "0\nval %s 1 0\ntest %s -1 4\n",
                                      forms[i][0], forms[i][0], val, test);
        support_assert_samples(&p, expected);
        support_assert_meta(&p, 2, ",\"ilsvrc\":{\"words\":\"goldfish\"}");
        support_plan_done(&p);
        free(expected);
        free(val);
        free(test);
        support_tmpdir_remove(dir);
    }
}

static void test_tiny(void **state)
{
    char *dir = *state;
    support_put(dir, "train/n01440764/images/n01440764_0.JPEG", "");
    support_put(dir, "train/n01440764/n01440764_boxes.txt", "n01440764_0.JPEG\t0\t10\t63\t58\n");
    support_put(dir, "train/n01443537/images/n01443537_0.JPEG", "");
    support_put(dir, "val/images/val_0.JPEG", "");
    support_put(dir, "val/images/val_1.JPEG", "");
    support_put(dir, "val/val_annotations.txt", "val_0.JPEG\tn01443537\t0\t32\t44\t62\r\n");
    support_put(dir, "test/images/test_0.JPEG", "");
    support_put(dir, "wnids.txt", "n01443537\nn01440764\n");
    support_put(dir, "words.txt", "n00001740\tentity\nn01443537\tgoldfish\n");
    support_plan p = support_plan_ok(ILSVRC, dir, NULL);
    support_assert_samples(&p, "train train/n01440764/images/n01440764_0.JPEG 0 0\n"
                               "train train/n01443537/images/n01443537_0.JPEG 1 0\n"
                               "val val/images/val_0.JPEG 1 0\ntest test/images/test_0.JPEG -1 4\n");
    assert_string_equal(p.plan.variant, "tiny-imagenet");
    support_assert_meta(&p, 0, ",\"ilsvrc\":{\"boxes\":\"0\\t10\\t63\\t58\"}");
    support_assert_objects(&p, 2, 64, 64, "[{\"label\":1,\"class\":\"n01443537\",\"box\":[0,32,44,30]}]");
    assert_true(support_has_note(&p, MR_NOTE_UNLISTED, "val/images/val_1.JPEG", "no table has its label"));
    support_plan_done(&p);
}

/* The ground truth's numbers are ILSVRC2012_IDs: a sorted list of synsets does not say which ones. */
static void test_ids_are_never_guessed(void **state)
{
    char *dir = *state;
    put_train(dir, "train/");
    support_put(dir, "val/ILSVRC2012_val_00000001.JPEG", "");
    support_plan_fails(ILSVRC, dir, NULL, MR_BAD_DATA, "LOC_val_solution.csv, or ILSVRC2012_devkit_t12.tar.gz");
    support_put(dir, TRUTH, "1\n");
    support_put(dir, "LOC_synset_mapping.txt", MAPPING);
    support_plan_fails(ILSVRC, dir, NULL, MR_BAD_DATA, TRUTH ": its numbers are ILSVRC2012_IDs");
    support_put(dir, "synset_words.txt", "n01440764 1 tench\nn01443537 1 goldfish\n");
    support_plan_fails(ILSVRC, dir, NULL, MR_BAD_DATA, "add meta.mat");
    support_plan p = support_plan_ok(ILSVRC, dir, &(mr_layout_options){.keep_unlisted = true});
    assert_int_equal(p.plan.sample_count, 3);
    assert_int_equal(p.plan.samples[2].label, -1);
    support_plan_done(&p);
    const mr_split_map left_out = {"val", ""};
    p = support_plan_ok(ILSVRC, dir, &(mr_layout_options){.maps = &left_out, .map_count = 1});
    assert_int_equal(p.plan.sample_count, 2);
    support_plan_done(&p);
}

static void test_bad_tables(void **state)
{
    static const struct {
        const char *name, *text, *why;
    } trials[] = {
        {"LOC_val_solution.csv", "ImageId,Label\nx,y\n", "its columns are not ImageId and PredictionString"},
        {"LOC_val_solution.csv", "ImageId,PredictionString\nx,cat 1 2 3 4\n", "row 1: PredictionString does not begin"},
        {"LOC_val_solution.csv", "ImageId,PredictionString\nx\n", "line 2: 1 cells, where the header has 2"},
        {"LOC_synset_mapping.txt", "tench\n", "LOC_synset_mapping.txt: line 1 does not begin with a synset"},
        {"synset_words.txt", "n01440764tench\n", "line 1 does not begin with a synset"},
        {"val/val_annotations.txt", "val_0.JPEG\tcat\t1\n", "line 1: not the name of an image and its synset"},
        {"val/val_annotations.txt", "val_0.JPEG", "line 1: not the name of an image and its synset"},
        {TRUTH, "7\n", "line 1: not an ILSVRC2012_ID"},
        {TRUTH, "1\n\n1\n", "line 2 is empty"},
        {TRUTH, "12345678901234567890\n", "line 1: not an ILSVRC2012_ID"},
        {TRUTH, "one\n", "line 1: not an ILSVRC2012_ID"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        put_train(dir, "train/");
        support_put(dir, "val/ILSVRC2012_val_00000001.JPEG", "");
        support_put(dir, "map_clsloc.txt", "n01440764 1 tench\n");
        support_put(dir, trials[i].name, trials[i].text);
        support_plan_fails(ILSVRC, dir, NULL, MR_BAD_DATA, trials[i].why);
        support_tmpdir_remove(dir);
    }
}

static void test_limits(void **state)
{
    enum { TABLE_MAX = 1 << 30 };
    char *dir = *state, *path = support_path("%s/LOC_val_solution.csv", dir);
    support_put(dir, "ILSVRC2012_val_00000001.JPEG", "");
    support_put(dir, "map_clsloc.txt", "n01440764 100000 tench\n");
    support_put(dir, TRUTH, "100000\n");
    support_plan p = support_plan_ok(ILSVRC, dir, NULL);
    support_assert_samples(&p, "val ILSVRC2012_val_00000001.JPEG 0 0\n");
    support_plan_done(&p);
    support_put(dir, "map_clsloc.txt", "n01440764 100001 tench\n");
    support_plan_fails(ILSVRC, dir, NULL, MR_BAD_DATA, "add meta.mat");
    support_put(dir, "LOC_val_solution.csv", "");
    assert_int_equal(truncate(path, (off_t)TABLE_MAX + 1), 0);
    support_plan_fails(ILSVRC, dir, NULL, MR_BAD_DATA, "longer than 1 GiB, the limit for a table");
    free(path);
}

/* Class folders alone are a part of ImageNet's training set if their images are named so; imagenette takes the rest. */
static void test_class_folders(void **state)
{
    char *dir = *state;
    put_train(dir, "");
    support_plan p = support_plan_ok(ILSVRC, dir, NULL);
    assert_int_equal(p.bid.score, 25);
    support_assert_samples(&p, "train n01440764/n01440764_11.JPEG 0 0\ntrain n01443537/n01443537_2.JPEG 1 0\n");
    support_plan_done(&p);
}

#define VAL "val/ILSVRC2012_val_00000001.JPEG"

/* If two contradict each other about an image, neither is used. */
static void test_contradictions_about_an_image(void **state)
{
    static const struct {
        const char *csv, *other, *text, *why;
    } trials[] = {
        {"n01443537 1 2 3 4\nILSVRC2012_val_00000001,n01440764 1 2 3 4", "x.txt", "",
         "LOC_val_solution.csv says n01443537, another row of it says n01440764"},
        {"n01443537 1 2 3 4\nILSVRC2012_val_00000001,n01443537 1 2 3 5", "x.txt", "",
         "LOC_val_solution.csv and another row of it have different boxes"},
        {"n01443537 1 2 3 4", TRUTH, "1\n", "LOC_val_solution.csv says n01443537, " TRUTH " says n01440764"},
        {"n01443537", "ILSVRC/LOC_val_solution.csv", "ImageId,PredictionString\nILSVRC2012_val_00000001,n01440764 \n",
         "LOC_val_solution.csv says n01443537, ILSVRC/LOC_val_solution.csv says n01440764"},
        {"n01443537 1 2 3 4", TRUTH, "2\n", NULL},
        {"n01443537 1 2 3 4\nILSVRC2012_val_00000001,n01443537 1 2 3 4", "x.txt", "", NULL},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        char *csv = support_path("ImageId,PredictionString\nILSVRC2012_val_00000001,%s\n", trials[i].csv);
        put_train(dir, "train/");
        support_put(dir, VAL, "");
        support_put(dir, "map_clsloc.txt", "n01440764 1 tench\nn01443537 2 goldfish\n");
        support_put(dir, "LOC_val_solution.csv", csv);
        support_put(dir, trials[i].other, trials[i].text);
        support_plan p = support_plan_ok(ILSVRC, dir, NULL);
        assert_int_equal(p.plan.sample_count, trials[i].why ? 2 : 3);
        assert_int_equal(support_notes(&p, MR_NOTE_REJECT), trials[i].why ? 1 : 0);
        if (trials[i].why && !support_has_note(&p, MR_NOTE_REJECT, VAL, trials[i].why))
            fail_msg("%s: %s", trials[i].why, p.notes.items[0].detail);
        support_plan_done(&p);
        support_tmpdir_remove(dir);
        free(csv);
    }
}

static void test_a_folder_against_a_table(void **state)
{
    char *dir = *state;
    put_train(dir, "train/");
    support_put(dir, "LOC_train_solution.csv",
                "ImageId,PredictionString\nn01440764_11,n01443537 5 5 20 30 \nn01443537_2,n01443537 1 1 2 2 \n");
    support_plan p = support_plan_ok(ILSVRC, dir, NULL);
    assert_int_equal(p.plan.sample_count, 1);
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "train/n01440764/n01440764_11.JPEG",
                                 "LOC_train_solution.csv says n01443537, its folder n01440764"));
    support_plan_done(&p);
}

/* An ILSVRC2012_ID has one synset, and a synset one id, whichever files state them. */
static void test_contradictions_about_ids(void **state)
{
    static const struct {
        const char *map, *other, *text, *why;
    } trials[] = {
        {"n01440764 1 tench\nn01443537 1 goldfish\n", NULL, NULL,
         "map_clsloc.txt: ILSVRC2012_ID 1 is of n01440764, and 1 of n01443537: one of them is wrong"},
        {"n01440764 1 tench\nn01440764 2 tench\n", NULL, NULL, "ILSVRC2012_ID 1 is of n01440764, and 2 of n01440764"},
        {"n01440764 1 tench\n", "devkit/map_clsloc.txt", "n01443537 1 goldfish\n",
         "devkit/map_clsloc.txt and map_clsloc.txt contradict each other: ILSVRC2012_ID 1 is of n01443537 in the "
         "first, "
         "1 of n01440764 in the second; leave one out with --exclude"},
        {"n01440764 1 tench\n", "old/deep/map_clsloc.txt", "n01440764 7 tench\n", "ILSVRC2012_ID 1 is of n01440764"},
        {"n01440764 1 tench\n", "devkit/map_clsloc.txt", "n01440764 1 tench\nn01443537 2 goldfish\n", NULL},
        {"n01440764 1 tench\n", "synset_words.txt", "n01440764 7 up\nn01443537 up\n", NULL},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        put_train(dir, "train/");
        support_put(dir, VAL, "");
        support_put(dir, TRUTH, "1\n");
        support_put(dir, "map_clsloc.txt", trials[i].map);
        if (trials[i].other)
            support_put(dir, trials[i].other, trials[i].text);
        if (trials[i].why) {
            support_plan_fails(ILSVRC, dir, NULL, MR_BAD_DATA, trials[i].why);
        } else {
            support_plan p = support_plan_ok(ILSVRC, dir, NULL);
            assert_int_equal(p.plan.sample_count, 3);
            support_plan_done(&p);
        }
        support_tmpdir_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_kaggle),
        cmocka_unit_test(test_downloads),
        IN_TMPDIR(test_tiny),
        IN_TMPDIR(test_ids_are_never_guessed),
        cmocka_unit_test(test_bad_tables),
        IN_TMPDIR(test_limits),
        IN_TMPDIR(test_class_folders),
        cmocka_unit_test(test_contradictions_about_an_image),
        IN_TMPDIR(test_a_folder_against_a_table),
        cmocka_unit_test(test_contradictions_about_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
