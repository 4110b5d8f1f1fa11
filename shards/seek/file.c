/* file.c - a seek file as bytes: its header, its table, and the checks of both.
 * Invariant: an offset is used only after it was found inside the file and in order with its neighbour. */
#include "shards/seek/seek.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"

typedef unsigned long long ull;

#define REBUILD "`millrace seek` rebuilds it"

void mr_seek_header_pack(const mr_seek_header *h, uint8_t out[MR_SEEK_HEADER])
{
    memcpy(out, MR_SEEK_MAGIC, 8);
    mr_put32le(out + 8, MR_SEEK_VERSION);
    mr_put32le(out + 12, h->every);
    mr_put64le(out + 16, h->first);
    mr_put64le(out + 24, h->rows);
    mr_put64le(out + 32, h->mdb_bytes);
    memcpy(out + 40, h->mdb_xxh3_128, 16);
    mr_put64le(out + 56, h->table_hash);
}

static uint64_t table_bytes(uint64_t rows)
{
    return (rows + 1) * MR_SEEK_OFFSET; /* rows: at most 2^32, as in the manifest */
}

mr_status mr_seek_check_header(const uint8_t in[MR_SEEK_HEADER], uint64_t size, const mr_shard *shard,
                               mr_seek_header *out, mr_error *err)
{
    if (size < MR_SEEK_HEADER || memcmp(in, MR_SEEK_MAGIC, 8) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s.seek: is not a seek index (no %s at its start); " REBUILD, shard->name,
                       MR_SEEK_MAGIC);
    uint32_t version = mr_get32le(in + 8);
    mr_seek_header h = {.every = mr_get32le(in + 12),
                        .first = mr_get64le(in + 16),
                        .rows = mr_get64le(in + 24),
                        .mdb_bytes = mr_get64le(in + 32),
                        .table_hash = mr_get64le(in + 56)};
    memcpy(h.mdb_xxh3_128, in + 40, 16);
    if (version != MR_SEEK_VERSION)
        return mr_fail(err, MR_BAD_DATA, "%s.seek: version %u; this program reads version %d; " REBUILD, shard->name,
                       version, MR_SEEK_VERSION);
    if (h.first != shard->first || h.rows != shard->samples || h.mdb_bytes != shard->mdb.bytes ||
        memcmp(h.mdb_xxh3_128, shard->mdb.xxh3_128, 16) != 0)
        return mr_fail(err, MR_BAD_DATA,
                       "%s.seek: is the seek index of another shard, or of an earlier version of this one; " REBUILD,
                       shard->name);
    if (h.every > MR_SEEK_EVERY_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s.seek: an entry every %u MCUs; the maximum is %d; " REBUILD, shard->name,
                       h.every, MR_SEEK_EVERY_MAX);
    if (size < MR_SEEK_HEADER + table_bytes(h.rows) + MR_SEEK_TAIL || size > mr_seek_bytes_max(shard))
        return mr_fail(err, MR_BAD_DATA, "%s.seek: %llu bytes cannot be the seek index of %llu samples; " REBUILD,
                       shard->name, (ull)size, (ull)h.rows);
    *out = h;
    return MR_OK;
}

/* Entries and their check, at most as long as the images; no sum of these wraps: the manifest's sizes are those of
 * files, and image_bytes is below that of the .mdb in a dataset that opens at all. */
uint64_t mr_seek_bytes_max(const mr_shard *shard)
{
    uint64_t images = shard->image_bytes < shard->mdb.bytes ? shard->image_bytes : shard->mdb.bytes;
    uint64_t most = MR_SEEK_HEADER + table_bytes(shard->samples) + MR_SEEK_TAIL + shard->images * MR_SEEK_CHECK;
    return images > UINT64_MAX - most ? UINT64_MAX : images + most;
}

bool mr_seek_span_at(const uint8_t pair[2 * MR_SEEK_OFFSET], uint64_t size, uint64_t rows, uint64_t image_len,
                     mr_seek_span *out)
{
    uint64_t from = mr_get64le(pair), to = mr_get64le(pair + MR_SEEK_OFFSET),
             before = MR_SEEK_HEADER + table_bytes(rows);
    if (from < before || to > size - MR_SEEK_TAIL || to < from || to - from <= MR_SEEK_CHECK ||
        to - from - MR_SEEK_CHECK > image_len)
        return false;
    *out = (mr_seek_span){.offset = from, .len = (size_t)(to - from - MR_SEEK_CHECK)};
    return true;
}

bool mr_seek_entries_ok(const uint8_t check[MR_SEEK_CHECK], const uint8_t *entries, size_t len, uint64_t image_hash)
{
    return mr_get64le(check) == (mr_hash64(entries, len) ^ image_hash);
}

