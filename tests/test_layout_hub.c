/* test_layout_hub.c - hub folders to datasets: names, labels, rows without images, jobs and ranks; the reader is cat. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "layout_hub.h"
#include "support_archive.h"
#include "support_hub.h"

#define SCHEMA(label) "{\"rows\":%zu,\"image\":\"image\",\"columns\":[\"label\"],\"label\":" label "}"
#define TEXTS SCHEMA("{\"column\":\"label\",\"kind\":\"texts\"}")
#define NUMBERS SCHEMA("{\"column\":\"label\",\"kind\":\"numbers\"}")

static char *dir, *source, *target;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/hub", dir);
    target = support_path("%s/dataset", dir);
    char *reader = support_path("%s/reader", dir);
    support_hub_reader(reader, "#!/bin/sh\nexec cat\n");
    free(reader);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unsetenv("MILLRACE_PARQUET_READER");
    free(source);
    free(target);
    support_tmpdir_remove(dir);
    return 0;
}

/* Runs ingest of `source`, expects the exit status and a part of what is printed on either stream. */
static void ingest(int status, const char *words, const char *option, const char *value)
{
    support_result r = support_millrace("ingest", source, target, "--max-rejects", "50%", option ? option : "--jobs",
                                        option ? value : "2", (char *)NULL);
    support_assert_status(&r, status);
    if (words && !strstr(r.out, words) && !strstr(r.err, words))
        fail_msg("no \"%s\" in:\n%s%s", words, r.out, r.err);
    support_result_free(&r);
    char *partial = support_path("%s.partial", target);
    assert_false(support_exists(partial));
    assert_int_equal(support_exists(target), status == 0);
    free(partial);
}

static void start_again(void)
{
    support_result r = support_run((const char *[]){"rm", "-rf", target, source, NULL}, NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
}

/* What `show --json` says of a sample's meta. */
static json_t *meta(const char *split, const char *sample)
{
    support_result r = support_millrace("show", target, split, sample, "--json", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL), *out = json_incref(json_object_get(doc, "meta"));
    assert_non_null(out);
    json_decref(doc);
    support_result_free(&r);
    return out;
}

static void assert_meta(const char *split, const char *sample, const char *expected)
{
    json_t *found = meta(split, sample), *wanted = json_loads(expected, 0, NULL);
    assert_non_null(wanted);
    if (!json_equal(found, wanted)) {
        char *text = json_dumps(found, 0);
        fail_msg("%s %s: %s, not %s", split, sample, text, expected);
    }
    json_decref(found);
    json_decref(wanted);
}

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
        {"train.parquet", "", "train", 0, 0},
        {"test-7.parquet", "", "test", 0, 0},
        {"data/train-0001.parquet", "", "train", 0, 0},
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
            f.split.len != strlen(cases[i].split) || memcmp(f.split.len ? f.split.text : "", cases[i].split, f.split.len) ||
            f.number != cases[i].number || f.of != cases[i].of)
            fail_msg("%s: config '%.*s', split '%.*s', %u of %u", cases[i].path, (int)f.config.len, f.config.text,
                     (int)f.split.len, f.split.len ? f.split.text : "", f.number, f.of);
    }
}

static void test_splits_and_files(void **state)
{
    (void)state;
    support_hub_rows(source, "data/train-00000-of-00002.parquet", 5, 3, 4);
    support_hub_rows(source, "data/train-00001-of-00002.parquet", 3, 3, 20);
    support_hub_rows(source, "data/validation-00000-of-00001.parquet", 2, 3, 40);
    support_hub_rows(source, ".cache/old-00000-of-00001.parquet", 2, 3, 60);
    ingest(0, "3 classes: class 0, class 1, class 2", NULL, NULL);
    assert_meta("train", "4", "{\"source\":\"data/train-00000-of-00002.parquet/000000004/4.png\",\"label\":1,\"class\":"
                              "\"class 1\",\"columns\":{\"label\":1,\"text\":\"row 4\"}}");
    assert_meta("train", "5", "{\"source\":\"data/train-00001-of-00002.parquet/000000000/0.png\",\"label\":0,\"class\":"
                              "\"class 0\",\"columns\":{\"label\":0,\"text\":\"row 0\"}}");
    assert_meta("val", "1", "{\"source\":\"data/validation-00000-of-00001.parquet/000000001/1.png\",\"label\":1,\"class\":"
                            "\"class 1\",\"columns\":{\"label\":1,\"text\":\"row 1\"}}");
    support_expect(0, "verify", target, "--deep", "--decode", "--quiet", (char *)NULL);
    char *spool = support_path("%s/rows-00000.spool", target);
    assert_false(support_exists(spool));
    free(spool);
}

