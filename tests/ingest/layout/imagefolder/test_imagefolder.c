/* test_imagefolder.c - metadata.csv and metadata.jsonl of the hub: labels, captions, folders as classes, bad rows.
 * Invariant tested: paths are exact, from the metadata file's folder, and a row's other members come back as
 * written. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/plan.h"

static void test_csv_in_root(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("i/1.png", "i/2.png", "1.png"));
    plan_file("metadata.csv", "file_name,text\ni/1.png,\"a, b\"\n./i/2.png,\n1.png,c\n");
    plan_is(NULL, "layout imagefolder 85: variant metadata, licence -, classes\n"
                  "train 1.png - - U ,\"columns\":{\"text\":\"c\"},\"captions\":[\"c\"]\n"
                  "train i/1.png - - U ,\"columns\":{\"text\":\"a, b\"},\"captions\":[\"a, b\"]\n"
                  "train i/2.png - - U ,\"columns\":{\"text\":\"\"}\n");
}

static void test_jsonl_of_splits(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("x/train/1.png", "x/train/2.png", "x/validation/1.png"));
    plan_file("x/train/metadata.jsonl", "{\"file_name\": \"1.png\", \"label\": \"b\", \"text\": [\"u\", \"v\"]}\r\n\n"
                                        "{\"n\": 1.50, \"file_name\": \"2.png\", \"label\": \"a\"}\n");
    plan_file("x/validation/metadata.jsonl", "{\"file_name\":\"1.png\",\"label\":\"a\"}");
    plan_is(NULL, "layout imagefolder 85: variant metadata, licence -, classes a b\n"
                  "train train/1.png b - - ,\"columns\":{\"file_name\": \"1.png\", \"label\": \"b\", \"text\": [\"u\", "
                  "\"v\"]},\"captions\":[\"u\",\"v\"]\n"
                  "train train/2.png a - - ,\"columns\":{\"n\": 1.50, \"file_name\": \"2.png\", \"label\": \"a\"}\n"
                  "val validation/1.png a - - ,\"columns\":{\"file_name\":\"1.png\",\"label\":\"a\"}\n");
}

/* A folder that names no split beside those that do, and a split in another. */
static void test_odd_folders(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/1.png", "extra/2.png", "val/train/3.png"));
    plan_file("train/metadata.jsonl", "{\"file_name\": \"1.png\", \"label\": \"b\"}\n");
    plan_file("extra/metadata.jsonl", "{\"file_name\": \"2.png\", \"label\": \"b\"}\n");
    plan_says(NULL, NULL,
              "plan -2: extra/metadata.jsonl: no folder of it names a split, and train/metadata.jsonl is in "
              "one; rename the folder (train, val, test), or leave it out with --exclude");
    plan_remove("extra/metadata.jsonl");
    plan_remove("extra/2.png");
    plan_file("val/train/metadata.jsonl", "{\"file_name\": \"3.png\", \"label\": \"b\"}\n");
    plan_says(NULL, NULL,
              "note notes val/train: its folders name the splits val and train: its images are in the first");
}

static void test_folders_are_classes(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("train/cat/1.png", "train/dog/1.png", "train/dog/2.png"));
    plan_file("train/metadata.csv", "file_name,age\ncat/1.png,3\ndog/1.png,4\n");
    plan_says(NULL, NULL,
              "train train/cat/1.png cat - - ,\"columns\":{\"age\":\"3\"}\n"
              "train train/dog/1.png dog - - ");
    plan_says(NULL, NULL, "no label column: the folders are the classes");
    plan_says(NULL, NULL, "note unlisted train/dog/2.png: not in any table");
    plan_says(&(mr_layout_options){.keep_unlisted = true}, NULL, "train train/dog/2.png dog - - -\n");
    plan_says(&(mr_layout_options){.label_column = "age"}, NULL, "classes 0 1 2 3 4\n");
}

