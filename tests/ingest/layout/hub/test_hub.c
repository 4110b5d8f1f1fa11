/* test_hub.c - hub folders to datasets: names, rows without images, jobs and ranks; the reader is `cat`. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ingest/layout/hub/hub.h"
#include "tests/support/sources/archive.h"
#include "tests/support/sources/hub.h"
#include "tests/support/images/image.h"

#define TEXTS                                                                                                          \
    "{\"rows\":%zu,\"image\":\"image\",\"columns\":[\"label\"],\"label\":{\"column\":\"label\",\"kind\":\"texts\"}}"

/* ---- names ---------------------------------------------------------------------------------------------------- */

static void test_names(void **state)
{
    static const struct {
        const char *path, *config, *split;
        unsigned number, of;
    } cases[] = {
        {"data/train-00000-of-00002.parquet", "", "train", 0, 2},
        {"train-00001-of-00002.parquet", "", "train", 1, 2},
        {"matching_1/validation-00000-of-00001-0123456789abcdef.parquet", "matching_1", "validation", 0, 1},
        {"data/en us/test_easy-00012-of-00100.parquet", "en us", "test_easy", 12, 100},
        {"cfg/data/test-00000-of-00001.parquet", "cfg", "test", 0, 1},
        {"cfg/train/0003.parquet", "cfg", "train", 0, 0},
        {"train/0.parquet", "", "train", 0, 0},
        {"default/partial/0.parquet", "default/partial", "", 0, 0},
        {"default/test-00000-of-00001.parquet", "", "test", 0, 1},
        {"data/default/train/0000.parquet", "", "train", 0, 0},
        {"defaults/train.parquet", "defaults", "train", 0, 0},
        {"train.parquet", "", "train", 0, 0},
        {"test-7.parquet", "", "test", 0, 0},
        {"data/train-0001.parquet", "", "train", 0, 0},
        {"my_train_data.parquet", "", "train", 0, 0},
        {"cfg/MyTestset2.parquet", "cfg", "Testset", 0, 0},
        {"data/partial-train-00000-of-00001.parquet", "", "train", 0, 1},
        {"data/train_clean-00000-of-00001.parquet", "", "train_clean", 0, 1},
        {"data/my-set-00000-of-00001.parquet", "", "my-set", 0, 1},
        {"train/part-00003-of-00007.parquet", "", "train", 3, 7},
        {"cfg/validation/abc.parquet", "cfg", "validation", 0, 0},
        {"train/test-00000-of-00001.parquet", "train", "test", 0, 1},
        {"train_test.parquet", "", "", 0, 0},
        {"train-test-00000-of-00001.parquet", "", "", 0, 1},
        {"train/train_test.parquet", "train", "", 0, 0},
        {"trainer.parquet", "", "", 0, 0},
        {"rows.PARQUET", "", "", 0, 0},
        {".parquet", "", "", 0, 0},
        {"-00000-of-00001.parquet", "", "", 0, 0},
        {"x-00000-of-00001-0123456789abcdeg.parquet", "", "", 0, 0},
        {"\xC3\xA9t\xC3\xA9/train-00000-of-00001.parquet", "\xC3\xA9t\xC3\xA9", "train", 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        mr_hub_file f = mr_hub_file_at(cases[i].path, strlen(cases[i].path));
        if (f.config.len != strlen(cases[i].config) || memcmp(f.config.text, cases[i].config, f.config.len) != 0 ||
            f.split.len != strlen(cases[i].split) ||
            memcmp(f.split.len ? f.split.text : "", cases[i].split, f.split.len) || f.number != cases[i].number ||
            f.of != cases[i].of)
            fail_msg("%s: config '%.*s', split '%.*s', %u of %u", cases[i].path, (int)f.config.len, f.config.text,
                     (int)f.split.len, f.split.len ? f.split.text : "", f.number, f.of);
    }
}

static void test_splits_and_files(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "data/train-00000-of-00002.parquet", 5, 3, 4);
    support_hub_rows(hub_source, "data/train-00001-of-00002.parquet", 3, 3, 20);
    support_hub_rows(hub_source, "data/validation-00000-of-00001.parquet", 2, 3, 40);
    support_hub_rows(hub_source, ".cache/old-00000-of-00001.parquet", 2, 3, 60);
    hub_ingest(0, "3 classes: class 0, class 1, class 2", NULL, NULL);
    hub_assert_meta("train", "4",
                    "{\"source\":\"data/train-00000-of-00002.parquet/000000004/4.png\","
                    "\"label\":1,\"class\":"
                    "\"class 1\",\"columns\":{\"label\":1,\"text\":\"row 4\"}}");
    hub_assert_meta("train", "5",
                    "{\"source\":\"data/train-00001-of-00002.parquet/000000000/0.png\","
                    "\"label\":0,\"class\":"
                    "\"class 0\",\"columns\":{\"label\":0,\"text\":\"row 0\"}}");
    hub_assert_meta("val", "1",
                    "{\"source\":\"data/validation-00000-of-00001.parquet/000000001/1.png\","
                    "\"label\":1,\"class\":"
                    "\"class 1\",\"columns\":{\"label\":1,\"text\":\"row 1\"}}");
    support_expect(0, "verify", hub_target, "--deep", "--decode", "--quiet", (char *)NULL);
    char *spool = support_path("%s/rows-00000.spool", hub_target);
    assert_false(support_exists(spool));
    free(spool);
}

