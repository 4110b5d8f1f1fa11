/* test_source.c - folders, archives and streams are one and the same tree; hostile names stay outside. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "ingest/source/source.h"
#include "tests/support/support.h"
#include "tests/support/sources/archive.h"

typedef struct fixture {
    char *dir;
    mr_notes notes;
    mr_source *source;
    mr_error err;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->dir = support_tmpdir();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    mr_source_free(f->source);
    mr_notes_free(&f->notes);
    support_tmpdir_remove(f->dir);
    free(f);
    return 0;
}

static mr_status open_sources(fixture *f, char **srcs, size_t count)
{
    mr_source_options o = {.quiet = true};
    mr_source_free(f->source);
    f->source = NULL;
    mr_notes_free(&f->notes);
    f->notes = (mr_notes){0};
    return mr_source_open(srcs, count, -1, &o, &f->notes, &f->source, &f->err);
}

static void open_one(fixture *f, const char *format, ...)
{
    char path[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    char *srcs[] = {path};
    if (open_sources(f, srcs, 1) != MR_OK)
        fail_msg("%s", f->err.text);
}

/* "path=contents;" for every entry. */
static char *dump(const fixture *f)
{
    mr_buf out = {0}, bytes = {0};
    mr_error err;
    for (uint32_t i = 0; i < mr_source_count(f->source); i++) {
        mr_buf_printf(&out, "%s=", mr_source_entry(f->source, i)->path);
        assert_int_equal(mr_source_read(f->source, i, &bytes, &err), MR_OK);
        mr_buf_add(&out, bytes.data, bytes.len);
        mr_buf_add_text(&out, ";");
    }
    mr_buf_free(&bytes);
    mr_buf_text(&out);
    return (char *)out.data;
}

static void expect_dump(const fixture *f, const char *expected)
{
    char *found = dump(f);
    assert_string_equal(found, expected);
    free(found);
}

static const mr_note *note_of(const fixture *f, mr_note_kind kind)
{
    for (size_t i = 0; i < f->notes.count; i++)
        if (f->notes.items[i].kind == kind)
            return &f->notes.items[i];
    return NULL;
}

static void test_folder_and_archives_agree(void **state)
{
    static const char *const kinds[] = {"tar", "tar.gz", "tar.zst", "zip", "zip-deflate", "7z"};
    fixture *f = *state;
    mr_random random = support_random();
    char *tree = support_path("%s/tree", f->dir);
    for (int i = 0; i < 40; i++) {
        size_t len = (size_t)mr_random_below(&random, i % 5 == 0 ? 300000 : 2000);
        uint8_t *bytes = calloc(len + 1, 1);
        for (size_t k = 0; k < len; k++)
            bytes[k] = (uint8_t)mr_random_below(&random, 256);
        support_writef(bytes, len, "%s/%c/file %d.bin", tree, 'a' + i % 3, i);
        free(bytes);
    }
    open_one(f, "%s", tree);
    assert_int_equal(mr_source_count(f->source), 40);
    char *expected = dump(f);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int reversed = 0; reversed < 2; reversed++) {
            char *archive = support_path("%s/%s-%d", f->dir, kinds[k], reversed);
            support_archive_tree(archive, kinds[k], tree, reversed);
            open_one(f, "%s", archive);
            expect_dump(f, expected);
            assert_int_equal(f->notes.count, 0);
            free(archive);
        }
    }
    free(expected);
    free(tree);
}

