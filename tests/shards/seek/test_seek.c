/* test_seek.c - seek indexes made, kept, found wrong, repaired and dropped.
 * Invariant tested: no byte of the dataset changes; the files are the same for any threads, ranks and way of making
 * them; what is wrong with one is told by verify, and hits no sample. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/shards/dataset_maker.h"
#include "tests/support/shards/loader.h"
#include "tests/support/shards/seek.h"

enum { SAMPLES = 70, PER_SHARD = 24 };

static char *seek_path(const char *dir, unsigned shard)
{
    return support_path("%s/train-%05u.seek", dir, shard);
}

static uint8_t *read_seek(const char *dir, unsigned shard, size_t *len)
{
    char *path = seek_path(dir, shard);
    uint8_t *bytes = support_read(path, len);
    free(path);
    return bytes;
}

static void write_seek(const char *dir, unsigned shard, const uint8_t *bytes, size_t len)
{
    char *path = seek_path(dir, shard);
    support_write(path, bytes, len);
    free(path);
}

static mr_row row_of(const char *dir, unsigned shard, uint64_t i)
{
    mr_row row;
    char *path = support_path("%s/train-%05u.idx", dir, shard);
    uint8_t *bytes = support_read(path, NULL);
    mr_row_unpack(bytes + MR_INDEX_HEADER + i * MR_INDEX_ROW, &row);
    free(bytes);
    free(path);
    return row;
}

/* The command's words, and its exit status. */
static void expect_words(int status, const char *words, const char *command, const char *option, const char *dir)
{
    support_result r =
        option ? support_millrace(command, option, dir, (char *)NULL) : support_millrace(command, dir, (char *)NULL);
    support_assert_status(&r, status);
    if (!strstr(r.out, words) && !strstr(r.err, words))
        fail_msg("\"%s\" is not in:\n%s%s", words, r.out, r.err);
    support_result_free(&r);
}

/* ---- made and dropped ------------------------------------------------------------------------------------------- */

static void test_made_and_dropped(void **state)
{
    const char *dir = *state;
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    uint64_t before = support_tree_hash(dir);
    expect_words(0, "3 seek indexes made, 0 kept", "seek", NULL, dir);
    expect_words(0, ", with 3 seek indexes\n", "verify", "--decode", dir);
    expect_words(0, "an entry every 8 MCUs", "inspect", NULL, dir);
    expect_words(0, "\"shards\": 3", "inspect", "--json", dir);
    expect_words(0, "0 seek indexes made, 3 kept", "seek", NULL, dir);
    char *list = support_list(dir), *first = seek_path(dir, 0);
    assert_non_null(strstr(list, "train-00002.seek\n"));
    assert_null(strstr(list, ".tmp"));
    struct stat kept, forced;
    assert_int_equal(stat(first, &kept), 0);
    support_expect(0, "seek", "--force", dir, (char *)NULL);
    assert_int_equal(stat(first, &forced), 0);
    assert_true(kept.st_size == forced.st_size && kept.st_ino != forced.st_ino);
    expect_words(0, "3 seek indexes dropped", "seek", "--drop", dir);
    assert_true(support_tree_hash(dir) == before);
    expect_words(0, "0 seek indexes dropped", "seek", "--drop", dir);
    expect_words(0, "\"seek_index\": null", "inspect", "--json", dir);
    free(list);
    free(first);
}

static void test_json(void **state)
{
    const char *dir = *state;
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    support_result r = support_millrace("seek", "--json", dir, (char *)NULL);
    support_assert_status(&r, 0);
    /* 14 PNGs, 14 WebPs; of the JPEGs those with i % 7 == 0 are progressive. */
    static const char *const words[] = {
        "\"ok\": true",           "\"made\": 3",     "\"pictures\": 70", "\"no_jpeg\": 28",
        "\"left_to_libjpeg\": 6", "\"indexed\": 36", "\"every\": 8"};
    for (size_t i = 0; i < MR_COUNT(words); i++)
        if (!strstr(r.out, words[i]))
            fail_msg("%s is not in:\n%s", words[i], r.out);
    support_result_free(&r);
    r = support_millrace("seek", "--json", "--drop", dir, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "\"dropped\": 3"));
    support_result_free(&r);
}

