/* memory.c - the blocks of the device: inaccessible, but for those of the operation that runs. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "apart/apart.h"

enum { PAGE = 4096 };

mr_apart *mr_apart_of(mr_device *device)
{
    return (mr_apart *)(void *)device;
}

static void unmap(const mr_apart_block *b)
{
    munmap(b->data - PAGE, b->bytes + (size_t)2 * PAGE);
}

void mr_apart_free_all(mr_apart *d)
{
    for (size_t i = 0; i < d->count; i++)
        unmap(&d->blocks[i]);
    free(d->blocks);
}

mr_status mr_apart_alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    mr_apart *d = mr_apart_of(device);
    mr_apart_block b = {.bytes = bytes / PAGE * PAGE + PAGE};
    bool fits = bytes < SIZE_MAX / 4 && MR_GROW(d->blocks, d->count, d->room);
    uint8_t *all =
        fits ? mmap(NULL, b.bytes + (size_t)2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
             : MAP_FAILED;
    if (all == MAP_FAILED)
        return mr_fail(err, MR_SYSTEM, "apart: no memory for %zu bytes of %s; use a smaller batch or model", bytes,
                       purpose);
    b.data = all + PAGE;
    d->blocks[d->count++] = b;
    *out = b.data;
    return MR_OK;
}

void mr_apart_free(mr_device *device, void *memory)
{
    mr_apart *d = mr_apart_of(device);
    for (size_t i = 0; memory && i < d->count; i++)
        if (d->blocks[i].data == memory) {
            unmap(&d->blocks[i]);
            d->blocks[i] = d->blocks[--d->count];
            return;
        }
}

/* NULL: of no block. */
static const mr_apart_block *block_of(const mr_apart *d, const void *at)
{
    for (size_t i = 0; i < d->count; i++)
        if ((const uint8_t *)at >= d->blocks[i].data && (const uint8_t *)at < d->blocks[i].data + d->blocks[i].bytes)
            return &d->blocks[i];
    return NULL;
}

void mr_apart_begin(mr_apart_opening *o, mr_device *device, const char *operation, const void *const *arguments,
                    size_t count)
{
    mr_apart *d = mr_apart_of(device);
    *o = (mr_apart_opening){.device = d};
    for (size_t i = 0; i < count; i++) {
        const mr_apart_block *b = arguments[i] ? block_of(d, arguments[i]) : NULL;
        if (arguments[i] && !b && !d->wrong[0])
            snprintf(d->wrong, sizeof d->wrong, "%s: argument %zu is not memory of the device", operation, i + 1);
        if (b && mprotect(b->data, b->bytes, PROT_READ | PROT_WRITE) == 0)
            o->blocks[o->count++] = b;
    }
}

void mr_apart_end(mr_apart_opening *o)
{
    for (size_t i = 0; i < o->count; i++)
        mprotect(o->blocks[i]->data, o->blocks[i]->bytes, PROT_NONE);
}
