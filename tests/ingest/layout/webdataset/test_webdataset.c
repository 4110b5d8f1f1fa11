/* test_webdataset.c - tars of samples: which files are one sample, splits, labels, metas, and the round trip through
 * export.
 * Invariant tested: numbered shards never collide, every file of a sample is used or named, and an export comes back
 * with the same images, labels, classes and metas. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/sources/archive.h"
#include "tests/support/sources/plan.h"

static support_entry file(const char *path, const char *text)
{
    return (support_entry){.path = path, .bytes = text, .len = strlen(text)};
}

static void put_tar(const char *name, const support_entry *entries, size_t count)
{
    char *path = support_path("%s/%s", plan_dir, name);
    support_archive(path, "tar", entries, count);
    free(path);
}

/* ---- samples --------------------------------------------------------------------------------------------------- */

static void numbered_tars_are_folders(void **state)
{
    (void)state;
    const support_entry first[] = {
        file("1.jpg", "a"),           file("1.cls", "1\n"),   file("1.json", " {\"n\": 1.50} \n"),
        file("1.txt", "a \"cat\"\n"), file("1.seg.png", "s"), file("README", "r")};
    const support_entry second[] = {file("1.cls", "0"), file("1.png", "b"), file("k/2.x.jpg", "-"),
                                    file("k/2.webp", "c")};
    const support_entry third[] = {file("1.jpg", "d"), file("1.txt", "  \n"), {.path = "2.jpg", .hard_link = "1.jpg"}};
    put_tar("train-000000.tar", first, MR_COUNT(first));
    put_tar("train-000001.tar", second, MR_COUNT(second));
    put_tar("deep-00000.tar", third, MR_COUNT(third));
    char *val = support_path("%s/val", plan_dir);
    assert_int_equal(mkdir(val, 0755), 0);
    free(val);
    put_tar("val/00000.tar", third, MR_COUNT(third));
    const mr_split_map map = {"deep", "test"};
    plan_is(&(mr_layout_options){.maps = &map, .map_count = 1},
            "layout webdataset 97: variant shards, licence -, classes 0 1\n"
            "train train-000000.tar/1.jpg 1 - - ,\"columns\":{\"n\": 1.50},\"captions\":[\"a \\\"cat\\\"\"]\n"
            "train train-000001.tar/1.png 0 - - -\n"
            "train train-000001.tar/k/2.webp - - - -\n"
            "val val/00000.tar/1.jpg - - - -\n"
            "val val/00000.tar/2.jpg - - - -\n"
            "test deep-00000.tar/1.jpg - - - -\n"
            "test deep-00000.tar/2.jpg - - - -\n"
            "note notes .cls: samples without a label: 5 (absent: 5), which are kept without one\n"
            "unused train-000000.tar/1.seg.png\n"
            "unused train-000000.tar/README\n"
            "unused train-000001.tar/k/2.x.jpg\n");
}

static void missing_numbers_are_noted(void **state)
{
    (void)state;
    const support_entry one[] = {file("1.jpg", "a"), file("1.cls", "0")};
    static const char *const names[] = {
        "train-0000.tar",  "train-0001.tar",  "train-0004.tar", "val-00002-of-00005.tar",
        "test-1-of-3.tar", "test-3-of-3.tar", "train_8.tar",    "train_10.tar",
        "test_7.tar",      "2014train.tar",   "2017train.tar"};
    for (size_t i = 0; i < MR_COUNT(names); i++)
        put_tar(names[i], one, MR_COUNT(one));
    plan_says(NULL, NULL,
              "note missing test-2-of-3.tar: there is no such shard\n"
              "note missing train-0002.tar: there is no such shard, nor the next 1\n"
              "note missing val-00000-of-00005.tar: there is no such shard, nor the next 1\n"
              "note missing val-00003-of-00005.tar: there is no such shard, nor the next 1\n");
    plan_lacks("note missing train_");
    plan_lacks("note missing test_");
    plan_lacks("note missing 201"); /* years */
}

