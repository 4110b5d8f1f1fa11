/* test_build_resume.c - what an interrupted ingest left behind, by accident or forged.
 * Invariant tested: whatever is in DATASET.partial, the dataset is the one that a clean ingest makes; a shard that
 * differs from what the source gives is rewritten, and only that one. */
#define XXH_INLINE_ALL
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/files/file.h"
#include "shards/format/index.h"
#include "tests/support/images/image.h"
#include "tests/support/shards/seek.h"

/* LONG: a picture with this many bytes after its end that XXH3 takes it in stripes; two words are set at will. */
enum { LONG = 8192, STRIPE = 64, ROOM = 16 };

#define ANY UINT64_MAX

static char *dir, *source, *clean, *target, *partial;
static mr_manifest *manifest;
static uint64_t clean_hash;

static uint64_t key(unsigned stripe)
{
    uint64_t k;
    memcpy(&k, XXH3_kSecret + (size_t)8 * stripe, 8);
    return k;
}

/* A word whose lower half equals its key's is multiplied by 0: the upper half counts in one sum only (test_forgery). */
static void put_word(uint8_t *record, unsigned stripe, uint32_t high)
{
    uint64_t word = (key(stripe) & UINT32_MAX) | (uint64_t)high << 32;
    memcpy(record + LONG / 2 + stripe * STRIPE, &word, 8);
}

static void put_words(uint8_t *record, uint32_t moved)
{
    put_word(record, 1, 0x40000000 + moved);
    put_word(record, 2, 0x50000000 - moved);
}

static void add_long_picture(void)
{
    picture p = make_jpeg((jpeg_kind){.width = 40, .height = 40, .components = 3});
    uint8_t *bytes = calloc(LONG, 1);
    char *path = support_path("%s/imagenette2-160/train/n01440764/long.JPEG", source);
    assert_true(p.len < LONG / 2);
    memcpy(bytes, p.bytes, p.len);
    put_words(bytes, 0);
    support_write(path, bytes, LONG);
    picture_free(&p);
    free(bytes);
    free(path);
}

static void ingest(const char *to, uint64_t expected)
{
    support_result r = support_millrace("ingest", source, to, "--shard-size", "64KiB", (char *)NULL);
    support_assert_status(&r, 0);
    const char *words = strstr(r.out, " reused");
    while (words && words > r.out && words[-1] != '\n')
        words--;
    uint64_t found = words ? strtoull(words, NULL, 10) : 0;
    if (expected != ANY && found != expected)
        fail_msg("%llu shards reused instead of %llu", (unsigned long long)found, (unsigned long long)expected);
    support_result_free(&r);
}

