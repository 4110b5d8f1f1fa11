/* job.h - private to this room: the kernels' description of a batch, for the host's compiler.
 * Invariant: it is the very text that the kernels are compiled with. */
#ifndef MR_DECODE_JOB_H
#define MR_DECODE_JOB_H

#include "kernels/jpeg_job.h"

_Static_assert(sizeof(mr_jpeg_image) % 8 == 0, "the same for all compilers");
_Static_assert(sizeof(mr_jpeg_part) % 8 == 0, "the same for all compilers");

#endif
