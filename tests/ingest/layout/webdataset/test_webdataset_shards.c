/* test_webdataset_shards.c - which tars are shards, and the splits that their names say.
 * Invariant tested: samples of two shards are two samples, whatever their keys; no split is guessed.
 * Covers archive/shard_tar.c and layout/webdataset/samples.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/sources/archive.h"
#include "tests/support/sources/plan.h"

static support_entry file(const char *path, const char *text)
{
    return (support_entry){.path = path, .bytes = text, .len = strlen(text)};
}

static void put(const char *name, const char *kind, const support_entry *entries, size_t count)
{
    char *path = support_path("%s/%s", plan_dir, name), *slash = strrchr(path, '/');
    *slash = '\0';
    mkdir(path, 0755);
    *slash = '/';
    support_archive(path, kind, entries, count);
    free(path);
}

/* A shard of one sample: 7.jpg and 7.cls. */
static void put_shard(const char *name, const char *label)
{
    const support_entry entries[] = {file("./7.jpg", "x"), file("./7.cls", label)};
    put(name, strstr(name, ".tar.gz") || strstr(name, ".tgz") ? "tar.gz" : "tar", entries, 2);
}

static void clear(void)
{
    plan_tear_down(NULL);
    plan_set_up(NULL);
}

static void names_say_the_split(void **state)
{
    static const char *const pairs[][2] = {
        {"imagenet1k-train-0000.tar", "imagenet1k-validation-00.tar"},
        {"train-000.tar", "val-000.tar"},
        {"train_1.tar", "val_1.tar"},
        {"data_train_1of64.tar", "data_val_1of8.tar"},
        {"data-train-1-of-64.tar", "data-val-1-of-8.tar"},
        {"0000-train.tar", "0000-val.tar"},
        {"train.tar", "val.tar"},
        {"my_train_data.tar", "my_valid_data.tar"},
        {"train-0.tar.gz", "dev-0.tgz"},
        {"train/0000.tar", "val/0000.tar"},
        {"train/a.tar", "val/a.tar"},
        {"train/shard-7.tar", "validation/shard-7.tar"},
        {"trainset0.tar", "valset0.tar"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(pairs); i++) {
        clear();
        put_shard(pairs[i][0], "0");
        put_shard(pairs[i][1], "1");
        char *words = support_path("\ntrain %s/7.jpg 0 - - -\nval %s/7.jpg 1 - - -\n", pairs[i][0], pairs[i][1]);
        plan_says(NULL, NULL, words);
        free(words);
    }
}

/* Nothing is lost with several shards of one split, or with shards that name none. */
static void equal_keys_are_different_samples(void **state)
{
    (void)state;
    put_shard("train-1.tar", "0");
    put_shard("train-2.tar", "1");
    plan_says(NULL, NULL, "\ntrain train-1.tar/7.jpg 0 - - -\ntrain train-2.tar/7.jpg 1 - - -\n");
    clear();
    put_shard("part1.tar", "0");
    put_shard("part2.tar", "1");
    plan_says(NULL, NULL, "\ntrain part1.tar/7.jpg 0 - - -\ntrain part2.tar/7.jpg 1 - - -\n");
    clear();
    put_shard("a.tar", "0");
    put_shard("b.tar", "1");
    plan_says(NULL, NULL, "\ntrain a.tar/7.jpg 0 - - -\ntrain b.tar/7.jpg 1 - - -\n");
}

/* A JSON alone is a sample without its image within a shard only; img2dataset writes 00000_stats.json beside them. */
static void statistics_beside_shards(void **state)
{
    (void)state;
    const support_entry entries[] = {file("7.jpg", "x"), file("7.cls", "0"), file("8.json", "{}")};
    put("00000.tar", "tar", entries, 3);
    plan_file("00000_stats.json", "{\"count\": 1}");
    plan_says(NULL, NULL,
              "note missing 00000.tar/8: sample left out: no file of this name is an image\n"
              "unused 00000.tar/8.json\nunused 00000_stats.json\n");
}

static void no_split_is_guessed(void **state)
{
    const mr_split_map map = {"train-val", "train"}, path = {"train_test-0.tar", "train"};
    (void)state;
    put_shard("train-val-0.tar", "0");
    plan_says(NULL, NULL,
              "plan -2: train-val-0.tar: has samples, but its name states more than one split; --split-map "
              "train-val-0.tar=train stores them as train");
    plan_says(&(mr_layout_options){.maps = &map, .map_count = 1}, NULL, "\ntrain train-val-0.tar/7.jpg 0 - - -");
    clear();
    put_shard("train_test-0.tar", "0");
    put_shard("val-0.tar", "1");
    plan_says(NULL, NULL, "states more than one split");
    plan_says(&(mr_layout_options){.maps = &path, .map_count = 1}, NULL, "\ntrain train_test-0.tar/7.jpg 0 - - -");
    clear();
    put_shard("train-0.tar", "0");
    put_shard("extra-0.tar", "1");
    plan_says(NULL, NULL, "plan -2: extra-0.tar: has samples, but its name states no split, unlike others");
}

static void captions_and_json_make_a_shard_too(void **state)
{
    const support_entry text[] = {file("7.jpg", "x"), file("7.txt", "a red cat")},
                        json[] = {file("7.png", "x"), file("7.json", "{\"n\":1}")};
    (void)state;
    put("cc3m-train-0000.tar", "tar", text, 2);
    put("cc3m-validation-00.tar", "tar.gz", json, 2);
    plan_says(NULL, NULL,
              "\ntrain cc3m-train-0000.tar/7.jpg - - - ,\"captions\":[\"a red cat\"]\n"
              "val cc3m-validation-00.tar/7.png - - - ,\"columns\":{\"n\":1}\n");
}

/* Archives of other kinds of datasets, which are laid over one another. */
static void other_archives_are_no_shards(void **state)
{
    const support_entry images[] = {file("images/1.jpg", "x"), file("images/2.jpg", "x")},
                        labels[] = {file("a.jpg", "x"), file("a.txt", "0 0.5 0.5 0.1 1e-05\n")},
                        labelme[] = {file("b.jpg", "x"), file("b.json", "{\"shapes\":[{\"points\":[]}]}")},
                        whole[] = {file("train/1.jpg", "x"), file("train/1.cls", "0")};
    static const char *const lists[] = {"images/1.jpg", "a.txt", "b.json"};
    (void)state;
    put("images_001.tar", "tar", images, 2);
    put("images_002.tar", "tar", labels, 2);
    put("images_003.tar.gz", "tar.gz", labelme, 2);
    char *srcs[] = {plan_dir};
    mr_source_options o = {.quiet = true};
    mr_notes notes = {0};
    mr_source *s = NULL;
    mr_error err;
    assert_int_equal(mr_source_open(srcs, 1, -1, &o, &notes, &s, &err), MR_OK);
    for (size_t i = 0; i < MR_COUNT(lists); i++) {
        const char *path = mr_source_entry(s, mr_source_lower(s, lists[i], strlen(lists[i])))->path;
        assert_string_equal(path, lists[i]);
    }
    mr_source_free(s);
    mr_notes_free(&notes);
    clear();
    put("flowers102.tar", "tar", whole, 2);
    plan_says(NULL, NULL, "\ntrain train/1.jpg 0 - - -\n");
}

static void a_truncated_shard_is_named(void **state)
{
    static const char *const names[] = {"train-00000.tar", "train-7.tar", "train/0.tar"};
    char *bytes = calloc(1, 20000);
    const support_entry entries[] = {{.path = "7.jpg", .bytes = bytes, .len = 20000}, file("7.cls", "1")};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        clear();
        put_shard("val-000.tar", "0");
        put(names[i], "tar", entries, 2);
        char *path = support_path("%s/%s", plan_dir, names[i]), *out = support_path("%s.out", plan_dir);
        assert_int_equal(truncate(path, 9000), 0);
        support_result r = support_millrace("ingest", plan_dir, out, "--dry-run", "--quiet", (char *)NULL);
        support_assert_status(&r, 1);
        if (!strstr(r.err, names[i]) || !strstr(r.err, "cannot be read to its end"))
            fail_msg("%s: %s", names[i], r.err);
        support_result_free(&r);
        free(path);
        free(out);
    }
    free(bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, plan_set_up, plan_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(names_say_the_split),          TEST(equal_keys_are_different_samples),
                                       TEST(no_split_is_guessed),          TEST(captions_and_json_make_a_shard_too),
                                       TEST(other_archives_are_no_shards), TEST(a_truncated_shard_is_named),
                                       TEST(statistics_beside_shards)};
    return cmocka_run_group_tests_name("webdataset_shards", tests, NULL, NULL);
}