static void test_incomplete_downloads(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "train-00000-of-00003.parquet", 2, 2, 4);
    support_hub_rows(hub_source, "train-00002-of-00003.parquet", 2, 2, 8);
    hub_ingest(1, "its split has 3 files, and number 00001 is missing", NULL, NULL);
    support_hub_rows(hub_source, "train-00001-of-00003.parquet", 2, 2, 12);
    support_hub_rows(hub_source, "train-00001-of-00003-0123456789abcdef.parquet", 2, 2, 12);
    hub_ingest(1, "does not belong to the other files of its split", NULL, NULL);
    hub_start_again();
    support_hub_rows(hub_source, "train-00000-of-00001.parquet", 2, 2, 4);
    char *path = support_path("%s/test-00000-of-00001.parquet", hub_source);
    support_write_text(path, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n");
    hub_ingest(1, "fetch the file with: git lfs pull", NULL, NULL);
    support_write_text(path, "");
    hub_ingest(1, "test-00000-of-00001.parquet: is empty", NULL, NULL);
    free(path);
    hub_ingest(0, "split left out by --split-map", "--split-map", "test=");
}

static void test_configs(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "one/train-00000-of-00001.parquet", 2, 2, 4);
    support_hub_rows(hub_source, "t w\xC3\xB6/train-00000-of-00001.parquet", 3, 2, 8);
    support_hub_rows(hub_source, "zzz/test-00000-of-00001.parquet", 3, 2, 16);
    hub_ingest(2, "the source holds 3 configs; choose one with --config: one, t w\xC3\xB6, zzz", NULL, NULL);
    hub_ingest(2, "--config two does not exist; choose one of: one, t w\xC3\xB6, zzz", "--config", "two");
    hub_ingest(0, "layout hub (t w\xC3\xB6)", "--config", "t w\xC3\xB6");
    hub_assert_meta("train", "2",
                    "{\"source\":\"t w\xC3\xB6/train-00000-of-00001.parquet/000000002/2.png\","
                    "\"label\":0,\"class\":"
                    "\"class 0\",\"columns\":{\"label\":0,\"text\":\"row 2\"}}");
}

/* Files that no option asks for are left out on request, whatever is in them. */
static void test_files_that_are_not_opened(void **state)
{
    static const char *const names[] = {"two/train-00000-of-00001.parquet", "one/test-00000-of-00001.parquet"};
    (void)state;
    support_hub_rows(hub_source, "one/train-00000-of-00001.parquet", 2, 2, 4);
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        support_put(hub_source, names[i], "PAR1 what is never read PAR1");
    }
    support_expect(0, "ingest", hub_source, hub_target, "--config", "one", "--split-map", "test=", "--quiet",
                   (char *)NULL);
    support_expect(0, "show", hub_target, "train", "1", (char *)NULL);
}

