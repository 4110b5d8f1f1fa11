/* test_seek_check.c - `seek --check`.  Covers seek/shard.c.
 * Invariant tested: a seek index passes if and only if it is, byte for byte, what its shard gives, whatever its hashes
 * say; nothing is written. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shards/format/index.h"
#include "tests/support/shards/loader.h"
#include "tests/support/shards/seek.h"

enum { SAMPLES = 60, PER_SHARD = 20 };

static void expect_checked(const char *dir, int status, const char *words)
{
    uint64_t before = support_tree_hash(dir);
    support_result r = support_millrace("seek", "--check", dir, (char *)NULL);
    if (r.status != status || (!strstr(r.out, words) && !strstr(r.err, words)))
        fail_msg("no \"%s\" with status %d: %d: %s%s", words, status, r.status, r.out, r.err);
    support_result_free(&r);
    assert_true(support_tree_hash(dir) == before);
}

static void good_ones_pass(void **state)
{
    static const char *const spacings[] = {"0", "3", "16"};
    const char *dir = *state;
    char *second = support_path("%s/train-00001.seek", dir);
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    expect_checked(dir, 0, "0 seek indexes checked; 3 shards without one");
    for (size_t i = 0; i < MR_COUNT(spacings); i++) {
        support_expect(0, "seek", "-q", "--every", spacings[i], dir, (char *)NULL);
        expect_checked(dir, 0, "3 seek indexes checked\n");
    }
    unlink(second);
    expect_checked(dir, 0, "2 seek indexes checked; 1 shard without one");
    support_result r = support_millrace("seek", "--check", "--json", dir, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "\"good\": 2"));
    assert_non_null(strstr(r.out, "\"none\": 1"));
    assert_non_null(strstr(r.out, "\"ok\": true"));
    support_result_free(&r);
    free(second);
}

/* Shifts a predictor of row i from the second entry on, as each is counted from the one before: a crop that begins
 * there finds all as predicted, and is brighter or darker. */
static bool shift(uint8_t *bytes, uint64_t i)
{
    size_t len, at = 0;
    uint8_t *entries = seek_entries(bytes, i, &len);
    for (int number = 0; number < 2 && at < len; number++) /* the spacing, and the bits between the first two */
        while (at < len && entries[at++] & 0x80)
            ;
    if (at >= len || entries[at] >= 0x7e)
        return false;
    entries[at] += 2;
    return true;
}

static void forged_ones_do_not(void **state)
{
    const char *dir = *state;
    char *path = support_path("%s/train-00001.seek", dir), *idx = support_path("%s/train-00001.idx", dir);
    size_t len, forged = 0;
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    support_expect(0, "seek", "-q", dir, (char *)NULL);
    uint8_t *bytes = support_read(path, &len), *rows = support_read(idx, NULL), *copy = malloc(len);
    assert_non_null(copy);
    for (uint64_t i = 0; i < PER_SHARD; i++) {
        mr_row row;
        memcpy(copy, bytes, len);
        if (!shift(copy, i))
            continue;
        mr_row_unpack(rows + MR_INDEX_HEADER + i * MR_INDEX_ROW, &row);
        seek_seal_row(copy, i, row.image_hash);
        seek_seal(copy, len);
        support_write(path, copy, len);
        support_expect(0, "verify", "-q", "--deep", dir, (char *)NULL); /* its hashes are right */
        support_expect(1, "verify", "-q", "--decode", dir, (char *)NULL);
        expect_checked(dir, 1,
                       "train-00001.seek: does not match its shard, although its hashes agree: it was forged; "
                       "`millrace seek --force` rebuilds it");
        expect_checked(dir, 1, "3 seek indexes checked, 1 not good");
        forged++;
    }
    assert_true(forged > 0);
    support_expect(0, "seek", "-q", dir, (char *)NULL); /* sees no more than hashes */
    expect_checked(dir, 1, "1 not good");
    support_expect(0, "seek", "-q", "--force", dir, (char *)NULL); /* the way out */
    expect_checked(dir, 0, "3 seek indexes checked\n");
    free(bytes);
    free(rows);
    free(copy);
    free(path);
    free(idx);
}

/* Another spacing in the header than in the entries; entries that were dropped; and plain damage. */
static void other_ways_to_be_wrong(void **state)
{
    const char *dir = *state;
    char *path = support_path("%s/train-00000.seek", dir), *other = support_path("%s/train-00001.seek", dir);
    size_t len, other_len;
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    support_expect(0, "seek", "-q", dir, (char *)NULL);
    uint8_t *bytes = support_read(path, &len), *others = support_read(other, &other_len);
    bytes[12] = 1;
    seek_seal(bytes, len);
    support_write(path, bytes, len);
    expect_checked(dir, 1, "train-00000.seek: does not match its shard");
    bytes[12] = 16;
    bytes[len / 2] ^= 1;
    support_write(path, bytes, len);
    expect_checked(dir, 1, "train-00000.seek: its bytes differ from the hash at its end; `millrace seek` rebuilds it");
    support_write(path, others, other_len);
    expect_checked(dir, 1, "train-00000.seek: is the seek index of another shard");
    support_write(path, bytes, 10);
    expect_checked(dir, 1, "train-00000.seek: ends inside its header; `millrace seek` rebuilds it");
    free(bytes);
    free(others);
    free(path);
    free(other);
}

static void wrong_use(void **state)
{
    const char *dir = *state;
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    support_expect(2, "seek", "--check", "--drop", dir, (char *)NULL);
    support_expect(2, "seek", "--check", "--force", dir, (char *)NULL);
    support_expect(2, "seek", "--check", "--every", "4", dir, (char *)NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(good_ones_pass),
        IN_TMPDIR(forged_ones_do_not),
        IN_TMPDIR(other_ways_to_be_wrong),
        IN_TMPDIR(wrong_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
