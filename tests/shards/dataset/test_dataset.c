/* test_dataset.c - reading samples through the public library.
 * Invariant tested: a sample is the very bytes that were stored, or a status that says what to do. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shards/format/index.h"
#include "tests/support/shards/loader.h"
#include "tests/support/shards/shard.h"

static mr_dataset *open_dataset(const char *dir)
{
    mr_dataset *ds = NULL;
    mr_error err;
    if (mr_dataset_open(dir, &ds, &err) != MR_OK)
        fail_msg("%s", err.text);
    return ds;
}

static bool is_sample(const mr_sample_view *v, uint64_t seed, uint64_t first, uint64_t n)
{
    drawn d = draw_sample(seed, first, n);
    bool same = v->image_len == d.image.len && memcmp(v->image, d.image.bytes, d.image.len) == 0 &&
                v->meta_len == strlen(d.meta) && memcmp(v->meta, d.meta, v->meta_len) == 0 &&
                !!(v->flags & MR_FLAG_SAME_BYTES) == d.shares;
    drawn_free(&d);
    return same;
}

static void expect_train(const mr_dataset *ds, uint64_t n, mr_sample_view *v)
{
    mr_error err;
    if (mr_dataset_read(ds, "train", n, v, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_true(n < 40 ? is_sample(v, 1, 0, n) : is_sample(v, 2, 40, n));
}

static void test_read(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    draw_dataset(dir);
    mr_dataset *ds = open_dataset(dir);
    mr_sample_view v = {0};
    assert_int_equal(mr_dataset_samples(ds, "train"), 70);
    assert_int_equal(mr_dataset_samples(ds, "val"), 12);
    assert_int_equal(mr_dataset_samples(ds, "test"), 0);
    for (uint64_t i = 0; i < 70; i++)
        expect_train(ds, i * 37 % 70, &v);
    for (uint64_t i = 0; i < 12; i++) {
        assert_int_equal(mr_dataset_read(ds, "val", i, &v, NULL), MR_OK);
        assert_true(is_sample(&v, 3, 0, i));
        mr_image_facts facts;
        assert_int_equal(mr_image_examine(v.image, v.image_len, NULL, &facts, NULL), MR_OK);
        assert_true(v.width == facts.width && v.height == facts.height && v.codec == facts.codec &&
                    v.components == facts.components && v.bits == facts.bits && v.orientation == facts.orientation);
    }
    mr_sample_view_free(&v);
    mr_sample_view_free(&v);
    mr_sample_view_free(NULL);
    mr_dataset_free(ds);
    mr_dataset_free(NULL);
    support_tmpdir_remove(dir);
}

static void test_misuse(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *none = support_path("%s/none", dir);
    mr_dataset *ds = NULL;
    mr_sample_view v = {0};
    mr_error err;
    assert_int_equal(mr_dataset_open(none, &ds, &err), MR_MISUSE);
    assert_int_equal(mr_dataset_open(dir, &ds, &err), MR_MISUSE);
    assert_null(ds);
    draw_dataset(dir);
    ds = open_dataset(dir);
    assert_int_equal(mr_dataset_read(ds, "test", 0, &v, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "no such split"));
    assert_int_equal(mr_dataset_read(ds, "train", 70, &v, &err), MR_MISUSE);
    assert_int_equal(mr_dataset_read(ds, "train", UINT64_MAX, &v, &err), MR_MISUSE);
    assert_null(v.storage);
    mr_dataset_free(ds);
    free(none);
    support_tmpdir_remove(dir);
}

static mr_row row_of(const char *dir, uint64_t n)
{
    mr_row row;
    char *path = support_path("%s/train-00000.idx", dir);
    uint8_t *idx = support_read(path, NULL);
    mr_row_unpack(idx + MR_INDEX_HEADER + n * MR_INDEX_ROW, &row);
    free(idx);
    free(path);
    return row;
}

static void expect_bad_sample(const mr_dataset *ds, uint64_t n, const char *words)
{
    mr_sample_view v = {0};
    mr_error err;
    char sample[40];
    snprintf(sample, sizeof sample, "sample %llu", (unsigned long long)n);
    assert_int_equal(mr_dataset_read(ds, "train", n, &v, &err), MR_BAD_SAMPLE);
    if (!strstr(err.text, words) || !strstr(err.text, sample) || !strstr(err.text, "train-00000"))
        fail_msg("\"%s\" does not mention \"%s\"", err.text, words);
    assert_null(v.image);
    assert_null(v.meta);
    mr_sample_view_free(&v);
}

/* A damaged record is one sample lost (and those that share it); the others are read as before. */
static void test_damaged_records(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    draw_dataset(dir);
    mr_dataset *ds = open_dataset(dir);
    mr_sample_view v = {0};
    for (uint64_t n = 0; n < 40; n += 13) {
        mr_row row = row_of(dir, n);
        hurt_byte(dir, "train-00000.mdb", row.image_offset + row.image_len - 1, 1);
        expect_bad_sample(ds, n, "its image differs");
        hurt_byte(dir, "train-00000.mdb", row.image_offset + row.image_len - 1, 255);
        hurt_byte(dir, "train-00000.mdb", row.meta_offset, 3);
        expect_bad_sample(ds, n, "its meta differs");
        expect_train(ds, n ? n - 1 : n + 1, &v);
        hurt_byte(dir, "train-00000.mdb", row.meta_offset, 253);
        expect_train(ds, n, &v);
    }
    mr_sample_view_free(&v);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* The meta alone: what is known of a sample without a look at its image, whole or not. */
static void test_read_meta(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    draw_dataset(dir);
    mr_dataset *ds = open_dataset(dir);
    mr_sample_view v = {0}, whole = {0};
    mr_error err;
    for (uint64_t n = 0; n < 70; n++) {
        expect_train(ds, n, &whole);
        assert_int_equal(mr_dataset_read_meta(ds, "train", n, &v, NULL), MR_OK);
        assert_true(v.image == NULL && v.image_len == 0 && v.meta_len == whole.meta_len);
        assert_memory_equal(v.meta, whole.meta, v.meta_len);
        assert_true(v.width == whole.width && v.height == whole.height && v.label == whole.label &&
                    v.codec == whole.codec && v.orientation == whole.orientation && v.bits == whole.bits &&
                    v.components == whole.components && v.flags == whole.flags);
    }
    assert_true(v.storage_len < whole.storage_len); /* there was never room for an image */
    assert_int_equal(mr_dataset_read_meta(ds, "test", 0, &v, &err), MR_MISUSE);
    assert_int_equal(mr_dataset_read_meta(ds, "train", 70, &v, &err), MR_MISUSE);

    mr_row row = row_of(dir, 5);
    for (uint64_t at = 0; at < row.image_len; at++)
        hurt_byte(dir, "train-00000.mdb", row.image_offset + at, 1);
    expect_bad_sample(ds, 5, "its image differs");
    assert_int_equal(mr_dataset_read_meta(ds, "train", 5, &v, NULL), MR_OK);
    assert_int_equal(v.meta_len, row.meta_len);
    hurt_byte(dir, "train-00000.mdb", row.meta_offset + row.meta_len - 1, 1);
    assert_int_equal(mr_dataset_read_meta(ds, "train", 5, &v, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "sample 5: its meta differs"));
    assert_true(v.meta == NULL && v.meta_len == 0);
    mr_sample_view_free(&v);
    mr_sample_view_free(&whole);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* Any byte of any row changed: no sample of the shard, for its own row may be another too. */
static void test_damaged_rows(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    draw_dataset(dir);
    mr_dataset *ds = open_dataset(dir);
    mr_random r = support_random();
    for (int trial = 0; trial < 300; trial++) {
        mr_sample_view v = {0};
        mr_error err;
        uint64_t n = mr_random_below(&r, 40), at = MR_INDEX_HEADER + n * MR_INDEX_ROW + (uint64_t)trial % MR_INDEX_ROW;
        uint8_t value = (uint8_t)(1 + mr_random_below(&r, 255));
        hurt_byte(dir, "train-00000.idx", at, value);
        assert_int_equal(mr_dataset_read(ds, "train", mr_random_below(&r, 40), &v, &err), MR_BAD_DATA);
        assert_string_equal(
            err.text, "train-00000.idx: does not match the digest in the manifest; `millrace reindex` rebuilds it");
        assert_null(v.image);
        assert_int_equal(mr_dataset_read_meta(ds, "train", n, &v, &err), MR_BAD_DATA);
        assert_int_equal(mr_dataset_read_meta(ds, "train", 40, &v, &err), MR_OK);
        hurt_byte(dir, "train-00000.idx", at, (uint8_t)(256 - value));
        assert_int_equal(mr_dataset_read(ds, "train", n, &v, &err), MR_OK);
        mr_sample_view_free(&v);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void expect_open_bad(const char *dir, const char *words)
{
    mr_dataset *ds = NULL;
    mr_error err;
    assert_int_equal(mr_dataset_open(dir, &ds, &err), MR_BAD_DATA);
    assert_null(ds);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not mention \"%s\"", err.text, words);
}

static void test_damaged_files(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *away = support_path("%s/away", dir);
    char *mdb = support_path("%s/train-00001.mdb", dir), *idx = support_path("%s/val-00000.idx", dir);
    char *train = support_path("%s/train-00000.idx", dir);
    draw_dataset(dir);
    mr_dataset *ds = open_dataset(dir);
    mr_sample_view v = {0};
    mr_error err;
    off_t size = (off_t)support_size(mdb);

    assert_int_equal(truncate(mdb, size - 1), 0);
    expect_open_bad(dir, "train-00001.mdb");
    assert_int_equal(mr_dataset_read(ds, "train", 40, &v, &err), MR_BAD_DATA); /* opened while it was whole */
    expect_train(ds, 39, &v);
    assert_int_equal(truncate(mdb, size + 4096), 0);
    expect_open_bad(dir, "train-00001.mdb");
    assert_int_equal(truncate(mdb, size), 0);

    assert_int_equal(rename(idx, away), 0);
    expect_open_bad(dir, "val-00000.idx: is missing");
    assert_int_equal(mr_dataset_read(ds, "val", 0, &v, &err), MR_BAD_DATA);
    assert_null(v.image);
    assert_int_equal(rename(away, idx), 0);

    hurt_byte(dir, "train-00000.idx", 16, 1);
    expect_open_bad(dir, "another shard");
    hurt_byte(dir, "train-00000.idx", 16, 255);
    hurt_byte(dir, "train-00000.idx", 8, 1);
    expect_open_bad(dir, "version 2");
    hurt_byte(dir, "train-00000.idx", 8, 255);
    mr_dataset_free(open_dataset(dir));

    unlink(train);
    assert_int_equal(symlink("/dev/null", train), 0);
    expect_open_bad(dir, "not a regular file");
    mr_dataset_free(ds);
    mr_sample_view_free(&v);
    free(away);
    free(train);
    free(idx);
    free(mdb);
    support_tmpdir_remove(dir);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const mr_dataset *ds;
    uint64_t start;
    bool good;
} reader;

static void *read_all(void *ctx)
{
    reader *r = ctx;
    mr_sample_view v = {0};
    r->good = true;
    for (uint64_t i = 0; i < 210; i++) {
        uint64_t n = (r->start + i * 11) % 70;
        if (mr_dataset_read(r->ds, "train", n, &v, NULL) != MR_OK || !is_sample(&v, n < 40 ? 1 : 2, n < 40 ? 0 : 40, n))
            r->good = false;
    }
    mr_sample_view_free(&v);
    return NULL;
}

/* Draws nothing that a failing assertion could leave from within a thread: results are looked at after the join. */
/* As `ingest --force` does it: another folder takes the name, and the files of this one go. */
static void test_replaced(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *ours = support_path("%s/ds", dir), *aside = support_path("%s/old", dir);
    char *idx = support_path("%s/val-00000.idx", aside),
         *words = support_path("%s: was replaced, moved or removed", ours);
    mr_sample_view v = {0};
    mr_error err;
    assert_int_equal(mkdir(ours, 0777), 0);
    draw_dataset(ours);
    mr_dataset *ds = open_dataset(ours);
    assert_int_equal(rename(ours, aside), 0);
    assert_int_equal(mr_dataset_read(ds, "val", 0, &v, &err), MR_OK); /* moved, and all of it is there */
    assert_int_equal(mkdir(ours, 0777), 0);
    draw_dataset(ours);
    assert_int_equal(unlink(idx), 0);
    assert_int_equal(mr_dataset_read(ds, "val", 0, &v, &err), MR_SYSTEM);
    assert_ptr_equal(strstr(err.text, words), err.text);
    mr_dataset_free(ds);
    mr_sample_view_free(&v);
    free(words);
    free(idx);
    free(aside);
    free(ours);
    support_tmpdir_remove(dir);
}

static void test_threads(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    draw_dataset(dir);
    mr_dataset *ds = open_dataset(dir);
    pthread_t threads[4];
    reader readers[4];
    for (uint64_t i = 0; i < 4; i++) {
        readers[i] = (reader){.ds = ds, .start = i * 17};
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        assert_true(readers[i].good);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_damaged_records),
        cmocka_unit_test(test_damaged_rows),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_read_meta),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
