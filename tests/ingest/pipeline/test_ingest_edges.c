/* test_ingest_edges.c - ingest where it could do harm or fall silent: other people's files in its way, a target inside
 * its source, little memory, misspelt options, what the report says and where. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "support/support.h"
#include "support/archive.h"

static char *dir, *source;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "120", "--seed", "3", "--quiet",
                   (char *)NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    support_tmpdir_remove(dir);
    return 0;
}

static void put_text(const char *text, const char *format, const char *a)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, format);
    char *full = support_path("%s%s", path, a);
    support_write_text(full, text);
    free(full);
}

#define says(status, words, ...) SAYS(dir, status, NULL, words, __VA_ARGS__)

static json_t *load(const char *path)
{
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static bool listed(const json_t *doc, const char *kind, const char *file)
{
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(doc, kind), i,
                       note) if (strcmp(json_string_value(json_object_get(note, "file")), file) == 0) return true;
    return false;
}

static void test_files_of_others_are_left_alone(void **state)
{
    (void)state;
    char *target = support_path("%s/out", dir), *partial = support_path("%s/out.partial", dir);
    put_text("precious", "out.partial/", "thesis.txt");
    support_expect(2, "ingest", source, target, (char *)NULL);
    char *list = support_list(partial);
    assert_string_equal(list, "thesis.txt\n");
    free(list);
    support_tmpdir_remove(strdup(partial));
    support_write_text(partial, "a file");
    support_expect(2, "ingest", source, target, (char *)NULL);
    assert_int_equal(unlink(partial), 0);

    /* manifest.json is a common name: it makes no dataset of a folder of other things. */
    put_text("{}", "out/", "manifest.json");
    put_text("x", "out/", "app.js");
    support_expect(2, "ingest", source, target, "--force", (char *)NULL);
    list = support_list(target);
    assert_string_equal(list, "app.js\nmanifest.json\n");
    free(list);
    char *path = support_path("%s/app.js", target);
    assert_int_equal(unlink(path), 0);
    free(path);
    put_text("", "out/", "train-00000.mdb-lock"); /* as py-lmdb leaves them */
    support_expect(0, "ingest", source, target, "--force", "--quiet", (char *)NULL);
    support_expect(0, "verify", target, "--quiet", (char *)NULL);
    free(target);
    free(partial);
}

static void test_a_failure_leaves_no_folders(void **state)
{
    (void)state;
    char *target = support_path("%s/a/b/c", dir), *a = support_path("%s/a", dir), *empty = support_path("%s/none", dir);
    support_expect(2, "ingest", "/nonexistent/source", target, (char *)NULL);
    assert_false(support_exists(a));
    mkdir(empty, 0777);
    support_expect(1, "ingest", empty, target, (char *)NULL);
    assert_false(support_exists(a));
    support_expect(2, "ingest", source, "", (char *)NULL);
    support_expect(0, "ingest", source, target, "--quiet", (char *)NULL);
    support_expect(0, "verify", target, "--quiet", (char *)NULL);
    free(target);
    free(empty);
    free(a);
}

static void test_a_target_inside_the_source(void **state)
{
    (void)state;
    static const char *const places[] = {"source/out", "source", "source/train/a/b", "link/../source/out", "link/out"};
    char *link = support_path("%s/link", dir);
    assert_int_equal(symlink("source", link), 0);
    uint64_t before = support_tree_hash(source);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *said = support_path("millrace: %s: lies in the source source; choose a DST outside of it\n", places[i]);
        says(2, said, "ingest", "source", places[i]);
        free(said);
    }
    assert_true(support_tree_hash(source) == before);
    says(0, NULL, "ingest", "source", "source-2", "--quiet"); /* beside it, though the name begins alike */
    says(2,
         "millrace: source-2: is a millrace dataset already; `millrace inspect` says what is in it, `millrace "
         "export` gives its files back\n",
         "ingest", "source-2", "out");
    free(link);
}

