/* test_links.c - links of folders and archives are other names for files of the tree, by one rule for both; and
 * names are bytes in both.
 * Invariant tested: a folder and its tar give the same files and the same notes, whatever its links and names say. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "ingest/source/source.h"
#include "tests/support/support.h"
#include "tests/support/sources/archive.h"

typedef struct tree {
    mr_notes notes;
    mr_source *source;
    mr_buf dump; /* "path=contents;" for every entry, then "path: note;" for every note */
} tree;

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

static void dump(tree *t)
{
    mr_buf bytes = {0};
    mr_error err;
    for (uint32_t i = 0; i < mr_source_count(t->source); i++) {
        const mr_entry *e = mr_source_entry(t->source, i);
        if (mr_source_read(t->source, i, &bytes, &err) != MR_OK)
            fail_msg("%s: %s", e->path, err.text);
        mr_buf_printf(&t->dump, "%s=%.*s;", e->path, (int)bytes.len, (char *)bytes.data);
    }
    mr_buf_free(&bytes);
}

static tree opened(char *const *srcs, size_t count, const mr_source_options *o)
{
    tree t = {0};
    mr_error err;
    if (mr_source_open(srcs, count, -1, o, &t.notes, &t.source, &err) != MR_OK)
        fail_msg("%s: %s", srcs[0], err.text);
    dump(&t);
    for (size_t i = 0; i < t.notes.count; i++)
        mr_buf_printf(&t.dump, "\n%d %s: %s", t.notes.items[i].kind, t.notes.items[i].path, t.notes.items[i].detail);
    mr_buf_text(&t.dump);
    return t;
}

static void closed(tree *t)
{
    mr_source_free(t->source);
    mr_notes_free(&t->notes);
    mr_buf_free(&t->dump);
}

/* The entries as a folder on disk; in their order, so that what a link leads to may be missing. */
static char *folder(const char *name, const support_entry *entries, size_t count)
{
    char *root = support_path("%s/%s", dir, name);
    for (size_t i = 0; i < count; i++) {
        char *path = support_path("%s/%s", root, entries[i].path);
        support_write(path, "", 0); /* and its folder */
        if (entries[i].link) {
            assert_int_equal(unlink(path), 0);
            assert_int_equal(symlink(entries[i].link, path), 0);
        } else {
            support_write(path, entries[i].bytes, entries[i].len);
        }
        free(path);
    }
    return root;
}

static void same_from_both(const support_entry *entries, size_t count, const mr_source_options *o, const char *expected)
{
    static const char *const kinds[] = {"tar", "tar.gz", "zip"};
    char *root = folder("tree", entries, count);
    tree a = opened(&root, 1, o);
    if (strncmp((char *)a.dump.data, expected, strlen(expected)) != 0)
        fail_msg("%s\nis not %s", (char *)a.dump.data, expected);
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        char *archive = support_path("%s/x.%s", dir, kinds[k]);
        support_archive(archive, kinds[k], entries, count);
        tree b = opened(&archive, 1, o);
        if (strcmp((char *)a.dump.data, (char *)b.dump.data) != 0)
            fail_msg("the folder: %s\n\n%s: %s", (char *)a.dump.data, kinds[k], (char *)b.dump.data);
        closed(&b);
        free(archive);
    }
    closed(&a);
    free(root);
}

static const mr_source_options quiet = {.quiet = true};

#define COPY "; `cp -rL` copies what it leads to"

