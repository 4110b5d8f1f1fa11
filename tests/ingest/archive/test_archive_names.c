/* test_archive_names.c - names in archives as extractors take them: written in many ways, and more than once.
 * Invariant: an archive gives the files that unpacking it into an empty folder gives, wherever the names stay in it.
 * Covers source/settle.c and source/links.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "ingest/source/source.h"
#include "tests/support/sources/archive.h"
#include "tests/support/images/image.h"
#include "tests/support/support.h"

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

/* ---- what a source holds, as text ------------------------------------------------------------------------------- */

/* "path=contents;" for every entry, then "\nkind path: detail" for every note. */
static char *listed(char *const *srcs, size_t count, bool with_notes)
{
    mr_source_options o = {.quiet = true};
    mr_notes notes = {0};
    mr_source *s = NULL;
    mr_error err;
    mr_buf out = {0}, bytes = {0};
    if (mr_source_open(srcs, count, -1, &o, &notes, &s, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < mr_source_count(s); i++) {
        mr_buf_printf(&out, "%s=", mr_source_entry(s, i)->path);
        assert_int_equal(mr_source_read(s, i, &bytes, &err), MR_OK);
        mr_buf_add(&out, bytes.data, bytes.len);
        mr_buf_add_text(&out, ";");
    }
    for (size_t i = 0; i < notes.count && with_notes; i++) {
        const mr_note *n = &notes.items[i];
        const char *slash = strrchr(n->path, '/'), *name = n->kind == MR_NOTE_INFO && slash ? slash + 1 : n->path;
        mr_buf_printf(&out, "\n%s %s: %s", mr_note_words[n->kind], name, n->detail);
    }
    mr_buf_text(&out);
    mr_buf_free(&bytes);
    mr_source_free(s);
    mr_notes_free(&notes);
    return (char *)out.data;
}

static void expect(char *const *srcs, size_t count, const char *expected)
{
    char *found = listed(srcs, count, true);
    assert_string_equal(found, expected);
    free(found);
}

static void expect_archive(const char *kind, const support_entry *entries, size_t count, const char *expected)
{
    char *path = support_path("%s/x.%s", dir, kind);
    support_archive(path, kind, entries, count);
    expect(&path, 1, expected);
    free(path);
}

/* ---- one name, written in many ways ------------------------------------------------------------------------------ */

static void test_names_are_as_they_are_unpacked(void **state)
{
    static const char *const kinds[] = {"tar", "tar.gz", "zip", "7z", "cpio"};
    static const support_entry entries[] = {
        {.path = "/top/a", .bytes = "1", .len = 1},    {.path = "top//b", .bytes = "2", .len = 1},
        {.path = "./top/./c", .bytes = "3", .len = 1}, {.path = ".//top/d", .bytes = "4", .len = 1},
        {.path = "top/e/.", .bytes = "5", .len = 1},   {.path = "//top///f", .bytes = "6", .len = 1},
        {.path = "/../g", .bytes = "7", .len = 1},     {.path = "top/../../h", .bytes = "8", .len = 1},
        {.path = "...", .bytes = "9", .len = 1},
    };
    (void)state;
    for (size_t k = 0; k < MR_COUNT(kinds); k++)
        expect_archive(kinds[k], entries, MR_COUNT(entries),
                       "...=9;top/a=1;top/b=2;top/c=3;top/d=4;top/e=5;top/f=6;\n"
                       "bad_names ../g: the name leads out of the tree (..)\n"
                       "bad_names top/../../h: the name leads out of the tree (..)");
}

static void test_links_use_the_same_names(void **state)
{
    static const support_entry entries[] = {
        {.path = "/top/a", .bytes = "1", .len = 1},
        {.path = "top//hard", .hard_link = "/top//a"},
        {.path = "./top//soft", .link = ".//a"},
        {.path = "up", .hard_link = "/../top/a"},
    };
    (void)state;
    expect_archive("tar", entries, MR_COUNT(entries),
                   "top/a=1;top/hard=1;top/soft=1;\nlinks up: a hard link out of the tree");
}

/* A tar of /data/train and of val/: the advice, followed as it is written, takes both. */
static void test_the_advice_for_absolute_names(void **state)
{
    picture small = make_png(5, 4, 2, 8, false), large = make_png(7, 4, 2, 8, false);
    const support_entry entries[] = {{.path = "/data/train/cat/1.png", .bytes = small.bytes, .len = small.len},
                                     {.path = "val/cat/1.png", .bytes = large.bytes, .len = large.len}};
    char *path = support_path("%s/x.tar", dir), *to = support_path("%s/to", dir);
    (void)state;
    support_archive(path, "tar", entries, 2);
    support_expect_refusal(support_millrace("ingest", path, to, "--quiet", (char *)NULL),
                           "beside the split folders; --split-map data/train=train includes what is in it");
    support_expect(0, "ingest", path, to, "--quiet", "--split-map", "data/train=train", (char *)NULL);
    support_expect(0, "show", to, "train", "0", (char *)NULL);
    support_expect(0, "show", to, "val", "0", (char *)NULL);
    free(path);
    free(to);
    picture_free(&small);
    picture_free(&large);
}

/* ---- one name, more than once ------------------------------------------------------------------------------------ */

static void test_the_last_entry_counts(void **state)
{
    static const char *const kinds[] = {"tar", "tar.gz", "zip", "zip-deflate", "7z", "cpio"};
    static const support_entry entries[] = {
        {.path = "a", .bytes = "old", .len = 3},     {.path = "b", .bytes = "once", .len = 4},
        {.path = "./a", .bytes = "newer", .len = 5}, {.path = "c", .bytes = "1", .len = 1},
        {.path = "a", .bytes = "newest", .len = 6},  {.path = "/c", .bytes = "2", .len = 1},
    };
    (void)state;
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        char *words = support_path("a=newest;b=once;c=2;\nnotes x.%s: 3 of its entries are replaced by a later one of "
                                   "the same name, as when it is unpacked; first: a",
                                   kinds[k]);
        expect_archive(kinds[k], entries, MR_COUNT(entries), words);
        free(words);
    }
}

