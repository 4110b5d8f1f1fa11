/* test_ingest.c - the whole way from a source to a dataset, through the program: same input, same bytes; nothing half
 * done is visible; every refusal says so.
 * Covers pipeline/ingest_state.c. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/support.h"
#include "tests/support/sources/archive.h"

static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    return 0;
}

/* Draws a sample dataset; returns the folder. */
static char *draw(const char *layout, const char *images)
{
    char *source = support_path("%s/source-%s", dir, layout);
    support_expect(0, "sample", source, "--layout", layout, "--images", images, "--seed", "7", "--quiet", (char *)NULL);
    return source;
}

static void expect_same(const char *source, const char *jobs, uint64_t expected)
{
    char *target = support_path("%s/again", dir);
    support_expect(0, "ingest", source, target, "--jobs", jobs, "--shard-size", "1MiB", "--quiet", "--force",
                   (char *)NULL);
    assert_true(expected == support_dataset_hash(target));
    free(target);
}

static void test_same_bytes_from_everywhere(void **state)
{
    (void)state;
    /* newyorker's own files are zips, which are not opened inside another archive */
    static const char *const layouts[] = {"imagenette", "roboflow", "coco", "newyorker"};
    static const char *const kinds[] = {"tar", "tar.gz", "zip", "zip-deflate"};
    for (size_t i = 0; i < 4; i++) {
        char *source = draw(layouts[i], "60"), *one = support_path("%s/one-%zu", dir, i);
        support_expect(0, "ingest", source, one, "--jobs", "1", "--shard-size", "1MiB", "--quiet", (char *)NULL);
        support_expect(0, "verify", one, "--deep", "--quiet", (char *)NULL);
        uint64_t expected = support_dataset_hash(one);
        expect_same(source, "3", expected);
        for (size_t k = 0; k < 4 && i < 3; k++) {
            char *archive = support_path("%s/archive-%zu.%s", dir, i, kinds[k]);
            support_archive_tree(archive, kinds[k], source, k % 2);
            expect_same(archive, "2", expected);
            free(archive);
        }
        free(source);
        free(one);
    }
}

/* A split too small to show every class captions just those it has. */
static void test_smallest_drawn_datasets(void **state)
{
    (void)state;
    static const char *const variants[] = {"folder", "multi-class", "coco", "clip"};
    for (size_t i = 0; i < 4; i++) {
        char *source = support_path("%s/small-%zu", dir, i), *target = support_path("%s/small-%zu.mr", dir, i);
        support_expect(0, "sample", source, "--layout", "roboflow", "--variant", variants[i], "--images", "10",
                       "--quiet", (char *)NULL);
        support_expect(0, "ingest", source, target, "--quiet", (char *)NULL);
        free(source);
        free(target);
    }
}

static void test_standard_input(void **state)
{
    (void)state;
    char *source = draw("imagenette", "40"), *archive = support_path("%s/a.tgz", dir);
    char *one = support_path("%s/one", dir), *two = support_path("%s/two", dir);
    support_archive_tree(archive, "tar.gz", source, false);
    support_expect(0, "ingest", source, one, "--quiet", (char *)NULL);
    support_limits limits = {0};
    uint8_t *bytes = support_read(archive, &limits.input_len);
    limits.input = bytes;
    const char *argv[] = {support_millrace_path(), "ingest", "-", two, "--quiet", NULL};
    support_result r = support_run(argv, &limits);
    support_assert_status(&r, 0);
    support_result_free(&r);
    assert_true(support_dataset_hash(one) == support_dataset_hash(two));
    free(bytes);
    free(source);
    free(archive);
    free(one);
    free(two);
}

/* A zip's and a 7z's directory is at the end: through a pipe it is the same tree. */
static void test_zip_and_7z_on_standard_input(void **state)
{
    (void)state;
    char *source = draw("imagenette", "40"), *one = support_path("%s/one", dir);
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
    free(source);
    free(one);
}

static void test_ranks_share_the_work(void **state)
{
    (void)state;
    char *source = draw("coco", "60"), *one = support_path("%s/one", dir), *two = support_path("%s/two", dir);
    support_expect(0, "ingest", source, one, "--shard-size", "1MiB", "--quiet", (char *)NULL);
    const char *argv[] = {support_millrace_path(), "ingest", source, two, "--shard-size", "1MiB", "--quiet", NULL};
    support_result r = support_mpirun(3, argv);
    support_assert_status(&r, 0);
    support_result_free(&r);
    assert_true(support_dataset_hash(one) == support_dataset_hash(two));
    free(source);
    free(one);
    free(two);
}

static void test_dry_run_writes_nothing(void **state)
{
    (void)state;
    char *source = draw("coco", "30"), *target = support_path("%s/dry", dir), *before = support_list(dir);
    support_result r = support_millrace("ingest", source, target, "--dry-run", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "layout coco"));
    assert_non_null(strstr(r.out, "dry run: nothing was written"));
    support_result_free(&r);
    char *after = support_list(dir);
    assert_string_equal(before, after);
    free(before);
    free(after);
    free(target);
    free(source);
}

static void expect_words(int status, const char *words, const char *arg, const char *arg2, const char *arg3)
{
    support_result r = support_millrace("ingest", arg, arg2, arg3, (char *)NULL);
    support_assert_status(&r, status);
    if (!strstr(r.err, words))
        fail_msg("expected \"%s\" in: %s", words, r.err);
    support_result_free(&r);
}

static void test_wrong_use_names_the_way_out(void **state)
{
    (void)state;
    expect_words(2, "did you mean --jobs?", "a", "b", "--job5=2");
    expect_words(2, "did you mean imagenette?", "a", "b", "--layout=imagenet");
    expect_words(2, "use FROM=TO", "a", "b", "--split-map=test");
    expect_words(2, "for example 256MiB", "a", "b", "--shard-size=12");
    expect_words(2, "DATASET is missing", "a", NULL, NULL);
    expect_words(2, "no such file or folder", "/nonexistent/source", "b", "--quiet");
    support_result r = support_millrace("ingst", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "did you mean 'millrace ingest'?"));
    support_result_free(&r);
}

static void test_single_file_of_a_dataset_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"a.jpg", "b.PNG", "labels.csv", "train.jsonl", "classes.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = support_path("%s/one/%s", dir, names[i]);
        support_write_text(path, "hello");
        expect_words(2, "give the folder that contains it", path, "nowhere", NULL);
        free(path);
    }
}

static void test_unknown_source_says_what_was_seen(void **state)
{
    (void)state;
    char *path = support_path("%s/what/readme.txt", dir), *source = support_path("%s/what", dir);
    support_write_text(path, "hello");
    expect_words(1, "1 .txt", source, "nowhere", NULL);
    expect_words(1, "What each layout needs", source, "nowhere", NULL);
    free(path);
    free(source);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_same_bytes_from_everywhere),
        TEST(test_standard_input),
        TEST(test_zip_and_7z_on_standard_input),
        TEST(test_smallest_drawn_datasets),
        TEST(test_ranks_share_the_work),
        TEST(test_dry_run_writes_nothing),
        TEST(test_wrong_use_names_the_way_out),
        TEST(test_single_file_of_a_dataset_is_refused),
        TEST(test_unknown_source_says_what_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
