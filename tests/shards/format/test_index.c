/* test_index.c - the index: built from a shard alone, located by a writer, read back and judged.
 * Invariant tested: both ways of making it give the same bytes, and no row that is handed out leads outside. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "shards/format/index.h"
#include "tests/support/shards/lmdb.h"
#include "tests/support/shards/shard.h"

static void test_row_round_trip(void **state)
{
    (void)state;
    mr_random r = support_random();
    for (int i = 0; i < 1000; i++) {
        uint8_t bytes[MR_INDEX_ROW], again[MR_INDEX_ROW], key[MR_LMDB_KEY];
        mr_row row;
        mr_random_bytes(&r, bytes, sizeof bytes);
        mr_row_unpack(bytes, &row);
        mr_row_pack(&row, again);
        assert_memory_equal(bytes, again, sizeof bytes);
        mr_key_pack(row.image_hash, key);
        assert_true(mr_key_unpack(key) == row.image_hash);
    }
}

/* The very bytes that FORMAT.md promises. */
static void test_golden_bytes(void **state)
{
    (void)state;
    static const uint8_t expected[MR_INDEX_ROW] = {
        0x08, 7,    6,    5,    4,    3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
        0x28, 0,    0,    0,    0,    0, 0, 0, 0x38, 0,    0,    0,    0,    0,    0,    0x31,
        0x44, 0x43, 0x42, 0x41, 0x54, 0, 0, 0, 0x20, 3,    0,    0,    0x58, 2,    0,    0,
        0xFF, 0xFF, 0xFF, 0xFF, 1,    6, 3, 8, 0x0A, 0,    0,    0,    0x63, 0,    0,    0};
    mr_row row = {.image_offset = 0x0102030405060708,
                  .image_hash = 0x1112131415161718,
                  .meta_offset = 0x28,
                  .meta_hash = 0x3100000000000038,
                  .image_len = 0x41424344,
                  .meta_len = 0x54,
                  .width = 800,
                  .height = 600,
                  .label = -1,
                  .codec = MR_CODEC_JPEG,
                  .orientation = 6,
                  .components = 3,
                  .bits = 8,
                  .flags = MR_FLAG_MULTI_LABEL | MR_FLAG_PROGRESSIVE,
                  .holder = 99};
    uint8_t bytes[MR_INDEX_ROW], key[MR_LMDB_KEY];
    mr_row_pack(&row, bytes);
    assert_memory_equal(bytes, expected, sizeof bytes);
    mr_key_pack(0x0102, key);
    assert_memory_equal(key, "\0\0\0\0\0\0\1\2", 8);
    mr_index_header h = {.first = 5, .rows = 2, .mdb_bytes = 8192};
    mr_index_header_pack(&h, bytes);
    assert_memory_equal(bytes, "MRINDEX1\1\0\0\0\x40\0\0\0\5\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0", 40);
    for (int i = 40; i < MR_INDEX_HEADER; i++)
        assert_int_equal(bytes[i], 0);
}

static void test_header_is_judged(void **state)
{
    (void)state;
    uint8_t good[MR_INDEX_HEADER], bytes[MR_INDEX_HEADER];
    mr_index_header h = {.first = 5, .rows = 2, .mdb_bytes = 8192}, out;
    mr_error err;
    mr_index_header_pack(&h, good);
    assert_int_equal(mr_index_header_unpack(good, 192, "t", &out, &err), MR_OK);
    assert_true(out.first == 5 && out.rows == 2 && out.mdb_bytes == 8192);
    for (int i = 0; i < MR_INDEX_HEADER; i++) {
        memcpy(bytes, good, sizeof bytes);
        bytes[i] ^= 0x40;
        bool free_value = (i >= 16 && i < 24) || (i >= 32 && i < 40); /* the manifest judges these */
        assert_int_equal(mr_index_header_unpack(bytes, 192, "t", &out, &err), free_value ? MR_OK : MR_BAD_DATA);
    }
    for (uint64_t size = 0; size < 300; size++)
        assert_int_equal(mr_index_header_unpack(good, size, "t", &out, &err), size == 192 ? MR_OK : MR_BAD_DATA);
    memcpy(bytes, good, sizeof bytes);
    memset(bytes + 24, 0xFF, 8);
    assert_int_equal(mr_index_header_unpack(bytes, 192, "t", &out, &err), MR_BAD_DATA);
    bytes[8] = 2;
    mr_index_header_unpack(bytes, 192, "t", &out, &err);
    assert_non_null(strstr(err.text, "version 2; this program reads version 1"));
}

