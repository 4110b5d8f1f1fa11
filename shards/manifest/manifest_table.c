/* manifest_table.c - the table of all shards, for datasets whose list would be too long for JSON.
 *
 *   header, 64 bytes                  row of 128 bytes, one per shard, the shards of a split in order
 *   0  "MRSHARDS"                     0  u64 number of its first sample in the split
 *   8  u32 version 2                  8  u32 samples           12 u32 images
 *   12 u32 row size 128               16 u64 bytes of images   24 u64 bytes of the .mdb
 *   16 u64 rows                       32 16 XXH3-128, 48 32 SHA-256 of the .mdb
 *   24 40 zero bytes                  80 16 XXH3-128, 96 32 SHA-256 of the .idx
 *
 * Names and the size of an .idx follow from the place and the samples.  All little-endian.
 *
 * Invariant: a manifest gets its shards only from the bytes whose SHA-256 it states, so its own covers them. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/format.h"
#include "shards/manifest/manifest_parts.h"

enum { XXH3 = 16, SHA256 = 32, MDB = 32, IDX = 80 };

typedef unsigned long long ull;

static void pack(const mr_shard *s, uint8_t out[MR_TABLE_ROW])
{
    mr_put64le(out, s->first);
    mr_put32le(out + 8, (uint32_t)s->samples);
    mr_put32le(out + 12, (uint32_t)s->images);
    mr_put64le(out + 16, s->image_bytes);
    mr_put64le(out + 24, s->mdb.bytes);
    memcpy(out + MDB, s->mdb.xxh3_128, XXH3);
    memcpy(out + MDB + XXH3, s->mdb.sha256, SHA256);
    memcpy(out + IDX, s->idx.xxh3_128, XXH3);
    memcpy(out + IDX + XXH3, s->idx.sha256, SHA256);
}

static void unpack(const uint8_t in[MR_TABLE_ROW], mr_shard *s)
{
    s->first = mr_get64le(in);
    s->samples = mr_get32le(in + 8);
    s->images = mr_get32le(in + 12);
    s->image_bytes = mr_get64le(in + 16);
    s->mdb.bytes = mr_get64le(in + 24);
    s->idx.bytes = MR_INDEX_HEADER + s->samples * MR_INDEX_ROW;
    memcpy(s->mdb.xxh3_128, in + MDB, XXH3);
    memcpy(s->mdb.sha256, in + MDB + XXH3, SHA256);
    memcpy(s->idx.xxh3_128, in + IDX, XXH3);
    memcpy(s->idx.sha256, in + IDX + XXH3, SHA256);
}

mr_status mr_manifest_write_table(const mr_manifest *m, mr_buf *out, mr_error *err)
{
    uint8_t bytes[MR_TABLE_ROW] = {0};
    uint64_t rows = 0;
    for (size_t i = 0; i < m->split_count; i++)
        rows += m->splits[i].shard_count;
    memcpy(bytes, MR_TABLE_MAGIC, 8);
    mr_put32le(bytes + 8, MR_FORMAT_TABLE);
    mr_put32le(bytes + 12, MR_TABLE_ROW);
    mr_put64le(bytes + 16, rows);
    mr_buf_reserve(out, MR_TABLE_HEADER + rows * MR_TABLE_ROW);
    mr_buf_add(out, bytes, MR_TABLE_HEADER);
    for (size_t i = 0; i < m->split_count; i++)
        for (size_t k = 0; k < m->splits[i].shard_count; k++) {
            pack(&m->splits[i].shards[k], bytes);
            mr_buf_add(out, bytes, MR_TABLE_ROW);
        }
    return mr_buf_status(out, err, "writing the table of shards");
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

mr_status mr_manifest_table_size(const mr_manifest *m, uint64_t size, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA,
                   MR_TABLE ": %llu bytes instead of %llu; copy it from where the dataset came from, or ingest again",
                   (ull)size, (ull)m->table.bytes);
}

static mr_status check_bytes(const mr_manifest *m, const void *bytes, size_t len, mr_error *err)
{
    mr_hasher *hasher;
    mr_digest found;
    if (len != m->table.bytes)
        return mr_manifest_table_size(m, len, err);
    MR_TRY(mr_hasher_begin(true, &hasher, err));
    mr_hasher_add(hasher, bytes, len);
    MR_TRY(mr_hasher_end(hasher, &found, err));
    if (memcmp(found.sha256, m->table.sha256, SHA256) == 0 && memcmp(found.xxh3_128, m->table.xxh3_128, XXH3) == 0)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   MR_TABLE ": does not match the manifest (its digest differs); copy it from where the "
                            "dataset came from, or ingest again");
}

static mr_status check_header(const uint8_t *in, size_t len, mr_error *err)
{
    uint32_t version = mr_get32le(in + 8), row = mr_get32le(in + 12);
    if (memcmp(in, MR_TABLE_MAGIC, 8) != 0)
        return mr_fail(err, MR_BAD_DATA, MR_TABLE ": is not a table of shards (no %s at its start)", MR_TABLE_MAGIC);
    if (version != MR_FORMAT_TABLE || row != MR_TABLE_ROW)
        return mr_fail(err, MR_BAD_DATA,
                       MR_TABLE ": version %u with rows of %u bytes; this program reads version %d with rows of %d",
                       version, row, MR_FORMAT_TABLE, MR_TABLE_ROW);
    if (mr_get64le(in + 16) != (len - MR_TABLE_HEADER) / MR_TABLE_ROW)
        return mr_fail(err, MR_BAD_DATA, MR_TABLE ": the header says %llu rows, the file has %zu",
                       (ull)mr_get64le(in + 16), (len - MR_TABLE_HEADER) / MR_TABLE_ROW);
    for (int i = 24; i < MR_TABLE_HEADER; i++)
        if (in[i])
            return mr_fail(err, MR_BAD_DATA, MR_TABLE ": byte %d of the header is %u, not 0", i, in[i]);
    return MR_OK;
}

mr_status mr_manifest_take_table(mr_manifest *m, const void *bytes, size_t len, mr_error *err)
{
    const uint8_t *in = bytes;
    MR_TRY(check_bytes(m, bytes, len, err));
    MR_TRY(check_header(in, len, err)); /* parsing has made sure that a table has a header, and a row for each shard */
    size_t count = (len - MR_TABLE_HEADER) / MR_TABLE_ROW;
    MR_AUTO(mr_scope_free) mr_shard *rows = mr_alloc(count, sizeof *rows);
    if (!rows)
        return mr_fail_memory(err, "reading the table of shards");
    for (size_t i = 0; i < m->split_count; i++) {
        const mr_split *split = &m->splits[i];
        for (size_t k = 0; k < split->shard_count; k++) {
            unpack(in + MR_TABLE_HEADER + (split->row + k) * MR_TABLE_ROW, &rows[split->row + k]);
            mr_manifest_shard_name(split->name, k, &rows[split->row + k]);
        }
        MR_TRY(mr_manifest_check_shards(split, rows + split->row, MR_TABLE, err));
    }
    for (size_t i = 0; i < m->split_count; i++)
        m->splits[i].shards = rows + m->splits[i].row;
    m->rows = rows;
    rows = NULL;
    return MR_OK;
}