/* If two sources have the name, that of the first counts, and in it the last entry. */
static void test_the_first_source_counts(void **state)
{
    static const support_entry one[] = {{.path = "a", .bytes = "1", .len = 1}, {.path = "a", .bytes = "22", .len = 2}},
                               two[] = {{.path = "a", .bytes = "333", .len = 3},
                                        {.path = "/a", .bytes = "4444", .len = 4},
                                        {.path = "b", .bytes = "5", .len = 1}};
    char *srcs[] = {support_path("%s/one.tar", dir), support_path("%s/two.zip", dir)};
    (void)state;
    support_archive(srcs[0], "tar", one, MR_COUNT(one));
    support_archive(srcs[1], "zip", two, MR_COUNT(two));
    expect(srcs, 2,
           "a=22;b=5;\ncollisions a: an earlier file of this name (2 bytes) is kept\n"
           "notes one.tar: 1 of its entries is replaced by a later one of the same name, as when it is unpacked; "
           "first: a\n"
           "notes two.zip: 1 of its entries is replaced by a later one of the same name, as when it is unpacked; "
           "first: a");
    free(srcs[0]);
    free(srcs[1]);
}

/* A folder in place of a file, as tar -r appends it; a file in the way of an earlier folder cannot be unpacked. */
static void test_files_and_folders_of_one_name(void **state)
{
    static const support_entry entries[] = {
        {.path = "a", .bytes = "1", .len = 1},   {.path = "a/b", .bytes = "2", .len = 1},
        {.path = "a-b", .bytes = "3", .len = 1}, {.path = "a/c/d", .bytes = "4", .len = 1},
        {.path = "e/f", .bytes = "5", .len = 1}, {.path = "e", .bytes = "6", .len = 1},
    };
    (void)state;
    expect_archive("tar", entries, MR_COUNT(entries),
                   "a-b=3;a/b=2;a/c/d=4;e=6;\ncollisions e/f: a file has the name of its folder\n"
                   "notes x.tar: 1 of its entries is replaced by a later one of the same name, as when it is unpacked; "
                   "first: a");
}

static void test_names_that_differ_in_case_are_said(void **state)
{
    static const support_entry entries[] = {
        {.path = "B/x", .bytes = "1", .len = 1},      {.path = "a.CLS", .bytes = "2", .len = 1},
        {.path = "a.cls", .bytes = "3", .len = 1},    {.path = "b/X", .bytes = "4", .len = 1},
        {.path = "b/x", .bytes = "5", .len = 1},      {.path = "\xC3\x84", .bytes = "6", .len = 1},
        {.path = "\xC3\xA4", .bytes = "7", .len = 1},
    };
    (void)state;
    expect_archive("tar", entries, MR_COUNT(entries),
                   "B/x=1;a.CLS=2;a.cls=3;b/X=4;b/x=5;\xC3\x84=6;\xC3\xA4=7;\n"
                   "notes x: b/X differs only in case (3 such names in total): two files here, but only one on a "
                   "case-insensitive file system");
}

