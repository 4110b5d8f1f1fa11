/* test_layout_tables.c - tables that ingest can do without: an edited or damaged one ends it, with the way out.
 * Invariant tested: the file that the message names for --exclude is named as the source lists it, and without that
 * file the rest is a dataset. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/sources/plan.h"

#define IMAGES(...) NAMES(__VA_ARGS__)
#define ONE_IMAGE   "{\"images\":[{\"id\":1,\"file_name\":\"1.jpg\"}]}"

typedef struct table {
    const char *const *images;
    const char *good[4];    /* pairs: other tables and their text */
    const char *bad, *text; /* the damaged one */
    const char *told;       /* after "--exclude PATH" */
    const char *without;    /* how the outcome begins when it is gone */
} table;

static void check(const table *t, const char *root)
{
    char *dir = support_tmpdir(), *at = support_path("%s/%s", dir, root);
    char *bad = support_path("%s%s", at, t->bad);
    support_touch(at, t->images);
    for (size_t i = 0; i < 4 && t->good[i]; i += 2) {
        support_write_textf(t->good[i + 1], "%s%s", at, t->good[i]);
    }
    support_write_text(bad, t->text);
    const char *quote = strchr(root, ' ') ? "'" : "";
    char *expected = support_path("; --exclude %s%s%s%s %s\n", quote, root, t->bad, quote, t->told);
    char *text = support_plan(dir, NULL, NULL);
    if (strncmp(text, "plan -2: ", 9) != 0 || !strstr(text, expected))
        fail_msg("%s: expected %s\ngot %s", t->bad, expected, text);
    free(text);
    assert_int_equal(unlink(bad), 0);
    text = support_plan(dir, NULL, NULL);
    if (strncmp(text, t->without, strlen(t->without)) != 0)
        fail_msg("without %s: expected %s\ngot %s", t->bad, t->without, text);
    free(text);
    free(expected);
    free(bad);
    free(at);
    support_tmpdir_remove(dir);
}

static void the_way_out_is_named(void **state)
{
    (void)state;
    const table tables[] = {
        {IMAGES("train/a/1.jpg", "train/b/1.jpg", "valid/a/1.jpg"),
         {NULL},
         "train/_tokenization.txt",
         "a\nb\nc\n",
         "ingests the images without its captions",
         "layout roboflow 60: variant folder"},
        {IMAGES("train/a/1.jpg", "train/b/1.jpg", "test/a/1.jpg"),
         {NULL},
         "train/_tokenization.txt",
         "a\n",
         "ingests the images without its captions",
         "layout imagenette 50: variant image-folder"},
        {IMAGES("train/a/1.jpg", "train/b/1.jpg", "valid/a/1.jpg"),
         {"train/_tokenization.txt", "1\n2\n"},
         "valid/_tokenization.txt",
         "1\n2\n",
         "ingests the images without its captions",
         "layout roboflow 90: variant clip"},
        {IMAGES("train/a/1.jpg", "train/b/1.jpg"),
         {NULL},
         "noisy_imagenette.csv",
         "path,noisy\nx\n",
         "ingests with the folders as classes",
         "layout imagenette 50: variant image-folder"},
        {IMAGES("train2017/1.jpg"),
         {"annotations/instances_train2017.json", ONE_IMAGE},
         "annotations/captions_train2017.json",
         "{\"images\":[",
         "ingests without it",
         "layout coco 90: variant instances"},
        {IMAGES("train2017/1.jpg"),
         {"annotations/instances_train2017.json", ONE_IMAGE},
         "annotations/captions_train2017.json",
         "{\"images\":[{\"id\":1,\"file_name\":\"2.jpg\"}]}",
         "ingests without it",
         "layout coco 90: variant instances"},
        {IMAGES("train2017/1.jpg"),
         {"annotations/instances_train2017.JSON", ONE_IMAGE},
         "annotations/instances_train2017.json",
         ONE_IMAGE,
         "keeps the other",
         "layout coco 90: variant instances"},
        {IMAGES("train/1.jpg", "valid/1.jpg"),
         {"train/_classes.csv", "filename, a\n1.jpg, 1\n"},
         "valid/_classes.csv",
         "filename, a\n1.jpg\n",
         "ingests without the images that it lists",
         "layout roboflow 90: variant multi-class"},
        {IMAGES("train/1.jpg", "valid/1.jpg"),
         {"train/_annotations.coco.json", ONE_IMAGE},
         "valid/_annotations.coco.json",
         "{\"images\":",
         "ingests without the images that it lists",
         "layout roboflow 90: variant coco"},
        {IMAGES("all_contest_images/1.jpeg"),
         {"m/train.jsonl", "{\"contest_number\":1}\n"},
         "m/val.jsonl",
         "{\"contest_number\":1\n",
         "ingests without its rows",
         "layout newyorker 95: variant m"},
        {IMAGES("all_contest_images/1.jpeg"),
         {"m/train.jsonl", "{\"contest_number\":1}\n"},
         "all_contest_images/1.jpg",
         "another image",
         "keeps the other",
         "layout newyorker 95: variant m"},
    };
    for (size_t i = 0; i < MR_COUNT(tables); i++) {
        check(&tables[i], "");
        check(&tables[i], "down loads/set/");
    }
}

/* Where nothing would be left, or --label-column asks for it, there is no way round the table. */
static void what_cannot_be_spared(void **state)
{
    (void)state;
    const mr_layout_options column = {.label_column = "noisy"};
    support_touch(plan_dir, NAMES("train2017/1.jpg"));
    plan_file("annotations/instances_train2017.json", "{\"images\":[");
    plan_lacks("--exclude");
    char *dir = support_tmpdir(), *csv = support_path("%s/noisy_imagenette.csv", dir);
    support_touch(dir, NAMES("train/a/1.jpg", "train/b/1.jpg"));
    support_write_text(csv, "path,noisy\nx\n");
    char *text = support_plan(dir, NULL, &column);
    assert_memory_equal(text, "plan -2: noisy_imagenette.csv: line 2", 37);
    assert_null(strstr(text, "--exclude"));
    free(text);
    free(csv);
    support_tmpdir_remove(dir);
}

/* Names are quoted so that a shell hands them over as they are. */
static void paths_are_quoted(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a/b-c_1.txt", "--exclude a/b-c_1.txt"},
        {"a b", "--exclude 'a b'"},
        {"it's", "--exclude 'it'\\''s'"},
        {"$x", "--exclude '$x'"},
        {"a*", "--exclude 'a*'"},
        {"~", "--exclude '~'"},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        mr_buf text = {0};
        mr_source_leave_out(cases[i][0], strlen(cases[i][0]), &text);
        assert_string_equal(mr_buf_text(&text), cases[i][1]);
        mr_buf_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_out_is_named),
        cmocka_unit_test_setup_teardown(what_cannot_be_spared, plan_set_up, plan_tear_down),
        cmocka_unit_test(paths_are_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