/* A tar by itself keeps its names: `export --to tar` writes one. */
static void one_tar_has_its_own_folders(void **state)
{
    (void)state;
    const support_entry all[] = {file("train/1.jpg", "a"), file("train/1.cls", "cat"), file("val/1.jpg", "b"),
                                 file("val/1.cls", " dog ")};
    put_tar("all.tar", all, MR_COUNT(all));
    plan_is(NULL, "layout webdataset 96: variant files, licence -, classes cat dog\n"
                  "train train/1.jpg cat - - -\n"
                  "val val/1.jpg dog - - -\n");
}

static void the_image_is_chosen(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train-000000.tar/1.jpg", "train-000000.tar/1.png", "train-000000.tar/1.edge.jpg"));
    plan_says(NULL, NULL,
              "\nnote rejects train-000000.tar/1.jpg: train-000000.tar/1.jpg and train-000000.tar/1.png are both the "
              "image of "
              "one sample; --image-column");
    plan_says(&(mr_layout_options){.image_column = "PNG"}, NULL, "\ntrain train-000000.tar/1.png - - - ");
    plan_says(&(mr_layout_options){.image_column = "edge.jpg"}, NULL, "\ntrain train-000000.tar/1.edge.jpg - - - ");
}

static void samples_without_an_image_are_named(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train-000000.tar/1.jpg", "train-000000.tar/2.txt", "train-000000.tar/.hidden.jpg"));
    plan_file("train-000000.tar/3.json", "{}");
    plan_is(NULL, "layout webdataset 97: variant shards, licence -, classes\n"
                  "train train-000000.tar/1.jpg - - - -\n"
                  "note missing train-000000.tar/3: sample left out: no file of this name is an image\n"
                  "unused train-000000.tar/.hidden.jpg\n"
                  "unused train-000000.tar/2.txt\n"
                  "unused train-000000.tar/3.json\n");
}

/* Tools for annotation write a .json beside each image: the folders are the classes all the same. */
static void json_beside_images_is_not_enough(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/a/1.jpg", "train/a/1.json", "train/b/2.jpg", "train/b/2.json"));
    plan_says(NULL, NULL, "layout imagenette");
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

static void every_shard_has_a_split(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("set-train-00000.tar/1.jpg", "set-extra-00000.tar/1.jpg"));
    plan_says(NULL, NULL,
              "plan -2: set-extra-00000.tar: has samples, but its name states no split, unlike others; --split-map "
              "set-extra-00000.tar=train stores them as train");
    const mr_split_map extra = {"set-extra", "train"}, none = {"set-extra", ""};
    plan_says(&(mr_layout_options){.maps = &extra, .map_count = 1}, NULL, "\ntrain set-extra-00000.tar/1.jpg - - - ");
    plan_is(&(mr_layout_options){.maps = &none, .map_count = 1},
            "layout webdataset 97: variant shards, licence -, classes\n"
            "train set-train-00000.tar/1.jpg - - - -\n"
            "note notes set-extra-00000.tar: left out by --split-map\n");
    support_touch(plan_dir, NAMES("only/00000.tar/1.jpg", "only/00001.tar/1.jpg"));
    plan_says(&(mr_layout_options){.root = "only"}, NULL,
              "\ntrain 00000.tar/1.jpg - - - -\ntrain 00001.tar/1.jpg - - - ");
}

/* ---- labels and metas ------------------------------------------------------------------------------------------ */

static void labels_come_from_the_json_too(void **state)
{
    (void)state;
    const mr_layout_options o = {.label_column = "kind", .text_column = "said"};
    support_touch(plan_dir, NAMES("train-000000.tar/1.jpg", "train-000000.tar/2.jpg", "train-000000.tar/3.jpg"));
    plan_file("train-000000.tar/1.json", "{\"kind\":\"b\",\"said\":[\"x\",\"y\"]}");
    plan_file("train-000000.tar/2.json", "{\"kind\":7}");
    plan_is(&o, "layout webdataset 97: variant shards, licence -, classes 7 b\n"
                "train train-000000.tar/1.jpg b - - "
                ",\"columns\":{\"kind\":\"b\",\"said\":[\"x\",\"y\"]},\"captions\":[\"x\",\"y\"]\n"
                "train train-000000.tar/2.jpg 7 - - ,\"columns\":{\"kind\":7}\n"
                "train train-000000.tar/3.jpg - - - -\n"
                "note notes kind: rows without a label: 1 (empty: 1), which are kept without one\n");
}

