/* tables.h - Huffman tables for decoding: several symbols per index, including their values.
 * Invariant: an entry follows from the bits of its index alone.
 *
 * The next MR_JPEG_BITS bits of the stream are an index into
 *
 *      pair     up to two       length 0-5 | run 6-9 | second value 10-14 | first value 15-23 | advance 24-31
 *      skip     all             length 0-5 | advance 8-15                     for blocks that are not needed: only the
 *                                                                             length of the last value matters
 *
 * length: bits of the codes and their values.  advance: zigzag places passed, plus MR_JPEG_END for an end of block. The
 * second value belongs at the last place passed, the first one `run` places after the next place; it is stored last, as
 * without a second one both places are the same.  Zeros stored for no coefficient are harmless.  Length 0: the code or
 * its value is longer than the index, or the value than its field; then
 *
 *      pair     length 0-5 | run 6-9 | code's length 10-13 (0: search) | value's bits 14-17 | LONG 24-31
 *
 * and MR_JPEG_LONG after any place has bit 6 set and is not 64, which is never an end of block.
 *
 * More bits, or entries for all values, would need fewer lookups but exceed the first-level cache. */
#ifndef MR_JPEG_TABLES_H
#define MR_JPEG_TABLES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MR_JPEG_BITS = 11,
    MR_JPEG_ENTRIES = 1 << MR_JPEG_BITS,
    MR_JPEG_END = 128, /* END + 64 + 32 < 256 */
    MR_JPEG_LONG = 64, /* LONG + 1 for DC, which has place 0 */
};

typedef struct mr_jpeg_codes { /* canonical: codes of one length are consecutive, shorter ones are smaller */
    uint32_t limit[17];        /* 16 bits of the stream below it begin with a code of at most that length */
    int32_t offset[17];        /* code + offset: index into values */
    uint8_t values[256];
} mr_jpeg_codes;

typedef struct mr_jpeg_dc {
    mr_jpeg_codes codes;
    uint32_t pair[MR_JPEG_ENTRIES]; /* with one symbol each */
    uint8_t counts[16];             /* what it was built from */
    bool made;
} mr_jpeg_dc;

typedef struct mr_jpeg_ac {
    mr_jpeg_codes codes;
    uint32_t pair[MR_JPEG_ENTRIES];
    uint16_t skip[MR_JPEG_ENTRIES];
    uint8_t counts[16];
    bool made;
} mr_jpeg_ac;

/* The codes of 16 counts and as many symbols as they sum up to, at most 256.  False: codes that libjpeg-turbo rejects;
 * `dc`: also those of values that a DC coefficient does not have. */
bool mr_jpeg_codes_make(mr_jpeg_codes *c, const uint8_t *counts, bool dc);
/* Builds a table from 16 counts and as many symbols as they sum up to, at most 256; does nothing if it was built from
 * the same.  False: codes that libjpeg-turbo rejects. */
bool mr_jpeg_dc_make(mr_jpeg_dc *t, const uint8_t *counts);
bool mr_jpeg_ac_make(mr_jpeg_ac *t, const uint8_t *counts);

#endif
