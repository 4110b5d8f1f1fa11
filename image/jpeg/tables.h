/* tables.h - Huffman tables for decoding: several symbols per index, including their values.
 * Invariant: an entry follows from the bits of its index alone.
 *
 * The next MR_JPEG_BITS bits of the stream are an index into
 *
 *      pair     up to two symbols
 *      skip     all symbols     length 0-5 | advance 8-15      for blocks that are not needed: only the length of the
 *                                                              last value matters
 *
 * More bits would need fewer lookups but exceed the first-level cache. */
#ifndef MR_JPEG_TABLES_H
#define MR_JPEG_TABLES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MR_JPEG_BITS = 11,
    MR_JPEG_REST = 7,
    MR_JPEG_ENTRIES = 1 << MR_JPEG_BITS,
    MR_JPEG_END = 128, /* END + 64 + 32 < 256 */
    MR_JPEG_LONG = 64, /* LONG + 1 for DC, which has place 0 */
};

typedef struct mr_jpeg_codes { /* canonical: codes of one length are consecutive, shorter ones are smaller */
    uint32_t limit[17];        /* 16 bits of the stream below it begin with a code of at most that length */
    int32_t offset[17];        /* code + offset: index into values */
    uint8_t values[256];
} mr_jpeg_codes;

/* The second value belongs at the last place passed, the first one `run` places after the next place; it is stored
 * last, as without a second one both places are the same.  Zeros stored for no coefficient are harmless.
 *
 * A symbol alone may have up to MR_JPEG_REST bits of its value after the index, which knows the sign: they are added to
 * `first`.  A longer symbol has length 0 and advances by MR_JPEG_LONG: the place after any other then has bit 6 set and
 * is not 64, which is never an end of block. */
typedef struct mr_jpeg_pair {
    uint8_t length; /* bits of the codes and their values */
    uint8_t run;
    int16_t first, second;
    uint8_t shift;   /* 63 less the bits after the index */
    uint8_t advance; /* zigzag places passed, plus MR_JPEG_END for an end of block */
} mr_jpeg_pair;

typedef struct mr_jpeg_dc {
    mr_jpeg_codes codes;
    mr_jpeg_pair pair[MR_JPEG_ENTRIES]; /* with one symbol each */
    uint8_t counts[16];                 /* what it was built from */
    bool made;
} mr_jpeg_dc;

typedef struct mr_jpeg_ac {
    mr_jpeg_codes codes;
    mr_jpeg_pair pair[MR_JPEG_ENTRIES]; /* if `paired` */
    uint16_t skip[MR_JPEG_ENTRIES];     /* if `skips` */
    uint8_t counts[16];
    bool made, paired, skips;
} mr_jpeg_ac;

/* The codes of 16 counts and as many symbols as they sum up to, at most 256.  False: codes that libjpeg-turbo rejects;
 * `dc`: also those of values that a DC coefficient does not have. */
bool mr_jpeg_codes_make(mr_jpeg_codes *c, const uint8_t *counts, bool dc);
/* Builds a table from 16 counts and as many symbols as they sum up to, at most 256; does nothing if it was built from
 * the same.  False: codes that libjpeg-turbo rejects. */
bool mr_jpeg_dc_make(mr_jpeg_dc *t, const uint8_t *counts);
/* The same, but for `pair` and `skip`, which the next two build when they are needed: a whole image skips nothing, and
 * a check stores nothing. */
bool mr_jpeg_ac_make(mr_jpeg_ac *t, const uint8_t *counts);
void mr_jpeg_ac_pair(mr_jpeg_ac *t);
void mr_jpeg_ac_skip(mr_jpeg_ac *t);

#endif