static void test_same_for_all(void **state)
{
    static const char *const threads[] = {"1", "2", "7"};
    const char *dir = *state;
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    support_expect(0, "seek", "-q", "--every=3", dir, (char *)NULL);
    uint64_t want = support_tree_hash(dir);
    for (size_t i = 0; i < MR_COUNT(threads); i++) {
        support_expect(0, "seek", "-q", "--force", "--every=3", "--jobs", threads[i], dir, (char *)NULL);
        assert_true(support_tree_hash(dir) == want);
    }
    support_expect(0, "seek", "-q", dir, (char *)NULL); /* another spacing: rebuilt */
    assert_true(support_tree_hash(dir) != want);
    support_expect(0, "seek", "-q", "--every", "0", dir, (char *)NULL);
    expect_words(0, "one entry per row of MCUs", "inspect", NULL, dir);
    support_expect(0, "verify", "--decode", dir, (char *)NULL);
    const char *argv[] = {support_millrace_path(), "seek", "-q", "--every=3", dir, NULL};
    support_result r = support_mpirun(2, argv);
    support_assert_status(&r, 0);
    support_result_free(&r);
    assert_true(support_tree_hash(dir) == want);
}

/* Longer than one chunk of rows, most of which share images of others. */
static void test_shared_images(void **state)
{
    const char *dir = *state;
    picture a = make_jpeg((jpeg_kind){.width = 90, .height = 70, .components = 3});
    picture b = make_jpeg((jpeg_kind){.width = 50, .height = 80, .components = 1});
    made samples[300];
    for (size_t i = 0; i < 300; i++)
        samples[i] = (made){.source = "x.jpg", .image = i % 100 == 7 ? b : a, .shares = i % 100 != 7 && i > 0};
    dataset_make(dir, &(made_split){.name = "train", .samples = samples, .count = 300, .per_shard = 300}, 1);
    support_expect(0, "seek", "-q", dir, (char *)NULL);
    support_expect(0, "verify", "--decode", dir, (char *)NULL);
    size_t len, row_len, first_len;
    uint8_t *bytes = read_seek(dir, 0, &len);
    seek_entries(bytes, 7, &first_len);
    for (uint64_t i = 0; i < 300; i++) {
        seek_entries(bytes, i, &row_len);
        assert_true((row_len > 0) == (i == 0 || i % 100 == 7));
    }
    seek_entries(bytes, 207, &row_len);
    assert_int_equal(row_len, first_len);
    free(bytes);
    picture_free(&a);
    picture_free(&b);
}

/* ---- damage ----------------------------------------------------------------------------------------------------- */

static void test_verify_finds_damage(void **state)
{
    const char *dir = *state;
    size_t len, other_len;
    mr_random r = support_random();
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    support_expect(0, "seek", "-q", dir, (char *)NULL);
    uint64_t want = support_tree_hash(dir);
    uint8_t *bytes = read_seek(dir, 1, &len), *other = read_seek(dir, 0, &other_len);
    for (int trial = 0; trial < 8; trial++) {
        if (trial % 4 == 0) {
            bytes[mr_random_below(&r, len)] ^= 0x10;
            write_seek(dir, 1, bytes, len);
        } else if (trial % 4 == 1) {
            write_seek(dir, 1, bytes, mr_random_below(&r, len));
        } else if (trial % 4 == 2) {
            write_seek(dir, 1, other, other_len);
        } else {
            char *path = seek_path(dir, 1);
            unlink(path);
            assert_int_equal(symlink("train-00000.seek", path), 0);
            free(path);
        }
        support_result v = support_millrace("verify", dir, (char *)NULL);
        support_assert_status(&v, 1);
        assert_non_null(strstr(v.out, "train-00001.seek"));
        assert_non_null(strstr(v.out, "only its seek index is damaged"));
        assert_non_null(strstr(v.out, "1 of 3 shards, 0 samples damaged"));
        assert_non_null(strstr(v.out, "next: millrace seek "));
        assert_null(strstr(v.out, "restore the damaged"));
        support_result_free(&v);
        expect_words(1, "\"seek_only\": true", "verify", "--json", dir);
        expect_words(0, "1 seek index made, 2 kept", "seek", NULL, dir);
        assert_true(support_tree_hash(dir) == want);
        free(bytes);
        bytes = read_seek(dir, 1, &len);
    }
    char *path = seek_path(dir, 2);
    unlink(path);
    expect_words(0, "2 of 3 shards have a seek index", "verify", NULL, dir);
    free(path);
    free(bytes);
    free(other);
}

