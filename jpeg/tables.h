/* tables.h - Huffman tables in the shape that decoding wants: many symbols of an index, values included.
 * Invariant: what an entry says follows from the bits of its index alone.
 *
 * The next MR_JPEG_BITS bits of the stream are an index into
 *
 *      pair     up to two       length 0-5 | run 6-9 | second value 10-14 | first value 15-23 | advance 24-31
 *      skip     all             length 0-5 | advance 8-15                     for blocks that nobody looks at: of the
 *                                                                             last value no more than its length counts
 *
 * length: bits of the codes and the values behind them.  advance: zigzag places passed; an end of block counts as
 * MR_JPEG_END more.  The second value belongs at the last place passed, the first one `run` places behind the place
 * that comes next; it is stored last, as without a second one both are the same place.  Zeros that stand for no
 * coefficient do no harm.  Length 0: the code or its value is longer than the index, or the value than its field; then
 *
 *      pair     length 0-5 | run 6-9 | code's length 10-13 (0: search) | value's bits 14-17 | LONG 24-31
 *
 * and MR_JPEG_LONG behind whatever place has bit 6 and is not 64, as no end of a block is.
 *
 * More bits, or entries with room for every value, need fewer looks but are more than the nearest cache holds. */
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

typedef struct mr_jpeg_codes { /* canonical: codes of one length are neighbours, shorter ones are smaller */
    uint32_t limit[17];        /* 16 bits of stream below it begin with a code of at most that length */
    int32_t offset[17];        /* code + offset: place in values */
    uint8_t values[256];
} mr_jpeg_codes;

typedef struct mr_jpeg_dc {
    mr_jpeg_codes codes;
    uint32_t pair[MR_JPEG_ENTRIES]; /* of one symbol each */
    uint8_t counts[16];             /* what it was made of */
    bool made;
} mr_jpeg_dc;

typedef struct mr_jpeg_ac {
    mr_jpeg_codes codes;
    uint32_t pair[MR_JPEG_ENTRIES];
    uint16_t skip[MR_JPEG_ENTRIES];
    uint8_t counts[16];
    bool made;
} mr_jpeg_ac;

/* From 16 counts and as many symbols as they sum up to, at most 256.  A table that was made of the same is left as it
 * is.  False: codes that libjpeg-turbo refuses. */
bool mr_jpeg_dc_make(mr_jpeg_dc *t, const uint8_t *counts);
bool mr_jpeg_ac_make(mr_jpeg_ac *t, const uint8_t *counts);

#endif