static int set_up(void **state)
{
    mr_error err;
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    clean = support_path("%s/clean", dir);
    target = support_path("%s/out", dir);
    partial = support_path("%s/out.partial", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "40", "--size", "64:96", "--quiet",
                   (char *)NULL);
    add_long_picture();
    ingest(clean, 0);
    clean_hash = support_dataset_hash(clean);
    if (mr_manifest_open(clean, &manifest, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mr_manifest_free(manifest);
    free(source);
    free(clean);
    free(target);
    free(partial);
    support_tmpdir_remove(dir);
    return 0;
}

/* ---- a folder as a killed ingest leaves it ---------------------------------------------------------------------- */

static size_t shards(const mr_shard *out[ROOM])
{
    size_t n = 0;
    for (size_t i = 0; i < manifest->split_count; i++)
        for (size_t k = 0; k < manifest->splits[i].shard_count; k++) {
            assert_true(n < ROOM);
            out[n++] = &manifest->splits[i].shards[k];
        }
    assert_true(n > 2);
    return n;
}

static void write_file(const mr_shard *s, const char *ending, const void *bytes, size_t len)
{
    support_writef(bytes, len, "%s/%s.%s", partial, s->name, ending);
}

static uint8_t *read_clean(const mr_shard *s, const char *ending, size_t *len)
{
    char *path = support_path("%s/%s.%s", clean, s->name, ending);
    uint8_t *bytes = support_read(path, len);
    free(path);
    return bytes;
}

/* NAME.done for the .mdb that lies there; counts that nobody should believe beside it. */
static char *done_text(const mr_shard *s)
{
    char *path = support_path("%s/%s.mdb", partial, s->name), xxh[33], sha[65];
    size_t len;
    uint8_t *bytes = support_read(path, &len), x[16], d[32];
    mr_hash128(bytes, len, x);
    mr_sha256(bytes, len, d);
    mr_hex(x, 16, xxh);
    mr_hex(d, 32, sha);
    char *text = support_path("{\"mdb\": {\"bytes\": %zu, \"xxh3_128\": \"%s\", \"sha256\": \"%s\"}, \"images\": 1, "
                              "\"image_bytes\": 7}",
                              len, xxh, sha);
    free(bytes);
    free(path);
    return text;
}

static void leave(const mr_shard *s)
{
    static const char *const endings[] = {"mdb", "idx", "seek"};
    for (size_t i = 0; i < MR_COUNT(endings); i++) {
        size_t len;
        uint8_t *bytes = read_clean(s, endings[i], &len);
        write_file(s, endings[i], bytes, len);
        free(bytes);
    }
    char *done = done_text(s);
    write_file(s, "done", done, strlen(done));
    free(done);
}

static void leave_all(void)
{
    const mr_shard *list[ROOM];
    for (size_t i = 0, n = shards(list); i < n; i++)
        leave(list[i]);
}

static void expect_clean(uint64_t taken_over)
{
    ingest(target, taken_over);
    assert_true(support_dataset_hash(target) == clean_hash);
    assert_false(support_exists(partial));
    support_tmpdir_remove(strdup(target));
}

/* ---- forgeries: the first shard tells another story, with every hash to match ------------------------------------ */

typedef struct story {
    mr_row *rows;
    uint64_t samples;
    uint8_t *mdb;
    size_t len;
} story;

static void nothing(story *t)
{
    (void)t;
}

static void labels(story *t)
{
    for (uint64_t i = 0; i < t->samples; i++)
        t->rows[i].label = (t->rows[i].label + 1) % 10;
}

static void rehash(story *t, uint64_t i)
{
    t->rows[i].image_hash = mr_hash64(t->mdb + t->rows[i].image_offset, t->rows[i].image_len);
    t->rows[i].meta_hash = mr_hash64(t->mdb + t->rows[i].meta_offset, t->rows[i].meta_len);
}

static void label_and_meta(story *t)
{
    char *at = memmem(t->mdb + t->rows[0].meta_offset, t->rows[0].meta_len, "\"label\":0", 9);
    assert_non_null(at);
    at[8] = '1';
    t->rows[0].label = 1;
    rehash(t, 0);
}

static void picture_bytes(story *t)
{
    t->mdb[t->rows[1].image_offset + t->rows[1].image_len / 2] ^= 1;
    rehash(t, 1);
}

static void picture_of_equal_hash(story *t)
{
    uint64_t i = 0;
    while (i < t->samples && t->rows[i].image_len != LONG)
        i++;
    assert_true(i < t->samples);
    uint8_t *record = t->mdb + t->rows[i].image_offset;
    put_words(record, 0x1234567);
    assert_true(mr_hash64(record, LONG) == t->rows[i].image_hash);
}

static void pictures_swapped(story *t)
{
    mr_row a = t->rows[0], *b = &t->rows[1];
    t->rows[0].image_offset = b->image_offset;
    t->rows[0].image_hash = b->image_hash;
    t->rows[0].image_len = b->image_len;
    b->image_offset = a.image_offset;
    b->image_hash = a.image_hash;
    b->image_len = a.image_len;
}

static void flags(story *t)
{
    t->rows[0].flags |= MR_FLAG_UNANNOTATED;
}

/* What LMDB itself would find: the key of sample 1 becomes 9 wherever it stands in a node. */
static void pages(story *t)
{
    static const uint8_t sample_1[MR_LMDB_KEY] = {0, 0, 0, 0, 0, 0, 0, 1};
    size_t changed = 0;
    for (uint8_t *at = t->mdb, *end = t->mdb + t->len; (at = memmem(at, (size_t)(end - at), sample_1, 8)); at += 8)
        if ((size_t)(at - t->mdb) % MR_LMDB_PAGE > 16) {
            at[7] = 99;
            changed++;
        }
    assert_true(changed >= 2);
}

static void forge(const mr_shard *s, void (*change)(story *))
{
    size_t len;
    mr_error err;
    mr_buf packed = {0};
    story t = {.samples = s->samples, .mdb = read_clean(s, "mdb", NULL), .len = s->mdb.bytes};
    uint8_t *idx = read_clean(s, "idx", &len);
    if (mr_index_parse(idx, len, s, &t.rows, &err) != MR_OK)
        fail_msg("%s", err.text);
    change(&t);
    mr_index_pack(t.rows, s->first, s->samples, s->mdb.bytes, &packed);
    write_file(s, "idx", packed.data, packed.len);
    write_file(s, "mdb", t.mdb, t.len);
    char *done = done_text(s);
    write_file(s, "done", done, strlen(done));
    free(done);
    mr_buf_free(&packed);
    free(t.rows);
    free(t.mdb);
    free(idx);
}

static void test_forged_shards(void **state)
{
    (void)state;
    static void (*const stories[])(story *) = {
        nothing, labels, label_and_meta, picture_bytes, picture_of_equal_hash, pictures_swapped, flags, pages};
    const mr_shard *list[ROOM];
    size_t n = shards(list);
    for (size_t i = 0; i < MR_COUNT(stories); i++) {
        leave_all();
        forge(list[0], stories[i]);
        expect_clean(i == 0 ? n : n - 1);
    }
}

/* Whole by its own hashes, which is all that a seek index has. */
static void test_a_forged_seek_index(void **state)
{
    (void)state;
    const mr_shard *list[ROOM];
    mr_row *rows;
    mr_error err;
    size_t n = shards(list), len, idx_len, entries;
    leave_all();
    uint8_t *seek = read_clean(list[0], "seek", &len), *idx = read_clean(list[0], "idx", &idx_len);
    if (mr_index_parse(idx, idx_len, list[0], &rows, &err) != MR_OK)
        fail_msg("%s", err.text);
    uint64_t row = seek_row_with_entries(seek, 0);
    seek_entries(seek, row, &entries)[entries - 1] ^= 2;
    seek_seal_row(seek, row, rows[row].image_hash);
    seek_seal(seek, len);
    write_file(list[0], "seek", seek, len);
    expect_clean(n);
    free(rows);
    free(seek);
    free(idx);
}

/* ---- accidents ------------------------------------------------------------------------------------------------- */

/* Every byte of a .done by turns, and every length, a shard a place: some runs serve them all. */
static void test_damaged_done(void **state)
{
    (void)state;
    const mr_shard *list[ROOM];
    size_t n = shards(list), longest = 0;
    mr_random random = support_random();
    for (size_t at = 0; at == 0 || at < longest; at += n) {
        leave_all();
        for (size_t i = 0; i < n; i++) {
            char *done = done_text(list[i]);
            size_t len = strlen(done), here = at + i;
            longest = len > longest ? len : longest;
            if (here < len && mr_random_below(&random, 2))
                done[here] = (char)(done[here] ^ (1 + mr_random_below(&random, 255)));
            else if (here < len)
                len = here;
            write_file(list[i], "done", done, len);
            free(done);
        }
        expect_clean(ANY);
    }
}

/* Bytes of the .mdb where no record lies, too: the digest of a dataset counts them all. */
static void test_damaged_shards(void **state)
{
    (void)state;
    const mr_shard *list[ROOM];
    size_t n = shards(list);
    mr_random random = support_random();
    for (int trial = 0; trial < 12; trial++) {
        leave_all();
        for (size_t i = 0; i < n; i++) {
            size_t len;
            const char *ending = trial % 3 ? "mdb" : "idx";
            uint8_t *bytes = read_clean(list[i], ending, &len);
            bytes[mr_random_below(&random, len)] ^= (uint8_t)(1 + mr_random_below(&random, 255));
            write_file(list[i], ending, bytes, trial % 4 == 3 ? mr_random_below(&random, len) : len);
            free(bytes);
        }
        expect_clean(0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_forged_shards), TEST(test_a_forged_seek_index),
                                       TEST(test_damaged_done), TEST(test_damaged_shards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
