/* test_verify_messages.c - what verify prints about intact shards: defective pictures that were stored as they were,
 * foreign files beside shards, links, ranks that read different datasets.
 * Invariant tested: intact bytes are not called damaged, what was not checked is not called intact, and each
 * suggested remedy works. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/shards/dataset_maker.h"
#include "tests/support/shards/shard.h"

typedef struct scene {
    char *dir, *ds;
} scene;

static int set_up(void **state)
{
    scene *s = calloc(1, sizeof *s);
    s->dir = support_tmpdir();
    s->ds = support_path("%s/ds", s->dir);
    assert_int_equal(mkdir(s->ds, 0777), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    scene *s = *state;
    support_tmpdir_remove(s->dir);
    free(s->ds);
    free(s);
    return 0;
}

/* Each of the words is said, or, with a '!' before it, is not. */
static void expect(int status, const char *const *words, const char *option, const char *ds)
{
    support_result r = support_millrace("verify", ds, option, (char *)NULL);
    support_assert_status(&r, status);
    for (; *words; words++) {
        bool unwanted = **words == '!';
        const char *word = *words + unwanted;
        if (unwanted == (strstr(r.out, word) || strstr(r.err, word)))
            fail_msg("\"%s\" is %sin:\n%s%s", word, unwanted ? "" : "not ", r.out, r.err);
    }
    support_result_free(&r);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- one rank --------------------------------------------------------------------------------------------------- */

static void test_quick(void **state)
{
    const scene *s = *state;
    draw_dataset(s->ds);
    expect(0, WORDS(": intact as far as checked\n"), "--quick", s->ds);
    expect(0, WORDS(": intact\n"), "--deep", s->ds);
}

/* A picture that cannot be decoded, and two more samples that share it. */
static void test_unsound_and_shared(void **state)
{
    const scene *s = *state;
    picture p = make_png(40, 40, 2, 8, false), good = make_png(9, 9, 2, 8, false);
    p.bytes[png_chunk(p, "IDAT") + 8 + 20] ^= 0xFF;
    png_mend(p);
    const made samples[4] = {{"a.png", good, NULL, false, 0},
                             {"b.png", p, NULL, false, 0},
                             {"c.png", p, NULL, true, 1},
                             {"d.png", p, NULL, true, 1}};
    const made_split split = {"train", samples, 4, 4};
    dataset_make(s->ds, &split, 1);
    expect(0, WORDS(": intact\n"), "--deep", s->ds);
    expect(1,
           WORDS("train-00000: contains undecodable images, 3 of 4 samples cannot be decoded, 1 intact",
                 "ds: contains undecodable images", "ingest with --check decode",
                 "sample 2 (c.png): its image, stored under sample 1, cannot be decoded", "!damaged"),
           "--decode", s->ds);
    picture_free(&p);
    picture_free(&good);
}

static void put(const scene *s, const char *name)
{
    support_put(s->ds, name, "x");
}

static void test_files_beside(void **state)
{
    const scene *s = *state;
    static const char *const harmless[] = {
        "._train-00000.mdb",
        ".-00000.mdb",
        "data.mdb",
        "lock.mdb",
        "train.idx",
        "train-0000.idx",
        "train-00000x.idx",
        "train-00000.idx.mdb",
        "tra in-00000.mdb",
        "-00000.mdb",
        "a-split-of-a-name-that-is-much-longer-than-any-split-of-a-dataset-can-have-00000.mdb",
    };
    draw_dataset(s->ds);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        put(s, harmless[i]);
        expect(0, WORDS(harmless[i], ": is not part of the dataset", "ds: intact\n"), "--deep", s->ds);
    }
    put(s, "val-00001.mdb");
    expect(1,
           WORDS("val-00001.mdb: is not a shard of the manifest", "ds: intact, but 1 unexpected file\n", "next: move ",
                 "!damaged"),
           "--deep", s->ds);
    put(s, "val-100000.idx");
    expect(1, WORDS("ds: intact as far as checked, but 2 unexpected files\n"), "--quick", s->ds);
    const char *other = "--expect=0000000000000000000000000000000000000000000000000000000000000000";
    expect(1, WORDS("ds: intact, but not the expected dataset, and 2 unexpected files\n", "next: move "), other, s->ds);
    char *mdb = support_path("%s/val-00000.mdb", s->ds);
    assert_int_equal(truncate(mdb, 4096), 0);
    expect(1, WORDS("ds: damaged, 1 of 3 shards", "next: restore the damaged", "next: move "), "--deep", s->ds);
    free(mdb);
}

/* As readers do, and `millrace seek`: the bytes prove themselves, wherever they lie. */
static void test_linked_seek_index(void **state)
{
    const scene *s = *state;
    draw_dataset(s->ds);
    char *path = support_path("%s/train-00001.seek", s->ds), *away = support_path("%s/away", s->dir);
    support_expect(0, "seek", "-q", s->ds, (char *)NULL);
    assert_int_equal(rename(path, away), 0);
    assert_int_equal(symlink(away, path), 0);
    expect(0, WORDS("with 3 seek indexes"), "--decode", s->ds);
    unlink(path);
    assert_int_equal(symlink("train-00001.seek", path), 0); /* to itself */
    expect(1, WORDS("only its seek index is damaged", "next: millrace seek "), "--deep", s->ds);
    support_expect(0, "seek", "-q", s->ds, (char *)NULL);
    expect(0, WORDS("with 3 seek indexes"), "--decode", s->ds);
    free(path);
    free(away);
}

