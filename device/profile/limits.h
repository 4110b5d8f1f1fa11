/* limits.h - what a device can do at most, measured on it.
 * Invariant: by its own operations on large operands, the best of a few; nothing of a run is touched. */
#ifndef MR_LIMITS_H
#define MR_LIMITS_H

#include "device/device.h"

/* Operands: matrices of this many rows and columns; arrays of this many bytes. */
enum { MR_LIMIT_SIDE = 1024, MR_LIMIT_BYTES = 64 << 20 };

/* FLOP/s of a product of two matrices of `type`; 0: not known. */
double mr_limit_flops(mr_device *d, mr_type type);
/* Bytes a second, read and written, of a sum of two float32 arrays; 0: not known. */
double mr_limit_bytes(mr_device *d);

#endif
