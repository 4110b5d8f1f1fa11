/* test_hub_cache.c - folders of a cache of the Hugging Face hub: their links lead to blobs, and no further.
 * Invariant tested: a link of any other form than that of the cache is reported, as in any folder. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ingest/source/source.h"
#include "tests/support/sources/archive.h"
#include "tests/support/support.h"

#define CACHE "/hub/datasets--me--cats"
#define REV   CACHE "/snapshots/0a1b"

static void put_link(const char *dir, const char *name, const char *target)
{
    char *path = support_path("%s%s", dir, name);
    support_write_text(path, ""); /* makes the parents */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(target, path), 0);
    free(path);
}

static void put(const char *dir, const char *name, const char *text)
{
    support_write_textf(text, "%s%s", dir, name);
}

/* "path=contents;" for every entry, then "path: note;" for every note of a link. */
static void lists(const char *dir, const char *folder, const char *expected)
{
    char *path = support_path("%s%s", dir, folder), *const srcs[] = {path};
    mr_buf text = {0}, bytes = {0};
    mr_notes notes = {0};
    mr_source *s = NULL;
    mr_error err;
    if (mr_source_open(srcs, 1, -1, &(mr_source_options){.quiet = true}, &notes, &s, &err) != MR_OK)
        fail_msg("%s: %s", path, err.text);
    for (uint32_t i = 0; i < mr_source_count(s); i++) {
        if (mr_source_read(s, i, &bytes, &err) != MR_OK)
            fail_msg("%s", err.text);
        mr_buf_printf(&text, "%s=%.*s;", mr_source_entry(s, i)->path, (int)bytes.len, (char *)bytes.data);
    }
    for (size_t i = 0; i < notes.count; i++)
        if (notes.items[i].kind == MR_NOTE_LINK)
            mr_buf_printf(&text, "%s: %s;", notes.items[i].path, notes.items[i].detail);
    assert_string_equal(mr_buf_text(&text), expected);
    mr_buf_free(&text);
    mr_buf_free(&bytes);
    mr_notes_free(&notes);
    mr_source_free(s);
    free(path);
}

static void make(const char *dir)
{
    put(dir, CACHE "/blobs/aaa", "one");
    put(dir, CACHE "/blobs/bbb", "two");
    put(dir, CACHE "/refs/main", "0a1b");
    put_link(dir, REV "/README.md", "../../blobs/aaa");
    put_link(dir, REV "/data/train.parquet", "../../../blobs/bbb");
}

static void test_the_folders_of_a_cache(void **state)
{
    char *dir = *state;
    make(dir);
    lists(dir, REV, "README.md=one;data/train.parquet=two;");
    lists(dir, REV "/", "README.md=one;data/train.parquet=two;");
    lists(dir, REV "/data", "train.parquet=two;");
    lists(dir, CACHE "/snapshots", "0a1b/README.md=one;0a1b/data/train.parquet=two;");
    lists(dir, CACHE, "README.md=one;data/train.parquet=two;");
    put_link(dir, "/elsewhere", "hub/datasets--me--cats/snapshots/0a1b");
    lists(dir, "/elsewhere", "README.md=one;data/train.parquet=two;");
}

static void test_revisions(void **state)
{
    char *dir = *state, *path = support_path("%s" CACHE, dir), *const srcs[] = {path};
    mr_notes notes = {0};
    mr_source *s = NULL;
    mr_error err = {0};
    make(dir);
    put_link(dir, CACHE "/snapshots/2c3d/new", "../../blobs/bbb");
    lists(dir, CACHE, "README.md=one;data/train.parquet=two;");
    put(dir, CACHE "/refs/main", "2c3d\n");
    lists(dir, CACHE, "new=two;");
    lists(dir, CACHE "/snapshots", "0a1b/README.md=one;0a1b/data/train.parquet=two;2c3d/new=two;");
    static const char *const bad[] = {"", "ffff", "../blobs", "0a1b/data"};
    for (size_t i = 0; i < MR_COUNT(bad); i++) {
        put(dir, CACHE "/refs/main", bad[i]);
        assert_int_equal(mr_source_open(srcs, 1, -1, &(mr_source_options){.quiet = true}, &notes, &s, &err),
                         MR_BAD_DATA);
        assert_non_null(strstr(err.text, "it has 2 revisions, and refs/main names none of them"));
    }
    mr_notes_free(&notes);
    free(path);
}

static void test_no_further(void **state)
{
    char *dir = *state;
    make(dir);
    put(dir, "/secret", "three");
    put(dir, "/hub/blobs/ddd", "three");
    put(dir, CACHE "/blobs/in/eee", "three");
    put_link(dir, CACHE "/blobs/ccc", "../../../secret");
    put_link(dir, REV "/1", "../../../../secret");
    put_link(dir, REV "/2", "../../blobs/ccc");
    put_link(dir, REV "/3", "../../blobs/../refs/main");
    put_link(dir, REV "/4", "../../refs/main");
    put_link(dir, REV "/5", "../../../blobs/ddd");
    put_link(dir, REV "/6", "../../blobs/in/eee");
    put_link(dir, REV "/7", "../../blobs/gone");
    put_link(dir, REV "/8", "../../blobs/in");
    lists(dir, REV,
          "README.md=one;data/train.parquet=two;"
          "1: a link to a file outside the tree: not followed;2: a link to a file outside the tree: not followed;"
          "3: a link to a file outside the tree: not followed;4: a link to a file outside the tree: not followed;"
          "5: a link to a file outside the tree: not followed;6: a link to a file outside the tree: not followed;"
          "7: a dangling link out of the tree;"
          "8: a link to a folder outside the tree: not followed; `cp -rL` copies what it leads to;");
}

/* The same links below another name, and a cache without blobs. */
static void test_not_a_cache(void **state)
{
    char *dir = *state;
    put(dir, "/cats/blobs/aaa", "one");
    put_link(dir, "/cats/snapshots/0a1b/a", "../../blobs/aaa");
    lists(dir, "/cats/snapshots/0a1b", "a: a link to a file outside the tree: not followed;");
    put_link(dir, "/datasets--x/snapshots/0a1b/a", "../../blobs/aaa");
    put_link(dir, "/datasets--x/blobs", "../cats/blobs");
    lists(dir, "/datasets--x/snapshots/0a1b", "a: a link to a file outside the tree: not followed;");
}

/* Archives among the blobs are read under the names of their links. */
static void test_archives(void **state)
{
    char *dir = *state, *tar = support_path("%s" CACHE "/blobs/fff", dir);
    const support_entry entries[] = {{.path = "0.jpg", .bytes = "x", .len = 1}};
    put(dir, CACHE "/blobs/aaa", "one");
    support_archive(tar, "tar", entries, 1);
    put_link(dir, REV "/all.tar", "../../blobs/fff");
    put_link(dir, REV "/data/train-00000.tar", "../../../blobs/fff");
    put_link(dir, REV "/data/other.tar", "../../../blobs/aaa");
    lists(dir, REV, "0.jpg=x;data/other.tar=one;data/train-00000.tar/0.jpg=x;");
    free(tar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_the_folders_of_a_cache),
        IN_TMPDIR(test_revisions),
        IN_TMPDIR(test_no_further),
        IN_TMPDIR(test_not_a_cache),
        IN_TMPDIR(test_archives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