static bool may_have(const mr_row *rows, uint64_t i)
{
    return rows[i].holder == i && rows[i].codec == MR_CODEC_JPEG;
}

mr_status mr_seek_check_table(const uint8_t *table, const mr_seek_header *h, uint64_t size, const mr_shard *shard,
                              const mr_row *rows, mr_error *err)
{
    uint64_t at = MR_SEEK_HEADER + table_bytes(h->rows);
    mr_seek_span span;
    if (mr_hash64(table, table_bytes(h->rows)) != h->table_hash)
        return mr_fail(err, MR_BAD_DATA, "%s.seek: its table differs from its hash; " REBUILD, shard->name);
    if (mr_get64le(table) != at || mr_get64le(table + h->rows * MR_SEEK_OFFSET) != size - MR_SEEK_TAIL)
        return mr_fail(err, MR_BAD_DATA, "%s.seek: its table does not span the file; " REBUILD, shard->name);
    for (uint64_t i = 0; i < h->rows; i++) {
        const uint8_t *pair = table + i * MR_SEEK_OFFSET;
        uint64_t from = mr_get64le(pair), to = mr_get64le(pair + MR_SEEK_OFFSET);
        if (from == to)
            continue;
        if (!mr_seek_span_at(pair, size, h->rows, rows ? rows[i].image_len : UINT64_MAX, &span))
            return mr_fail(err, MR_BAD_DATA, "%s.seek: sample %llu: its entries are out of bounds; " REBUILD,
                           shard->name, (ull)(shard->first + i));
        if (rows && !may_have(rows, i))
            return mr_fail(err, MR_BAD_DATA, "%s.seek: sample %llu: has entries, but stores no JPEG; " REBUILD,
                           shard->name, (ull)(shard->first + i));
    }
    return MR_OK;
}

mr_status mr_seek_check(const uint8_t *bytes, uint64_t size, const mr_shard *shard, const mr_row *rows,
                        mr_seek_header *out, mr_error *err)
{
    uint8_t found[MR_SEEK_TAIL];
    if (size < MR_SEEK_HEADER)
        return mr_fail(err, MR_BAD_DATA, "%s.seek: ends inside its header; " REBUILD, shard->name);
    MR_TRY(mr_seek_check_header(bytes, size, shard, out, err));
    MR_TRY(mr_seek_check_table(bytes + MR_SEEK_HEADER, out, size, shard, rows, err));
    mr_hash128(bytes, size - MR_SEEK_TAIL, found);
    if (memcmp(found, bytes + size - MR_SEEK_TAIL, MR_SEEK_TAIL) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s.seek: its bytes differ from the hash at its end; " REBUILD, shard->name);
    for (uint64_t i = 0; rows && i < out->rows; i++) {
        mr_seek_span span;
        if (mr_seek_span_at(bytes + MR_SEEK_HEADER + i * MR_SEEK_OFFSET, size, out->rows, rows[i].image_len, &span) &&
            !mr_seek_entries_ok(bytes + span.offset, bytes + span.offset + MR_SEEK_CHECK, span.len, rows[i].image_hash))
            return mr_fail(err, MR_BAD_DATA, "%s.seek: sample %llu: its entries are those of another image; " REBUILD,
                           shard->name, (ull)(shard->first + i));
    }
    return MR_OK;
}

mr_status mr_seek_open(int dirfd, const mr_shard *shard, int *fd, uint64_t *size, mr_seek_header *header, mr_error *err)
{
    char name[MR_SEEK_NAME];
    uint8_t packed[MR_SEEK_HEADER] = {0};
    MR_AUTO(mr_scope_close) int opened = -1;
    snprintf(name, sizeof name, "%s" MR_SEEK_SUFFIX, shard->name);
    errno = 0;
    mr_status status = mr_file_open(dirfd, name, true, &opened, size, err);
    if (status == MR_SYSTEM && errno == ENOENT)
        return MR_END;
    MR_TRY(status);
    if (*size >= sizeof packed)
        MR_TRY(mr_file_pread(opened, packed, sizeof packed, 0, name, err));
    MR_TRY(mr_seek_check_header(packed, *size, shard, header, err));
    *fd = opened;
    opened = -1;
    return MR_OK;
}

mr_status mr_seek_look(int dirfd, const mr_shard *shard, uint64_t *bytes, unsigned *every, mr_error *err)
{
    mr_seek_header header;
    MR_AUTO(mr_scope_close) int fd = -1;
    MR_TRY(mr_seek_open(dirfd, shard, &fd, bytes, &header, err));
    *every = header.every;
    return MR_OK;
}
