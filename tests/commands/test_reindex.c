/* test_reindex.c - lost and damaged indexes, rebuilt.
 * Invariant tested: a rebuilt index equals the lost one bit for bit, and is never made from a damaged shard. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/shards/shard.h"

static const char *const names[3] = {"train-00000", "train-00001", "val-00000"};

typedef struct state {
    char *dir;
    char *idx[3], *mdb[3];
    uint8_t *original[3];
    size_t len[3];
} state;

static int set_up(void **out)
{
    state *s = calloc(1, sizeof *s);
    s->dir = support_tmpdir();
    draw_dataset(s->dir);
    for (int i = 0; i < 3; i++) {
        s->idx[i] = support_path("%s/%s.idx", s->dir, names[i]);
        s->mdb[i] = support_path("%s/%s.mdb", s->dir, names[i]);
        s->original[i] = support_read(s->idx[i], &s->len[i]);
    }
    *out = s;
    return 0;
}

static int tear_down(void **out)
{
    state *s = *out;
    support_tmpdir_remove(s->dir);
    for (int i = 0; i < 3; i++) {
        free(s->idx[i]);
        free(s->mdb[i]);
        free(s->original[i]);
    }
    free(s);
    return 0;
}

static void expect_original(const state *s, int n)
{
    size_t len;
    uint8_t *now = support_read(s->idx[n], &len);
    assert_int_equal(len, s->len[n]);
    assert_memory_equal(now, s->original[n], len);
    free(now);
}

static void flip(const char *path, size_t at)
{
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    bytes[at % len] ^= 1;
    support_write(path, bytes, len);
    free(bytes);
}

static void test_rebuilds(void **out)
{
    const state *s = *out;
    mr_random random = support_random();
    for (int trial = 0; trial < 20; trial++) {
        int n = trial % 3;
        if (trial % 4 == 0)
            unlink(s->idx[n]);
        else if (trial % 4 == 1)
            support_write(s->idx[n], s->original[n], mr_random_below(&random, s->len[n]));
        else if (trial % 4 == 2)
            flip(s->idx[n], mr_random_below(&random, s->len[n]));
        else /* another shard's */
            support_write(s->idx[n], s->original[(n + 1) % 3], s->len[(n + 1) % 3]);
        support_expect(1, "verify", "--quick", s->dir, (char *)NULL);
        support_result r = support_millrace("reindex", s->dir, (char *)NULL);
        support_assert_status(&r, 0);
        assert_non_null(strstr(r.out, names[n]));
        assert_non_null(strstr(r.out, "2 indexes good, 1 rebuilt, 0 not repairable"));
        support_result_free(&r);
        for (int i = 0; i < 3; i++)
            expect_original(s, i);
    }
    support_expect(0, "verify", "--deep", s->dir, (char *)NULL);
}

static void test_leaves_good_ones_alone(void **out)
{
    const state *s = *out;
    struct stat before, after;
    assert_int_equal(stat(s->idx[0], &before), 0);
    support_expect(0, "reindex", s->dir, (char *)NULL);
    assert_int_equal(stat(s->idx[0], &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
}

static void test_damaged_shard(void **out)
{
    const state *s = *out;
    unlink(s->idx[0]);
    unlink(s->idx[2]);
    flip(s->mdb[0], 5000);
    support_result r = support_millrace("reindex", "--json", s->dir, (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.err, "train-00000.mdb"));
    assert_non_null(strstr(r.out, "\"rebuilt\": 1"));
    assert_non_null(strstr(r.out, "\"failed\": 1"));
    support_result_free(&r);
    assert_false(support_exists(s->idx[0])); /* never from bytes that are not proven */
    expect_original(s, 2);                   /* and the other one is repaired all the same */
    flip(s->mdb[0], 5000);
    support_expect(0, "reindex", s->dir, (char *)NULL);
    expect_original(s, 0);
    unlink(s->idx[1]);
    unlink(s->mdb[1]);
    support_expect(1, "reindex", s->dir, (char *)NULL);
    assert_false(support_exists(s->idx[1]));
}

static void test_wrong_use(void **out)
{
    const state *s = *out;
    support_expect(2, "reindex", (char *)NULL);
    support_expect(2, "reindex", "/no/such/folder", (char *)NULL);
    support_expect(2, "reindex", s->dir, s->dir, (char *)NULL);
    support_expect(2, "reindex", "--jobs", "x", s->dir, (char *)NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rebuilds),
        TEST(test_leaves_good_ones_alone),
        TEST(test_damaged_shard),
        TEST(test_wrong_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
