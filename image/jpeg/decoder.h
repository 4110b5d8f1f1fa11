/* decoder.h - for this module and image/coded: what a thread keeps from file to file, and opening a file.
 * Invariant: between two files `blocks` is zero, and a table marked `made` is complete. */
#ifndef MR_JPEG_DECODER_H
#define MR_JPEG_DECODER_H

#include "image/jpeg/entries.h"
#include "image/jpeg/region.h"
#include "image/jpeg/scan.h"

enum { MR_JPEG_CHUNK = MR_JPEG_IDCT_MAX / 2 }; /* MCUs stored before they are transformed */

typedef struct mr_jpeg_buffer { /* only grows, losing its content */
    void *data;
    size_t capacity;
} mr_jpeg_buffer;

struct mr_jpeg_decoder {
    const mr_jpeg_kernels *kernels;
    mr_jpeg_header header;
    mr_jpeg_mcu mcu;
    mr_jpeg_dc dc[MR_JPEG_TABLES];
    mr_jpeg_ac ac[MR_JPEG_TABLES];
    mr_jpeg_buffer bytes, samples, entries;
    /* The blocks of at most two rows of MCUs; zero between two chunks. */
    _Alignas(32) int16_t blocks[2][MR_JPEG_CHUNK * MR_JPEG_BLOCKS * MR_JPEG_BLOCK];
};

void *mr_jpeg_reserve(mr_jpeg_buffer *b, size_t need); /* NULL: out of memory */

/* Reads the header alone; the codes of its tables are not checked. */
bool mr_jpeg_open_header(const uint8_t *bytes, size_t len, mr_jpeg_header *out);
/* Reads the header and builds the tables.  False: not a file for this decoder. */
bool mr_jpeg_open(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len);
/* The image in MCUs. */
uint32_t mr_jpeg_wide(const mr_jpeg_header *h);
uint32_t mr_jpeg_high(const mr_jpeg_header *h);
/* A scan of the open file, at its start.  False: out of memory. */
bool mr_jpeg_open_scan(mr_jpeg_decoder *d, mr_jpeg_scan *s, const uint8_t *bytes, size_t len);

static inline uint32_t mr_jpeg_divide_up(uint32_t n, uint32_t by)
{
    return n / by + (n % by != 0);
}

static inline uint32_t mr_jpeg_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

#endif