static void test_hostile_names_are_noted(void **state)
{
    fixture *f = *state;
    const support_entry entries[] = {
        {.path = "good", .bytes = "1", .len = 1},
        {.path = "../up", .bytes = "2", .len = 1},
        {.path = "/etc/absolute", .bytes = "3", .len = 1},
        {.path = "a/../../b", .bytes = "4", .len = 1},
        {.path = "link", .link = "/etc/passwd"},
        {.path = "./dotted", .bytes = "5", .len = 1},
        {.path = "hard", .hard_link = "good"},
        {.path = "dangling", .hard_link = "nowhere"},
        {.path = "escape", .hard_link = "../../etc/passwd"},
        {.path = "good", .bytes = "66", .len = 2},
        {.path = "__MACOSX/._x.jpg", .bytes = "7", .len = 1},
        {.path = "good/under", .bytes = "8", .len = 1},
        {.path = "caf\xE9", .bytes = "9", .len = 1},
        {.path = "good-b", .bytes = "a", .len = 1},
        {.path = "good-b/c", .bytes = "b", .len = 1},
        {.path = "good/x/y", .bytes = "c", .len = 1},
        {.path = "goodness/z", .bytes = "d", .len = 1},
    };
    char *archive = support_path("%s/x.tar", f->dir);
    support_archive(archive, "tar", entries, sizeof entries / sizeof *entries);
    open_one(f, "%s", archive);
    expect_dump(f, "caf\xE9=9;dotted=5;etc/absolute=3;good-b/c=b;good/under=8;good/x/y=c;goodness/z=d;hard=1;");
    assert_int_equal(f->notes.counts[MR_NOTE_BAD_NAME], 2);
    assert_int_equal(f->notes.counts[MR_NOTE_LINK], 3);
    assert_int_equal(f->notes.counts[MR_NOTE_COLLISION], 0); /* in one archive, the last of a name counts */
    assert_int_equal(f->notes.counts[MR_NOTE_IGNORED], 1);
    assert_int_equal(f->notes.counts[MR_NOTE_NOT_UTF8], 1);
    assert_string_equal(note_of(f, MR_NOTE_NOT_UTF8)->path, "caf\\xE9");
    free(archive);
}

static void test_links_in_folders(void **state)
{
    fixture *f = *state;
    char *tree = support_path("%s/tree", f->dir), *path;
    support_write_text(path = support_path("%s/real", tree), "inside");
    free(path);
    support_write_text(path = support_path("%s/secret", f->dir), "outside");
    free(path);
    struct {
        const char *name, *target;
    } links[] = {{"in", "real"}, {"out", "../secret"}, {"gone", "nothing"}, {"loop", "."}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        path = support_path("%s/%s", tree, links[i].name);
        assert_int_equal(symlink(links[i].target, path), 0);
        free(path);
    }
    path = support_path("%s/fifo", tree);
    assert_int_equal(mkfifo(path, 0600), 0);
    free(path);
    open_one(f, "%s", tree);
    expect_dump(f, "in=inside;real=inside;");
    assert_int_equal(f->notes.counts[MR_NOTE_LINK], 4);
    free(tree);
}

/* As in a folder: a link to a file of the tree is that file, whichever way it leads there. */
static void test_links_in_archives(void **state)
{
    static const char *const kinds[] = {"tar", "tar.gz", "zip", "7z"};
    fixture *f = *state;
    const support_entry entries[] = {
        {.path = "a/up", .link = "../b/real"}, {.path = "b/real", .bytes = "1", .len = 1},
        {.path = "c", .link = "a//./up"},      {.path = "d", .link = "./c"},
        {.path = "out", .link = "../b/real"},  {.path = "far", .link = "a/../../b/real"},
        {.path = "dir", .link = "b"},          {.path = "me", .link = "me"},
        {.path = "gone", .link = "nothing"},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char *archive = support_path("%s/x.%s", f->dir, kinds[k]);
        support_archive(archive, kinds[k], entries, sizeof entries / sizeof *entries);
        open_one(f, "%s", archive);
        expect_dump(f, "a/up=1;b/real=1;c=1;d=1;");
        assert_int_equal(f->notes.counts[MR_NOTE_LINK], 5);
        assert_string_equal(note_of(f, MR_NOTE_LINK)->path, "dir");
        free(archive);
    }
}