/* By its own hashes nothing is wrong: only who makes it again can tell. */
static void test_verify_finds_forgery(void **state)
{
    const char *dir = *state;
    size_t len, entries_len;
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    support_expect(0, "seek", "-q", dir, (char *)NULL);
    uint64_t want = support_tree_hash(dir);
    uint8_t *bytes = read_seek(dir, 0, &len);
    uint64_t i = seek_row_with_entries(bytes, 3);
    uint8_t *entries = seek_entries(bytes, i, &entries_len);
    entries[entries_len - 1] ^= 1;
    seek_seal_row(bytes, i, row_of(dir, 0, i).image_hash);
    seek_seal(bytes, len);
    write_seek(dir, 0, bytes, len);
    support_expect(0, "verify", dir, (char *)NULL);
    char *words = support_path("sample %llu: its entries", (unsigned long long)i);
    expect_words(1, words, "verify", "--decode", dir);
    expect_words(1, "next: millrace seek --force", "verify", "--decode", dir);
    expect_words(0, "0 seek indexes made, 3 kept", "seek", NULL, dir);
    expect_words(0, "3 seek indexes made", "seek", "--force", dir);
    assert_true(support_tree_hash(dir) == want);
    free(words);
    free(bytes);
}

/* Entries are never made of bytes that are not proven, and one shard does not keep others from theirs. */
static void test_damaged_shard(void **state)
{
    const char *dir = *state;
    char *first = seek_path(dir, 0), *second = seek_path(dir, 1), *third = seek_path(dir, 2);
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    hurt_image(dir, PER_SHARD + 3, PER_SHARD); /* 27: a JPEG */
    hurt_row(dir, 2 * PER_SHARD + 1, PER_SHARD);
    support_result r = support_millrace("seek", "--json", dir, (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.err, "train-00001.mdb: sample 27: its image differs"));
    assert_non_null(strstr(r.err, "train-00002.idx: does not match the digest in the manifest"));
    assert_non_null(strstr(r.out, "\"failed\": 2"));
    support_result_free(&r);
    assert_true(support_exists(first) && !support_exists(second) && !support_exists(third));
    support_expect(0, "reindex", dir, (char *)NULL);
    expect_words(1, "1 seek index made, 1 kept", "seek", NULL, dir);
    assert_true(support_exists(third));
    free(first);
    free(second);
    free(third);
}

/* ---- ingest ----------------------------------------------------------------------------------------------------- */

