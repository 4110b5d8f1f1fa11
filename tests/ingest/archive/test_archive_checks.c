/* test_archive_checks.c - the checksums of archives.
 * Invariant tested: one bit of an archive that has checksums, whichever it is, makes no other tree: it is refused, or
 * an entry whose bytes are asked for is, or nothing has changed. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "ingest/source/source.h"
#include "tests/support/support.h"
#include "tests/support/sources/archive.h"
#include "tests/support/images/image.h"

enum { FILES = 5 };

static char *dir;
static mr_notes notes;
static mr_error error;

static const char *const kinds[] = {"tar.gz", "tar.bz2",     "tar.xz",       "tar.zst",
                                    "zip",    "zip-deflate", "zip-streamed", "7z"};

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mr_notes_free(&notes);
    notes = (mr_notes){0};
    support_tmpdir_remove(dir);
    return 0;
}

/* libarchive writes zstd frames without their checksum: the lower half of the content's XXH64 (RFC 8878, 3.1.1). */
static void add_zstd_checksum(const char *path, const char *tar)
{
    enum { DESCRIPTOR = 4, CHECKSUM = 4 };
    size_t len, tar_len;
    uint8_t *bytes = support_read(path, &len), *content = support_read(tar, &tar_len);
    mr_buf out = {0};
    uint64_t hash = XXH64(content, tar_len, 0);
    uint8_t sum[4] = {(uint8_t)hash, (uint8_t)(hash >> 8), (uint8_t)(hash >> 16), (uint8_t)(hash >> 24)};
    assert_int_equal(bytes[DESCRIPTOR] & CHECKSUM, 0);
    bytes[DESCRIPTOR] |= CHECKSUM;
    mr_buf_add(&out, bytes, len);
    mr_buf_add(&out, sum, sizeof sum);
    support_write(path, out.data, out.len);
    mr_buf_free(&out);
    free(bytes);
    free(content);
}

/* A few small pictures, a table and, but in a zip, a link: what a zip's entry is stands in one place, without a
 * check. */
static char *make_archive(const char *kind)
{
    picture images[FILES];
    support_entry entries[FILES + 2];
    size_t count = FILES + (strncmp(kind, "zip", 3) != 0) + 1;
    for (int i = 0; i < FILES; i++) {
        images[i] = make_jpeg((jpeg_kind){.width = 8 + (unsigned)i, .height = 8, .components = 1});
        entries[i] = (support_entry){
            .path = support_path("ds/train/%c/%d.jpg", 'a' + i % 2, i), .bytes = images[i].bytes, .len = images[i].len};
    }
    entries[FILES] = (support_entry){.path = "ds/table.csv", .bytes = "path,label\n1.jpg,a\n", .len = 19};
    entries[FILES + 1] = (support_entry){.path = "ds/train/b/link.jpg", .link = "../a/0.jpg"};
    char *path = support_path("%s/good.%s", dir, kind);
    support_archive(path, kind, entries, count);
    if (strcmp(kind, "tar.zst") == 0) {
        char *tar = support_path("%s/good.tar", dir);
        support_archive(tar, "tar", entries, count);
        add_zstd_checksum(path, tar);
        free(tar);
    }
    for (int i = 0; i < FILES; i++) {
        free((void *)(uintptr_t)entries[i].path);
        picture_free(&images[i]);
    }
    return path;
}

/* The tree, names and bytes; len 0: it could not be had. */
static void read_tree(char *path, mr_buf *out)
{
    mr_source *source = NULL;
    mr_buf bytes = {0};
    mr_notes_free(&notes);
    notes = (mr_notes){0};
    mr_buf_clear(out);
    mr_status status = mr_source_open(&path, 1, -1, &(mr_source_options){.quiet = true}, &notes, &source, &error);
    for (uint32_t i = 0; status == MR_OK && i < mr_source_count(source); i++) {
        mr_buf_printf(out, "%s=", mr_source_entry(source, i)->path);
        status = mr_source_read(source, i, &bytes, &error);
        mr_buf_add(out, bytes.data, bytes.len);
    }
    if (status != MR_OK) {
        assert_int_equal(status, MR_BAD_DATA);
        assert_non_null(strstr(error.text, path));
        mr_buf_clear(out);
    }
    mr_buf_free(&bytes);
    mr_source_free(source);
}

typedef struct trial {
    const char *kind;
    char *path;     /* of the damaged one */
    uint8_t *bytes; /* of the good one, */
    size_t len;
    mr_buf tree, found; /* and its tree */
    size_t refused;
} trial;

static trial begin_trial(const char *kind)
{
    char *path = make_archive(kind);
    trial t = {.kind = kind, .path = support_path("%s/flipped.%s", dir, kind)};
    t.bytes = support_read(path, &t.len);
    support_write(t.path, t.bytes, t.len);
    read_tree(path, &t.tree);
    if (t.tree.len == 0)
        fail_msg("%s: %s", kind, error.text);
    assert_int_equal(notes.count, 0);
    free(path);
    return t;
}

static void end_trial(trial *t)
{
    mr_buf_free(&t->tree);
    mr_buf_free(&t->found);
    free(t->bytes);
    free(t->path);
}