/* A model or a film of 2 GiB beside the images is not a reject; an image over the limit is. */
static void test_large_files_are_left_out(void **state)
{
    fixture *f = *state;
    mr_source_options o = {.quiet = true, .max_entry = 10};
    const support_entry entries[] = {{.path = "a.jpg", .bytes = "0123456789A", .len = 11},
                                     {.path = "b.bin", .bytes = "0123456789A", .len = 11},
                                     {.path = "c.csv", .bytes = "0123456789A", .len = 11}};
    char *tree = support_path("%s/tree", f->dir), *archive = support_path("%s/x.tgz", f->dir);
    support_archive(archive, "tar.gz", entries, 3);
    for (int i = 0; i < 3; i++) {
        support_writef(entries[i].bytes, entries[i].len, "%s/%s", tree, entries[i].path);
    }
    for (int i = 0; i < 2; i++) {
        mr_source_free(f->source);
        mr_notes_free(&f->notes);
        f->source = NULL;
        assert_int_equal(mr_source_open(i ? &archive : &tree, 1, -1, &o, &f->notes, &f->source, &f->err), MR_OK);
        expect_dump(f, "c.csv=0123456789A;");
        assert_string_equal(note_of(f, MR_NOTE_REJECT)->path, "a.jpg");
        assert_int_equal(note_of(f, MR_NOTE_REJECT)->bytes, 11);
        assert_string_equal(note_of(f, MR_NOTE_IGNORED)->path, "b.bin");
        assert_int_equal(f->notes.count, 2);
    }
    free(tree);
    free(archive);
}