static void test_one_rule(void **state)
{
    (void)state;
    const support_entry entries[] = {
        {.path = "b/real", .bytes = "1", .len = 1},
        {.path = "a/up", .link = "../b/real"},
        {.path = "c", .link = "a//./up"},
        {.path = "d", .link = "./c"},
        {.path = "dir", .link = "b"},
        {.path = "through", .link = "dir/real"},
        {.path = "to-dir", .link = "dir"},
        {.path = "me", .link = "me"},
        {.path = "gone", .link = "nothing"},
        {.path = "p", .link = "q"},
        {.path = "q", .link = "p"},
        {.path = "into", .link = "p"},
        {.path = "to-gone", .link = "gone"},
        {.path = "b/above", .link = "../b"},
    };
    same_from_both(entries, MR_COUNT(entries), &quiet,
                   "a/up=1;b/real=1;c=1;d=1;\n"
                   "1 b/above: a link to a folder: not followed" COPY "\n"
                   "1 dir: a link to a folder: not followed" COPY "\n"
                   "1 gone: a link to something that is not a file of the tree\n"
                   "1 into: a link to itself, or into a loop of links\n"
                   "1 me: a link to itself, or into a loop of links\n"
                   "1 p: a link to itself, or into a loop of links\n"
                   "1 q: a link to itself, or into a loop of links\n"
                   "1 through: a link through a link that is not followed" COPY "\n"
                   "1 to-dir: a link to a folder: not followed" COPY "\n"
                   "1 to-gone: a link to something that is not a file of the tree");
}

/* Out of the tree nothing is followed, and an archive cannot know what there is; of a folder it is said. */
static void test_out_of_the_tree(void **state)
{
    (void)state;
    char *absolute = support_path("%s/tree/real", dir), *secret = support_path("%s/secret", dir),
         *folders = support_path("%s/classes/dog/1.jpg", dir), *dogs = support_path("%s/classes/dog", dir);
    const support_entry entries[] = {
        {.path = "real", .bytes = "1", .len = 1},
        {.path = "absolute", .link = absolute},
        {.path = "dog", .link = dogs},
        {.path = "dog2", .link = "../classes/dog"},
        {.path = "gone", .link = "../nothing"},
        {.path = "null", .link = "/dev/null"},
        {.path = "out", .link = "../secret"},
        {.path = "slash", .link = "../classes/dog/"},
        {.path = "system", .link = "/etc/passwd"},
        {.path = "through", .link = "dog/1.jpg"},
        {.path = "top", .link = ".."},
        {.path = "top2", .link = "."},
    };
    static const char *const names[] = {"absolute", "dog",   "dog2",   "gone", "null",
                                        "out",      "slash", "system", "top",  "top2"};
    support_write_text(secret, "outside");
    support_write_text(folders, "outside");
    char *root = folder("tree", entries, MR_COUNT(entries)), *archive = support_path("%s/x.tar", dir);
    tree t = opened(&root, 1, &quiet);
#define DOG "a link to a folder outside the tree: not followed" COPY "\n"
#define OUT "a link to a file outside the tree: not followed\n"
    assert_string_equal((char *)t.dump.data,
                        "real=1;\n1 absolute: " OUT "1 dog: " DOG "1 dog2: " DOG
                        "1 gone: a dangling link out of the tree\n"
                        "1 null: a link to a device, socket or FIFO outside the tree\n1 out: " OUT "1 slash: " DOG
                        "1 system: " OUT "1 through: a link through a link that is not followed" COPY "\n1 top: " DOG
                        "1 top2: a link to a folder outside the tree: not followed" COPY);
    closed(&t);
    support_archive(archive, "tar", entries, MR_COUNT(entries));
    t = opened(&archive, 1, &quiet);
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        char *note = support_path("\n1 %s: a link out of the tree: not followed", names[i]);
        if (!strstr((char *)t.dump.data, note))
            fail_msg("%s\n%s", note, (char *)t.dump.data);
        free(note);
    }
    closed(&t);
    free(archive);
    free(root);
    free(dogs);
    free(folders);
    free(secret);
    free(absolute);
}

/* Neither holds a file: that they are there is known of a folder alone. */
static void test_empty_folders_and_devices(void **state)
{
    (void)state;
    char *root = support_path("%s/tree", dir), *empty = support_path("%s/empty", root),
         *pipe = support_path("%s/pipe", root);
    char *links[] = {support_path("%s/to-empty", root), support_path("%s/to-pipe", root)};
    assert_int_equal(mkdir(root, 0777), 0);
    assert_int_equal(mkdir(empty, 0777), 0);
    assert_int_equal(mkfifo(pipe, 0666), 0);
    assert_int_equal(symlink("empty", links[0]), 0);
    assert_int_equal(symlink("pipe", links[1]), 0);
    tree t = opened(&root, 1, &quiet);
    assert_string_equal((char *)t.dump.data,
                        "\n1 pipe: a device, socket or FIFO\n1 to-empty: a link to a folder: not followed" COPY
                        "\n1 to-pipe: a link to a device, socket or FIFO");
    closed(&t);
    for (int i = 0; i < 2; i++)
        free(links[i]);
    free(pipe);
    free(empty);
    free(root);
}

