/* parse.h - the segments of a JPEG before its scan, for the files that millrace's own decoder supports.
 * Invariant: a supported file causes no warning or error of libjpeg-turbo up to the scan; all others are left to it.
 *
 * Supported: one interleaved scan of sequential Huffman data, 8 bits, gray or YCbCr with full or half chroma
 * resolution:
 *
 *      Y 1x1 (4:4:4)     Y 2x1 (4:2:2)     Y 2x2 (4:2:0)     Y 1x2 (4:4:0)        Cb, Cr 1x1 */
#ifndef MR_JPEG_PARSE_H
#define MR_JPEG_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MR_JPEG_COMPONENTS = 3, MR_JPEG_TABLES = 4 };

typedef struct mr_jpeg_component {
    uint8_t id, h, v, quant, dc, ac; /* h, v: its blocks in an MCU; the rest: table numbers */
} mr_jpeg_component;

typedef struct mr_jpeg_header {
    uint32_t width, height; /* pixels */
    unsigned components;    /* 1 or 3; the first has the largest h and v */
    mr_jpeg_component component[MR_JPEG_COMPONENTS];
    unsigned rows_together;                    /* rows of MCUs that libjpeg-turbo decodes at a time */
    uint32_t restart;                          /* MCUs between restart markers; 0: none */
    int16_t quant[MR_JPEG_TABLES][64];         /* row by row; the low 16 bits, as libjpeg-turbo's multipliers */
    unsigned quant_set;                        /* one bit per table */
    const uint8_t *huffman[2][MR_JPEG_TABLES]; /* DC, AC: 16 counts, then the symbols, in the file; NULL: none */
    size_t scan;                               /* where the entropy-coded bytes begin */
} mr_jpeg_header;

/* The position of zigzag coefficient k in a block; the 64 are followed by entries for a spare place, 64.  The last byte
 * of an entry's address is k. */
enum { MR_JPEG_ZIGZAG = 256 };
extern const uint8_t mr_jpeg_zigzag[MR_JPEG_ZIGZAG] __attribute__((visibility("hidden"))); /* faster to address */

/* False: left to libjpeg-turbo.  The tables point into `bytes`. */
bool mr_jpeg_parse(const uint8_t *bytes, size_t len, mr_jpeg_header *out);

#endif