/* Numbers are those of their classes up to 99999; larger ones are names, in numeric order. */
static void numbers_keep_their_order(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train-000000.tar/1.jpg", "train-000000.tar/2.jpg", "train-000000.tar/3.jpg"));
    plan_file("train-000000.tar/1.cls", "10");
    plan_file("train-000000.tar/2.cls", "-1\n");
    plan_file("train-000000.tar/3.cls", "9.0");
    plan_is(NULL, "layout webdataset 97: variant shards, licence -, classes 0 1 2 3 4 5 6 7 8 9 10\n"
                  "train train-000000.tar/1.jpg 10 - - -\n"
                  "train train-000000.tar/2.jpg - - - -\n"
                  "train train-000000.tar/3.jpg 9 - - -\n"
                  "note notes .cls: samples without a label: 1 (-1: 1), which are kept without one\n");
    plan_file("train-000000.tar/2.cls", "100000");
    plan_says(NULL, NULL, "classes 9 10 100000\n");
    plan_file("train-000000.tar/3.cls", "0.75");
    plan_says(NULL, NULL,
              "note notes .cls: labels that are numbers with a fraction: 1 of 3; each different one is a class\n");
}

static void labels_in_json_are_said(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train-000000.tar/1.jpg", "train-000000.tar/2.jpg"));
    plan_file("train-000000.tar/1.json", "{\"label\":3}");
    plan_file("train-000000.tar/2.json", "{\"x\":{\"label\":3}}");
    plan_says(NULL, NULL,
              "note notes .json: samples with a member label: 1; without --label-column label they have none");
    plan_says(&(mr_layout_options){.label_column = "label"}, NULL, "classes 0 1 2 3\n");
    plan_file("train-000000.tar/1.cls", "3");
    plan_lacks("a member label");
}

/* One bad file costs its sample, and is named. */
static void bad_members_reject_their_sample(void **state)
{
    static const struct {
        const char *name, *text, *words;
    } cases[] = {
        {"1.json", "{\"a\":", "train-000000.tar/1.json"},
        {"1.json", "[1]", "train-000000.tar/1.json: not a JSON object"},
        {"1.json", "{\"a\":NaN}", "train-000000.tar/1.json"},
        {"1.json", "{\"source\":\"x\",\"label\":\"y\"}", "train-000000.tar/1.json: meta: \"label\""},
        {"1.cls", "1\n2", "train-000000.tar/1.cls: not a label"},
        {"1.txt", "caf\xE9", "train-000000.tar/1.txt: not UTF-8 text"},
        {"1.CLS", "7", "train-000000.tar/1.CLS and train-000000.tar/1.cls differ only in case"},
        {"1.JPG", "x", "train-000000.tar/1.JPG and train-000000.tar/1.jpg differ only in case"},
    };
    (void)state;
    support_touch(plan_dir, NAMES("train-000000.tar/1.jpg", "train-000000.tar/2.jpg"));
    plan_file("train-000000.tar/2.cls", "3");
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *name = support_path("train-000000.tar/%s", cases[i].name), *path = support_path("%s/%s", plan_dir, name);
        char *words = support_path("\nnote rejects train-000000.tar/1.%s: %s", i == 7 ? "JPG" : "jpg", cases[i].words);
        plan_file("train-000000.tar/1.cls", "0");
        plan_file(name, cases[i].text);
        plan_says(NULL, NULL, words);
        plan_says(NULL, NULL, "\ntrain train-000000.tar/2.jpg 3 - - -\nnote ");
        assert_int_equal(unlink(path), 0);
        free(name);
        free(path);
        free(words);
    }
}

static void captions_of_another_type_reject_their_sample(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train-000000.tar/1.jpg", "train-000000.tar/2.jpg"));
    plan_file("train-000000.tar/1.json", "{\"said\":{}}");
    plan_file("train-000000.tar/2.json", "{\"said\":\"x\"}");
    plan_is(&(mr_layout_options){.text_column = "said"},
            "layout webdataset 97: variant shards, licence -, classes\n"
            "train train-000000.tar/2.jpg - - - ,\"columns\":{\"said\":\"x\"},\"captions\":[\"x\"]\n"
            "note rejects train-000000.tar/1.jpg: train-000000.tar/1.json: column said is neither a string nor a list "
            "of strings\n");
}

