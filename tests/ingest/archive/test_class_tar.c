/* test_class_tar.c - ImageNet's class tars, in another archive and in a folder: the same tree, and every bad one a
 * sentence that names it.
 * Invariant tested: only nNNNNNNNN.tar is opened in an archive, on one level, as a plain tar and within the limits. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "ingest/source/source.h"
#include "tests/support/sources/archive.h"
#include "tests/support/support.h"

#define ENTRY(name, text) ((support_entry){.path = name, .bytes = text, .len = sizeof text - 1})

typedef struct bytes {
    uint8_t *data;
    size_t len;
} bytes;

/* An archive of these entries, as bytes. */
static bytes made(const char *dir, const char *kind, const support_entry *entries, size_t count)
{
    char *path = support_path("%s/made", dir);
    bytes b;
    support_archive(path, kind, entries, count);
    b.data = support_read(path, &b.len);
    assert_int_equal(unlink(path), 0);
    free(path);
    return b;
}

static bytes class_tar(const char *dir, const char *kind)
{
    const support_entry images[] = {ENTRY("n01440764_1.JPEG", "tench"), ENTRY("n01440764_2.JPEG", "another")};
    return made(dir, kind, images, 2);
}

static void put_outer(const char *dir, const char *kind, const support_entry *entries, size_t count)
{
    char *path = support_path("%s/train.tar", dir);
    support_archive(path, kind, entries, count);
    free(path);
}

static mr_status list(const char *source, mr_notes *notes, mr_buf *out, mr_error *err)
{
    char *const srcs[] = {(char *)source};
    mr_source *s = NULL;
    mr_buf text = {0};
    mr_status status = mr_source_open(srcs, 1, -1, &(mr_source_options){.quiet = true}, notes, &s, err);
    for (uint32_t i = 0; status == MR_OK && i < mr_source_count(s); i++) {
        assert_int_equal(mr_source_read(s, i, &text, err), MR_OK);
        mr_buf_printf(out, "%s=%.*s;", mr_source_entry(s, i)->path, (int)text.len, (char *)text.data);
    }
    mr_buf_free(&text);
    mr_source_free(s);
    return status;
}

