/* test_forgery.c - two different records with equal XXH3-64, in shards with equal XXH3-128: SHA-256 tells them apart.
 *
 * XXH3 takes an input in blocks of 16 stripes of 8 words.  Word i of stripe n is held against a key, K = secret[n + i]
 * (in words): its lane gets (low half of w ^ K) * (high half of w ^ K), its neighbour lane gets w itself.
 *
 *      low half of w = low half of K:   the product is 0 whatever the high half is
 *      two such words of one lane:      +d on one and -d on the other leave the neighbour as it was, too
 *
 * In the file the same words meet other keys, where the products do differ.  Two words of the neighbour lane, in the
 * unused end of the record's last page, put that right: one is free in its low half, the other in its high half.
 *
 *      file block   | record's end: .. X .. Y .. | unused: .. P .. Q .. |
 *
 * Invariant tested: what two 128-bit checks take for whole, verify does not. */
#define XXH_INLINE_ALL
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/hash.h"
#include "tests/support/shards/dataset_maker.h"
#include "shards/format/index.h"
#include "millrace.h"

enum { STRIPE = 64, TAIL = 8192, LENGTH = TAIL + 512, X = TAIL + STRIPE, Y = TAIL + 2 * STRIPE };

static uint64_t key(unsigned stripe, unsigned word)
{
    uint64_t k;
    memcpy(&k, XXH3_kSecret + 8 * (stripe + word), 8);
    return k;
}

static uint64_t low(uint64_t w)
{
    return w & UINT32_MAX;
}

static uint64_t high(uint64_t w)
{
    return w >> 32;
}

static uint64_t product(uint64_t w, uint64_t k)
{
    return low(w ^ k) * high(w ^ k);
}

typedef struct forgery {
    uint64_t x, y, p, q;
} forgery;

/* The record's words are word 0 of stripes 1 and 2 in the record; in the file, whose page puts 16 bytes before it, word
 * 2.  Those in the unused end are word 3 of the file's stripes 10 and 11. */
static void forge(forgery *a, forgery *b)
{
    const uint64_t d = 0x1234567;
    *a = (forgery){low(key(1, 0)) | UINT64_C(0x40000000) << 32, low(key(2, 0)) | UINT64_C(0x50000000) << 32,
                   key(10, 3) & ~(uint64_t)UINT32_MAX, low(key(11, 3))};
    *b = *a;
    b->x += d << 32;
    b->y -= d << 32;
    uint64_t more =
        product(b->x, key(1, 2)) - product(a->x, key(1, 2)) + product(b->y, key(2, 2)) - product(a->y, key(2, 2));
    b->p += low(-more);
    b->q += high(-more) << 32;
}

static void put(const char *mdb, uint64_t at, uint64_t word)
{
    int fd = open(mdb, O_RDWR);
    assert_int_equal(pwrite(fd, &word, sizeof word, (off_t)at), sizeof word);
    close(fd);
}

static void put_forgery(const char *mdb, uint64_t record, const forgery *f)
{
    put(mdb, record + X, f->x);
    put(mdb, record + Y, f->y);
    put(mdb, record - 16 + TAIL + 10 * STRIPE + 24, f->p);
    put(mdb, record - 16 + TAIL + 11 * STRIPE + 24, f->q);
}

/* A JPEG with something after its end marker, as cameras write it: any bytes will do there. */
static picture long_jpeg(void)
{
    picture jpeg = make_jpeg((jpeg_kind){.width = 40, .height = 40, .components = 3});
    uint8_t *bytes = calloc(LENGTH, 1);
    assert_true(jpeg.len < TAIL);
    memcpy(bytes, jpeg.bytes, jpeg.len);
    picture_free(&jpeg);
    return (picture){bytes, LENGTH};
}

static mr_row row_of(const char *idx)
{
    mr_row row;
    uint8_t *bytes = support_read(idx, NULL);
    mr_row_unpack(bytes + MR_INDEX_HEADER, &row);
    free(bytes);
    return row;
}

static void test_equal_xxh3_is_not_enough(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *mdb = support_path("%s/train-00000.mdb", dir),
         *idx = support_path("%s/train-00000.idx", dir);
    picture first = long_jpeg(), second = make_jpeg((jpeg_kind){.width = 90, .height = 90, .components = 3});
    forgery a, b;
    forge(&a, &b);
    memcpy(first.bytes + X, &a.x, 8);
    memcpy(first.bytes + Y, &a.y, 8);
    const made samples[2] = {{"a.jpg", first, ",\"label\":1", false, 0}, {"b.jpg", second, ",\"label\":2", false, 0}};
    const made_split split = {"train", samples, 2, 2};
    dataset_make(dir, &split, 1);
    mr_row row = row_of(idx);
    assert_int_equal(row.image_offset % 4096, 16);
    assert_int_equal(row.image_len, LENGTH);
    put_forgery(mdb, row.image_offset, &a);
    dataset_reseal(dir); /* what was ingested, and all may pin */
    support_expect(0, "verify", dir, "--decode", "-q", (char *)NULL);

    put_forgery(mdb, row.image_offset, &b);
    mr_dataset *ds;
    mr_sample_view v = {0};
    assert_int_equal(mr_dataset_open(dir, &ds, NULL), MR_OK);
    assert_int_equal(mr_dataset_read(ds, "train", 0, &v, NULL), MR_OK); /* the record's XXH3-64 is equal */
    assert_true(v.image_len == first.len && memcmp(v.image, first.bytes, first.len) != 0);
    mr_sample_view_free(&v);
    mr_dataset_free(ds);
    support_expect(0, "verify", dir, "--decode", "--no-sha256", "-q", (char *)NULL); /* the file's XXH3-128, too */

    support_result r = support_millrace("verify", dir, (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.out, "train-00000.mdb: its SHA-256 is "));
    assert_non_null(strstr(r.out, "though XXH3-128 agrees: the file or the manifest was changed on purpose"));
    support_result_free(&r);
    picture_free(&first);
    picture_free(&second);
    free(mdb);
    free(idx);
    support_tmpdir_remove(dir);
}

/* The pair in its simplest form: 4 KiB, equal by both hashes. */
static void test_pair_of_blocks(void **state)
{
    (void)state;
    uint64_t a[512] = {0}, b[512];
    uint8_t hash_a[16], hash_b[16];
    a[8] = low(key(1, 0)) | (uint64_t)7 << 32;
    a[16] = low(key(2, 0)) | (uint64_t)9 << 32;
    memcpy(b, a, sizeof a);
    b[8] += (uint64_t)1 << 32;
    b[16] -= (uint64_t)1 << 32;
    mr_hash128(a, sizeof a, hash_a);
    mr_hash128(b, sizeof b, hash_b);
    assert_true(mr_hash64(a, sizeof a) == mr_hash64(b, sizeof b));
    assert_memory_equal(hash_a, hash_b, 16);
    uint8_t sha_a[32], sha_b[32];
    mr_sha256(a, sizeof a, sha_a);
    mr_sha256(b, sizeof b, sha_b);
    assert_memory_not_equal(sha_a, sha_b, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pair_of_blocks),
                                       cmocka_unit_test(test_equal_xxh3_is_not_enough)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