static void test_bad_rows(void **state)
{
    (void)state;
    static const char *const trials[][2] = {
        {"{\"file_name\":3}\n", "line 1: \"file_name\" is not a path"},
        {"{\"x\":\"file_name\"}\n", "line 1: \"file_name\" is missing"},
        {"{\"file_name\":\"1.png\"}\n{\"file_name\":\"1.png\",\"file_name\":\"2.png\"}\n", "line 2"},
        {"{\"file_name\":\"a\\u0000b\"}\n", "line 1: \"file_name\" is not a path"},
        {"{\"file_name\":\"../1.png\"}\n{\"file_name\":\"1.png\"}\n", "note bad_names ../1.png: row 1"},
        {"{\"file_name\":\"9.png\"}\n{\"file_name\":\"1.png\"}\n", "note missing 9.png: row 1"},
        {"{\"file_name\":\"i/../1.png\"}\n{\"file_name\":\"1.png\"}\n", "note collisions 1.png: row 2"},
        {"{\"file_name\":\"9.png\"}\n", "none of its 1 rows names an image"},
        {"{\"file_name\":\"1.png\",\"label\":\"a\"}\n{\"file_name\":\"1.png\",\"label\":\"b\"}\n",
         "note rejects 1.png"},
        {"{\"file_name\":\"1.png\"", "metadata.jsonl: line 1"},
    };
    support_touch(plan_dir, NAMES("1.png", "2.png"));
    plan_file("metadata.jsonl",
              "{\"file_name\":\"1.png\",\"x\":NaN}\n{\"file_name\":\"2.png\",\"label\":0.0}\n{\"x\":1}\n");
    plan_is(NULL, "layout imagefolder 85: variant metadata, licence -, classes 0\n"
                  "train 2.png 0 - - ,\"columns\":{\"file_name\":\"2.png\",\"label\":0.0}\n"
                  "note rejects metadata.jsonl: metadata.jsonl: line 3: \"file_name\" is missing\n"
                  "note rejects 1.png: metadata.jsonl: line 1: byte 26: not JSON: JSON has no NaN: write null or a "
                  "number (Python's json.dump writes it unless allow_nan=False)\n");
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        plan_file("metadata.jsonl", trials[i][0]);
        plan_says(NULL, NULL, trials[i][1]);
    }
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\",\"text\":{}}\n");
    plan_says(NULL, NULL, "1.png - - U ,\"columns\":{\"file_name\":\"1.png\",\"text\":{}}\n");
    plan_says(&(mr_layout_options){.text_column = "t"}, NULL, "--text-column t: no row of metadata.jsonl has a text");
    plan_says(&(mr_layout_options){.label_column = "l"}, NULL, "--label-column l: no metadata file has this column");
}

static void test_several_captions(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.png", "2.png"));
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\",\"text\":\"a\"}\n{\"file_name\":\"2.png\",\"text\":\"b\"}\n"
                                "{\"file_name\":\"1.png\",\"text\":[\"c\",\"d\"]}\n");
    plan_is(
        NULL,
        "layout imagefolder 85: variant metadata, licence -, classes\n"
        "train 1.png - - U ,\"columns\":[{\"file_name\":\"1.png\",\"text\":\"a\"},{\"file_name\":\"1.png\",\"text\":"
        "[\"c\",\"d\"]}],\"captions\":[\"a\",\"c\",\"d\"]\n"
        "train 2.png - - U ,\"columns\":{\"file_name\":\"2.png\",\"text\":\"b\"},\"captions\":[\"b\"]\n");
}

static void test_odd_texts(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.png", "2.png"));
    plan_file("metadata.jsonl",
              "{\"file_name\":\"1.png\",\"text\":\"a\"}\n{\"file_name\":\"2.png\",\"text\":{\"b\":1}}\n");
    plan_says(NULL, NULL,
              "column text: rows with neither a string nor a list of strings: 1; captions are read only from");
    plan_says(&(mr_layout_options){.text_column = "text"}, NULL, ": 1; their images have no captions");
    plan_says(&(mr_layout_options){.text_column = "text"}, NULL, ",\"captions\":[\"a\"]\n");
}