static void test_long_chains(void **state)
{
    (void)state;
    support_entry entries[50] = {{.path = "000", .bytes = "1", .len = 1}};
    char names[50][4] = {"000"};
    for (unsigned i = 1; i < 50; i++) {
        snprintf(names[i], sizeof names[i], "%03u", i);
        entries[i] = (support_entry){.path = names[i], .link = names[i - 1]};
    }
    char *root = folder("tree", entries, 50);
    tree t = opened(&root, 1, &quiet);
    assert_non_null(strstr((char *)t.dump.data, "040=1;\n1 041: more than 40 links to its target\n"));
    assert_non_null(strstr((char *)t.dump.data, "\n1 049: more than 40 links to its target"));
    closed(&t);
    free(root);
}

/* A link is as large as what it leads to, and its own name says how large it may be. */
static void test_sizes(void **state)
{
    (void)state;
    const support_entry entries[] = {
        {.path = "a.jpg", .bytes = "0123456789A", .len = 11},
        {.path = "a2.jpg", .link = "a.jpg"},
        {.path = "b.txt", .bytes = "0123456789A", .len = 11},
        {.path = "b.jpg", .link = "b.txt"},
        {.path = "b.bin", .link = "b.txt"},
        {.path = "b.csv", .link = "b.txt"},
        {.path = "c.jpg", .bytes = "0123456789", .len = 10},
        {.path = "c2.jpg", .link = "c.jpg"},
    };
    same_from_both(entries, MR_COUNT(entries), &(mr_source_options){.quiet = true, .max_entry = 10},
                   "b.csv=0123456789A;b.txt=0123456789A;c.jpg=0123456789;c2.jpg=0123456789;\n");
}

/* Sources are laid over one another: links lead from each into the others. */
static void test_across_sources(void **state)
{
    (void)state;
    const support_entry files[] = {{.path = "d/real", .bytes = "1", .len = 1}, {.path = "d/here", .link = "far"}};
    const support_entry links[] = {{.path = "one", .link = "d/real"},
                                   {.path = "d/two", .link = "here"},
                                   {.path = "d/far", .bytes = "2", .len = 1}};
    char *folders[] = {folder("one", files, 2), folder("two", links, 3)};
    char *archives[] = {support_path("%s/one.tar", dir), support_path("%s/two.tar", dir)};
    support_archive(archives[0], "tar", files, 2);
    support_archive(archives[1], "tar", links, 3);
    for (int i = 0; i < 4; i++) {
        char *srcs[] = {i & 1 ? folders[0] : archives[0], i & 2 ? folders[1] : archives[1]};
        tree t = opened(srcs, 2, &quiet);
        assert_string_equal((char *)t.dump.data, "d/far=2;d/here=2;d/real=1;d/two=2;one=1;");

        mr_buf packed = {0}; /* as another rank gets it */
        mr_error err;
        tree again = {0};
        assert_int_equal(mr_source_pack(t.source, &packed, &err), MR_OK);
        closed(&t);
        char *spool = support_path("%s/spool", dir);
        support_write_text(spool, "");
        if (mr_source_unpack(&packed, open(spool, O_RDONLY), &again.source, &err) != MR_OK)
            fail_msg("%s", err.text);
        dump(&again);
        assert_string_equal(mr_buf_text(&again.dump), "d/far=2;d/here=2;d/real=1;d/two=2;one=1;");
        closed(&again);
        free(spool);
        mr_buf_free(&packed);
    }
    for (int i = 0; i < 2; i++) {
        free(folders[i]);
        free(archives[i]);
    }
}

