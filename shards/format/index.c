/* index.c - the fixed-row index of a shard: packed, read back and checked (index_build.c builds it).
 * Invariant: rows are handed out only if every one of them points inside the shard, and those of a file only if all of
 * it has the manifest's digest. */
#include "shards/format/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"

void mr_index_pack(const mr_row *rows, uint64_t first, uint64_t samples, uint64_t mdb_bytes, mr_buf *out)
{
    uint8_t packed[MR_INDEX_ROW];
    mr_index_header header = {.first = first, .rows = samples, .mdb_bytes = mdb_bytes};
    mr_index_header_pack(&header, packed);
    mr_buf_add(out, packed, MR_INDEX_HEADER);
    for (uint64_t i = 0; i < samples; i++) {
        mr_row_pack(&rows[i], packed);
        mr_buf_add(out, packed, MR_INDEX_ROW);
    }
}

static bool inside(uint64_t offset, uint64_t len, uint64_t size)
{
    return offset <= size && len <= size - offset;
}

/* NULL, or what is wrong with the row taken alone. */
static const char *row_fault(const mr_row *row, uint64_t i, const mr_shard *shard)
{
    bool same = row->flags & MR_FLAG_SAME_BYTES;
    if (row->image_len == 0 || !inside(row->image_offset, row->image_len, shard->mdb.bytes))
        return "its image is outside the .mdb";
    if (row->meta_len < 2 || !inside(row->meta_offset, row->meta_len, shard->mdb.bytes))
        return "its meta is outside the .mdb";
    if (row->codec < MR_CODEC_JPEG || row->codec > MR_CODEC_WEBP)
        return "its codec is unknown";
    if (row->orientation < 1 || row->orientation > 8)
        return "its orientation is not 1 to 8";
    if (row->width == 0 || row->height == 0 || row->components < 1 || row->components > 4 || row->bits == 0)
        return "its image has no size";
    if (row->label < -1)
        return "its label is below -1";
    if (same ? row->holder >= i : row->holder != i)
        return "its holder is not the row that stores the image";
    return NULL;
}

mr_status mr_index_check_row(const mr_row *row, uint64_t i, const mr_shard *shard, mr_error *err)
{
    const char *fault = row_fault(row, i, shard);
    return fault ? mr_fail(err, MR_BAD_DATA, "%s.idx: sample %llu: %s", shard->name,
                           (unsigned long long)(shard->first + i), fault)
                 : MR_OK;
}

mr_status mr_index_check_header(const uint8_t header[MR_INDEX_HEADER], uint64_t size, const mr_shard *shard,
                                mr_error *err)
{
    char name[96];
    mr_index_header h;
    snprintf(name, sizeof name, "%s.idx", shard->name);
    mr_error why;
    mr_status status = mr_index_header_unpack(header, size, name, &h, &why);
    if (status != MR_OK)
        return mr_fail(err, status, "%s; `millrace reindex` rebuilds it", why.text);
    if (h.first != shard->first || h.rows != shard->samples || h.mdb_bytes != shard->mdb.bytes)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: is the index of another shard (first sample, rows or size of the .mdb "
                       "differ from the manifest); `millrace reindex` rebuilds it",
                       name);
    return MR_OK;
}

/* A row that shares its image with an earlier one says the same about it. */
static bool same_image(const mr_row *a, const mr_row *b)
{
    return a->image_offset == b->image_offset && a->image_len == b->image_len && a->image_hash == b->image_hash;
}