/* What is only looked at needs no DST. */
static void test_a_look_without_a_target(void **state)
{
    (void)state;
    says(0, NULL, "ingest", "source", "--dry-run");
    says(0, NULL, "ingest", "source", "out", "--dry-run");
    says(2,
         "millrace ingest: DST is missing, for example: millrace ingest source dataset\n"
         "Try 'millrace ingest --help'.\n",
         "ingest", "source");
    says(
        2,
        "millrace ingest: --layout imagnette: use imagenette, roboflow, coco, newyorker, hub, webdataset, yolo, voc or "
        "createml; did you mean imagenette?\nTry 'millrace ingest --help'.\n",
        "ingest", "source", "out", "--layout", "imagnette");
    char *list = support_list(dir);
    assert_null(strstr(list, "out"));
    free(list);
}

/* Interrupted while it waits for the rest of an archive, of which it has taken more than a pipe holds: by the signal,
 * with a word about DST by its name. */
static void test_interrupted(void **state)
{
    (void)state;
    static const char *const signals[] = {"INT 130", "TERM 143", "HUP 129", "USR1 138", "USR2 140"};
    const char *said = "millrace: interrupted; some\\x09target is as it was, and the same command goes on from the "
                       "shards that are finished\n";
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char *line = support_path("set -- %s; rm -f pipe; mkfifo pipe; head -c 400000 /dev/zero > big\n"
                                  "'%s' ingest - 'some\ttarget' < pipe & pid=$!; exec 3> pipe\n"
                                  "tar cf - big | head -c 300000 >&3; kill -$1 $pid; wait $pid; echo $? $2",
                                  signals[i], support_millrace_path());
        const char *const argv[] = {"/bin/bash", "-mc", line, NULL};
        support_result r = support_run(argv, &(support_limits){.directory = dir});
        char *codes = support_path("%1$s %1$s\n", strchr(signals[i], ' ') + 1);
        assert_string_equal(r.out, codes);
        if (!strstr(r.err, said))
            fail_msg("not \"%s\" but: %s", said, r.err);
        support_result_free(&r);
        free(codes);
        free(line);
    }
}

/* Address space is not taken for what a shard might become, only for what it is. */
static void test_small_shards_and_little_memory(void **state)
{
    (void)state;
    char *small = support_path("%s/small", dir), *one = support_path("%s/one", dir), *two = support_path("%s/two", dir);
    support_expect(0, "ingest", source, small, "--shard-size", "64KiB", "--quiet", (char *)NULL);
    support_expect(0, "verify", small, "--deep", "--quiet", (char *)NULL);
    char *path = support_path("%s/train-00003.mdb", small);
    assert_true(support_exists(path));
    free(path);
    support_expect(0, "ingest", source, one, "--shard-size", "1GiB", "--quiet", (char *)NULL);
    support_limits limits = {.memory = (uint64_t)1 << 30};
    const char *argv[] = {
        support_millrace_path(), "ingest", source, two, "--shard-size", "1GiB", "--jobs", "2", "--quiet", NULL};
    support_result r = support_run(argv, &limits);
    support_assert_status(&r, 0);
    support_result_free(&r);
    assert_true(support_dataset_hash(one) == support_dataset_hash(two));
    free(small);
    free(one);
    free(two);
}

static void test_the_report_names_paths_of_the_layout(void **state)
{
    (void)state;
    char *archive = support_path("%s/a.zip", dir), *target = support_path("%s/out", dir);
    char *report = support_path("%s/r.json", dir);
    put_text("no image", "source/imagenette2-160/train/n01440764/", "bad.JPEG");
    put_text("junk", "source/imagenette2-160/", "notes.md");
    put_text("junk", "source/", "outside.md");
    support_archive_tree(archive, "zip", source, false);
    support_result r =
        support_millrace("ingest", archive, target, "--max-rejects", "0", "--report", report, (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.err, "train/n01440764/bad.JPEG"));
    support_result_free(&r);
    assert_false(support_exists(target));
    json_t *doc = load(report);
    assert_true(listed(doc, "rejects", "train/n01440764/bad.JPEG"));
    assert_true(listed(doc, "ignored", "notes.md"));
    assert_true(listed(doc, "ignored", "outside.md"));
    json_decref(doc);
    free(archive);
    free(target);
    free(report);
}

