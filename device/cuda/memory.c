/* memory.c - tensors of a CUDA device.
 * Invariant: blocks are sorted by their addresses, and the address just past one is in no other. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

enum { GRAIN = 64 }; /* a block ends with at least a byte that is not used: what is just past a tensor is in no other */

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

/* Blocks that begin at or before `at`. */
static size_t rank_of(const mr_cuda *d, mr_cu_memory at)
{
    size_t low = 0, high = d->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->blocks[middle].data <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool mr_cuda_has(const mr_cuda *d, const void *at, size_t bytes)
{
    size_t i = rank_of(d, mr_cuda_number_of(at));
    const mr_cuda_block *b = i ? &d->blocks[i - 1] : NULL;
    size_t offset = b ? (size_t)(mr_cuda_number_of(at) - b->data) : 0;
    return b && offset <= b->bytes && bytes <= b->bytes - offset;
}

static mr_status no_memory(const mr_cuda *d, size_t bytes, const char *purpose, int code, mr_error *err)
{
    char why[160];
    mr_cuda_error_text(d, code, why, sizeof why);
    return mr_fail(err, MR_SYSTEM,
                   "cuda: no memory on %s for %zu bytes of %s, with %llu of %llu in use (%s); use a smaller batch or "
                   "model",
                   d->name, bytes, purpose, (unsigned long long)d->used, (unsigned long long)d->memory, why);
}

mr_status mr_cuda_alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    mr_cuda *d = mr_cuda_of(device);
    mr_cuda_block b = {.bytes = bytes};
    size_t whole = bytes / GRAIN * GRAIN + GRAIN;
    if (bytes > d->memory)
        return no_memory(d, bytes, purpose, MR_CU_OUT_OF_MEMORY, err);
    if (!MR_GROW(d->blocks, d->count, d->capacity))
        return mr_fail_memory(err, "memory of the device");
    int code = d->api.cu.context_use(d->context);
    if (!code)
        code = d->api.cu.alloc(&b.data, whole);
    if (code)
        return no_memory(d, bytes, purpose, code, err);
    mr_cuda_note(d, "zero", d->api.cu.fill(b.data, 0, whole, d->stream));
    size_t at = rank_of(d, b.data);
    memmove(d->blocks + at + 1, d->blocks + at, (d->count - at) * sizeof *d->blocks);
    d->blocks[at] = b;
    d->count++;
    d->used += bytes;
    *out = (void *)(uintptr_t)b.data;
    return MR_OK;
}

/* The driver waits for what uses the memory before it is released. */
void mr_cuda_free(mr_device *device, void *memory)
{
    mr_cuda *d = mr_cuda_of(device);
    size_t at = memory ? rank_of(d, mr_cuda_number_of(memory)) : 0;
    if (!at || d->blocks[at - 1].data != mr_cuda_number_of(memory))
        return;
    d->used -= d->blocks[at - 1].bytes;
    d->freed++;
    d->api.cu.context_use(d->context);
    mr_cuda_note(d, "free", d->api.cu.free(d->blocks[at - 1].data));
    memmove(d->blocks + at - 1, d->blocks + at, (d->count - at) * sizeof *d->blocks);
    d->count--;
}

void mr_cuda_memory_close(mr_cuda *d)
{
    for (size_t i = 0; i < d->count; i++)
        d->api.cu.free(d->blocks[i].data);
    for (size_t i = 0; i < MR_CUDA_PIECES; i++)
        if (d->copied[i])
            d->api.cu.event_destroy(d->copied[i]);
    if (d->pinned)
        d->api.cu.host_free(d->pinned);
    free(d->blocks);
    d->blocks = NULL;
    d->count = d->capacity = 0;
}
