/* mat.h - meta.mat of ILSVRC2012's development kit: the synsets and their ids.
 * Invariant: it takes memory in proportion to its limits, whatever the file says. */
#ifndef MR_ILSVRC_MAT_H
#define MR_ILSVRC_MAT_H

#include "base/buf.h"

enum { MR_MAT_MAX = 16 << 20, MR_MAT_UNPACKED_MAX = 64 << 20 };

/* Reads the variable `synsets` of a MAT-file of version 5, and appends a line for each: "n02119789\t1\tkit fox, ...".
 * *budget: bytes that all its variables together may unpack to; what was used is taken from it.  MR_BAD_DATA: not such
 * a file, or without such a variable; the sentence has no file name. */
mr_status mr_mat_synsets(const void *bytes, size_t len, size_t *budget, mr_buf *out, mr_error *err);

#endif
