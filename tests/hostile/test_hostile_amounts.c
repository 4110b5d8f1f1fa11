/* test_hostile_amounts.c - small sources that ask for gigabytes: sparse entries, many archives, millions of empty
 * rows.
 * Invariant tested: rejected or ingested, cheaply and within 256 MiB, and everything left out is counted. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <jansson.h>

#include "tests/support/sources/archive.h"
#include "tests/support/cost.h"
#include "tests/support/images/image.h"

static char *dir, *dst;
static picture good;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    dst = support_path("%s/ds", dir);
    good = make_jpeg((jpeg_kind){.width = 20, .height = 20, .components = 3});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    picture_free(&good);
    free(dst);
    support_tmpdir_remove(dir);
    return 0;
}

#define RUN(...) support_millrace_under((const char *const[]){__VA_ARGS__, NULL}, &(support_limits){.directory = dir})

/* The picture with `hole` bytes that are not there after it, or before it. */
static void add_sparse(struct archive *a, const char *path, uint64_t hole, bool before)
{
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, path);
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, (la_int64_t)(good.len + hole));
    if (hole)
        archive_entry_sparse_add_entry(e, before ? (la_int64_t)hole : 0, (la_int64_t)good.len);
    assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
    if (hole && before) /* the writer passes over what is in no block */
        for (uint64_t left = hole; left;) {
            static const char zeros[1 << 16];
            size_t n = left < sizeof zeros ? (size_t)left : sizeof zeros;
            assert_true(archive_write_data(a, zeros, n) >= 0);
            left -= n;
        }
    assert_true(archive_write_data(a, good.bytes, good.len) >= 0);
    archive_entry_free(e);
}

static char *sparse_tar(const char *name, uint64_t hole, bool before)
{
    char *path = support_path("%s/%s", dir, name);
    struct archive *a = archive_write_new();
    archive_write_set_format_pax(a);
    archive_write_add_filter_gzip(a);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    add_sparse(a, "ds/train/a/0.jpg", 0, false);
    add_sparse(a, "ds/train/b/1.jpg", 0, false);
    add_sparse(a, "ds/train/a/2.jpg", hole, before);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    assert_true(support_size(path) < 1 << 16);
    return path;
}

static void test_holes(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        char *path = sparse_tar("holes.tar.gz", (uint64_t)900 << 20, before);
        support_expect_refusal(RUN("ingest", path, dst), "unpacks to more than 100 times its size");
        free(path);
    }
    char *small = sparse_tar("small.tar.gz", 1 << 20, false); /* an honest one is an image followed by zeros */
    support_result r = RUN("ingest", small, dst, "--quiet");
    support_assert_status(&r, 0);
    support_result_free(&r);
    free(small);
}

/* What one archive may do, ten may not do ten times. */
static void test_many_archives(void **state)
{
    (void)state;
    char *source = support_path("%s/source", dir);
    size_t len = (size_t)20 << 20;
    void *zeros = calloc(len, 1);
    assert_non_null(zeros);
    for (int i = 0; i < 10; i++) {
        char *name = support_path("ds/train/%c/%d.jpg", 'a' + i % 2, i), *junk = support_path("ds/junk%d.bin", i);
        const support_entry entries[] = {{.path = name, .bytes = good.bytes, .len = good.len},
                                         {.path = junk, .bytes = zeros, .len = len}};
        char *path = support_path("%s/%d.tar.gz", source, i);
        support_write_text(path, "");
        support_archive(path, "tar.gz", entries, 2);
        free(path);
        free(junk);
        free(name);
    }
    free(zeros);
    support_expect_refusal(RUN("ingest", source, dst), "unpacks to more than 100 times its size");
    free(source);
}

static double cost_of_rows(size_t rows, void *ctx)
{
    (void)ctx;
    char *table = malloc(64 + 2 * rows), *p = table + sprintf(table, "filename,a\n0.jpg,1\n1.jpg,1\n");
    assert_non_null(table);
    for (size_t i = 0; i < rows; i++, p += 2)
        memcpy(p, ",\n", 2);
    char *csv = support_path("%s/s/train/_classes.csv", dir);
    support_write(csv, table, (size_t)(p - table));
    support_result r = RUN("ingest", "s", dst, "--force");
    double cpu = r.cpu;
    support_assert_status(&r, 0);
    if (!support_sanitized())
        assert_true(r.peak_memory < (uint64_t)256 << 20);
    support_result_free(&r);
    free(csv);
    free(table);
    return cpu;
}

/* Each row of two bytes is worth a note. */
static void test_rows_of_nothing(void **state)
{
    (void)state;
    enum { ROWS = 400000 };
    char *image[2] = {support_path("%s/s/train/0.jpg", dir), support_path("%s/s/train/1.jpg", dir)};
    char *report = support_path("%s/ds/report.json", dir);
    for (int i = 0; i < 2; i++) {
        support_write(image[i], good.bytes, good.len);
        free(image[i]);
    }
    support_assert_linear("rows of nothing", cost_of_rows, NULL, ROWS);
    cost_of_rows(ROWS, NULL);

    json_t *doc = json_load_file(report, 0, NULL), *counts = json_object_get(doc, "counts");
    json_int_t most = 0;
    const char *key;
    json_t *count;
    json_object_foreach(counts, key, count)
    {
        json_int_t n = json_integer_value(count);
        most = n > most ? n : most;
        if (n > 100000)
            assert_int_equal(json_array_size(json_object_get(doc, key)), 100000);
    }
    assert_int_equal(most, ROWS);
    json_decref(doc);
    free(report);
}

/* A cell costs a byte of text and eight of memory: a line of commas, as the header or below it. */
static void test_cells_of_nothing(void **state)
{
    (void)state;
    static const char *const heads[] = {"filename,a", "filename,a\n0.jpg,1\n"};
    size_t len = (size_t)(support_sanitized() ? 8 : 56) << 20; /* those have another measure of memory */
    char *table = malloc(len), *path = support_path("%s/x.tgz", dir);
    assert_non_null(table);
    for (size_t i = 0; i < MR_COUNT(heads); i++) {
        memset(table, ',', len);
        memcpy(table, heads[i], strlen(heads[i]));
        support_archive(path, "tar.gz",
                        (const support_entry[]){{.path = "s/train/0.jpg", .bytes = good.bytes, .len = good.len},
                                                {.path = "s/train/_classes.csv", .bytes = table, .len = len}},
                        2);
        assert_true(support_size(path) < 1 << 20);
        support_expect_refusal(RUN("ingest", path, dst),
                               i ? "cells, where the header has 2" : "columns, more than 32768");
    }
    free(path);
    free(table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_holes), TEST(test_many_archives), TEST(test_rows_of_nothing),
                                       TEST(test_cells_of_nothing)};
    return cmocka_run_group_tests_name("malice_amounts", tests, NULL, NULL);
}
