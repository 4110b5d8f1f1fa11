/* seal_shard.h - what makes a written .mdb a shard: its digests and its index.
 * Invariant: the index is on disk only after the .mdb is. */
#ifndef MR_SEAL_SHARD_H
#define MR_SEAL_SHARD_H

#include "base/buf.h"
#include "shards/manifest/format.h"
#include "shards/manifest/manifest.h"

/* Sets the offsets of the rows from the pages of the .mdb, `index` to the bytes of the index, and shard->idx. */
mr_status mr_shard_index(int mdb, uint64_t size, mr_shard *shard, mr_row *rows, mr_buf *index, mr_error *err);
/* For NAME.mdb in the folder, whose records the rows describe except for their offsets: sets shard->mdb and shard->idx,
 * syncs the .mdb and publishes NAME.idx. */
mr_status mr_shard_seal(int dir, mr_shard *shard, mr_row *rows, mr_error *err);

#endif
