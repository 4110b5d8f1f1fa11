/* test_archive_ends.c - where a tar ends: at its mark, of one block of zeros or more.
 * Invariant tested: an archive that was cut is refused, wherever it was cut, and what follows the mark is not lost
 * without a note; plain, compressed and piped ones agree. */
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/buf.h"
#include "ingest/source/source.h"
#include "tests/support/support.h"
#include "tests/support/sources/archive.h"
#include "tests/support/images/image.h"

enum { FILES = 4, BLOCK = 512 };

static char *dir;
static mr_notes notes;
static mr_error error;
static picture image;
static mr_buf tar; /* ds/train/a/0.jpg, 1.jpg ...: as many blocks each, and no end mark */

static const char *const kinds[] = {"tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "tar.Z"};

static int set_up(void **state)
{
    (void)state;
    support_entry entries[FILES];
    size_t len;
    dir = support_tmpdir();
    image = make_jpeg((jpeg_kind){.width = 20, .height = 20, .components = 3});
    for (int i = 0; i < FILES; i++)
        entries[i] = (support_entry){
            .path = support_path("ds/train/%c/%d.jpg", 'a' + i % 2, i), .bytes = image.bytes, .len = image.len};
    char *path = support_path("%s/whole.tar", dir);
    support_archive(path, "tar", entries, FILES);
    uint8_t *bytes = support_read(path, &len);
    for (const uint8_t *b = bytes + len - BLOCK; b[0] == 0 && memcmp(b, b + 1, BLOCK - 1) == 0; b -= BLOCK)
        len -= BLOCK;
    assert_int_equal(len % (FILES * BLOCK), 0);
    tar = (mr_buf){0};
    mr_buf_add(&tar, bytes, len);
    for (int i = 0; i < FILES; i++)
        free((void *)(uintptr_t)entries[i].path);
    free(bytes);
    free(path);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mr_notes_free(&notes);
    mr_buf_free(&tar);
    picture_free(&image);
    support_tmpdir_remove(dir);
    return 0;
}

static char *packed(const char *kind, const mr_buf *bytes)
{
    char *path = support_path("%s/x.%s", dir, kind);
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    static const int filters[] = {ARCHIVE_FILTER_NONE, ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_BZIP2,
                                  ARCHIVE_FILTER_XZ,   ARCHIVE_FILTER_ZSTD, ARCHIVE_FILTER_COMPRESS};
    for (size_t i = 0; i < MR_COUNT(kinds); i++)
        if (strcmp(kinds[i], kind) == 0)
            assert_int_equal(archive_write_add_filter(a, filters[i]), ARCHIVE_OK);
    archive_write_set_format_raw(a);
    archive_write_set_bytes_in_last_block(a, 1);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    archive_entry_set_filetype(e, AE_IFREG);
    assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, bytes->data, bytes->len), (la_ssize_t)bytes->len);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_entry_free(e);
    archive_write_free(a);
    return path;
}

static void add_zeros(mr_buf *to, size_t len)
{
    assert_true(mr_buf_reserve(to, len));
    memset(to->data + to->len, 0, len);
    to->len += len;
}

/* The status, and how many files there are. */
static mr_status count(const char *kind, const mr_buf *bytes, uint32_t *files)
{
    char *path = packed(kind, bytes);
    mr_source *source = NULL;
    mr_notes_free(&notes);
    notes = (mr_notes){0};
    mr_status status = mr_source_open(&path, 1, -1, &(mr_source_options){.quiet = true}, &notes, &source, &error);
    *files = status == MR_OK ? mr_source_count(source) : 0;
    mr_source_free(source);
    free(path);
    return status;
}

static void expect(const char *kind, const mr_buf *bytes, uint32_t files, bool noted)
{
    uint32_t found;
    if (count(kind, bytes, &found) != MR_OK)
        fail_msg("%s: %s", kind, error.text);
    if (found != files || notes.count != noted)
        fail_msg("%s: %u files of %u, %zu notes: %s", kind, found, files, notes.count,
                 notes.count ? notes.items[0].detail : "");
    if (noted) {
        assert_int_equal(notes.items[0].kind, MR_NOTE_INFO);
        assert_non_null(strstr(notes.items[0].path, kind));
        assert_non_null(strstr(notes.items[0].detail, "after its end mark"));
    }
}

static void expect_cut(const char *kind, const mr_buf *bytes)
{
    uint32_t found;
    if (count(kind, bytes, &found) != MR_BAD_DATA)
        fail_msg("%s: a tar of %zu bytes, cut, is taken for %u files", kind, bytes->len, found);
    if (!strstr(error.text, "without a tar's end mark"))
        fail_msg("%s: %s", kind, error.text);
}

