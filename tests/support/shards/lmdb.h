/* lmdb.h - LMDB files written and read with liblmdb itself, to hold our own reader against.
 * Invariant: what these helpers read was read by liblmdb alone. */
#ifndef MR_SUPPORT_LMDB_H
#define MR_SUPPORT_LMDB_H

#include <lmdb.h>

#include "tests/support/support.h"

typedef struct lmdb_file {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi image, meta;
    uint64_t batch, pending; /* a commit whenever this many bytes are pending; 0: one transaction */
    char *path;
} lmdb_file;

/* A new file with the databases "image" and "meta", opened with these flags (0, MDB_REVERSEKEY ...). */
lmdb_file *lmdb_create(const char *path, uint64_t batch, unsigned flags);
void lmdb_put(lmdb_file *f, bool image, uint64_t sample, const void *bytes, size_t len); /* MDB_APPEND */
void lmdb_put_key(lmdb_file *f, bool image, const void *key, size_t key_len, const void *bytes, size_t len);
void lmdb_finish(lmdb_file *f);

/* Calls fn for each record of a database in the order of a liblmdb cursor; bytes live until fn returns. */
typedef void (*lmdb_fn)(void *ctx, uint64_t sample, const uint8_t *bytes, size_t len);
size_t lmdb_each(const char *path, const char *database, lmdb_fn fn, void *ctx);

#endif