/* What the second source loses is a reject, and printed with --quiet, too. */
static void test_equal_names_of_sources_are_rejects(void **state)
{
    picture small = make_png(5, 4, 2, 8, false), large = make_png(7, 4, 2, 8, false);
    const support_entry one[] = {{.path = "cat/1.png", .bytes = small.bytes, .len = small.len}},
                        two[] = {{.path = "cat/1.png", .bytes = large.bytes, .len = large.len},
                                 {.path = "dog/1.png", .bytes = large.bytes, .len = large.len}};
    char *srcs[] = {support_path("%s/one.tar", dir), support_path("%s/two.tar", dir)};
    char *to = support_path("%s/to", dir);
    (void)state;
    support_archive(srcs[0], "tar", one, 1);
    support_archive(srcs[1], "tar", two, 2);
    support_expect_refusal(support_millrace("ingest", srcs[0], srcs[1], to, "--quiet", (char *)NULL),
                           "1 of 3 images are rejected");
    support_result r = support_millrace("ingest", srcs[0], srcs[1], to, "--quiet", "--max-rejects", "1", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.err, "1 duplicate name"));
    support_result_free(&r);
    for (int i = 0; i < 2; i++)
        free(srcs[i]);
    free(to);
    picture_free(&small);
    picture_free(&large);
}

/* A hard link keeps the bytes that its target had where it stands. */
static void test_hard_links_to_replaced_entries(void **state)
{
    static const support_entry entries[] = {
        {.path = "a", .bytes = "1", .len = 1}, {.path = "b", .hard_link = "a"},
        {.path = "a", .bytes = "2", .len = 1}, {.path = "c", .hard_link = "a"},
        {.path = "d", .bytes = "x", .len = 1}, {.path = "d", .hard_link = "c"},
        {.path = "e", .hard_link = "a"},       {.path = "e", .bytes = "5", .len = 1},
    };
    (void)state;
    expect_archive(
        "tar", entries, MR_COUNT(entries),
        "a=2;b=1;c=2;d=2;e=5;\nnotes x.tar: 3 of its entries are replaced by a later one of the same name, as "
        "when it is unpacked; first: a");
}

/* A symbolic link is what its target is at the end; one that leads nowhere leaves nothing of what it replaces. */
static void test_symbolic_links_and_replaced_entries(void **state)
{
    static const char *const kinds[] = {"tar", "zip"};
    static const support_entry entries[] = {
        {.path = "a", .bytes = "1", .len = 1},
        {.path = "b", .link = "a"},
        {.path = "a", .bytes = "2", .len = 1},
        {.path = "c", .bytes = "x", .len = 1},
        {.path = "c", .link = "a"},
        {.path = "d", .bytes = "y", .len = 1},
        {.path = "d", .link = "nothing"},
        {.path = "e", .link = "d"},
        {.path = "f", .link = "nothing"},
        {.path = "f", .bytes = "z", .len = 1},
        {.path = "g", .link = "nothing"},
        {.path = "g", .link = "a"},
        {.path = "h", .link = "a"},
        {.path = "h", .link = "nothing"},
    };
    (void)state;
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        char *words = support_path("a=2;b=2;c=2;f=z;g=2;\n"
                                   "links d: a link to something that is not a file of the tree\n"
                                   "links e: a link to something that is not a file of the tree\n"
                                   "links h: a link to something that is not a file of the tree\n"
                                   "notes x.%s: 6 of its entries are replaced by a later one of the same name, as when "
                                   "it is unpacked; first: a",
                                   kinds[k]);
        expect_archive(kinds[k], entries, MR_COUNT(entries), words);
        free(words);
    }
}

/* ---- archives that tar and zip updated --------------------------------------------------------------------------- */

enum { NAMES = 9, ROUNDS = 12, STEPS = 6 };

static const char *const names[NAMES] = {"a", "b", "c d", "d1/e", "d1/f", "d1/d2/g", "h", "d3/i", "d3/j"};

static bool have(const char *program)
{
    support_result r = support_run((const char *const[]){program, program[0] == 't' ? "--version" : "-v", NULL}, NULL);
    bool there = r.status == 0;
    support_result_free(&r);
    return there;
}

static void run_in(const char *tree, const char *const *argv)
{
    support_result r = support_run(argv, &(support_limits){.directory = tree});
    if (r.status != 0 && !(argv[0][0] == 'z' && r.status == 12)) /* zip: nothing to do */
        fail_msg("%s: %s%s", argv[0], r.out, r.err);
    support_result_free(&r);
}

