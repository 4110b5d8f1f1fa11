/* test_unusual_places.c - very long paths, clocks that are wrong, foreign locales.
 * Invariant tested: time, language and place change no byte of a dataset. (Unusual files: test_special_files.c.) */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "millrace.h"
#include "tests/support/support.h"

static char *root, *source, *ds;
static uint64_t expected;

static int set_up(void **state)
{
    (void)state;
    root = support_tmpdir();
    source = support_path("%s/source", root);
    ds = support_path("%s/ds", root);
    char *copy = support_path("%s/copy", root);
    support_expect(0, "sample", source, "--layout", "roboflow", "--images", "40", "--seed", "4", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", source, ds, "--quiet", (char *)NULL);
    support_expect(0, "ingest", source, copy, "--quiet", (char *)NULL);
    expected = support_dataset_hash(copy);
    free(copy);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    free(ds);
    support_tmpdir_remove(root);
    return 0;
}

enum { MOST_ARGS = 40 };

/* With `front` (an interpreter, env VAR=..) before millrace, in `directory`; a fifth of a minute at most. */
static support_result run(const char *const *front, const char *directory, const char *const *args)
{
    const char *argv[MOST_ARGS] = {0};
    size_t n = 0;
    while (front && *front)
        argv[n++] = *front++;
    argv[n++] = support_millrace_path();
    while (*args && n < MOST_ARGS - 1)
        argv[n++] = *args++;
    return support_run(argv, &(support_limits){.directory = directory ? directory : root});
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- 4,000 bytes of path ----------------------------------------------------------------------------------------- */

static char *deep_folder(size_t len)
{
    char part[201];
    memset(part, 'p', 200);
    part[200] = '\0';
    int at = open(root, O_RDONLY | O_DIRECTORY);
    char *path = support_path("%s", root);
    while (strlen(path) < len) {
        size_t left = len - strlen(path);
        if (left <= 201)
            part[left - 1 ? left - 1 : 1] = '\0';
        assert_true(mkdirat(at, part, 0777) == 0 || errno == EEXIST);
        int next = openat(at, part, O_RDONLY | O_DIRECTORY);
        close(at);
        at = next;
        char *longer = support_path("%s/%s", path, part);
        free(path);
        path = longer;
    }
    close(at);
    return path;
}

static void test_long_paths(void **state)
{
    (void)state;
    char *deep = deep_folder(4000), *tree = deep_folder(3900);
    char *dst = support_path("%s/d", deep), *other = support_path("%s/e", deep), *shorter = support_path("%s/d", tree),
         *long_source = support_path("%s/s", tree);
    support_result r = run(NULL, NULL, ARGS("ingest", source, shorter, "-q"));
    support_assert_cheap(&r);
    assert_true(r.status == 0); /* room for the longest of its own names */
    support_result_free(&r);
    const char *const *const commands[] = {
        ARGS("verify", shorter, "-q"),
        ARGS("inspect", shorter),
        ARGS("replay", shorter, "--global-batch", "8"),
        ARGS("sample", long_source, "--layout", "imagenette", "--images", "20", "-q"),
        ARGS("ingest", source, dst, "-q"),
        ARGS("ingest", long_source, "from-long", "-q"),
        ARGS("export", shorter, "back", "-q"),
        ARGS("export", ds, other, "-q"),
        ARGS("train", ds, "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16", "--layers", "1",
             "--heads", "2", "--mlp", "32", "--batch", "8", "--steps", "1", "--quiet", "--output", dst),
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        r = run(NULL, NULL, commands[i]);
        support_assert_cheap(&r);
        if (r.status && !strstr(r.err, "too long"))
            fail_msg("%s: %s", commands[i][0], r.err);
        support_result_free(&r);
    }
    r = run(NULL, deep, ARGS("ingest", source, "x", "-q")); /* paths that are relative have room */
    support_assert_status(&r, 0);
    support_result_free(&r);
    char *name = support_path("%s/%0300d", root, 1); /* one part that no file system takes */
    support_expect_refusal(run(NULL, NULL, ARGS("ingest", source, name)), "too long");
    support_expect_refusal(run(NULL, NULL, ARGS("verify", name)), "too long");
    free(name);
    free(long_source);
    free(shorter);
    free(dst);
    free(other);
    free(tree);
    free(deep);
}

/* ---- time and language ------------------------------------------------------------------------------------------- */

static void expect_same_dataset(const char *const *front, const char *name)
{
    char *dst = support_path("%s/%s", root, name);
    const char *const *const commands[] = {
        ARGS("ingest", source, dst, "-q", "--max-rejects", "0.5%"),
        ARGS("verify", dst, "--deep", "-q"),
        ARGS("train", dst, "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16", "--layers", "1",
             "--heads", "2", "--mlp", "32", "--batch", "8", "--steps", "2", "--lr", "0.05", "--output", "run",
             "--quiet"),
        ARGS("eval", dst, "run", "--split", "train"),
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        support_result r = run(front, NULL, commands[i]);
        support_assert_status(&r, 0);
        support_result_free(&r);
    }
    assert_true(support_dataset_hash(dst) == expected);
    char *trained = support_path("%s/run", root);
    support_tmpdir_remove(trained);
    free(dst);
}

static void test_clocks(void **state)
{
    (void)state;
    /* 1970; 2105, near the end of 32 bits, and 2106 after it; before 1970 */
    static const char *const times[] = {"0", "1", "4291747200", "4294967297", "-1"};
    char *images = support_path("find '%s' -type f -exec touch -d @-5 {} +", source);
    assert_int_equal(system(images), 0); /* files older than time */
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char *clock = support_path("MILLRACE_TEST_CLOCK=%s", times[i]), *name = support_path("clock-%zu", i);
        expect_same_dataset(
            ARGS("env", clock, "ASAN_OPTIONS=verify_asan_link_order=0", "LD_PRELOAD=" MILLRACE_TEST_CLOCK), name);
        free(clock);
        free(name);
    }
    free(images);
}

/* A country that writes 0,5 and one where i and I are two letters. */
static void test_languages(void **state)
{
    (void)state;
    static const char *const languages[] = {"de_DE", "tr_TR"};
    char *place = support_path("LOCPATH=%s", root);
    for (size_t i = 0; i < 2; i++) {
        char *command =
            support_path("localedef -i %s -f UTF-8 '%s/%s.UTF-8' >/dev/null 2>&1", languages[i], root, languages[i]);
        char *language = support_path("LC_ALL=%s.UTF-8", languages[i]);
        bool made = system(command) == 0;
        if (!made)
            support_cannot(languages[i], "no localedef, or nothing for it to read (package locales)");
        expect_same_dataset(ARGS("env", place, language), languages[i]);
        /* The library in a program that has set its language. */
        setenv("LOCPATH", root, 1);
        if (!setlocale(LC_ALL, language + 7) && made)
            fail_msg("%s was made and cannot be set", language);
        mr_dataset *opened;
        mr_error err;
        if (mr_dataset_open(ds, &opened, &err) != MR_OK)
            fail_msg("%s", err.text);
        mr_dataset_free(opened);
        setlocale(LC_ALL, "C");
        free(language);
        free(command);
    }
    free(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_paths),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_languages),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