static void test_incomplete_downloads(void **state)
{
    (void)state;
    support_hub_rows(source, "train-00000-of-00003.parquet", 2, 2, 4);
    support_hub_rows(source, "train-00002-of-00003.parquet", 2, 2, 8);
    ingest(1, "its split has 3 files, and number 00001 is missing", NULL, NULL);
    support_hub_rows(source, "train-00001-of-00003.parquet", 2, 2, 12);
    support_hub_rows(source, "train-00001-of-00003-0123456789abcdef.parquet", 2, 2, 12);
    ingest(1, "does not go with the other files of its split", NULL, NULL);
    start_again();
    support_hub_rows(source, "train-00000-of-00001.parquet", 2, 2, 4);
    char *path = support_path("%s/test-00000-of-00001.parquet", source);
    support_write_text(path, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n");
    ingest(1, "fetch it with: git lfs pull", NULL, NULL);
    support_write_text(path, "");
    ingest(1, "test-00000-of-00001.parquet: is empty", NULL, NULL);
    free(path);
    ingest(0, "split left out by --split-map", "--split-map", "test=");
}

static void test_configs(void **state)
{
    (void)state;
    support_hub_rows(source, "one/train-00000-of-00001.parquet", 2, 2, 4);
    support_hub_rows(source, "t w\xC3\xB6/train-00000-of-00001.parquet", 3, 2, 8);
    support_hub_rows(source, "zzz/test-00000-of-00001.parquet", 3, 2, 16);
    ingest(2, "the source holds 3 configs; choose one with --config: one, t w\xC3\xB6, zzz", NULL, NULL);
    ingest(2, "--config two is not there; choose one of: one, t w\xC3\xB6, zzz", "--config", "two");
    ingest(0, "layout hub (t w\xC3\xB6)", "--config", "t w\xC3\xB6");
    assert_meta("train", "2", "{\"source\":\"t w\xC3\xB6/train-00000-of-00001.parquet/000000002/2.png\",\"label\":0,\"class\":"
                              "\"class 0\",\"columns\":{\"label\":0,\"text\":\"row 2\"}}");
}

/* A file whose name tells no split is the split train, alone; beside files that tell theirs it is left out. */
static void test_plain_files(void **state)
{
    (void)state;
    support_hub_rows(source, "my rows.parquet", 3, 2, 4);
    ingest(0, "1 Parquet file", NULL, NULL);
    assert_meta("train", "0", "{\"source\":\"my rows.parquet/000000000/0.png\",\"label\":0,\"class\":\"class 0\",\"columns\":"
                              "{\"label\":0,\"text\":\"row 0\"}}");
    uint64_t hash = support_dataset_hash(target);
    char *file = support_path("%s/my rows.parquet", source), *alone = support_path("%s/alone", dir);
    support_expect(0, "ingest", file, alone, "--quiet", (char *)NULL);      /* the file itself as SRC */
    assert_int_equal(support_dataset_hash(alone), hash);
    free(file);
    free(alone);
    support_result r = support_run((const char *[]){"rm", "-rf", target, NULL}, NULL);
    support_result_free(&r);
    support_hub_rows(source, "test.parquet", 2, 2, 14);
    ingest(0, "left out: its name tells no split", NULL, NULL);
}

/* ---- labels and texts ----------------------------------------------------------------------------------------- */

static void test_labels(void **state)
{
    static const struct {
        const char *schema, *labels[3];
        int status;
        const char *words;
    } cases[] = {
        {TEXTS, {"\"b\"", "\"A\"", "null"}, 0, "2 classes: A, b"},
        {TEXTS, {"\"a text\"", "\"another\"", "\"b\""}, 0, "layout hub"},
        {NUMBERS, {"0", "2", "-1"}, 0, "3 classes: 0, 1, 2"},
        {NUMBERS, {"0", "12345", "1"}, 0, "numbers that are no labels"},
        {NUMBERS, {"0", "1.5", "1"}, 1, "row 1: \"label\" is no whole number"},
        {NUMBERS, {"0", "99999999999999999999", "1"}, 0, "numbers that are no labels"},
        {SCHEMA("null"), {"0", "1", "2"}, 0, "layout hub"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"names\",\"names\":[\"x\",\"y\"]}"), {"1", "null", "-1"}, 0, "2 classes: x, y"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"names\",\"names\":[\"x\",\"y\"]}"), {"1", "2", "0"}, 1,
         "row 1: \"label\" has a number without a class name"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"names\",\"names\":[\"x\",\"x\"]}"), {"1", "0", "0"}, 1,
         "classes 0 and 1 have the same name, x"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"names\",\"names\":[]}"), {"1", "0", "0"}, 1, "has none"},
        {SCHEMA("{\"column\":\"label\",\"kind\":\"other\"}"), {"1", "0", "0"}, 1, "of kind \"other\" is not known"},
        {SCHEMA("{\"kind\":\"texts\"}"), {"1", "0", "0"}, 1, "column"},
        {"{\"rows\":-1}", {"1", "0", "0"}, 1, "rows"},
        {"{\"rows\":", {"1", "0", "0"}, 1, "schema.json: line 1"},
        {"", {"1", "0", "0"}, 1, "schema.json: is not in what the file's reader wrote"},
    };
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        support_row rows[3];
        for (size_t k = 0; k < 3; k++)
            rows[k] = (support_row){.json = support_path("{\"label\":%s}", cases[i].labels[k]), .width = 4 + (unsigned)k};
        support_hub_file(source, "train.parquet", cases[i].schema, rows, 3);
        ingest(cases[i].status, cases[i].words, NULL, NULL);
        for (size_t k = 0; k < 3; k++)
            free((void *)(uintptr_t)rows[k].json);
        start_again();
    }
}