mr_status mr_index_parse(const void *bytes, size_t len, const mr_shard *shard, mr_row **rows, mr_error *err)
{
    if (len < MR_INDEX_HEADER)
        return mr_fail(err, MR_BAD_DATA, "%s.idx: ends inside its header", shard->name);
    MR_TRY(mr_index_check_header(bytes, len, shard, err));
    MR_AUTO(mr_scope_free) mr_row *list = mr_alloc(shard->samples, sizeof *list);
    if (!list)
        return mr_fail_memory(err, "reading a shard");
    const uint8_t *at = (const uint8_t *)bytes + MR_INDEX_HEADER;
    for (uint64_t i = 0; i < shard->samples; i++, at += MR_INDEX_ROW) {
        mr_row *row = &list[i];
        mr_row_unpack(at, row);
        MR_TRY(mr_index_check_row(row, i, shard, err));
        const mr_row *holder = &list[row->holder];
        if (row->holder != i && (holder->holder != row->holder || !same_image(row, holder)))
            return mr_fail(err, MR_BAD_DATA, "%s.idx: sample %llu: its holder, sample %llu, stores another image",
                           shard->name, (unsigned long long)(shard->first + i),
                           (unsigned long long)(shard->first + row->holder));
    }
    *rows = list;
    list = NULL;
    return MR_OK;
}

mr_status mr_index_check_counts(const mr_row *rows, const mr_shard *shard, mr_shard *counted, mr_error *err)
{
    mr_shard found = *shard;
    found.images = found.image_bytes = 0;
    for (uint64_t i = 0; i < shard->samples; i++)
        if (rows[i].holder == i) {
            found.images++;
            found.image_bytes += rows[i].image_len;
        }
    if (counted)
        *counted = found;
    if (found.images == shard->images && found.image_bytes == shard->image_bytes)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   MR_MANIFEST ": counts %llu images of %llu bytes in %s, whose index has %llu of "
                               "%llu; restore the original manifest or ingest again",
                   (unsigned long long)shard->images, (unsigned long long)shard->image_bytes, shard->name,
                   (unsigned long long)found.images, (unsigned long long)found.image_bytes);
}

mr_status mr_index_open_file(int dirfd, const mr_shard *shard, const char *suffix, int *fd, mr_error *err)
{
    bool is_mdb = strcmp(suffix, "mdb") == 0;
    uint64_t size, bytes = is_mdb ? shard->mdb.bytes : shard->idx.bytes;
    const char *way_out = is_mdb ? "verify` shows what is intact" : "reindex` rebuilds it";
    char name[96];
    int opened = -1;
    snprintf(name, sizeof name, "%s.%s", shard->name, suffix);
    errno = 0;
    mr_status status = mr_file_open(dirfd, name, true, &opened, &size, err);
    int why = errno;
    if (status == MR_SYSTEM && why == ENOENT && faccessat(dirfd, name, F_OK, 0) != 0 && errno == ENOENT)
        return mr_fail(err, MR_BAD_DATA, "%s: is missing; `millrace %s", name, way_out);
    errno = why;
    if (status != MR_OK)
        return status;
    if (size == bytes) {
        *fd = opened;
        return MR_OK;
    }
    close(opened);
    return mr_fail(err, MR_BAD_DATA, "%s: %llu bytes instead of %llu; `millrace %s", name, (unsigned long long)size,
                   (unsigned long long)bytes, way_out);
}

mr_status mr_index_check_digest(const mr_shard *shard, const uint8_t found[16], mr_error *err)
{
    if (memcmp(found, shard->idx.xxh3_128, sizeof shard->idx.xxh3_128) == 0)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   "%s.idx: does not match the digest in the manifest; `millrace reindex` rebuilds it", shard->name);
}

mr_status mr_index_bytes(int dirfd, const mr_shard *shard, mr_buf *out, mr_error *err)
{
    uint8_t found[16];
    MR_AUTO(mr_scope_close) int fd = -1;
    MR_TRY(mr_index_open_file(dirfd, shard, "idx", &fd, err));
    if (!mr_buf_reserve(out, shard->idx.bytes))
        return mr_fail_memory(err, "reading a shard");
    MR_TRY(mr_file_pread(fd, out->data, shard->idx.bytes, 0, shard->name, err));
    out->len = shard->idx.bytes;
    mr_hash128(out->data, out->len, found);
    return mr_index_check_digest(shard, found, err);
}

mr_status mr_index_read(int dirfd, const mr_shard *shard, mr_row **rows, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    MR_TRY(mr_index_bytes(dirfd, shard, &bytes, err));
    return mr_index_parse(bytes.data, bytes.len, shard, rows, err);
}
