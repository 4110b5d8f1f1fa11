/* walk.h - LMDB pages read with bounds checks, without LMDB.
 * Invariant: whatever the file holds, the walk reads inside it, visits each page at most once and ends.
 *
 *   page 0, 1   meta pages: magic 0xBEEFC0DE, version 1; the one with the higher transaction counts
 *   main tree   leaf nodes "image" and "meta", each a 48-byte MDB_db record (flag F_SUBDATA)
 *   sub tree    branch pages -> leaf pages -> node data, inline or (F_BIGDATA) a page number of an overflow run
 * Source: LMDB 0.9.24, mdb.c, structs MDB_page, MDB_node, MDB_db, MDB_meta on a 64-bit little-endian machine. */
#ifndef MR_WALK_H
#define MR_WALK_H

#include "shards/manifest/format.h"

typedef struct mr_walk_record {
    uint64_t sample; /* the key */
    uint64_t offset; /* where the record's bytes are in the file */
    uint64_t len;
} mr_walk_record;

/* Return anything but MR_OK to end the walk with that status. */
typedef mr_status (*mr_walk_fn)(void *ctx, const mr_walk_record *record, mr_error *err);

/* Calls fn for each record of the named database in key order.  `size` is the file's. Reads by pread, a page at a time.
 * MR_BAD_DATA: the tree is not what LMDB writes, with the page and the reason. */
mr_status mr_walk(int fd, uint64_t size, const char *name, const char *database, mr_walk_fn fn, void *ctx,
                  mr_error *err);

#endif
