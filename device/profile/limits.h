/* limits.h - what a device can do at most, measured on it.
 * Invariant: by its own operations, on operands that grow until one takes 5 ms; nothing of a run is touched. */
#ifndef MR_LIMITS_H
#define MR_LIMITS_H

#include "device/device.h"

typedef struct mr_limit {
    double rate; /* per second, the best of a few rounds; 0: not known */
    size_t size; /* size of the operands it was measured with */
} mr_limit;

/* FLOPs of a product of two matrices of `type`; size: their rows and columns, 1,024 to 8,192. */
mr_limit mr_limit_flops(mr_device *d, mr_type type);
/* Bytes, read and written, of a sum of two float32 arrays; size: bytes of one, 64 to 512 MiB. */
mr_limit mr_limit_bytes(mr_device *d);

#endif