/* A step takes a name away from whatever had it, and gives it to a file, a hard link or a symbolic link. */
static void change(const char *tree, mr_random *random, bool hard_links, time_t now)
{
    static const char *const leads[] = {"b", "../a", "e", "d1/f", "nothing", "../../h"};
    char *path = support_path("%s/%s", tree, names[mr_random_below(random, NAMES)]);
    uint64_t kind = mr_random_below(random, 6);
    if (unlink(path) != 0 && errno == EISDIR) /* a folder stays one */
        kind = 5;
    if (kind == 5 && !support_exists(path))
        assert_int_equal(mkdir(path, 0755), 0);
    if (kind == 5) {
        char *inside = support_path("%s/in", path);
        free(path);
        path = inside;
        unlink(path);
    }
    char *other = support_path("%s/%s", tree, names[mr_random_below(random, NAMES)]);
    struct stat st;
    if (kind == 0)
        assert_int_equal(symlink(leads[mr_random_below(random, MR_COUNT(leads))], path), 0);
    else if (kind == 1 && hard_links && lstat(other, &st) == 0 && S_ISREG(st.st_mode))
        assert_int_equal(link(other, path), 0);
    else {
        char *text = support_path("%ld-%u", (long)now, (unsigned)mr_random_below(random, 1000));
        support_write_text(path, text);
        free(text);
    }
    const struct timespec times[] = {{.tv_sec = now}, {.tv_sec = now}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
    free(other);
    free(path);
}

static void make_tree(const char *tree, time_t now)
{
    for (size_t i = 0; i < NAMES; i++) {
        char *path = support_path("%s/%s", tree, names[i]);
        support_write_text(path, names[i]);
        const struct timespec times[] = {{.tv_sec = now}, {.tv_sec = now}};
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        free(path);
    }
}

static void expect_like_folder(const char *tree, char *archive, int round)
{
    char *srcs[] = {(char *)tree}, *folder = listed(srcs, 1, false), *packed = listed(&archive, 1, false);
    if (strcmp(folder, packed) != 0)
        fail_msg("round %d:\n%s\n%s", round, folder, packed);
    free(folder);
    free(packed);
}

static void test_updated_tars(void **state)
{
    static const char *const updates[] = {"-rf", "-uf"};
    mr_random random = support_random();
    (void)state;
    if (!have("tar")) {
        support_cannot("archives that tar updates", "tar is not installed");
        return;
    }
    for (int round = 0; round < ROUNDS; round++) {
        char *tree = support_path("%s/tree%d", dir, round), *archive = support_path("%s/%d.tar", dir, round);
        time_t now = 1000000000;
        make_tree(tree, now);
        run_in(tree, (const char *const[]){"tar", "-cf", archive, "a", "b", ".", NULL});
        for (int step = 0; step < STEPS; step++) {
            for (int i = 0; i < 3; i++)
                change(tree, &random, true, now += 10);
            run_in(tree, (const char *const[]){"tar", updates[mr_random_below(&random, 2)], archive, ".", NULL});
            expect_like_folder(tree, archive, round);
        }
        free(tree);
        free(archive);
    }
}

static void test_updated_zips(void **state)
{
    static const char *const updates[] = {"-ryq", "-ruyq"};
    mr_random random = support_random();
    (void)state;
    if (!have("zip")) {
        support_cannot("archives that zip updates", "zip is not installed");
        return;
    }
    for (int round = 0; round < ROUNDS; round++) {
        char *tree = support_path("%s/tree%d", dir, round), *archive = support_path("%s/%d.zip", dir, round);
        time_t now = 1000000000;
        make_tree(tree, now);
        run_in(tree, (const char *const[]){"zip", "-ryq", archive, ".", NULL});
        for (int step = 0; step < STEPS; step++) {
            for (int i = 0; i < 3; i++)
                change(tree, &random, false, now += 10);
            run_in(tree, (const char *const[]){"zip", updates[mr_random_below(&random, 2)], archive, ".", NULL});
            expect_like_folder(tree, archive, round);
        }
        free(tree);
        free(archive);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_names_are_as_they_are_unpacked),
        TEST(test_links_use_the_same_names),
        TEST(test_the_advice_for_absolute_names),
        TEST(test_the_last_entry_counts),
        TEST(test_the_first_source_counts),
        TEST(test_names_that_differ_in_case_are_said),
        TEST(test_files_and_folders_of_one_name),
        TEST(test_equal_names_of_sources_are_rejects),
        TEST(test_hard_links_to_replaced_entries),
        TEST(test_symbolic_links_and_replaced_entries),
        TEST(test_updated_tars),
        TEST(test_updated_zips),
    };
    return cmocka_run_group_tests_name("source_archive_names", tests, NULL, NULL);
}