/* ---- built and located ---------------------------------------------------------------------------------------- */

static mr_row *read_rows(const char *dir, const mr_shard *shard)
{
    mr_row *rows = NULL;
    mr_error err;
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    if (mr_index_read(fd, shard, &rows, &err) != MR_OK)
        fail_msg("%s", err.text);
    close(fd);
    return rows;
}

/* Every record by the index alone is what was put in, and its facts are those of the sample. */
static void expect_samples(const char *dir, const mr_shard *shard, uint64_t seed, const mr_row *rows)
{
    char *path = support_path("%s/%s.mdb", dir, shard->name);
    uint8_t *file = support_read(path, NULL);
    for (uint64_t i = 0; i < shard->samples; i++) {
        drawn d = draw_sample(seed, shard->first, shard->first + i);
        const mr_row *row = &rows[i];
        mr_image_facts facts;
        assert_int_equal(row->image_len, d.image.len);
        assert_memory_equal(file + row->image_offset, d.image.bytes, d.image.len);
        assert_true(row->image_hash == mr_hash64(d.image.bytes, d.image.len));
        assert_int_equal(row->meta_len, strlen(d.meta));
        assert_memory_equal(file + row->meta_offset, d.meta, row->meta_len);
        assert_true(row->meta_hash == mr_hash64(d.meta, row->meta_len));
        assert_int_equal(mr_image_examine(d.image.bytes, d.image.len, NULL, &facts, NULL), MR_OK);
        assert_int_equal(row->width, facts.width);
        assert_int_equal(row->height, facts.height);
        assert_int_equal(row->codec, facts.codec);
        assert_int_equal(row->holder, d.image_of - shard->first);
        uint32_t flags = facts.flags | (d.shares ? MR_FLAG_SAME_BYTES : 0) |
                         (strstr(d.meta, "\"labels\"") ? MR_FLAG_MULTI_LABEL : 0) |
                         (strstr(d.meta, "\"unannotated\"") ? MR_FLAG_UNANNOTATED : 0);
        assert_int_equal(row->flags, flags);
        const char *label = strstr(d.meta, "\",\"label\":");
        assert_int_equal(row->label, label ? atoi(label + 10) : -1);
        drawn_free(&d);
    }
    free(file);
    free(path);
}

/* liblmdb finds the image of sample n where the row says: the same bytes both ways. */
typedef struct by_rows {
    const mr_row *rows;
    const uint8_t *file;
    uint64_t first;
    bool image;
} by_rows;

static void compare_lmdb(void *ctx, uint64_t sample, const uint8_t *bytes, size_t len)
{
    const by_rows *b = ctx;
    const mr_row *row = &b->rows[sample - b->first];
    assert_int_equal(len, b->image ? row->image_len : row->meta_len);
    assert_memory_equal(bytes, b->file + (b->image ? row->image_offset : row->meta_offset), len);
}

static void expect_lmdb_agrees(const char *dir, const mr_shard *shard, const mr_row *rows)
{
    char *path = support_path("%s/%s.mdb", dir, shard->name);
    by_rows b = {.rows = rows, .file = support_read(path, NULL), .first = shard->first, .image = true};
    assert_int_equal(lmdb_each(path, "image", compare_lmdb, &b), shard->images);
    b.image = false;
    assert_int_equal(lmdb_each(path, "meta", compare_lmdb, &b), shard->samples);
    free((void *)(uintptr_t)b.file);
    free(path);
}

