/* seek.h - where the scan of a baseline JPEG can be entered: made once, it lets a region begin at its own rows.
 * Invariant: the same bytes and the same spacing give the same entries, on every machine. */
#ifndef MR_JPEG_SEEK_H
#define MR_JPEG_SEEK_H

#include "base/buf.h"
#include "jpeg/region.h"

/* What the checks prove, and what not: a part of a row is decoded from one entry up to another, and must arrive there
 * to the bit and with its predictors.  So one wrong entry, or damage in the part's bytes, is found unless the codes
 * meet again at the very same place with the same sums.  Entries that are wrong in step are not: predictors moved by
 * one constant at both ends give a picture that is too bright, without a word.  Whoever keeps entries binds them to
 * their file by a hash, and asks it before he gives them to a job. */

enum {
    MR_JPEG_SEEK_ROWS = 0,   /* `every`: an entry a row of MCUs and no more */
    MR_JPEG_SEEK_EVERY = 16, /* MCUs between two entries of a row, if nobody has other wishes */
};

/* Measured on photographs of 136 KB, 4:4:4, random crops of 0.38 of the area to 224 pixels, CPU time beside a full
 * decode by libjpeg-turbo and the same resize (tests/bench/pixels_bench.c); making entries takes 0.31 of that decode:
 *
 *      entries      none   rows   every 32   every 16   every 8   every 4
 *      of the file         0.25 %   0.70 %     1.22 %    2.37 %    4.59 %
 *      time         0.50   0.42     0.39       0.38      0.36      0.36 */

/* Appends the entries of the file, packed, an entry at the start of each row of MCUs and at every `every`-th MCU in it.
 * MR_JPEG_LEFT: not a file for this decoder, and nothing is appended; such a file has no entries, which is no fault.
 * Done says too that the scan is sound from end to end.  Costs one pass over the entropy-coded bytes.  Whether the
 * memory sufficed is for mr_buf_status() to say. */
mr_jpeg_outcome mr_jpeg_seek_make(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len, unsigned every, mr_buf *out);

#endif
