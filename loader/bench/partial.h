/* partial.h - a decoder that omits steps, to measure their cost as the difference.  For `millrace bench`.
 * Invariant: it reads what the full decoder reads, and returns DONE for the same files; its pixels are undefined. */
#ifndef MR_JPEG_PARTIAL_H
#define MR_JPEG_PARTIAL_H

#include "image/jpeg/region.h"

typedef enum mr_jpeg_parts {
    MR_JPEG_PARTS_ENTROPY, /* header, tables, entropy-coded bytes */
    MR_JPEG_PARTS_SAMPLES, /* the same and the IDCT */
    MR_JPEG_PARTS_ALL,     /* the full decoder */
} mr_jpeg_parts;

/* Freed by mr_jpeg_decoder_free().  NULL: out of memory. */
mr_jpeg_decoder *mr_jpeg_partial_new(mr_jpeg_parts parts);

#endif
