/* memory_plan.h - one piece of a device's memory, divided by a walk.
 * Invariant: the same walk counts the bytes (base NULL) and hands out the pointers, so the two cannot differ. */
#ifndef MR_MEMORY_PLAN_H
#define MR_MEMORY_PLAN_H

#include "device/device.h"

enum { MR_MEMORY_ALIGN = 256 }; /* what accelerators want; more than any vector needs */

typedef struct mr_memory_plan {
    uint8_t *base; /* NULL: bytes are only counted */
    size_t used;
    bool overflow; /* more bytes than there are addresses */
} mr_memory_plan;

/* rows * width elements of `size` bytes; NULL while counting, or if there are none. */
void *mr_memory_take(mr_memory_plan *p, size_t rows, size_t width, size_t size);

#endif
