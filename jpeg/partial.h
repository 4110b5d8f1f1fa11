/* partial.h - a decoder that leaves steps out, to see by the difference what they cost.  For measuring only.
 * Invariant: it reads what the whole decoder reads, and gives DONE for the same files; its pixels mean nothing. */
#ifndef MR_JPEG_PARTIAL_H
#define MR_JPEG_PARTIAL_H

#include "jpeg/region.h"

typedef enum mr_jpeg_parts {
    MR_JPEG_PARTS_ENTROPY, /* header, tables, entropy-coded bytes */
    MR_JPEG_PARTS_SAMPLES, /* the same and the IDCT */
    MR_JPEG_PARTS_ALL,     /* a decoder as any other */
} mr_jpeg_parts;

/* Caller: mr_jpeg_decoder_free().  NULL: no memory. */
mr_jpeg_decoder *mr_jpeg_partial_new(mr_jpeg_parts parts);

#endif