/* The root's files and those of a folder "default" are one config, as its name says. */
static void test_default_config(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "train-00000-of-00001.parquet", 2, 2, 4);
    support_hub_rows(hub_source, "default/test-00000-of-00001.parquet", 3, 2, 8);
    hub_ingest(0, "layout hub (default)", NULL, NULL);
    support_expect(0, "show", hub_target, "train", "1", (char *)NULL);
    support_expect(0, "show", hub_target, "test", "2", (char *)NULL);
}

/* A config's name of 150 bytes, which 127 would cut inside of a character. */
static void test_long_config(void **state)
{
    char name[151] = "";
    (void)state;
    for (size_t i = 0; i < 150; i += 3)
        memcpy(name + i, "\xE6\xBC\xA2", 3);
    char *file = support_path("%s/train.parquet", name), *words = support_path("layout hub (%s)", name);
    support_hub_rows(hub_source, file, 2, 2, 4);
    support_hub_rows(hub_source, "b/train.parquet", 2, 2, 8);
    hub_ingest(0, words, "--config", name);
    support_result r = support_millrace("inspect", hub_target, (char *)NULL);
    assert_non_null(strstr(r.out, name));
    support_result_free(&r);
    free(words);
    free(file);
}

static void test_two_names_of_val(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "train.parquet", 2, 2, 4);
    support_hub_rows(hub_source, "val-00000-of-00001.parquet", 2, 2, 8);
    support_hub_rows(hub_source, "validation-00000-of-00002.parquet", 2, 2, 12);
    support_hub_rows(hub_source, "validation-00001-of-00002.parquet", 2, 2, 16);
    hub_ingest(0, "remarks: 1\n  val: val and validation are stored as this one split", NULL, NULL);
    hub_start_again();
    support_hub_rows(hub_source, "val.parquet", 2, 2, 8);
    support_hub_rows(hub_source, "valid.parquet", 2, 2, 12);
    hub_ingest(0, "no images rejected, no leaks by equal bytes", "--split-map", "valid=dev");
    char *report = support_path("%s/report.json", hub_target);
    uint8_t *text = support_read(report, NULL);
    assert_null(strstr((char *)text, "one split"));
    free(text);
    free(report);
}

static void drop_target(void)
{
    support_result r = support_run((const char *[]){"rm", "-rf", hub_target, NULL}, NULL);
    support_result_free(&r);
}

/* A file whose name tells no split is the split train, alone; beside files that tell theirs an option says what it
 * is. */
static void test_plain_files(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "my rows.parquet", 3, 2, 4);
    hub_ingest(0, "1 Parquet file", NULL, NULL);
    hub_assert_meta("train", "0",
                    "{\"source\":\"my rows.parquet/000000000/0.png\","
                    "\"label\":0,\"class\":\"class 0\",\"columns\":"
                    "{\"label\":0,\"text\":\"row 0\"}}");
    uint64_t hash = support_dataset_hash(hub_target);
    char *file = support_path("%s/my rows.parquet", hub_source), *alone = support_path("%s/alone", hub_dir);
    support_expect(0, "ingest", file, alone, "--quiet", (char *)NULL); /* the file itself as SRC */
    assert_int_equal(support_dataset_hash(alone), hash);
    free(file);
    free(alone);
    drop_target();
    support_hub_rows(hub_source, "test.parquet", 2, 2, 14);
    hub_ingest(
        1,
        "my rows.parquet: its name gives no split, unlike those beside it; --split-map 'my rows'=train adds it to "
        "split train, --exclude 'my rows.parquet' leaves it out",
        NULL, NULL);
    hub_ingest(0, "train        3", "--split-map", "my rows=train");
    drop_target();
    hub_ingest(0, "left out by --exclude", "--exclude", "my rows.parquet");
}

static void test_words_for_splits(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "my_train_data.parquet", 3, 2, 4);
    support_hub_rows(hub_source, "my_test_data.parquet", 2, 2, 24);
    hub_ingest(0, "train        3       3", NULL, NULL);
    support_expect(0, "show", hub_target, "test", "1", (char *)NULL);
    drop_target();
    support_hub_rows(hub_source, "train_and_test.parquet", 2, 2, 44);
    hub_ingest(1,
               "train_and_test.parquet: its name gives more than one split; --split-map train_and_test=train adds it "
               "to split train, --exclude train_and_test.parquet leaves it out",
               NULL, NULL);
    hub_ingest(0, "train        5       5", "--split-map", "train_and_test=train");
}