/* Two images of a sample, none of them of a usual kind: the option is named, and takes one and leaves out the other. */
static void images_of_other_members_need_an_option(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train-000000.tar/1.left.jpg", "train-000000.tar/1.right.jpg"));
    plan_file("train-000000.tar/1.cls", "0");
    plan_says(NULL, NULL,
              "plan -2: train-000000.tar/1.cls: samples have no member jpg, png or webp, but left.jpg and right.jpg; "
              "--image-column selects one of them: --image-column left.jpg");
    plan_is(&(mr_layout_options){.image_column = "left.jpg"},
            "layout webdataset 97: variant shards, licence -, classes 0\n"
            "train train-000000.tar/1.left.jpg 0 - - -\n");
    plan_says(&(mr_layout_options){.image_column = "up.jpg"}, NULL, "samples have no member up.jpg, but left.jpg and");
}

/* What only looks like a meta of millrace's own is kept as any other JSON, and forges nothing. */
static void a_forged_meta_is_only_json(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train-000000.tar/1.jpg", "train-000000.tar/2.jpg"));
    plan_file("train-000000.tar/1.json", "{\"source\":\"x\",\"columns\":1,\"label\":0}");
    plan_file("train-000000.tar/2.json", "{\"source\":\"x\",\"label\":0,\"class\":\"c\",\"captions\":[]}");
    plan_is(NULL, "layout webdataset 97: variant shards, licence -, classes c\n"
                  "train train-000000.tar/1.jpg - - - ,\"columns\":{\"source\":\"x\",\"columns\":1,\"label\":0}\n"
                  "train train-000000.tar/2.jpg c - - ,\"captions\":[]\n"
                  "note notes .cls: samples without a label: 1 (absent: 1), which are kept without one\n");
}

/* Objects, and several labels, of a meta of millrace's own are read before they are believed. */
static void objects_of_a_meta_are_checked(void **state)
{
    static const struct {
        const char *members, *why;
    } wrong[] = {
        {"\"objects\":3", "meta: \"objects\" is not a list"},
        {"\"objects\":[{\"box\":[1,2]}]", "meta: \"objects\" has an invalid \"box\""},
        {"\"objects\":[{\"label\":2,\"box\":[1,2,3,4]}]", "class 2 is past the last one, 1"},
        {"\"labels\":[0,2]", "class 2 is past the last one, 1"},
    };
    (void)state;
    support_touch(plan_dir, NAMES("train/1.jpg", "train/2.jpg"));
    plan_file("train/1.json", "{\"source\":\"x\",\"objects\":[{\"label\":1,\"box\":[1,2,3,4.5]}]}");
    plan_is(NULL, "layout webdataset 96: variant files, licence -, classes 0 1\n"
                  "train train/1.jpg - - - ,\"objects\":[{\"label\":1,\"box\":[1,2,3,4.5]}]\n"
                  "train train/2.jpg - - - -\n");
    plan_file("__millrace__/dataset.json", "{\"splits\": [\"train\"], \"classes\": [\"cat\", \"dog\"]}\n");
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        char *json = support_path("{\"source\":\"x\",%s}", wrong[i].members);
        plan_file("train/2.json", json);
        plan_says(NULL, NULL, "classes cat dog\ntrain train/1.jpg - - - ,\"objects\"");
        plan_says(NULL, NULL, wrong[i].why);
        free(json);
    }
}

/* ---- __millrace__/dataset.json --------------------------------------------------------------------------------- */