/* The FIFO's reader is the shell itself, before the program starts: one in the background may come later than the
 * program, which does not wait for it. The pipe holds the whole report. */
#define OPEN_TO_READ "exec 3<>fifo 4<fifo 3>&-; "

/* Where nothing can be taken back there is one report, the last word. */
static void test_one_report(void **state)
{
    const scene *s = *state;
    static const char *const lines[] = {
        OPEN_TO_READ "\"$0\" verify ds -q --junit fifo && cat <&4 >got",
        OPEN_TO_READ "ln -s fifo link && \"$0\" verify ds -q --junit link && cat <&4 >got",
        "\"$0\" verify ds -q --junit /dev/stdout >got",
        "\"$0\" verify ds -q --junit /dev/stdout | cat >got",
    };
    char *fifo = support_path("%s/fifo", s->dir), *got = support_path("%s/got", s->dir);
    draw_dataset(s->ds);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *argv[] = {"sh", "-c", lines[i], support_millrace_path(), NULL};
        support_result r = support_run(argv, &(support_limits){.directory = s->dir});
        support_assert_status(&r, 0);
        char *text = (char *)support_read(got, NULL);
        if (support_occurrences(text, "<?xml") != 1 || support_occurrences(text, "</testsuites>\n") != 1 ||
            strstr(text, "<error"))
            fail_msg("%s: %s", lines[i], text);
        free(text);
        support_result_free(&r);
    }
    free(got);
    free(fifo);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------ */

/* Two ranks, each in a folder of its own, on what is "ds" there; `other`: an option of the second alone. */
static support_result two_places(const scene *s, const char *other_dir, const char *command, const char *option,
                                 const char *other)
{
    const char *m = support_millrace_path();
    return support_mpirun(1, (const char *[]){"--wdir", s->dir, m, command, "ds", option, ":", "-n", "1", "--wdir",
                                              other_dir, m, command, "ds", other, NULL});
}

static void test_ranks_read_different_datasets(void **state)
{
    const scene *s = *state;
    char *beside = support_path("%s/beside", s->dir), *ds = support_path("%s/ds", beside);
    char *xml = support_path("%s/verify.xml", s->dir), *junit = support_path("--junit=%s", xml);
    draw_dataset(s->ds);
    assert_int_equal(mkdir(beside, 0777), 0);
    assert_int_equal(mkdir(ds, 0777), 0);
    picture p = make_png(9, 9, 2, 8, false);
    const made sample = {"p.png", p, NULL, false, 0};
    const made_split split = {"train", &sample, 1, 1};
    dataset_make(ds, &split, 1);
    picture_free(&p);
    const struct {
        const char *command, *option, *other;
    } tries[] = {
        {"verify", junit, "-q"}, {"seek", "--force", "--force"}, {"replay", "--global-batch=2", "--global-batch=2"}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        support_result r = two_places(s, beside, tries[i].command, tries[i].option, tries[i].other);
        support_assert_status(&r, 1);
        if (!strstr(r.err, "rank 1 reads the dataset ") || strstr(r.err, "Signal") || strstr(r.out, "intact"))
            fail_msg("%s%s", r.out, r.err);
        support_result_free(&r);
    }
    char *text = (char *)support_read(xml, NULL);
    assert_non_null(strstr(text, "errors=\"1\""));
    assert_non_null(strstr(text, "<error message=\"mpirun: rank 1 reads the dataset "));
    free(text);
    free(junit);
    free(xml);
    free(ds);
    free(beside);
}

/* What only rank 1 sees is told, and what both see is told once. */
static void test_ranks_read_the_same_dataset(void **state)
{
    const scene *s = *state;
    char *path = support_path("%s/manifest.json", s->ds);
    size_t len;
    draw_dataset(s->ds);
    uint8_t *text = support_read(path, &len);
    text[len] = '\n'; /* where its NUL was */
    support_write(path, text, len + 1);
    char *beside = support_path("%s/beside", s->dir);
    const char *copy[] = {"sh", "-c", "mkdir beside && cp -r ds beside && for f in beside/ds/*.idx; do : >$f; done",
                          NULL};
    support_result r = support_run(copy, &(support_limits){.directory = s->dir});
    support_assert_status(&r, 0);
    support_result_free(&r);
    static const char expect_other[] = "--expect=0000000000000000000000000000000000000000000000000000000000000000";
    r = two_places(s, beside, "verify", expect_other, expect_other);
    support_assert_status(&r, 1);
    if (support_occurrences(r.out, "  expect ") != 1 || support_occurrences(r.out, "  manifest ") != 1 ||
        support_occurrences(r.out, "train-00001.idx: has 0 bytes") != 1)
        fail_msg("%s", r.out);
    support_result_free(&r);
    free(beside);
    free(text);
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_quick),
        TEST(test_unsound_and_shared),
        TEST(test_files_beside),
        TEST(test_linked_seek_index),
        TEST(test_one_report),
        TEST(test_ranks_read_different_datasets),
        TEST(test_ranks_read_the_same_dataset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