/* ---- images --------------------------------------------------------------------------------------------------- */

static void test_rows_without_image(void **state)
{
    static const support_row rows[] = {{.json = "{\"label\":\"A\"}", .width = 4},
                                       {.json = "{\"label\":\"B\"}"},
                                       {.json = "{\"label\":\"C\"}", .width = 5}};
    (void)state;
    support_hub_file(hub_source, "train.parquet", TEXTS, rows, 3);
    support_expect(1, "ingest", hub_source, hub_target, "--quiet", (char *)NULL); /* 1 of 3 is more than 1 % */
    hub_ingest(0, "train.parquet/000000001: the row has no image", NULL, NULL);
    hub_assert_meta("train", "1",
                    "{\"source\":\"train.parquet/000000002/2.png\","
                    "\"label\":1,\"class\":\"C\",\"columns\":"
                    "{\"label\":\"C\"}}");
    hub_start_again();
    support_hub_file(hub_source, "train.parquet", TEXTS, rows + 1, 1);
    hub_ingest(1, "holds no image for layout hub", NULL, NULL);
    support_hub_file(hub_source, "train.parquet", TEXTS, rows, 0);
    hub_ingest(1, "holds no image for layout hub", NULL, NULL);
}

/* Too large is one reject, for that reason, whatever name the row gives its image. */
static void test_too_large_images(void **state)
{
    static const struct {
        const char *name, *said;
    } cases[] = {
        {"b.png", "train.parquet/000000001/b.png: larger than the limit of 4096 bytes"},
        {"b.bin", "train.parquet/000000001: the row's image is left out: larger than the limit of 4096 bytes"},
        {"b.json", "train.parquet/000000001/b.json: larger than the limit of 4096 bytes"},
    };
    (void)state;
    picture small = make_png(4, 3, 2, 8, false);
    uint8_t *large = mr_alloc(1, 5000);
    memcpy(large, small.bytes, small.len);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *path = support_path("000000001/%s", cases[i].name);
        static const char schema[] = "{\"rows\":3,\"image\":\"image\",\"columns\":[],\"label\":null}";
        const support_entry entries[] = {
            {.path = "schema.json", .bytes = schema, .len = sizeof schema - 1},
            {.path = "000000000.json", .bytes = "{}", .len = 2},
            {.path = "000000000/a.png", .bytes = small.bytes, .len = small.len},
            {.path = "000000001.json", .bytes = "{}", .len = 2},
            {.path = path, .bytes = large, .len = 5000},
            {.path = "000000002.json", .bytes = "{}", .len = 2},
        };
        char *file = support_path("%s/train.parquet", hub_source);
        support_write_text(file, "");
        support_archive(file, "tar", entries, MR_COUNT(entries));
        support_result r = support_millrace("ingest", hub_source, hub_target, "--max-file", "4KiB", "--max-rejects",
                                            "2", (char *)NULL);
        support_assert_status(&r, 0);
        if (!strstr(r.out, cases[i].said) || !strstr(r.out, "rejected: 2\n") ||
            strstr(r.out, "000000001: the row has no"))
            fail_msg("%s: %s", cases[i].name, r.out);
        support_result_free(&r);
        r = support_millrace("ingest", hub_source, hub_target, "--force", "--max-file", "4KiB", "--max-rejects", "1",
                             (char *)NULL);
        support_assert_status(&r, 1);
        if (!strstr(r.err, "2 of 3 images are rejected"))
            fail_msg("%s: %s", cases[i].name, r.err);
        support_result_free(&r);
        hub_start_again();
        free(file);
        free(path);
    }
    free(large);
    picture_free(&small);
}