static void test_cut_between_entries(void **state)
{
    (void)state;
    for (size_t k = 0; k < MR_COUNT(kinds); k++)
        for (size_t files = 1; files <= FILES; files++)
            expect_cut(kinds[k], &(mr_buf){.data = tar.data, .len = tar.len / FILES * files});
}

/* One block is enough, and padding may have any length. */
static void test_whole(void **state)
{
    static const size_t zeros[] = {BLOCK, BLOCK + 100, 2 * BLOCK, 2 * BLOCK + 1, 10240, (1 << 18) - BLOCK, 1 << 20};
    (void)state;
    for (size_t k = 0; k < MR_COUNT(kinds); k++)
        for (size_t i = 0; i < MR_COUNT(zeros); i++) {
            mr_buf whole = {0};
            mr_buf_add(&whole, tar.data, tar.len);
            add_zeros(&whole, zeros[i]);
            expect(kinds[k], &whole, FILES, false);
            whole.len -= tar.len;
            memmove(whole.data, whole.data + tar.len, whole.len);
            if (whole.len % BLOCK == 0)
                expect(kinds[k], &whole, 0, false); /* an archive of nothing */
            mr_buf_free(&whole);
        }
}

static void test_more_behind(void **state)
{
    static const size_t zeros[] = {BLOCK, 2 * BLOCK, 10240, (1 << 18) - BLOCK, (1 << 18) + 5 * BLOCK, 3 << 20};
    (void)state;
    for (size_t k = 0; k < MR_COUNT(kinds); k++)
        for (size_t i = 0; i < MR_COUNT(zeros); i++) {
            mr_buf two = {0};
            mr_buf_add(&two, tar.data, tar.len);
            add_zeros(&two, zeros[i]);
            mr_buf_add(&two, "x", 1);
            expect(kinds[k], &two, FILES, true);
            two.len--;
            mr_buf_add(&two, tar.data, tar.len);
            expect(kinds[k], &two, FILES, true);
            mr_buf behind_nothing = {.data = two.data + tar.len, .len = two.len - tar.len};
            expect(kinds[k], &behind_nothing, 0, true);
            mr_buf_free(&two);
        }
}

static support_result piped(const char *path)
{
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    support_result r = support_millrace_under((const char *const[]){"ingest", "-", "--dry-run", NULL},
                                              &(support_limits){.input = bytes, .input_len = len});
    free(bytes);
    return r;
}

static void test_pipes(void **state)
{
    (void)state;
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        char *cut = packed(kinds[k], &tar);
        support_expect_refusal(piped(cut), "standard input: ends without a tar's end mark");
        mr_buf whole = {0};
        mr_buf_add(&whole, tar.data, tar.len);
        add_zeros(&whole, 10240);
        for (int more = 0; more < 2; more++) {
            char *path = packed(kinds[k], &whole);
            support_result r = piped(path);
            support_assert_status(&r, 0);
            assert_int_equal(strstr(r.err, "after its end mark") || strstr(r.out, "after its end"), more);
            support_result_free(&r);
            free(path);
            mr_buf_add(&whole, tar.data, tar.len);
        }
        mr_buf_free(&whole);
        free(cut);
    }
}

/* Padding is not free: gigabytes of it come out of some kilobytes. */
static void test_endless_padding(void **state)
{
    (void)state;
    mr_buf whole = {0};
    mr_buf_add(&whole, tar.data, tar.len);
    add_zeros(&whole, (size_t)300 << 20);
    char *path = packed("tar.zst", &whole);
    mr_buf_free(&whole);
    assert_true(support_size(path) < 1 << 16);
    support_expect_refusal(support_millrace("ingest", path, "--dry-run", (char *)NULL),
                           "unpacks to more than 100 times its size");
    free(path);
}

/* What is damaged after the mark may be the check of what stands before it. */
static void test_damage_behind(void **state)
{
    (void)state;
    mr_buf whole = {0};
    uint32_t files;
    mr_buf_add(&whole, tar.data, tar.len);
    add_zeros(&whole, 1 << 20);
    char *path = packed("tar.xz", &whole);
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    support_write(path, bytes, len - 20);
    mr_buf cut = {.data = bytes, .len = len - 20};
    free(path);
    assert_int_equal(count("tar", &cut, &files), MR_BAD_DATA);
    assert_non_null(strstr(error.text, "cannot be read to its end (4 entries read)"));
    free(bytes);
    mr_buf_free(&whole);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_cut_between_entries), TEST(test_whole),         TEST(test_more_behind), TEST(test_pipes),
        TEST(test_endless_padding),     TEST(test_damage_behind),
    };
    return cmocka_run_group_tests_name("source_ends", tests, NULL, NULL);
}