/* In place: a file that is truncated and written again would go to the disk each time. */
static void write_byte(const trial *t, size_t at, uint8_t byte)
{
    int fd = open(t->path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

static void try_bit(trial *t, size_t bit)
{
    write_byte(t, bit / 8, t->bytes[bit / 8] ^ (uint8_t)(1 << bit % 8));
    read_tree(t->path, &t->found);
    write_byte(t, bit / 8, t->bytes[bit / 8]);
    t->refused += t->found.len == 0;
    if (t->found.len != 0 && (t->found.len != t->tree.len || memcmp(t->found.data, t->tree.data, t->tree.len) != 0))
        fail_msg("%s: bit %zu of byte %zu makes another tree", t->kind, bit % 8, bit / 8);
}

static void test_any_bit(void **state)
{
    enum { TRIALS = 1000 };
    (void)state;
    mr_random random = support_random();
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        trial t = begin_trial(kinds[k]);
        for (int i = 0; i < TRIALS; i++)
            try_bit(&t, (size_t)mr_random_below(&random, t.len * 8));
        if (t.refused < TRIALS / 2)
            fail_msg("%s: only %zu of %d refused", kinds[k], t.refused, TRIALS);
        end_trial(&t);
    }
}

/* What a zip says about an entry, before its data, after them and in the directory, and what it says about itself. */
static void test_bits_of_zip_headers(void **state)
{
    static const char *const zips[] = {"zip-deflate", "zip-streamed"};
    enum { HEADER = 30, DESCRIPTOR = 16, RECORD = 46, END = 22, NAME = 19 }; /* ds/train/a/0.jpg, and extra bytes */
    (void)state;
    for (size_t k = 0; k < MR_COUNT(zips); k++) {
        trial t = begin_trial(zips[k]);
        const uint8_t *record = memmem(t.bytes, t.len, "PK\1\2", 4), *descriptor = memmem(t.bytes, t.len, "PK\7\10", 4);
        size_t from[] = {0, (size_t)(record - t.bytes), t.len - END, (size_t)(descriptor - t.bytes)};
        const size_t len[] = {HEADER + NAME, RECORD + NAME, END, DESCRIPTOR};
        assert_non_null(descriptor);
        for (size_t i = 0; i < MR_COUNT(from); i++)
            for (size_t bit = 8 * from[i]; bit < 8 * (from[i] + len[i]); bit++)
                try_bit(&t, bit);
        end_trial(&t);
    }
}

/* The sum over a tar's header is a checksum, too.  There is none of its data. */
static void test_bits_of_tar_headers(void **state)
{
    enum { HEADER = 500 };
    (void)state;
    trial t = begin_trial("tar");
    const uint8_t *second = memmem(t.bytes, t.len, "ds/train/b/1.jpg", 16);
    size_t from[] = {0, (size_t)(second - t.bytes)};
    for (size_t i = 0; i < MR_COUNT(from); i++)
        for (size_t bit = 0; bit < 8 * HEADER; bit += 7)
            try_bit(&t, 8 * from[i] + bit);
    assert_true(t.refused > 2 * HEADER); /* the others are padding of the sum itself */
    end_trial(&t);
}

/* The words of a refusal. */
static void expect_refused(char *path, const char *words)
{
    mr_buf tree = {0};
    read_tree(path, &tree);
    if (tree.len != 0 || !strstr(error.text, words))
        fail_msg("%s: expected \"%s\": %s", path, words, tree.len ? "taken" : error.text);
    mr_buf_free(&tree);
}

/* libarchive follows the links of zip and 7z without looking at their checksums. */
static void test_targets_of_links(void **state)
{
    static const char *const with_links[] = {"zip", "7z-store"};
    (void)state;
    const support_entry entries[] = {{.path = "a/aa.jpg", .bytes = "1", .len = 1},
                                     {.path = "a/ba.jpg", .bytes = "2", .len = 1},
                                     {.path = "link.jpg", .link = "a/aa.jpg"}};
    for (size_t k = 0; k < MR_COUNT(with_links); k++) {
        char *path = support_path("%s/links.%s", dir, with_links[k]);
        support_archive(path, with_links[k], entries, 3);
        mr_buf tree = {0};
        read_tree(path, &tree);
        assert_string_equal(mr_buf_text(&tree), "a/aa.jpg=1a/ba.jpg=2link.jpg=1");
        mr_buf_free(&tree);
        size_t len;
        uint8_t *bytes = support_read(path, &len);
        size_t found = 0;
        for (uint8_t *at = bytes; (at = memmem(at, len - (size_t)(at - bytes), "a/aa.jpg", 8)); at++) {
            at[2] ^= 3; /* a/ba.jpg: of a link, or of the file */
            support_write(path, bytes, len);
            expect_refused(path, path);
            at[2] ^= 3;
            found++;
        }
        assert_true(found > 0);
        free(bytes);
        free(path);
    }
}

/* What libarchive only warns of, and would go on after: an entry would be lost, or have another name. */
static void test_warnings(void **state)
{
    (void)state;
    char long_name[150];
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    const support_entry entries[] = {{.path = "a.jpg", .bytes = "1", .len = 1},
                                     {.path = long_name, .bytes = "2", .len = 1},
                                     {.path = "c.jpg", .bytes = "3", .len = 1}};
    char *cpio = support_path("%s/x.cpio", dir), *tar = support_path("%s/x.tar", dir);
    support_archive(cpio, "cpio", entries, 3);
    support_archive_flip(cpio, long_name, (size_t)-110, 0); /* the magic 110 bytes before the name */
    expect_refused(cpio, "before finding valid header");
    support_archive(tar, "tar", entries, 3);
    support_archive_flip(tar, " path=", (size_t)-1, 0); /* the record's length */
    expect_refused(tar, "malformed pax extended attribute");
    free(cpio);
    free(tar);
}

/* A zip may follow other bytes and have a comment. */
static void test_zip_after_other_bytes(void **state)
{
    (void)state;
    char *path = make_archive("zip");
    mr_buf tree = {0}, found = {0}, joined = {0};
    size_t len;
    read_tree(path, &tree);
    uint8_t *bytes = support_read(path, &len);
    mr_buf_add_text(&joined, "#!/bin/sh\nexec unzip $0\n");
    mr_buf_add(&joined, bytes, len);
    joined.data[joined.len - 2] = 5; /* the length of the comment */
    mr_buf_add_text(&joined, "hello");
    support_write(path, joined.data, joined.len);
    read_tree(path, &found);
    if (found.len != tree.len)
        fail_msg("%s", error.text);
    support_write(path, bytes, len - 30);
    expect_refused(path, "has no zip directory at its end");
    mr_buf_free(&joined);
    mr_buf_free(&found);
    mr_buf_free(&tree);
    free(bytes);
    free(path);
}

static void put16(mr_buf *out, unsigned n)
{
    mr_buf_add(out, (uint8_t[]){(uint8_t)n, (uint8_t)(n >> 8)}, 2);
}

static void put32(mr_buf *out, uint32_t n)
{
    put16(out, n & 0xFFFF);
    put16(out, n >> 16);
}

/* What a header and a record of an empty stored entry have in common. */
static void put_common(mr_buf *out, unsigned extra_len)
{
    put32(out, 10); /* version, flags */
    put16(out, 0);  /* stored */
    for (int i = 0; i < 4; i++)
        put32(out, 0); /* time, CRC-32, lengths */
    put16(out, 1);
    put16(out, extra_len);
}

/* Records of 47 bytes must not have 60 KB read for each of them. */
static void test_records_that_share_headers(void **state)
{
    enum { RECORDS = 500, EXTRA = 60000, HEADER = 31 + EXTRA };
    (void)state;
    char *path = support_path("%s/shared.zip", dir);
    mr_buf zip = {0};
    for (int i = 0; i < 2; i++) {
        mr_buf_add(&zip, "PK\3\4", 4);
        put_common(&zip, EXTRA);
        mr_buf_add(&zip, i ? "b" : "a", 1);
        for (int k = 0; k < EXTRA; k += 4)
            put32(&zip, 0xFFFF);
    }
    uint32_t start = (uint32_t)zip.len;
    for (int i = 0; i < RECORDS; i++) {
        mr_buf_add(&zip, "PK\1\2\12\0", 6);
        put_common(&zip, 0);
        put32(&zip, 0); /* comment, disk */
        put16(&zip, 0);
        put32(&zip, 0);
        put32(&zip, i % 2 * HEADER);
        mr_buf_add(&zip, i % 2 ? "b" : "a", 1);
    }
    uint32_t end = (uint32_t)zip.len;
    mr_buf_add(&zip, "PK\5\6\0\0\0\0", 8);
    put16(&zip, RECORDS);
    put16(&zip, RECORDS);
    put32(&zip, end - start);
    put32(&zip, start);
    put16(&zip, 0);
    support_write(path, zip.data, zip.len);
    expect_refused(path, "overlaps other entries");
    mr_buf_free(&zip);
    free(path);
}

/* What is compressed has its checksum at its end, which other formats than tar do not read to. */
static void test_end_of_what_is_compressed(void **state)
{
    (void)state;
    const support_entry entry = {.path = "a.jpg", .bytes = "1", .len = 1};
    char *path = support_path("%s/x.cpio.gz", dir);
    size_t len;
    support_archive(path, "cpio.gz", &entry, 1);
    uint8_t *bytes = support_read(path, &len);
    for (size_t i = len - 8; i < len; i++) {
        bytes[i] ^= 1;
        support_write(path, bytes, len);
        expect_refused(path, "checksum mismatch");
        bytes[i] ^= 1;
    }
    free(bytes);
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_any_bit),
        TEST(test_bits_of_zip_headers),
        TEST(test_bits_of_tar_headers),
        TEST(test_targets_of_links),
        TEST(test_zip_after_other_bytes),
        TEST(test_end_of_what_is_compressed),
        TEST(test_records_that_share_headers),
        TEST(test_warnings),
    };
    return cmocka_run_group_tests_name("archive_checks", tests, NULL, NULL);
}