static void test_files_that_disagree(void **state)
{
    (void)state;
    support_hub_rows(source, "train.parquet", 3, 3, 4);
    support_hub_rows(source, "test.parquet", 3, 2, 14);
    ingest(1, "its labels (label) are not those of the files before it (label), or have other class names", NULL, NULL);
}

static void test_captions(void **state)
{
    static const support_row rows[] = {
        {.json = "{\"label\":\"A\",\"t\":\"one \\\"text\\\" \\u0000\"}", .width = 4},
        {.json = "{\"label\":\"B\",\"t\":[\"two\",null,\"tw\xC3\xB6\"]}", .width = 5},
        {.json = "{\"label\":\"B\",\"t\":null}", .width = 6},
        {.json = "{\"label\":\"B\",\"t\":[\"x\",[\"deep\"]]}", .width = 7},
    };
    (void)state;
    support_hub_file(source, "train.parquet", TEXTS, rows, 3);
    ingest(0, NULL, "--text-column", "t");
    json_t *m = meta("train", "1"), *wanted = json_pack("[ss]", "two", "tw\xC3\xB6");
    assert_true(json_equal(json_object_get(m, "captions"), wanted));
    json_decref(m);
    json_decref(wanted);
    m = meta("train", "2");
    assert_null(json_object_get(m, "captions"));
    json_decref(m);
    support_result r = support_millrace("show", target, "train", "0", "--json", (char *)NULL);
    assert_non_null(strstr(r.out, "one \\\"text\\\" \\u0000"));
    support_result_free(&r);
    start_again();
    support_hub_file(source, "train.parquet", TEXTS, rows, 4);      /* a list of lists is no text */
    ingest(1, "train.parquet/000000003.json: column t", "--text-column", "t");
}

/* ---- images --------------------------------------------------------------------------------------------------- */

