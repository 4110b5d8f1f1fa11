/* lmdb.c - LMDB files written and read with liblmdb itself; see support/lmdb.h. */
#include "tests/support/shards/lmdb.h"

#include <stdlib.h>
#include <string.h>

#include "shards/manifest/format.h"

static void check(int code)
{
    if (code != 0)
        fail_msg("liblmdb: %s", mdb_strerror(code));
}

static void begin(lmdb_file *f, unsigned flags)
{
    check(mdb_txn_begin(f->env, NULL, 0, &f->txn));
    check(mdb_dbi_open(f->txn, "image", MDB_CREATE | flags, &f->image));
    check(mdb_dbi_open(f->txn, "meta", MDB_CREATE | flags, &f->meta));
}

lmdb_file *lmdb_create(const char *path, uint64_t batch, unsigned flags)
{
    lmdb_file *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->path = support_path("%s", path);
    f->batch = batch;
    check(mdb_env_create(&f->env));
    check(mdb_env_set_mapsize(f->env, (size_t)1 << 30));
    check(mdb_env_set_maxdbs(f->env, 2));
    check(mdb_env_open(f->env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0644));
    begin(f, flags);
    return f;
}

void lmdb_put_key(lmdb_file *f, bool image, const void *key_bytes, size_t key_len, const void *bytes, size_t len)
{
    MDB_val key = {key_len, (void *)(uintptr_t)key_bytes}, value = {len, (void *)(uintptr_t)bytes};
    check(mdb_put(f->txn, image ? f->image : f->meta, &key, &value, MDB_APPEND));
    f->pending += len;
    if (f->batch == 0 || f->pending < f->batch)
        return;
    check(mdb_txn_commit(f->txn));
    f->pending = 0;
    check(mdb_txn_begin(f->env, NULL, 0, &f->txn));
}

void lmdb_put(lmdb_file *f, bool image, uint64_t sample, const void *bytes, size_t len)
{
    uint8_t key[MR_LMDB_KEY];
    mr_key_pack(sample, key);
    lmdb_put_key(f, image, key, sizeof key, bytes, len);
}

void lmdb_finish(lmdb_file *f)
{
    check(mdb_txn_commit(f->txn));
    mdb_env_close(f->env);
    free(f->path);
    free(f);
}

size_t lmdb_each(const char *path, const char *database, lmdb_fn fn, void *ctx)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *cursor;
    MDB_val key, value;
    size_t count = 0;
    check(mdb_env_create(&env));
    check(mdb_env_set_maxdbs(env, 2));
    check(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_RDONLY, 0));
    check(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    check(mdb_dbi_open(txn, database, 0, &dbi));
    check(mdb_cursor_open(txn, dbi, &cursor));
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
        assert_int_equal(key.mv_size, MR_LMDB_KEY);
        fn(ctx, mr_key_unpack(key.mv_data), value.mv_data, value.mv_size);
        count++;
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return count;
}
