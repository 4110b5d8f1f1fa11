/* test_writer.c - shards of any size of record fit their map, and equal records give equal files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lmdb.h>

#include "base/hash.h"
#include "shards/format/writer.h"
#include "tests/support/support.h"

static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    return 0;
}

static void write_shard(const char *path, size_t count, size_t len)
{
    mr_writer *w = NULL;
    mr_error err;
    uint8_t *bytes = calloc(len, 1);
    assert_non_null(bytes);
    unlink(path);
    if (mr_writer_open(path, &w, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++) {
        bytes[i % len] ^= (uint8_t)i;
        if (mr_writer_image(w, i, bytes, len, &err) != MR_OK || mr_writer_meta(w, i, "{}", 2, &err) != MR_OK)
            fail_msg("record %zu of %zu bytes: %s", i, len, err.text);
    }
    assert_int_equal(mr_writer_finish(w, &err), MR_OK);
    free(bytes);
}

static void expect_count(const char *path, size_t count)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_stat stat;
    MDB_envinfo info;
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 2), 0);
    assert_int_equal(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK, 0), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, MR_DB_IMAGE, 0, &dbi), 0);
    assert_int_equal(mdb_stat(txn, dbi, &stat), 0);
    assert_int_equal(mdb_env_info(env, &info), 0);
    assert_int_equal(stat.ms_entries, count);
    assert_true(info.me_mapsize >= support_size(path));
    assert_true(info.me_mapsize <= 4 * support_size(path) + (64 << 20));
    mdb_txn_abort(txn);
    mdb_env_close(env);
}

/* The awkward sizes: two, or just not two, or just one to a page; one page and a byte; far more than the first map. */
static void test_the_map_grows_with_the_records(void **state)
{
    (void)state;
    static const struct {
        size_t count, len;
    } shards[] = {{150000, 1},   {60000, 1340}, {40000, 2014}, {40000, 2020}, {40000, 2047},
                  {40000, 2048}, {25000, 4080}, {25000, 4081}, {3, 50 << 20}, {1, 130 << 20}};
    char *path = support_path("%s/a.mdb", dir);
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
        write_shard(path, shards[i].count, shards[i].len);
        expect_count(path, shards[i].count);
    }
    free(path);
}

static void test_equal_records_equal_bytes(void **state)
{
    (void)state;
    char *one = support_path("%s/a.mdb", dir), *two = support_path("%s/b.mdb", dir);
    write_shard(one, 20000, 5000);
    write_shard(two, 20000, 5000);
    support_assert_same_file(one, two);
    free(one);
    free(two);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_map_grows_with_the_records),
        TEST(test_equal_records_equal_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
