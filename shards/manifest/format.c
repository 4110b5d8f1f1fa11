/* format.c - the bytes of keys, index rows and index headers, and back.
 * Invariant: unpacking what was packed gives the same value everywhere: byte order is written out, never assumed. */
#include "shards/manifest/format.h"

#include <string.h>

uint16_t mr_get16le(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t mr_get32le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t mr_get64le(const uint8_t *p)
{
    return mr_get32le(p) | (uint64_t)mr_get32le(p + 4) << 32;
}

void mr_put32le(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

void mr_put64le(uint8_t *p, uint64_t v)
{
    mr_put32le(p, (uint32_t)v);
    mr_put32le(p + 4, (uint32_t)(v >> 32));
}

void mr_key_pack(uint64_t sample, uint8_t out[MR_LMDB_KEY])
{
    for (int i = 0; i < MR_LMDB_KEY; i++)
        out[i] = (uint8_t)(sample >> 8 * (MR_LMDB_KEY - 1 - i));
}

uint64_t mr_key_unpack(const uint8_t in[MR_LMDB_KEY])
{
    uint64_t sample = 0;
    for (int i = 0; i < MR_LMDB_KEY; i++)
        sample = sample << 8 | in[i];
    return sample;
}

void mr_row_pack(const mr_row *row, uint8_t out[MR_INDEX_ROW])
{
    mr_put64le(out, row->image_offset);
    mr_put64le(out + 8, row->image_hash);
    mr_put64le(out + 16, row->meta_offset);
    mr_put64le(out + 24, row->meta_hash);
    mr_put32le(out + 32, row->image_len);
    mr_put32le(out + 36, row->meta_len);
    mr_put32le(out + 40, row->width);
    mr_put32le(out + 44, row->height);
    mr_put32le(out + 48, (uint32_t)row->label);
    out[52] = row->codec;
    out[53] = row->orientation;
    out[54] = row->components;
    out[55] = row->bits;
    mr_put32le(out + 56, row->flags);
    mr_put32le(out + 60, row->holder);
}

void mr_row_unpack(const uint8_t in[MR_INDEX_ROW], mr_row *row)
{
    uint32_t label = mr_get32le(in + 48);
    *row = (mr_row){
        .image_offset = mr_get64le(in),
        .image_hash = mr_get64le(in + 8),
        .meta_offset = mr_get64le(in + 16),
        .meta_hash = mr_get64le(in + 24),
        .image_len = mr_get32le(in + 32),
        .meta_len = mr_get32le(in + 36),
        .width = mr_get32le(in + 40),
        .height = mr_get32le(in + 44),
        .codec = in[52],
        .orientation = in[53],
        .components = in[54],
        .bits = in[55],
        .flags = mr_get32le(in + 56),
        .holder = mr_get32le(in + 60),
    };
    memcpy(&row->label, &label, sizeof row->label); /* two's complement, whatever the sign */
}

void mr_index_header_pack(const mr_index_header *h, uint8_t out[MR_INDEX_HEADER])
{
    memset(out, 0, MR_INDEX_HEADER);
    memcpy(out, MR_INDEX_MAGIC, 8);
    mr_put32le(out + 8, MR_INDEX_VERSION);
    mr_put32le(out + 12, MR_INDEX_ROW);
    mr_put64le(out + 16, h->first);
    mr_put64le(out + 24, h->rows);
    mr_put64le(out + 32, h->mdb_bytes);
}

mr_status mr_index_header_unpack(const uint8_t in[MR_INDEX_HEADER], uint64_t size, const char *name, mr_index_header *h,
                                 mr_error *err)
{
    if (size < MR_INDEX_HEADER || memcmp(in, MR_INDEX_MAGIC, 8) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: is not a millrace index (no %s at its start)", name, MR_INDEX_MAGIC);
    uint32_t version = mr_get32le(in + 8), row_size = mr_get32le(in + 12);
    if (version != MR_INDEX_VERSION)
        return mr_fail(err, MR_BAD_DATA, "%s: index version %u; this program reads version %d", name, version,
                       MR_INDEX_VERSION);
    if (row_size != MR_INDEX_ROW)
        return mr_fail(err, MR_BAD_DATA, "%s: rows of %u bytes instead of %d", name, row_size, MR_INDEX_ROW);
    for (int i = 40; i < MR_INDEX_HEADER; i++)
        if (in[i])
            return mr_fail(err, MR_BAD_DATA, "%s: byte %d of the header is %u, not 0", name, i, in[i]);
    uint64_t rows = mr_get64le(in + 24), space = size - MR_INDEX_HEADER;
    if (space % MR_INDEX_ROW || rows != space / MR_INDEX_ROW)
        return mr_fail(err, MR_BAD_DATA, "%s: the header says %llu rows, the file has room for %llu", name,
                       (unsigned long long)rows, (unsigned long long)(space / MR_INDEX_ROW));
    *h = (mr_index_header){.first = mr_get64le(in + 16), .rows = rows, .mdb_bytes = mr_get64le(in + 32)};
    return MR_OK;
}
