/* format.h - the numbers of the format (FORMAT.md is its full text).
 * Invariant: an index is a pure function of its shard's bytes and the facts in its manifest, so a lost one can be
 * rebuilt equal to the last bit.
 *
 *   SPLIT-NNNNN.idx     header, 64 bytes                    row i of 64 bytes, sample first + i of the split
 *                       0  "MRINDEX1"                        0  u64 image offset in the .mdb
 *                       8  u32 version 1                     8  u64 image XXH3-64
 *                       12 u32 row size 64                   16 u64 meta offset in the .mdb
 *                       16 u64 first sample number           24 u64 meta XXH3-64
 *                       24 u64 rows                          32 u32 image length     36 u32 meta length
 *                       32 u64 bytes of the .mdb             40 u32 width            44 u32 height
 *                       40 24 zero bytes                     48 i32 label (-1 none)  52 u8 codec  53 u8 orientation
 *                                                            54 u8 components        55 u8 bits
 *   all little-endian                                        56 u32 flags            60 u32 holder: row of the shard
 *                                                                                       that stores the image bytes
 *
 * This module: the files of a dataset, each on its own.  Its files use those above them:
 *   format                  keys, rows and headers as bytes
 *   meta json_lay_out       a sample's JSON; JSON pretty-printed
 *   manifest*               the manifest: parsed and checked, written, sealed
 *   walk writer             LMDB pages read without LMDB; a shard written with it
 *   index* record           an index, built or read; a record by its row
 * Above it: seek, then dataset, then verify and export, then the commands. */
#ifndef MR_FORMAT_H
#define MR_FORMAT_H

#include "image/codec/image.h"

enum {
    MR_INDEX_VERSION = 1,
    MR_INDEX_HEADER = 64,
    MR_INDEX_ROW = 64,
    MR_LMDB_PAGE = 4096,
    MR_LMDB_KEY = 8,
};

#define MR_INDEX_MAGIC "MRINDEX1"
#define MR_DB_IMAGE    "image"
#define MR_DB_META     "meta"
#define MR_MANIFEST    "manifest.json"
#define MR_REPORT      "report.json"
#define MR_CROISSANT   "croissant.json"    /* optional, beside the dataset */
#define MR_META_MAX    ((uint64_t)1 << 30) /* yajl counts in signed 32 bits */

typedef struct mr_row {
    uint64_t image_offset, image_hash, meta_offset, meta_hash;
    uint32_t image_len, meta_len, width, height;
    int32_t label;
    uint8_t codec, orientation, components, bits;
    uint32_t flags, holder;
} mr_row;

typedef struct mr_index_header {
    uint64_t first, rows, mdb_bytes;
} mr_index_header;

void mr_row_pack(const mr_row *row, uint8_t out[MR_INDEX_ROW]);
void mr_row_unpack(const uint8_t in[MR_INDEX_ROW], mr_row *row);
void mr_index_header_pack(const mr_index_header *h, uint8_t out[MR_INDEX_HEADER]);
/* MR_BAD_DATA if magic, version, row size or padding are wrong, or if `size` is not header + rows. */
mr_status mr_index_header_unpack(const uint8_t in[MR_INDEX_HEADER], uint64_t size, const char *name, mr_index_header *h,
                                 mr_error *err);

/* Keys of both databases: the sample's number in its split, big-endian, so that LMDB's byte order is number order. */
void mr_key_pack(uint64_t sample, uint8_t out[MR_LMDB_KEY]);
uint64_t mr_key_unpack(const uint8_t in[MR_LMDB_KEY]);

uint64_t mr_get64le(const uint8_t *p);
uint32_t mr_get32le(const uint8_t *p);
uint16_t mr_get16le(const uint8_t *p);
void mr_put64le(uint8_t *p, uint64_t v);
void mr_put32le(uint8_t *p, uint32_t v);

#endif
