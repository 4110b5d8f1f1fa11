/* record.c - an image or a meta of a shard, read by its row.
 * Invariant: a mismatch is an error of that sample alone, MR_BAD_SAMPLE. */
#include "shards/format/record.h"

#include <stdio.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/scope.h"

mr_record mr_row_image(const mr_row *row)
{
    return (mr_record){.what = "image", .offset = row->image_offset, .hash = row->image_hash, .len = row->image_len};
}

mr_record mr_row_meta(const mr_row *row)
{
    return (mr_record){.what = "meta", .offset = row->meta_offset, .hash = row->meta_hash, .len = row->meta_len};
}

mr_status mr_record_check(const mr_shard *shard, uint64_t sample, mr_record record, const uint8_t *bytes, mr_error *err)
{
    if (mr_hash64(bytes, record.len) == record.hash)
        return MR_OK;
    return mr_fail(err, MR_BAD_SAMPLE,
                   "%s.mdb: sample %llu: its %s differs from what was ingested; `millrace verify` shows the extent",
                   shard->name, (unsigned long long)sample, record.what);
}

mr_status mr_record_read(int mdb, const mr_shard *shard, uint64_t sample, mr_record record, uint8_t *out, mr_error *err)
{
    char name[sizeof shard->name + 8];
    snprintf(name, sizeof name, "%s.mdb", shard->name);
    MR_TRY(mr_file_pread(mdb, out, record.len, record.offset, name, err));
    return mr_record_check(shard, sample, record, out, err);
}