/* 1 of 100 is 1 %, wherever the one was turned away. */
static void test_rejects_are_a_share_of_all(void **state)
{
    (void)state;
    char *target = support_path("%s/out", dir), *big = calloc(1, 4 << 20);
    char *path = support_path("%s/imagenette2-160/train/n01440764/big.JPEG", source);
    support_write(path, big, 4 << 20);
    support_expect(1, "ingest", source, target, "--max-file", "2MiB", "--max-rejects", "0.82%", (char *)NULL);
    support_expect(0, "ingest", source, target, "--max-file", "2MiB", "--max-rejects", "0.83%", "--quiet",
                   (char *)NULL);
    free(path);
    free(big);
    free(target);
}

static void expect_words(int status, const char *words, const char *src, const char *option)
{
    char *target = support_path("%s/never", dir);
    support_result r = support_millrace("ingest", src, target, "--dry-run", option, (char *)NULL);
    support_assert_status(&r, status);
    if (!strstr(r.err, words) && !strstr(r.out, words))
        fail_msg("expected \"%s\" in: %s%s", words, r.out, r.err);
    support_result_free(&r);
    free(target);
}

static void test_options_that_miss_say_so(void **state)
{
    (void)state;
    static const char *const layouts[] = {"coco", "newyorker", "roboflow"};
    expect_words(2, "no split 'tset'", source, "--split-map=tset=val");
    for (size_t i = 0; i < 3; i++) {
        char *other = support_path("%s/%s", dir, layouts[i]);
        support_expect(0, "sample", other, "--layout", layouts[i], "--images", "40", "--quiet", (char *)NULL);
        expect_words(2, "no split 'tset'", other, "--split-map=tset=val");
        expect_words(0, "dev", other, i == 2 ? "--split-map=valid=dev" : "--split-map=val=dev");
        free(other);
    }
    /* the root of a forced layout is found as it is found for the others */
    expect_words(0, "root imagenette2-160/", source, "--layout=roboflow");
}

/* A zip's and a 7z's directory is at the end: through a pipe it is the same tree. */
static void test_zip_and_7z_on_standard_input(void **state)
{
    (void)state;
    char *one = support_path("%s/one", dir);
    support_expect(0, "ingest", source, one, "--quiet", (char *)NULL);
    uint64_t expected = support_dataset_hash(one);
    static const char *const kinds[] = {"zip", "zip-deflate", "7z"};
    for (size_t i = 0; i < 3; i++) {
        char *archive = support_path("%s/a.%s", dir, kinds[i]), *two = support_path("%s/two-%zu", dir, i);
        support_archive_tree(archive, kinds[i], source, i % 2);
        support_limits limits = {0};
        uint8_t *bytes = support_read(archive, &limits.input_len);
        limits.input = bytes;
        const char *argv[] = {support_millrace_path(), "ingest", "-", two, "--quiet", NULL};
        support_result r = support_run(argv, &limits);
        support_assert_status(&r, 0);
        support_result_free(&r);
        assert_true(expected == support_dataset_hash(two));
        free(bytes);
        free(archive);
        free(two);
    }
    free(one);
}

/* A few KB of archive that say "700 MB of zeros" four times: refused by name, in little memory. */
static void test_large_nothings_cost_little(void **state)
{
    (void)state;
    char *target = support_path("%s/out", dir);
    for (int i = 0; i < 4; i++) {
        char *path = support_path("%s/imagenette2-160/train/n01440764/zero%d.JPEG", source, i);
        support_write_text(path, "");
        assert_int_equal(truncate(path, 700 << 20), 0);
        free(path);
    }
    const char *argv[] = {support_millrace_path(), "ingest", source, target, "--jobs", "4", "--max-rejects", "4", NULL};
    support_result r = support_run(argv, &(support_limits){.memory = (uint64_t)1 << 30});
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "rejected: 4"));
    assert_non_null(strstr(r.out, "train/n01440764/zero3.JPEG"));
    support_result_free(&r);
    free(target);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_files_of_others_are_left_alone),
        TEST(test_a_failure_leaves_no_folders),
        TEST(test_a_target_inside_the_source),
        TEST(test_small_shards_and_little_memory),
        TEST(test_the_report_names_paths_of_the_layout),
        TEST(test_rejects_are_a_share_of_all),
        TEST(test_options_that_miss_say_so),
        TEST(test_zip_and_7z_on_standard_input),
        TEST(test_large_nothings_cost_little),
        TEST(test_a_look_without_a_target),
        TEST(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