static void test_ingest(void **state)
{
    const char *dir = *state;
    char *source = support_path("%s/source", dir), *one = support_path("%s/one", dir),
         *two = support_path("%s/two", dir);
    char *partial = support_path("%s.partial", two), *half = support_path("%s/train-00000.seek.tmp", partial);
    char *stale = support_path("%s/train-00000.seek", partial);
    support_expect(0, "sample", source, "-q", "--layout=imagenette", "--images=90", "--size=40:120", (char *)NULL);
    support_expect(0, "ingest", source, one, "-q", "--shard-size=100KiB", "--no-seek-index", (char *)NULL);
    support_expect(0, "ingest", source, two, "-q", "--shard-size=100KiB", "--seek-index=16", (char *)NULL);
    support_expect(0, "seek", "-q", "--every=16", one, (char *)NULL);
    uint64_t want = support_dataset_hash(one);
    assert_true(support_dataset_hash(two) == want);
    support_expect(0, "verify", "--decode", two, (char *)NULL);
    /* What a run that was killed left is swept or rebuilt; what stood there is replaced, seek indexes and all. */
    support_write_text(half, "half");
    support_write_text(stale, MR_SEEK_MAGIC "stale");
    support_expect(0, "ingest", source, two, "-q", "--shard-size=100KiB", "--seek-index=16", "--force", (char *)NULL);
    assert_true(support_dataset_hash(two) == want);
    const char *argv[] = {support_millrace_path(), "ingest",          source, two, "--force", "-q",
                          "--shard-size=100KiB",   "--seek-index=16", NULL};
    support_result r = support_mpirun(3, argv);
    support_assert_status(&r, 0);
    support_result_free(&r);
    assert_true(support_dataset_hash(two) == want);
    support_expect(0, "seek", "-q", "--drop", one, (char *)NULL);
    support_expect(0, "ingest", source, two, "-q", "--shard-size=100KiB", "--force", (char *)NULL); /* every 8 */
    assert_true(support_dataset_hash(two) != want);
    expect_words(0, "0 seek indexes made", "seek", NULL, two);
    support_expect(0, "seek", "-q", "--drop", two, (char *)NULL);
    assert_true(support_tree_hash(two) == support_tree_hash(one));
    free(source);
    free(one);
    free(two);
    free(partial);
    free(half);
    free(stale);
}

/* Bench says who decoded. */
static void test_bench(void **state)
{
    const char *dir = *state;
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    expect_words(0, "no seek index", "bench", "--seconds=0.01", dir);
    support_expect(0, "seek", "-q", dir, (char *)NULL);
    /* 36 of 42 JPEGs, where there is time for all of them: a busy machine is given more. */
    static const char *const seconds[] = {"0.01", "2", "20", "200"};
    bool told = false;
    for (size_t i = 0; !told; i++) {
        support_result r =
            support_millrace("bench", "--json", "--seconds", seconds[i], "--threads=2", "--size=32", dir, (char *)NULL);
        support_assert_status(&r, 0);
        told = strstr(r.out, "\"seek_jpeg_share\": 0.8") && strstr(r.out, "\"own_jpeg_share\": 0.8") &&
               strstr(r.out, "\"entropy_ms\": ") && !strstr(r.out, "\"with_seek\": 0");
        if (!told && i + 1 == MR_COUNT(seconds))
            fail_msg("%s", r.out);
        support_result_free(&r);
    }
    for (unsigned i = 0; i < 3; i++) {
        char *path = seek_path(dir, i);
        support_write_text(path, "no seek index");
        free(path);
    }
    expect_words(0, "damaged or from other shards", "bench", "--seconds=0.01", dir);
}

static void test_wrong_use(void **state)
{
    const char *dir = *state;
    make_pictures(dir, 5, 5, NULL);
    support_expect(2, "seek", (char *)NULL);
    support_expect(2, "seek", "/no/such/folder", (char *)NULL);
    support_expect(2, "seek", "--every", "65536", dir, (char *)NULL);
    support_expect(2, "seek", "--every=x", dir, (char *)NULL);
    support_expect(2, "seek", "--jobs=0", dir, (char *)NULL);
    support_expect(2, "seek", "--drop", "--force", dir, (char *)NULL);
    support_expect(2, "ingest", dir, "--seek-index=70000", dir, (char *)NULL);
    char *list = support_list(dir);
    assert_null(strstr(list, ".seek"));
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_made_and_dropped),
        IN_TMPDIR(test_json),
        IN_TMPDIR(test_same_for_all),
        IN_TMPDIR(test_shared_images),
        IN_TMPDIR(test_verify_finds_damage),
        IN_TMPDIR(test_verify_finds_forgery),
        IN_TMPDIR(test_damaged_shard),
        IN_TMPDIR(test_ingest),
        IN_TMPDIR(test_bench),
        IN_TMPDIR(test_wrong_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