static void a_listing_names_splits_and_classes(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("odd/1.jpg", "odd/2.jpg", "odd/3.jpg", "train/1.jpg"));
    plan_file("odd/1.cls", "1");
    plan_file("odd/2.cls", "zebra");
    plan_file("train/1.cls", "2");
    plan_file("__millrace__/dataset.json",
              "{\"splits\": [\"odd\", \"train\"], \"classes\": [\"zebra\", \"ant\", \"9\"]}\n");
    plan_says(NULL, NULL,
              "classes zebra ant 9\n"
              "train train/1.jpg 9 - - -\n"
              "odd odd/1.jpg ant - - -\n"
              "odd odd/2.jpg zebra - - -\n"
              "odd odd/3.jpg - - - -\n");
    plan_file("odd/3.cls", "3");
    plan_says(NULL, NULL, "\nnote rejects odd/3.jpg: label 3: not among the 3 classes of __millrace__/dataset.json");
    plan_says(NULL, NULL, "\nodd odd/2.jpg zebra - - -\nnote");
    plan_file("odd/3.cls", "cat");
    plan_says(NULL, NULL, "\nnote rejects odd/3.jpg: label cat: not among the 3 classes of __millrace__/dataset.json");
    plan_file("odd/3.cls", "1");
    plan_file("odd/3.json", "{\"source\":\"x\",\"label\":1,\"class\":\"bee\"}");
    plan_says(NULL, NULL,
              "\nnote rejects odd/3.jpg: its meta has the class bee, and __millrace__/dataset.json ant for label 1");
}

static void a_malformed_listing_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"[]",
                                        "{\"splits\": 3}",
                                        "{\"classes\": [\"a\", 3]}",
                                        "{\"classes\": [\"\"]}",
                                        "{\"classes\": [\"\\\\q\"]}",
                                        "{\"classes\": [\"a\", \"a\"]}",
                                        "{\"classes\": [}"};
    support_touch(plan_dir, NAMES("train/1.jpg"));
    plan_file("train/1.cls", "0");
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        plan_file("__millrace__/dataset.json", wrong[i]);
        plan_says(NULL, NULL, "plan -2: ");
    }
}

/* ---- what millrace exported ------------------------------------------------------------------------------------ */

static char *facts(const char *dataset, const char *split)
{
    char *command = support_path("n=0; while \"$0\" show %s %s $n --json 2>&1; do n=$((n + 1)); done | "
                                 "sed 's/\"shard\":[^,]*,\"source\":\"[^\"]*\",//; s/\"source\":\"[^\"]*\"//'",
                                 dataset, split);
    support_limits limits = {.directory = plan_dir};
    support_result r = support_run((const char *[]){"sh", "-c", command, support_millrace_path(), NULL}, &limits);
    assert_int_equal(r.status, 0);
    char *out = support_path("%s", r.out);
    support_result_free(&r);
    free(command);
    return out;
}

static void an_export_comes_back(void **state)
{
    static const struct {
        const char *sample, *ingest, *split;
    } cases[] = {
        {"--layout imagenette", "", "train"},
        {"--layout imagenette", "--split-map val=odd", "odd"},
        {"--layout roboflow --variant multi-class", "", "val"},
        {"--layout coco", "", "val"},
        {"--layout newyorker", "", "test"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *command =
            support_path("rm -rf s d r x.tar; \"$0\" sample s %s --images 20 -q && \"$0\" ingest s d %s -q && \"$0\" "
                         "export d x.tar -q && \"$0\" ingest x.tar r -q && \"$0\" verify r --deep -q",
                         cases[i].sample, cases[i].ingest);
        support_limits limits = {.directory = plan_dir};
        support_result r = support_run((const char *[]){"sh", "-c", command, support_millrace_path(), NULL}, &limits);
        if (r.status)
            fail_msg("%s", r.err);
        support_result_free(&r);
        char *before = facts("d", cases[i].split), *after = facts("r", cases[i].split);
        assert_string_equal(before, after);
        assert_true(strlen(before) > 100);
        free(before);
        free(after);
        free(command);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbered_tars_are_folders, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(missing_numbers_are_noted, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(one_tar_has_its_own_folders, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(the_image_is_chosen, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(samples_without_an_image_are_named, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(json_beside_images_is_not_enough, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(every_shard_has_a_split, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(labels_come_from_the_json_too, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(numbers_keep_their_order, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(labels_in_json_are_said, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(bad_members_reject_their_sample, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(captions_of_another_type_reject_their_sample, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(images_of_other_members_need_an_option, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(a_forged_meta_is_only_json, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(objects_of_a_meta_are_checked, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(a_listing_names_splits_and_classes, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(a_malformed_listing_is_refused, plan_set_up, plan_tear_down),
        cmocka_unit_test_setup_teardown(an_export_comes_back, plan_set_up, plan_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
