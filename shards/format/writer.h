/* writer.h - one shard file, written through liblmdb.
 * Invariant: the bytes of the finished file, its map size too, depend on the records put alone: not on time, threads or
 * memory.  Memory is bounded: a transaction is committed whenever MR_WRITER_BATCH bytes of records have been put. */
#ifndef MR_WRITER_H
#define MR_WRITER_H

#include "shards/manifest/format.h"

#define MR_WRITER_BATCH ((uint64_t)16 << 20)

typedef struct mr_writer mr_writer;

/* Creates the file `path` (which must not exist). */
mr_status mr_writer_open(const char *path, mr_writer **out, mr_error *err);

/* Records in ascending order of sample, each database on its own; images at most once a sample, metas exactly once. */
mr_status mr_writer_image(mr_writer *w, uint64_t sample, const void *bytes, size_t len, mr_error *err);
mr_status mr_writer_meta(mr_writer *w, uint64_t sample, const void *bytes, size_t len, mr_error *err);

/* Commits and closes; the file is not synced yet.  Frees w in any case; w NULL is fine. */
mr_status mr_writer_finish(mr_writer *w, mr_error *err);
/* Closes and removes the file. */
void mr_writer_abandon(mr_writer *w);

#endif