/* `note`: words of a note that there must be, or NULL. */
static void lists(const char *dir, const char *name, const char *expected, const char *note)
{
    char *path = support_path("%s/%s", dir, name);
    mr_notes notes = {0};
    mr_buf text = {0};
    mr_error err;
    bool noted = !note;
    if (list(path, &notes, &text, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_string_equal(mr_buf_text(&text), expected);
    for (size_t i = 0; i < notes.count && !noted; i++)
        noted = strstr(notes.items[i].path, note) || strstr(notes.items[i].detail, note);
    assert_true(noted);
    mr_buf_free(&text);
    mr_notes_free(&notes);
    free(path);
}

static void fails(const char *dir, const char *name, const char *words)
{
    char *path = support_path("%s/%s", dir, name);
    mr_notes notes = {0};
    mr_buf text = {0};
    mr_error err;
    assert_int_equal(list(path, &notes, &text, &err), MR_BAD_DATA);
    if (!strstr(err.text, words))
        fail_msg("expected %s, got %s", words, err.text);
    mr_buf_free(&text);
    mr_notes_free(&notes);
    free(path);
}

static void test_the_same_tree(void **state)
{
    static const char *const kinds[] = {"tar", "tar.gz", "zip", "zip-deflate", "cpio"};
    static const char expected[] = "n01440764/n01440764_1.JPEG=tench;n01440764/n01440764_2.JPEG=another;";
    char *dir = *state;
    bytes inner = class_tar(dir, "tar");
    const support_entry outer = {.path = "./n01440764.tar", .bytes = inner.data, .len = inner.len};
    for (size_t i = 0; i < MR_COUNT(kinds); i++) {
        put_outer(dir, kinds[i], &outer, 1);
        lists(dir, "train.tar", expected, NULL);
    }
    char *file = support_path("%s/folder/n01440764.tar", dir);
    support_write(file, inner.data, inner.len);
    lists(dir, "folder", expected, NULL);
    free(file);
    free(inner.data);
}

/* A cpio or a tar with a name above it keeps its folder. */
static void test_names(void **state)
{
    char *dir = *state;
    const support_entry odd[] = {ENTRY("../1.JPEG", "x"),
                                 ENTRY("/2.JPEG", "x"),
                                 {.path = "3.JPEG", .hard_link = "4.JPEG"},
                                 ENTRY("4.JPEG", "four"),
                                 {.path = "5.JPEG", .link = "../n02/6.JPEG"}};
    bytes inner = made(dir, "tar", odd, MR_COUNT(odd)), plain = class_tar(dir, "tar");
    const support_entry outer[] = {{.path = "train/n01440764.tar", .bytes = inner.data, .len = inner.len},
                                   {.path = "cat.tar", .bytes = plain.data, .len = plain.len},
                                   {.path = "n0144076.tar", .bytes = plain.data, .len = plain.len}};
    put_outer(dir, "tar", outer, 1);
    lists(dir, "train.tar", "train/n01440764/2.JPEG=x;train/n01440764/3.JPEG=four;train/n01440764/4.JPEG=four;",
          "../1.JPEG");
    put_outer(dir, "tar", outer + 1, 2);
    char *text = support_path("cat.tar=%.*s;n0144076.tar=%.*s;", (int)plain.len, (char *)plain.data, (int)plain.len,
                              (char *)plain.data);
    lists(dir, "train.tar", text, NULL); /* archives, but ordinary files here */
    free(text);
    free(inner.data);
    free(plain.data);
}

static void test_bad_class_tars(void **state)
{
    char *dir = *state;
    bytes good = class_tar(dir, "tar"), gz = class_tar(dir, "tar.gz"), zip = class_tar(dir, "zip");
    const support_entry nested = {.path = "n01440764.tar", .bytes = good.data, .len = good.len};
    bytes third = made(dir, "tar", &nested, 1);
    const struct {
        const void *data;
        size_t len;
        const char *why;
    } trials[] = {
        {gz.data, gz.len, "train.tar: n01440764.tar: not a readable archive: it is compressed"},
        {zip.data, zip.len, "train.tar: n01440764.tar: not a readable archive"},
        {"", 0, "it looks like an empty file"},
        {"some text", 9, "train.tar: n01440764.tar: not a readable archive: Unrecognized archive format"},
        {"<html>", 6, "Unrecognized archive format; it looks like HTML"},
        {good.data, 1024 + 1024, "train.tar: n01440764.tar: ends without a tar's end mark"},
        {good.data, 1024 + 514, "train.tar: n01440764.tar: cannot be read to its end"},
        {third.data, third.len, "n01440764/n01440764.tar: an archive nested more than two deep is not opened"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        const support_entry outer = {.path = "n01440764.tar", .bytes = trials[i].data, .len = trials[i].len};
        put_outer(dir, "tar", &outer, 1);
        fails(dir, "train.tar", trials[i].why);
        put_outer(dir, "tar.gz", &outer, 1);
        fails(dir, "train.tar", trials[i].why);
    }
    const support_entry beside[] = {nested, ENTRY("n01440764/n01440764_3.JPEG", "third")};
    put_outer(dir, "tar", beside, 2);
    fails(dir, "train.tar", "n01440764.tar (in ");
    fails(dir, "train.tar",
          "is beside a folder n01440764/: their images would be mixed in one class; --exclude n01440764.tar keeps only "
          "the folder");
    const support_entry twice[] = {nested, nested};
    put_outer(dir, "tar", twice, 2);
    fails(dir, "train.tar", "n01440764.tar occurs twice (in ");
    put_outer(dir, "zip", &nested, 1);
    char *path = support_path("%s/train.tar", dir);
    support_archive_flip(path, "tench", 0, 1);
    fails(dir, "train.tar", "n01440764.tar: checksum mismatch");
    put_outer(dir, "tar", &nested, 1);
    assert_int_equal(truncate(path, 512 + 1024), 0);
    fails(dir, "train.tar", "train.tar: cannot be read to its end");
    free(path);
    free(good.data);
    free(gz.data);
    free(zip.data);
    free(third.data);
}

static void test_an_empty_one_is_noted(void **state)
{
    char *dir = *state;
    static const char zeros[10240];
    const support_entry outer[] = {{.path = "n01440764.tar", .bytes = zeros, .len = sizeof zeros},
                                   ENTRY("1.JPEG", "one")};
    put_outer(dir, "tar", outer, 2);
    lists(dir, "train.tar", "1.JPEG=one;", "holds no files");
}

/* A tar of `count` files that are holes of 48 MiB. */
static bytes holes(const char *dir, int count)
{
    char *path = support_path("%s/made", dir), name[32];
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    bytes b;
    archive_write_set_format_pax(a);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    for (int i = 0; i < count; i++) {
        archive_entry_clear(e);
        snprintf(name, sizeof name, "%d.JPEG", i);
        archive_entry_set_pathname(e, name);
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_size(e, 48 << 20);
        archive_entry_sparse_add_entry(e, 0, 1);
        assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
        assert_int_equal(archive_write_data(a, "x", 1), 1);
    }
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_entry_free(e);
    archive_write_free(a);
    b.data = support_read(path, &b.len);
    assert_int_equal(unlink(path), 0);
    free(path);
    return b;
}

/* Two class tars, each within the limits of one archive: they count against those of the outer one. */
static void test_bombs(void **state)
{
    char *dir = *state;
    bytes small = holes(dir, 1), large = holes(dir, 3);
    const support_entry one = {.path = "n00000001.tar", .bytes = large.data, .len = large.len};
    put_outer(dir, "tar", &one, 1);
    fails(dir, "train.tar", "train.tar: unpacks to more than 100 times its size, like an archive bomb");
    const support_entry many[] = {{.path = "n00000001.tar", .bytes = small.data, .len = small.len},
                                  {.path = "n00000002.tar", .bytes = small.data, .len = small.len},
                                  {.path = "n00000003.tar", .bytes = small.data, .len = small.len}};
    put_outer(dir, "tar", many, 3);
    fails(dir, "train.tar", "train.tar: unpacks to more than 100 times its size, like an archive bomb");
    free(small.data);
    free(large.data);
}

/* Only its header: its size is refused before anything is read. */
static void test_size_and_number(void **state)
{
    char *dir = *state, *path = support_path("%s/train.tar", dir), header[512] = "n01440764.tar";
    unsigned sum = 0;
    memcpy(header + 100, "0000644\0000000000\0000000000", 23);
    memcpy(header + 124, "\200\0\0\0\0\0\0\020\0\0\0\001", 12); /* 64 GiB and 1 byte, base 256 */
    memcpy(header + 136, "00000000000", 11);
    memset(header + 148, ' ', 8);
    header[156] = '0';
    memcpy(header + 257, "ustar\00000", 7);
    for (size_t i = 0; i < sizeof header; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 7, "%06o", sum);
    support_write(path, header, sizeof header);
    fails(dir, "train.tar", "train.tar: n01440764.tar: its size is negative, or more than 64 GiB");

    bytes inner = class_tar(dir, "tar");
    const support_entry outer = {.path = "n01440764.tar", .bytes = inner.data, .len = inner.len};
    mr_notes notes = {0};
    mr_source *s = NULL;
    mr_error err = {0};
    put_outer(dir, "tar", &outer, 1);
    assert_int_equal(
        mr_source_open(&path, 1, -1, &(mr_source_options){.quiet = true, .max_entries = 1}, &notes, &s, &err),
        MR_BAD_DATA);
    assert_non_null(strstr(err.text, "--max-files N raises the limit"));
    mr_notes_free(&notes);
    free(inner.data);
    free(path);
}

/* The advice, in a folder and in an archive. */
static void test_a_tar_is_left_out(void **state)
{
    char *dir = *state, *leave_out[] = {(char *)"n01440764.tar"};
    bytes inner = class_tar(dir, "tar");
    const support_entry outer[] = {{.path = "n01440764.tar", .bytes = inner.data, .len = inner.len},
                                   ENTRY("n01440764/n01440764_3.JPEG", "third")};
    char *paths[] = {support_path("%s/train.tar", dir), support_path("%s/folder", dir)};
    char *tar = support_path("%s/n01440764.tar", paths[1]), *image = support_path("%s/n01440764/3.JPEG", paths[1]);
    put_outer(dir, "tar", outer, 2);
    support_write(tar, inner.data, inner.len);
    support_write_text(image, "third");
    for (size_t i = 0; i < MR_COUNT(paths); i++) {
        const mr_source_options o = {.quiet = true, .leave_out = leave_out, .leave_out_count = 1};
        mr_notes notes = {0};
        mr_source *s = NULL;
        mr_error err = {0};
        fails(dir, i ? "folder" : "train.tar", "is beside a folder n01440764/");
        if (mr_source_open(&paths[i], 1, -1, &o, &notes, &s, &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_int_equal(mr_source_count(s), 1);
        mr_source_free(s);
        mr_notes_free(&notes);
        free(paths[i]);
    }
    free(tar);
    free(image);
    free(inner.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_the_same_tree),         IN_TMPDIR(test_names), IN_TMPDIR(test_bad_class_tars),
        IN_TMPDIR(test_an_empty_one_is_noted), IN_TMPDIR(test_bombs), IN_TMPDIR(test_size_and_number),
        IN_TMPDIR(test_a_tar_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