static void test_rows_without_image(void **state)
{
    static const support_row rows[] = {
        {.json = "{\"label\":\"A\"}", .width = 4}, {.json = "{\"label\":\"B\"}"}, {.json = "{\"label\":\"C\"}", .width = 5}};
    (void)state;
    support_hub_file(source, "train.parquet", TEXTS, rows, 3);
    support_expect(1, "ingest", source, target, "--quiet", (char *)NULL);       /* 1 of 3 is more than 1 % */
    ingest(0, "train.parquet/000000001: the row has no image", NULL, NULL);
    assert_meta("train", "1", "{\"source\":\"train.parquet/000000002/2.png\",\"label\":1,\"class\":\"C\",\"columns\":"
                              "{\"label\":\"C\"}}");
    start_again();
    support_hub_file(source, "train.parquet", TEXTS, rows + 1, 1);
    ingest(1, "holds no image for layout hub", NULL, NULL);
    support_hub_file(source, "train.parquet", TEXTS, rows, 0);
    ingest(1, "holds no image for layout hub", NULL, NULL);
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
    support_hub_rows(dir, "in/rows.parquet", 2, 2, 30);     /* for its two pictures */
    support_result r = support_run((const char *[]){"sh", "-c",
        "cd \"$1\" && mkdir -p x hub/data/pics hub/other && tar xf in/rows.parquet -C x && "
        "cp x/000000000/0.png 'hub/data/pics/a b.png' && cp x/000000001/1.png hub/other/\xC3\xA9.png", "sh", dir, NULL}, NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
    support_hub_file(source, "data/train.parquet", TEXTS, rows, MR_COUNT(rows));
    ingest(0, "annotated but not there: 3", NULL, NULL);
    assert_meta("train", "0", "{\"source\":\"data/pics/a b.png\",\"label\":0,\"class\":\"A\",\"columns\":{\"label\":\"A\"}}");
    assert_meta("train", "1", "{\"source\":\"other/\xC3\xA9.png\",\"label\":1,\"class\":\"B\",\"columns\":{\"label\":\"B\"}}");
    assert_meta("train", "2", "{\"source\":\"other/\xC3\xA9.png\",\"label\":2,\"class\":\"C\",\"image_of\":1,\"columns\":"
                              "{\"label\":\"C\"}}");
    assert_meta("train", "3", "{\"source\":\"data/train.parquet/000000006/6.png\",\"label\":3,\"class\":\"G\",\"columns\":"
                              "{\"label\":\"G\"}}");
}

/* ---- jobs, ranks, archives ------------------------------------------------------------------------------------ */

static void test_same_bytes_however_it_runs(void **state)
{
    (void)state;
    char name[64], *tar = support_path("%s/hub.tar", dir), *zip = support_path("%s/hub.zip", dir), *other;
    for (unsigned i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "data/train-%05u-of-00005.parquet", i);
        support_hub_rows(source, name, 7 + i, 3, 10 * i + 1);
    }
    support_expect(0, "ingest", source, target, "--shard-size", "4KiB", "--jobs", "1", "--quiet", (char *)NULL);
    uint64_t hash = support_dataset_hash(target);
    support_archive_tree(tar, "tar", source, true);
    support_archive_tree(zip, "zip-deflate", source, false);
    const char *const sources[] = {source, source, tar, zip};
    const char *const jobs[] = {"4", "16", "1", "3"};
    for (size_t i = 0; i < MR_COUNT(sources); i++) {
        other = support_path("%s/other%zu", dir, i);
        support_expect(0, "ingest", sources[i], other, "--shard-size", "4KiB", "--jobs", jobs[i], "--quiet", (char *)NULL);
        assert_int_equal(support_dataset_hash(other), hash);
        free(other);
    }
    for (unsigned ranks = 2; ranks <= 3; ranks++) {
        other = support_path("%s/ranks%u", dir, ranks);
        support_result r = support_mpirun(ranks, (const char *[]){support_millrace_path(), "ingest", source, other,
                                          "--shard-size", "4KiB", "--jobs", ranks == 2 ? "2" : "1", "--quiet", NULL});
        support_assert_status(&r, 0);
        support_result_free(&r);
        assert_int_equal(support_dataset_hash(other), hash);
        free(other);
    }
    support_expect(0, "ingest", source, "/dev/null/x", "--dry-run", "--quiet", (char *)NULL);
    free(tar);
    free(zip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup_teardown(test_splits_and_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_incomplete_downloads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_configs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_plain_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_labels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_files_that_disagree, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_captions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rows_without_image, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_images_by_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_same_bytes_however_it_runs, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
