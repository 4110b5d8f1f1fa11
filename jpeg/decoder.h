/* decoder.h - private to jpeg_*.c: what a thread keeps from one file to the next, and the opening of a file.
 * Invariant: between two files `blocks` is zero, and a table that says it is made is whole. */
#ifndef MR_JPEG_DECODER_H
#define MR_JPEG_DECODER_H

#include "jpeg/entries.h"
#include "jpeg/region.h"
#include "jpeg/scan.h"

enum { MR_JPEG_CHUNK = MR_JPEG_BESIDE / 2 }; /* MCUs that are stored before they are transformed */

typedef struct mr_jpeg_buffer { /* only grows; what was in it is lost then */
    void *data;
    size_t room;
} mr_jpeg_buffer;

struct mr_jpeg_decoder {
    const mr_jpeg_kernels *kernels;
    mr_jpeg_header header;
    mr_jpeg_mcu mcu;
    mr_jpeg_dc dc[MR_JPEG_TABLES];
    mr_jpeg_ac ac[MR_JPEG_TABLES];
    mr_jpeg_buffer bytes, samples, entries;
    /* Of two rows of MCUs at most; zero between two chunks. */
    _Alignas(32) int16_t blocks[2][MR_JPEG_CHUNK * MR_JPEG_BLOCKS * MR_JPEG_BLOCK];
};

void *mr_jpeg_room(mr_jpeg_buffer *b, size_t need); /* NULL: no memory */

/* Reads the header and makes the tables.  False: not a file for this decoder. */
bool mr_jpeg_open(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len);
/* The picture in MCUs. */
uint32_t mr_jpeg_wide(const mr_jpeg_header *h);
uint32_t mr_jpeg_high(const mr_jpeg_header *h);
/* A scan of the file that is open, nothing of it read.  False: no memory. */
bool mr_jpeg_open_scan(mr_jpeg_decoder *d, mr_jpeg_scan *s, const uint8_t *bytes, size_t len);

static inline uint32_t mr_jpeg_up(uint32_t n, uint32_t by)
{
    return n / by + (n % by != 0);
}

static inline uint32_t mr_jpeg_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

#endif