/* Holes are zeros, at the end of a file, too; what comes next in the spool is not disturbed. */
static void test_sparse_files_keep_their_length(void **state)
{
    fixture *f = *state;
    char *path = support_path("%s/sparse.tar", f->dir), *bytes = calloc(1, 1 << 20);
    struct archive *a = archive_write_new();
    assert_int_equal(archive_write_set_format_pax(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    memcpy(bytes + 4096, "middle", 6);
    for (int i = 0; i < 2; i++) {
        struct archive_entry *e = archive_entry_new();
        archive_entry_set_pathname(e, i ? "b" : "a");
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_perm(e, 0644);
        archive_entry_set_size(e, 1 << 20);
        archive_entry_sparse_add_entry(e, 4096, 4096);
        assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
        assert_int_equal(archive_write_data(a, bytes, 1 << 20), 1 << 20);
        archive_entry_free(e);
    }
    assert_int_equal(archive_write_free(a), ARCHIVE_OK);
    open_one(f, "%s", path);
    assert_int_equal(mr_source_count(f->source), 2);
    assert_int_equal(f->notes.count, 0);
    for (uint32_t i = 0; i < 2; i++) {
        mr_buf found = {0};
        assert_int_equal(mr_source_read(f->source, i, &found, &f->err), MR_OK);
        assert_int_equal(found.len, 1 << 20);
        assert_memory_equal(found.data, bytes, 1 << 20);
        mr_buf_free(&found);
    }
    free(bytes);
    free(path);
}

static void test_sources_lie_over_one_another(void **state)
{
    fixture *f = *state;
    const support_entry first[] = {{.path = "a", .bytes = "1", .len = 1}, {.path = "b", .bytes = "1", .len = 1}};
    const support_entry second[] = {{.path = "b", .bytes = "2", .len = 1}, {.path = "c", .bytes = "2", .len = 1}};
    char *one = support_path("%s/one.zip", f->dir), *two = support_path("%s/two.tar.gz", f->dir);
    support_archive(one, "zip", first, 2);
    support_archive(two, "tar.gz", second, 2);
    char *srcs[] = {one, two};
    assert_int_equal(open_sources(f, srcs, 2), MR_OK);
    expect_dump(f, "a=1;b=1;c=2;");
    assert_int_equal(f->notes.counts[MR_NOTE_COLLISION], 1);

    /* The folder that holds both, as downloaded, is the same tree. */
    open_one(f, "%s", f->dir);
    expect_dump(f, "a=1;b=1;c=2;");
    char *unpacked = support_path("%s/one/a", f->dir);
    support_write_text(unpacked, "x");
    open_one(f, "%s", f->dir);
    expect_dump(f, "b=2;c=2;one/a=x;");
    assert_non_null(note_of(f, MR_NOTE_INFO));
    free(unpacked);
    free(one);
    free(two);
}

/* Several archives named after splits: images in no folder get one, so that the splits are not mixed. */
static void test_archives_of_splits(void **state)
{
    static const struct {
        const char *name, *kind, *path;
    } archives[] = {{"train.zip", "zip", "1.jpg"},  {"val.tar.gz", "tar.gz", "2.jpg"},
                    {"Test.zip", "zip", "x/3.jpg"}, {"valid.zip", "zip", "notes.json"},
                    {"cats.zip", "zip", "4.jpg"},   {"images_val2.zip", "zip", "5.jpg"}};
    fixture *f = *state;
    char *first = NULL;
    for (size_t i = 0; i < MR_COUNT(archives); i++) {
        const support_entry entry = {.path = archives[i].path, .bytes = "1", .len = 1};
        char *path = support_path("%s/%s", f->dir, archives[i].name);
        support_archive(path, archives[i].kind, &entry, 1);
        if (i == 0)
            first = path;
        else
            free(path);
    }
    open_one(f, "%s", f->dir);
    expect_dump(f, "4.jpg=1;images_val2/5.jpg=1;notes.json=1;train/1.jpg=1;val/2.jpg=1;x/3.jpg=1;");
    open_one(f, "%s", first); /* alone, it is the whole source */
    expect_dump(f, "1.jpg=1;");
    free(first);
}

static void test_broken_archives_are_refused(void **state)
{
    fixture *f = *state;
    mr_random random = support_random();
    char *tree = support_path("%s/tree/file", f->dir), *archive = support_path("%s/cut.tar.gz", f->dir);
    uint8_t *bytes = malloc(1000000);
    for (size_t i = 0; i < 1000000; i++)
        bytes[i] = (uint8_t)mr_random_below(&random, 256);
    support_write(tree, bytes, 1000000);
    free(bytes);
    free(tree);
    tree = support_path("%s/tree", f->dir);
    support_archive_tree(archive, "tar.gz", tree, false);
    assert_int_equal(truncate(archive, 600000), 0);
    char *srcs[] = {archive};
    assert_int_equal(open_sources(f, srcs, 1), MR_BAD_DATA);
    if (!strstr(f->err.text, "cut.tar.gz: cannot be read to its end"))
        fail_msg("%s", f->err.text);
    support_write_text(archive, "this is not an archive at all, only words");
    assert_int_equal(open_sources(f, srcs, 1), MR_BAD_DATA);
    srcs[0] = support_path("%s/missing", f->dir);
    assert_int_equal(open_sources(f, srcs, 1), MR_MISUSE);
    free(srcs[0]);
    free(tree);
    free(archive);
}

static void test_children_of_a_tree(void **state)
{
    fixture *f = *state;
    static const char *const files[] = {"a", "a-b/x", "d/e/f", "d/e/g", "d/h", "d.txt"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        support_write_textf("x", "%s/tree/%s", f->dir, files[i]);
    }
    open_one(f, "%s", f->dir);
    mr_tree t = mr_tree_at(f->source, "tree/", 5);
    char names[200] = "";
    mr_child c = {0};
    while (mr_tree_next(&t, "", 0, &c))
        snprintf(names + strlen(names), sizeof names - strlen(names), "%.*s%s %u,", (int)c.name_len, c.name,
                 c.is_dir ? "/" : "", c.end - c.entry);
    assert_string_equal(names, "a 1,a-b/ 1,d.txt 1,d/ 3,");
    assert_true(mr_tree_has_dir(&t, "d/e", 3));
    assert_false(mr_tree_has_dir(&t, "a", 1));
    assert_int_not_equal(mr_tree_find(&t, "d/e/g", 5), MR_NO_ENTRY);
    assert_int_equal(mr_tree_find(&t, "d/e", 3), MR_NO_ENTRY);
    c = (mr_child){0};
    assert_false(mr_tree_next(&t, "nothing", 7, &c));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_folder_and_archives_agree), TEST(test_hostile_names_are_noted),
        TEST(test_links_in_folders),          TEST(test_sources_lie_over_one_another),
        TEST(test_archives_of_splits),        TEST(test_broken_archives_are_refused),
        TEST(test_children_of_a_tree),        TEST(test_links_in_archives),
        TEST(test_large_files_are_left_out),  TEST(test_sparse_files_keep_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