/* What a writer does: it knows everything but the places. */
static void expect_located_equal(const char *dir, const mr_shard *shard, const mr_row *rows)
{
    char *mdb = support_path("%s/%s.mdb", dir, shard->name), *idx = support_path("%s/%s.idx", dir, shard->name);
    mr_row *mine = calloc(shard->samples, sizeof *mine);
    mr_buf packed = {0};
    mr_error err;
    size_t len;
    uint8_t *built = support_read(idx, &len);
    int fd = open(mdb, O_RDONLY);
    memcpy(mine, rows, shard->samples * sizeof *mine);
    for (uint64_t i = 0; i < shard->samples; i++)
        mine[i].image_offset = mine[i].meta_offset = 0xDEAD;
    if (mr_index_locate(fd, shard->mdb.bytes, "t.mdb", shard->first, shard->samples, mine, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_index_pack(mine, shard->first, shard->samples, shard->mdb.bytes, &packed);
    assert_int_equal(packed.len, len);
    assert_memory_equal(packed.data, built, len);
    mine[shard->samples - 1].meta_len++;
    assert_int_equal(mr_index_locate(fd, shard->mdb.bytes, "t.mdb", shard->first, shard->samples, mine, &err),
                     MR_BAD_DATA);
    assert_non_null(strstr(err.text, "meta has the wrong length"));
    close(fd);
    mr_buf_free(&packed);
    free(built);
    free(mine);
    free(mdb);
    free(idx);
}

static void test_build_and_locate(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    static const uint64_t counts[] = {1, 2, 7, 100, 400};
    for (size_t i = 0; i < MR_COUNT(counts); i++) {
        char name[20];
        snprintf(name, sizeof name, "train-%05zu", i);
        mr_shard shard = draw_shard(dir, name, 40 + i, i * 1000003, counts[i]);
        mr_row *rows = read_rows(dir, &shard);
        expect_samples(dir, &shard, 40 + i, rows);
        expect_lmdb_agrees(dir, &shard, rows);
        expect_located_equal(dir, &shard, rows);
        free(rows);
    }
    support_tmpdir_remove(dir);
}

/* ---- shards that are not what their manifest says -------------------------------------------------------------- */

/* `images` has a letter a sample: p a picture, x no picture, - none; metas as given. */
static void expect_build(const char *images, const char *const *metas, size_t meta_count, uint64_t samples,
                         const char *words)
{
    char *dir = support_tmpdir(), *path = support_path("%s/a.mdb", dir);
    picture p = make_png(3, 3, 2, 8, false);
    lmdb_file *f = lmdb_create(path, 0, 0);
    for (uint64_t i = 0; images[i]; i++)
        if (images[i] == 'p')
            lmdb_put(f, true, 10 + i, p.bytes, p.len);
        else if (images[i] == 'x')
            lmdb_put(f, true, 10 + i, "GIF89a", 6);
    for (uint64_t i = 0; i < meta_count; i++)
        lmdb_put(f, false, 10 + i, metas[i], strlen(metas[i]));
    lmdb_finish(f);
    int fd;
    uint64_t size;
    mr_buf out = {0};
    mr_error err = {0};
    assert_int_equal(mr_file_open(AT_FDCWD, path, false, &fd, &size, &err), MR_OK);
    mr_status status = mr_index_build(fd, size, "t.mdb", 10, samples, &out, &err);
    if (status != (words ? MR_BAD_DATA : MR_OK) || (words && !strstr(err.text, words)))
        fail_msg("status %d, \"%s\", expected \"%s\"", status, err.text, words ? words : "success");
    assert_int_equal(out.len, words ? 0 : MR_INDEX_HEADER + samples * MR_INDEX_ROW);
    close(fd);
    mr_buf_free(&out);
    picture_free(&p);
    free(path);
    support_tmpdir_remove(dir);
}

#define EXPECT_BUILD(images, samples, words, ...)                                                                      \
    do {                                                                                                               \
        const char *const metas_[] = {__VA_ARGS__};                                                                    \
        expect_build(images, metas_, MR_COUNT(metas_), samples, words);                                                \
    } while (0)

static void test_wrong_shards(void **state)
{
    (void)state;
    EXPECT_BUILD("pp", 2, NULL, "{}", "{}");
    EXPECT_BUILD("p-", 2, NULL, "{}", "{\"image_of\":10}");
    EXPECT_BUILD("pp", 1, "meta for sample 11", "{}", "{}");
    EXPECT_BUILD("pp", 3, "sample 12: has no meta", "{}", "{}");
    EXPECT_BUILD("p-", 2, "sample 11: has no image", "{}", "{}");
    EXPECT_BUILD("-p", 2, "image for sample 11", "{}", "{}");
    EXPECT_BUILD("ppp", 2, "image for sample 12", "{}", "{}");
    EXPECT_BUILD("pp", 2, "image for sample 11", "{}", "{\"image_of\":10}");
    EXPECT_BUILD("-p", 2, "sample 10: its \"image_of\"", "{\"image_of\":11}", "{}");
    EXPECT_BUILD("-", 1, "sample 10: its \"image_of\"", "{\"image_of\":10}");
    EXPECT_BUILD("p-", 2, "sample 11: its \"image_of\"", "{}", "{\"image_of\":9}");
    EXPECT_BUILD("p--", 3, "sample 12: its \"image_of\"", "{}", "{\"image_of\":10}", "{\"image_of\":11}");
    EXPECT_BUILD("px", 2, "sample 11: GIF", "{}", "{}");
    EXPECT_BUILD("pp", 2, "sample 11: meta", "{}", "[]");
    EXPECT_BUILD("pp", 2, "sample 10: its meta has the wrong length", "1", "{}");
    EXPECT_BUILD("pp", UINT32_MAX, "do not fit", "{}", "{}");
}

/* ---- indexes that lie ------------------------------------------------------------------------------------------ */

static mr_status parse(mr_row *rows, uint64_t samples, const mr_shard *shard, mr_error *err)
{
    mr_buf bytes = {0};
    mr_row *out = NULL;
    mr_index_pack(rows, 3, samples, 8192, &bytes);
    mr_status status = mr_index_parse(bytes.data, bytes.len, shard, &out, err);
    if (status == MR_OK)
        assert_memory_equal(out, rows, samples * sizeof *rows);
    else
        assert_null(out);
    free(out);
    mr_buf_free(&bytes);
    return status;
}

static void test_rows_are_judged(void **state)
{
    (void)state;
    const mr_shard shard = {.name = "a-00000", .first = 3, .samples = 3, .mdb = {.bytes = 8192}};
    const mr_row good = {.image_offset = 4112,
                         .image_hash = 7,
                         .meta_offset = 8000,
                         .image_len = 100,
                         .meta_len = 192,
                         .width = 1,
                         .height = 1,
                         .label = -1,
                         .codec = 3,
                         .orientation = 8,
                         .components = 4,
                         .bits = 16};
    mr_row rows[3];
    mr_error err;
#define TRY(expected, change)                                                                                          \
    do {                                                                                                               \
        for (uint32_t i_ = 0; i_ < 3; i_++) {                                                                          \
            rows[i_] = good;                                                                                           \
            rows[i_].holder = i_;                                                                                      \
        }                                                                                                              \
        change;                                                                                                        \
        assert_int_equal(parse(rows, 3, &shard, &err), expected);                                                      \
        if ((expected) != MR_OK)                                                                                       \
            assert_non_null(strstr(err.text, "a-00000.idx: sample 5"));                                                \
    } while (0)
    TRY(MR_OK, (void)0);
    TRY(MR_OK, rows[2].flags = MR_FLAG_SAME_BYTES; rows[2].holder = 0);
    TRY(MR_OK, rows[2].image_offset = 8092);
    TRY(MR_BAD_DATA, rows[2].image_offset = 8093);
    TRY(MR_BAD_DATA, rows[2].image_offset = UINT64_MAX - 50);
    TRY(MR_BAD_DATA, rows[2].image_len = 0);
    TRY(MR_BAD_DATA, rows[2].image_len = UINT32_MAX);
    TRY(MR_BAD_DATA, rows[2].meta_len = 193);
    TRY(MR_BAD_DATA, rows[2].meta_len = 1);
    TRY(MR_BAD_DATA, rows[2].meta_offset = 8193);
    TRY(MR_BAD_DATA, rows[2].width = 0);
    TRY(MR_BAD_DATA, rows[2].height = 0);
    TRY(MR_BAD_DATA, rows[2].label = -2);
    TRY(MR_BAD_DATA, rows[2].codec = 0);
    TRY(MR_BAD_DATA, rows[2].codec = 4);
    TRY(MR_BAD_DATA, rows[2].orientation = 0);
    TRY(MR_BAD_DATA, rows[2].orientation = 9);
    TRY(MR_BAD_DATA, rows[2].components = 5);
    TRY(MR_BAD_DATA, rows[2].bits = 0);
    TRY(MR_BAD_DATA, rows[2].holder = 1);
    TRY(MR_BAD_DATA, rows[2].holder = 3);
    TRY(MR_BAD_DATA, rows[2].flags = MR_FLAG_SAME_BYTES);
    TRY(MR_BAD_DATA, rows[2].flags = MR_FLAG_SAME_BYTES; rows[2].holder = 0; rows[2].image_hash++);
    TRY(MR_BAD_DATA, rows[2].flags = rows[1].flags = MR_FLAG_SAME_BYTES; rows[2].holder = 1; rows[1].holder = 0);
#undef TRY
    mr_shard other = shard;
    other.first = 4;
    assert_int_equal(parse(rows, 3, &other, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "another shard"));
    other = shard;
    other.mdb.bytes = 12288;
    assert_int_equal(parse(rows, 3, &other, &err), MR_BAD_DATA);
    other = shard;
    other.samples = 2;
    assert_int_equal(parse(rows, 3, &other, &err), MR_BAD_DATA);
    mr_row *out = NULL;
    assert_int_equal(mr_index_parse("MRINDEX1", 8, &shard, &out, &err), MR_BAD_DATA);
}

/* Random damage: whatever is handed out leads inside the shard. */
static void test_damaged_index(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *path = support_path("%s/a-00000.idx", dir);
    mr_shard shard = draw_shard(dir, "a-00000", 9, 0, 50);
    mr_random r = support_random();
    size_t len, refused = 0;
    uint8_t *bytes = support_read(path, &len);
    for (int trial = 0; trial < 2000; trial++) {
        size_t at = mr_random_below(&r, len), left = trial % 10 ? len : mr_random_below(&r, len);
        uint8_t *copy = malloc(left ? left : 1), was = bytes[at];
        mr_row *rows = NULL;
        bytes[at] ^= (uint8_t)(1 + mr_random_below(&r, 255));
        memcpy(copy, bytes, left);
        bytes[at] = was;
        if (mr_index_parse(copy, left, &shard, &rows, NULL) != MR_OK)
            refused++;
        for (uint64_t i = 0; rows && i < shard.samples; i++) {
            assert_true(rows[i].image_offset + rows[i].image_len <= shard.mdb.bytes);
            assert_true(rows[i].meta_offset + rows[i].meta_len <= shard.mdb.bytes);
            assert_true(rows[i].holder < shard.samples);
        }
        free(rows);
        free(copy);
    }
    assert_true(refused > 500);
    free(bytes);
    free(path);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_round_trip),   cmocka_unit_test(test_golden_bytes),
        cmocka_unit_test(test_header_is_judged), cmocka_unit_test(test_build_and_locate),
        cmocka_unit_test(test_wrong_shards),     cmocka_unit_test(test_rows_are_judged),
        cmocka_unit_test(test_damaged_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
