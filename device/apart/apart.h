/* apart.h - the CPU's operations on memory that nothing else can touch: a device for tests of everything above the
 * card. Invariant: outside of an operation no byte of device memory can be read or written, and in one only the blocks
 * that its arguments point into; host memory given to an operation, or device memory used by the host, does not pass.
 *
 *      memory.c    | inaccessible | block, a whole number of pages | inaccessible |      mprotect() for each operation
 *      apart.c     the card: each operation opens its blocks and calls the CPU's, so results are the CPU's to the bit
 */
#ifndef MR_APART_H
#define MR_APART_H

#include "base/scope.h"
#include "device/device.h"

enum { MR_APART_ARGUMENTS = 16 };

typedef struct mr_apart_block {
    uint8_t *data;
    size_t bytes; /* whole pages; one more at either end is never opened */
} mr_apart_block;

typedef struct mr_apart {
    mr_device device;
    mr_device *cpu;
    mr_apart_block *blocks;
    size_t count, room;
    char text[128], wrong[128]; /* wrong: the first operation that was given memory of the host; "": none */
} mr_apart;

mr_apart *mr_apart_of(mr_device *device);
mr_status mr_apart_alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err);
void mr_apart_free(mr_device *device, void *memory);
void mr_apart_free_all(mr_apart *d);

/* The memory that one operation may use: the blocks of its arguments (NULL is fine), until it ends. */
typedef struct mr_apart_opening {
    mr_apart *device;
    const mr_apart_block *blocks[MR_APART_ARGUMENTS];
    size_t count;
} mr_apart_opening;

void mr_apart_begin(mr_apart_opening *o, mr_device *device, const char *operation, const void *const *arguments,
                    size_t count);
void mr_apart_end(mr_apart_opening *o);

#endif
