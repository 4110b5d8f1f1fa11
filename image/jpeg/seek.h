/* seek.h - entry points into the scan of a baseline JPEG: computed once, they let decoding start at a region's rows.
 * Invariant: the same bytes and the same spacing give the same entries, on every machine. */
#ifndef MR_JPEG_SEEK_H
#define MR_JPEG_SEEK_H

#include "base/buf.h"
#include "image/jpeg/region.h"

/* What the checks detect: a part of a row is decoded from one entry to another, and must arrive there to the bit and
 * with its predictors.  So a wrong entry, or damage in the part's bytes, is found unless the codes synchronise at the
 * same place with the same sums.  Consistently wrong entries are not found: predictors shifted by a constant at both
 * ends give an image that is too bright.  So stored entries must be bound to their file by a hash, verified before
 * use. */

enum {
    MR_JPEG_SEEK_ROWS = 0,  /* `every`: one entry per row of MCUs */
    MR_JPEG_SEEK_EVERY = 8, /* MCUs between two entries of a row, by default */
};

/* Measured on photographs of 136 KB, 4:4:4, random crops of 0.38 of the area to 224 pixels, CPU time relative to a full
 * decode by libjpeg-turbo and the same resize (tests/bench/pixels_bench.c); making entries takes 0.31 of that decode:
 *
 *      entries      none   rows   every 32   every 16   every 8   every 4
 *      of the file         0.25 %   0.70 %     1.22 %    2.37 %    4.59 %
 *      time         0.50   0.42     0.39       0.38      0.36      0.36 */

/* Appends the packed entries of the file: one at the start of each row of MCUs and at every `every`-th MCU in it.
 * MR_JPEG_LEFT: not supported by this decoder; nothing is appended, and the file is used without entries.
 * MR_JPEG_DONE: the scan is also sound from start to end.  Takes one pass over the entropy-coded bytes.  Check
 * mr_buf_status() for out of memory. */
mr_jpeg_outcome mr_jpeg_seek_make(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len, unsigned every, mr_buf *out);

#endif