static void test_images_by_path(void **state)
{
    static const support_row rows[] = {
        {.json = "{\"label\":\"A\"}", .path = "pics/a b.png"},
        {.json = "{\"label\":\"B\"}", .path = "../other/\xC3\xA9.png"},
        {.json = "{\"label\":\"C\"}", .path = "other/\xC3\xA9.png"},
        {.json = "{\"label\":\"D\"}", .path = "gone.png"},
        {.json = "{\"label\":\"E\"}", .path = "/etc/passwd"},
        {.json = "{\"label\":\"F\"}", .path = "../../../../etc/passwd"},
        {.json = "{\"label\":\"G\"}", .width = 9},
    };
    (void)state;
    support_hub_rows(hub_dir, "in/rows.parquet", 2, 2, 30); /* for its two pictures */
    support_result r = support_run(
        (const char *[]){"sh", "-c",
                         "cd \"$1\" && mkdir -p x hub/data/pics hub/other && tar xf in/rows.parquet -C x && "
                         "cp x/000000000/0.png 'hub/data/pics/a b.png' && cp x/000000001/1.png hub/other/\xC3\xA9.png",
                         "sh", hub_dir, NULL},
        NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
    support_hub_file(hub_source, "data/train.parquet", TEXTS, rows, MR_COUNT(rows));
    hub_ingest(0, "annotated but missing: 3", NULL, NULL);
    hub_assert_meta("train", "0",
                    "{\"source\":\"data/pics/a b.png\","
                    "\"label\":0,\"class\":\"A\",\"columns\":{\"label\":\"A\"}}");
    hub_assert_meta("train", "1",
                    "{\"source\":\"other/\xC3\xA9.png\","
                    "\"label\":1,\"class\":\"B\",\"columns\":{\"label\":\"B\"}}");
    hub_assert_meta("train", "2",
                    "{\"source\":\"other/\xC3\xA9.png\","
                    "\"label\":2,\"class\":\"C\",\"image_of\":1,\"columns\":"
                    "{\"label\":\"C\"}}");
    hub_assert_meta("train", "3",
                    "{\"source\":\"data/train.parquet/000000006/6.png\","
                    "\"label\":3,\"class\":\"G\",\"columns\":"
                    "{\"label\":\"G\"}}");
}

/* ---- jobs, ranks, archives ------------------------------------------------------------------------------------ */

static void test_same_bytes_however_it_runs(void **state)
{
    (void)state;
    char name[64], *tar = support_path("%s/hub.tar", hub_dir), *zip = support_path("%s/hub.zip", hub_dir), *other;
    for (unsigned i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "data/train-%05u-of-00005.parquet", i);
        support_hub_rows(hub_source, name, 7 + i, 3, 10 * i + 1);
    }
    support_expect(0, "ingest", hub_source, hub_target, "--shard-size", "4KiB", "--jobs", "1", "--quiet", (char *)NULL);
    uint64_t hash = support_dataset_hash(hub_target);
    support_archive_tree(tar, "tar", hub_source, true);
    support_archive_tree(zip, "zip-deflate", hub_source, false);
    const char *const sources[] = {hub_source, hub_source, tar, zip};
    const char *const jobs[] = {"4", "16", "1", "3"};
    for (size_t i = 0; i < MR_COUNT(sources); i++) {
        other = support_path("%s/other%zu", hub_dir, i);
        support_expect(0, "ingest", sources[i], other, "--shard-size", "4KiB", "--jobs", jobs[i], "--quiet",
                       (char *)NULL);
        assert_int_equal(support_dataset_hash(other), hash);
        free(other);
    }
    for (unsigned ranks = 2; ranks <= 3; ranks++) {
        other = support_path("%s/ranks%u", hub_dir, ranks);
        support_result r =
            support_mpirun(ranks, (const char *[]){support_millrace_path(), "ingest", hub_source, other, "--shard-size",
                                                   "4KiB", "--jobs", ranks == 2 ? "2" : "1", "--quiet", NULL});
        support_assert_status(&r, 0);
        support_result_free(&r);
        assert_int_equal(support_dataset_hash(other), hash);
        free(other);
    }
    other = support_path("%s/none", hub_dir);
    support_expect(0, "ingest", hub_source, other, "--dry-run", "--quiet", (char *)NULL);
    assert_false(support_exists(other));
    free(other);
    free(tar);
    free(zip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup_teardown(test_splits_and_files, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_incomplete_downloads, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_configs, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_files_that_are_not_opened, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_default_config, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_long_config, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_two_names_of_val, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_plain_files, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_words_for_splits, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_rows_without_image, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_too_large_images, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_images_by_path, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(test_same_bytes_however_it_runs, hub_set_up, hub_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
