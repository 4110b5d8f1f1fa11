/* jpeg_seek.h - where the scan of a baseline JPEG can be entered: made once, it lets a region begin at its own rows.
 * Invariant: the same bytes and the same spacing give the same entries, on every machine. */
#ifndef MR_JPEG_SEEK_H
#define MR_JPEG_SEEK_H

#include "buf.h"
#include "jpeg_region.h"

/* What the checks prove, and what not: a part of a row is decoded from one entry up to another, and must arrive there to
 * the bit and with its predictors.  So one wrong entry, or damage in the part's bytes, is found unless the codes meet
 * again at the very same place with the same sums.  Entries that are wrong in step are not: predictors moved by one
 * constant at both ends give a picture that is too bright, without a word.  Whoever keeps entries binds them to their
 * file by a hash, and asks it before he gives them to a job. */

enum {
    MR_JPEG_SEEK_ROWS = 0,          /* `every`: an entry a row of MCUs and no more */
    MR_JPEG_SEEK_EVERY = 16,        /* MCUs between two entries of a row, if nobody has other wishes */
};

/* Appends the entries of the file, packed, an entry at the start of each row of MCUs and at every `every`-th MCU in it.
 * MR_JPEG_LEFT: not a file for this decoder, and nothing is appended; such a file has no entries, which is no fault.
 * Done says too that the scan is sound from end to end.  Costs one pass over the entropy-coded bytes.  Whether the
 * memory sufficed is for mr_buf_status() to say. */
mr_jpeg_outcome mr_jpeg_seek_make(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len, unsigned every, mr_buf *out);

#endif
