/* seek.h - NAME.seek beside a shard: where the scans of its JPEGs can be entered, so that a crop decodes its own rows.
 * Invariant: a seek file is derived: without it, or with one that is damaged, out of date or another shard's, each
 * pixel is the same; the manifest does not list it, so adding or dropping it changes no digest.  Only a forged
 * one, hashes included, could change a pixel, as a forged shard could: `seek --check` and `verify --decode` rebuild it
 * and compare.
 *
 *   header, 64 bytes    0 "MRSEEK01"  8 u32 version  12 u32 every  16 u64 first sample  24 u64 rows  32 u64 .mdb size
 *                       40 XXH3-128 of the .mdb, as in the manifest       56 u64 XXH3-64 of the table
 *   table               rows + 1 u64: where each row's entries begin, and where the last one's end; equal: it has none
 *   entries             of a row: u64, XXH3-64 of the packed entries xor XXH3-64 of the image; then the packed entries
 *   16 bytes            XXH3-128 of all before
 *
 * This module, on top of format.  Its files use those above them:
 *   file       the bytes of a seek file, and their checks: all that readers need
 *   shard      the seek file of one shard, made from its records
 *   make       those of many shards, by threads and ranks */
#ifndef MR_SEEK_H
#define MR_SEEK_H

#include "base/ranks/ranks.h"
#include "shards/format/index.h"
#include "image/jpeg/seek.h"

enum {
    MR_SEEK_VERSION = 1,
    MR_SEEK_HEADER = 64,
    MR_SEEK_OFFSET = 8,
    MR_SEEK_CHECK = 8,
    MR_SEEK_TAIL = 16,
    MR_SEEK_EVERY_MAX = 65535,
    MR_SEEK_NAME = 96,
};

#define MR_SEEK_MAGIC  "MRSEEK01"
#define MR_SEEK_SUFFIX ".seek"

typedef struct mr_seek_header {
    uint32_t every; /* MCUs between two entries of a row of MCUs; 0: one per row */
    uint64_t first, rows, mdb_bytes, table_hash;
    uint8_t mdb_xxh3_128[16];
} mr_seek_header;

/* ---- reading (file.c) -------------------------------------------------------------------------------------- */

void mr_seek_header_pack(const mr_seek_header *h, uint8_t out[MR_SEEK_HEADER]);

/* Header against the shard's entry in the manifest, and a file of `size` bytes against both.  MR_BAD_DATA: not of this
 * shard. */
mr_status mr_seek_check_header(const uint8_t in[MR_SEEK_HEADER], uint64_t size, const mr_shard *shard,
                               mr_seek_header *out, mr_error *err);

/* Where a row's entries are, from two neighbours of the table; false: it has none, or they are out of bounds.  They are
 * never longer than their image. */
typedef struct mr_seek_span {
    uint64_t offset; /* where the check begins; the entries follow it */
    size_t len;      /* length of the entries */
} mr_seek_span;
bool mr_seek_span_at(const uint8_t pair[2 * MR_SEEK_OFFSET], uint64_t size, uint64_t rows, uint64_t image_len,
                     mr_seek_span *out);

/* Whether entries match their check, and are those of an image with this hash. */
bool mr_seek_entries_ok(const uint8_t check[MR_SEEK_CHECK], const uint8_t *entries, size_t len, uint64_t image_hash);

/* The table, rows + 1 offsets: its hash, its order, and, where there are `rows`, that only those have entries that
 * store a JPEG. */
mr_status mr_seek_check_table(const uint8_t *table, const mr_seek_header *h, uint64_t size, const mr_shard *shard,
                              const mr_row *rows, mr_error *err);

/* All of a file in memory; rows NULL: the index is lost, so single entries are not looked at. */
mr_status mr_seek_check(const uint8_t *bytes, uint64_t size, const mr_shard *shard, const mr_row *rows,
                        mr_seek_header *out, mr_error *err);

/* Opens NAME.seek and reads its header.  MR_END: there is none; MR_BAD_DATA: not of this shard; MR_SYSTEM: errno is
 * set. */
mr_status mr_seek_open(int dirfd, const mr_shard *shard, int *fd, uint64_t *size, mr_seek_header *header,
                       mr_error *err);

/* The largest size of a seek file of the shard. */
uint64_t mr_seek_bytes_max(const mr_shard *shard);

/* ---- making (make.c, shard.c) ------------------------------------------------------------------------- */

typedef enum mr_seek_outcome {
    MR_SEEK_NOT_DONE,
    MR_SEEK_NONE, /* with `check` */
    MR_SEEK_GOOD,
    MR_SEEK_MADE,
    MR_SEEK_FAILED,
} mr_seek_outcome;

typedef struct mr_seek_result { /* result of one shard, or summed over shards */
    mr_seek_outcome outcome;
    uint64_t images, jpegs, indexed; /* stored images, those that are JPEGs, those of them with entries */
    uint64_t bytes;                  /* bytes of the file */
    uint64_t examined;               /* JPEGs examined in this run ... */
    double cpu;                      /* ... and the seconds of CPU that took */
    mr_error why;                    /* MR_SEEK_FAILED */
} mr_seek_result;

typedef struct mr_seek_options {
    unsigned every;
    unsigned jobs;   /* threads; 0: all processors */
    bool force;      /* rebuild good ones, too */
    bool check;      /* writes nothing: compares each with what is made again, with its own spacing */
    bool quiet;      /* no progress */
    int progress;    /* mr_progress_begin()'s `to` */
    mr_ranks *ranks; /* shard i is made by rank i % world; NULL: alone */
} mr_seek_options;

/* Makes the seek file of each shard that has no good one with this spacing, from records that match their hashes; with
 * `check`, compares.  A damaged shard gets none, its result says why, and the others are made all the same.  In the end
 * every rank has all results.  The bytes depend on the shard and `every` alone. */
mr_status mr_seek_make(int dirfd, const mr_shard *const *shards, size_t count, const mr_seek_options *o,
                       mr_seek_result *results, mr_error *err);

/* Removes the seek files of these shards; *dropped: how many there were. */
mr_status mr_seek_drop(int dirfd, const mr_shard *const *shards, size_t count, size_t *dropped, mr_error *err);

/* Size and spacing of a shard's seek file by its header alone.  MR_END: there is none; MR_BAD_DATA: not of this
 * shard. */
mr_status mr_seek_look(int dirfd, const mr_shard *shard, uint64_t *bytes, unsigned *every, mr_error *err);

#endif
