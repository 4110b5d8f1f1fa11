/* seal_shard.c - what makes a written .mdb a shard: its digests and its index.
 * Invariant: the bytes of both files are those that the manifest will name. */
#include "shards/format/seal_shard.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/format/index.h"

enum { NAME = 128 };

mr_status mr_shard_index(int mdb, uint64_t size, mr_shard *shard, mr_row *rows, mr_buf *index, mr_error *err)
{
    char name[NAME];
    mr_hasher *h = NULL;
    snprintf(name, sizeof name, "%s.mdb", shard->name);
    MR_TRY(mr_index_locate(mdb, size, name, shard->first, shard->samples, rows, err));
    mr_index_pack(rows, shard->first, shard->samples, size, index);
    MR_TRY(mr_buf_status(index, err, shard->name));
    MR_TRY(mr_hasher_begin(true, &h, err));
    mr_hasher_add(h, index->data, index->len);
    return mr_hasher_end(h, &shard->idx, err);
}

mr_status mr_shard_seal(int dir, mr_shard *shard, mr_row *rows, mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = -1;
    MR_AUTO(mr_buf_free) mr_buf index = {0};
    char mdb[NAME], idx[NAME];
    uint64_t size = 0;
    snprintf(mdb, sizeof mdb, "%s.mdb", shard->name);
    snprintf(idx, sizeof idx, "%s.idx", shard->name);
    MR_TRY(mr_file_open(dir, mdb, false, &fd, &size, err));
    MR_TRY(mr_file_digest(fd, size, true, mdb, &shard->mdb, err));
    MR_TRY(mr_shard_index(fd, size, shard, rows, &index, err));
    if (fsync(fd) != 0)
        return mr_fail_errno(err, errno, "%s: cannot sync", mdb);
    return mr_file_publish(dir, idx, index.data, index.len, err);
}