/* If two sources have one name, that of the first counts, whether it is a link or a file there; what is linked to that
 * name is what the first has there. */
static void test_the_first_source_has_the_name(void **state)
{
    (void)state;
    const support_entry links[] = {{.path = "c/x", .link = "y"},
                                   {.path = "c/y", .bytes = "1", .len = 1},
                                   {.path = "c/far", .link = "z"},
                                   {.path = "c/lost", .link = "nothing"}};
    const support_entry files[] = {{.path = "c/x", .bytes = "22", .len = 2},
                                   {.path = "c/z", .bytes = "333", .len = 3},
                                   {.path = "c/far", .bytes = "4444", .len = 4},
                                   {.path = "c/lost", .bytes = "55555", .len = 5},
                                   {.path = "c/v", .link = "lost"},
                                   {.path = "c/w", .link = "x"},
                                   {.path = "c/a", .link = "w"}};
    char *folders[] = {folder("one", links, 4), folder("two", files, 7)};
    char *archives[] = {support_path("%s/one.tar", dir), support_path("%s/two.tar", dir)};
    support_archive(archives[0], "tar", links, 4);
    support_archive(archives[1], "tar", files, 7);
    for (int i = 0; i < 8; i++) {
        int first = i >> 2;
        char *both[] = {i & 1 ? folders[0] : archives[0], i & 2 ? folders[1] : archives[1]};
        char *srcs[] = {both[first], both[!first]};
        tree t = opened(srcs, 2, &quiet);
        const char *stays = first ? "c/a=22;c/far=4444;c/lost=55555;c/v=55555;c/w=22;c/x=22;c/y=1;c/z=333;\n"
                                  : "c/a=1;c/far=333;c/lost=55555;c/v=55555;c/w=1;c/x=1;c/y=1;c/z=333;\n";
        const char *word = first ? "c/x: an earlier file of this name (2 bytes) is kept"
                                 : "c/x: an earlier file of this name (1 bytes) is kept";
        if (strncmp((char *)t.dump.data, stays, strlen(stays)) != 0 || !strstr((char *)t.dump.data, word))
            fail_msg("%d: %s", i, (char *)t.dump.data);
        closed(&t);
    }
    for (int i = 0; i < 2; i++) {
        free(folders[i]);
        free(archives[i]);
    }
}

/* Two names that differ in how their letters are composed are two files, and stay so in tars of every kind. */
static void test_names_are_bytes(void **state)
{
    (void)state;
    static const char *const kinds[] = {"ustar", "gnu", "pax"};
    static const char *const names[] = {"d/e\xCC\x81.txt", "d/\xC3\xA9.txt", "\xE2\x84\xAB/\xEF\xA4\x80"};
    char *root = support_path("%s/names", dir);
    const mr_source_options o = {.quiet = true};
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        support_writef(names[i], strlen(names[i]), "%s/%s", root, names[i]);
    }
    tree a = opened(&root, 1, &o);
    for (size_t i = 0; i < MR_COUNT(names); i++)
        assert_non_null(strstr(mr_buf_text(&a.dump), names[i]));
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        char *archive = support_path("%s/%s.tar", dir, kinds[k]), *format = support_path("--format=%s", kinds[k]);
        const char *argv[] = {"tar", format, "-C", root, "-cf", archive, "d", "\xE2\x84\xAB", NULL};
        support_result r = support_run(argv, NULL);
        support_assert_status(&r, 0);
        support_result_free(&r);
        tree b = opened(&archive, 1, &o);
        assert_string_equal(mr_buf_text(&a.dump), mr_buf_text(&b.dump));
        closed(&b);
        free(format);
        free(archive);
    }
    closed(&a);
    free(root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_one_rule),
                                       TEST(test_out_of_the_tree),
                                       TEST(test_empty_folders_and_devices),
                                       TEST(test_long_chains),
                                       TEST(test_sizes),
                                       TEST(test_across_sources),
                                       TEST(test_the_first_source_has_the_name),
                                       TEST(test_names_are_bytes)};
    return cmocka_run_group_tests_name("source_links", tests, NULL, NULL);
}