/* Rows of images with captions, as exports write them; a text of this name is a column like others. */
static void test_lists_of_captions(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.png", "2.png"));
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\",\"captions\":[]}\n"
                                "{\"file_name\":\"2.png\",\"captions\":[\"a\",\"b\"]}\n");
    plan_says(NULL, NULL, ",\"columns\":{\"file_name\":\"1.png\",\"captions\":[]}\n");
    plan_says(NULL, NULL, ",\"captions\":[\"a\",\"b\"]},\"captions\":[\"a\",\"b\"]\n");
    plan_says(&(mr_layout_options){.text_column = "t"}, NULL, "--text-column t: no row of metadata.jsonl has a text");
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\",\"captions\":\"a\"}\n");
    plan_says(NULL, NULL, ",\"columns\":{\"file_name\":\"1.png\",\"captions\":\"a\"}\n");
}

/* Rows of images with several labels, as exports write them: the list has all of them. */
static void test_lists_of_labels(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.png", "2.png"));
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\",\"label\":null,\"labels\":[\"b\",\"a\"]}\n"
                                "{\"file_name\":\"2.png\",\"label\":\"b\",\"labels\":[\"b\"]}\n");
    plan_says(NULL, NULL, "classes a b\ntrain 1.png - - M ");
    plan_says(NULL, NULL, "train 2.png b - - ");
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\",\"label\":\"c\",\"labels\":\"b\"}\n");
    plan_says(NULL, NULL, "classes c\n");
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\"}\n\n{\"file_name\":\"1.png\",\"labels\":null}\n"
                                "{\"file_name\":\"2.png\",\"labels\":[\"b\",\"a\"]}\n");
    plan_says(NULL, NULL, "train 2.png - - M ");
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\",\"label\":\"c\"}\n"
                                "{\"file_name\":\"2.png\",\"label\":\"d\",\"labels\":[\"b\",\"a\"]}\n");
    plan_says(NULL, NULL, "classes c d\n");
    plan_file("metadata.jsonl", "  ");
    plan_says(NULL, NULL, "");
    char *row = support_path("{\"file_name\":\"1.png\",\"text\":\"%05000d\",\"labels\":[\"b\",\"a\"]}\n", 7);
    plan_file("metadata.jsonl", row);
    plan_says(NULL, NULL, "classes a b\ntrain 1.png - - M ");
    free(row);
}

static void test_labels(void **state)
{
    (void)state;
    support_touch(plan_dir, NAMES("1.png", "2.png", "3.png", "4.png"));
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\",\"label\":[\"b\",\"a, c\",10]}\n"
                                "{\"file_name\":\"2.png\",\"label\":9}\n"
                                "{\"file_name\":\"3.png\",\"label\":{\"a\":1}}\n"
                                "{\"file_name\":\"4.png\",\"label\":[]}\n");
    plan_says(NULL, NULL,
              "classes 9 10 a, c b\ntrain 1.png - - M ,\"labels\":[1,2,3],\"classes\":[\"10\",\"a, c\",\"b\"],"
              "\"columns\":{\"file_name\":\"1.png\",\"label\":[");
    plan_says(NULL, NULL, "train 2.png 9 - - ");
    plan_says(NULL, NULL,
              "column label: rows with an object, or a list of anything but strings and integers: 1; "
              "their images are kept without a label");
    plan_file("metadata.jsonl", "{\"file_name\":\"1.png\",\"label\":true}\n{\"file_name\":\"2.png\",\"label\":false}\n"
                                "{\"file_name\":\"3.png\",\"label\":null}\n{\"file_name\":\"4.png\",\"label\":true}\n");
    plan_says(NULL, NULL, "classes false true\ntrain 1.png true - - ");
    plan_says(NULL, NULL, "metadata.jsonl: column label: rows without a label: 1 (empty: 1)");
    plan_file("metadata.jsonl",
              "{\"file_name\":\"1.png\",\"label\":\"in\",\"objects\":[{\"bbox\":[1,2,3,4],\"category\":\"dog\"}]}\n");
    plan_says(NULL, NULL,
              "objects: classes that are not among the labels of images: 1, so that these objects have none; "
              "first: dog");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_csv_in_root),       TEST(test_jsonl_of_splits),
                                       TEST(test_odd_folders),       TEST(test_folders_are_classes),
                                       TEST(test_bad_rows),          TEST(test_labels),
                                       TEST(test_lists_of_labels),   TEST(test_odd_texts),
                                       TEST(test_lists_of_captions), TEST(test_several_captions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
