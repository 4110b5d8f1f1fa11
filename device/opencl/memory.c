/* memory.c - tensors of the device: addresses that the host cannot touch, and the buffers behind them.
 * Invariant: an address is of one block or of none, as a page that is never used stands on either side of each block;
 * so pointers may be added to as on the host, and a stray access of the host ends the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "opencl/opencl.h"

enum { PAGE = 4096 };

static void release(mr_opencl *d, const mr_cl_block *b)
{
    d->api.ReleaseMemObject(b->memory);
    munmap(b->data - PAGE, b->bytes + (size_t)2 * PAGE);
    d->used -= b->asked;
}

void mr_cl_memory_close(mr_opencl *d)
{
    for (size_t i = 0; i < d->count; i++)
        release(d, &d->blocks[i]);
    free(d->blocks);
    d->blocks = NULL;
    d->count = d->room = 0;
}

/* Blocks that begin at or before `at`. */
static size_t rank_of(const mr_opencl *d, const void *at)
{
    size_t low = 0, high = d->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->blocks[middle].data <= (const uint8_t *)at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const mr_cl_block *mr_cl_block_of(const mr_opencl *d, const void *at)
{
    size_t i = rank_of(d, at);
    const mr_cl_block *b = i ? &d->blocks[i - 1] : NULL;
    return b && (const uint8_t *)at < b->data + b->bytes ? b : NULL;
}

/* Buffers are made when they are first used: zeros are written, so that a lack of memory shows here. */
static int32_t make_buffer(mr_opencl *d, size_t bytes, mr_cl_memory *out)
{
    static const uint32_t zero = 0;
    int32_t code = 0;
    *out = d->api.CreateBuffer(d->context, MR_CL_MEM_READ_WRITE, bytes, NULL, &code);
    if (code)
        return code;
    code = d->api.EnqueueFillBuffer(d->queue, *out, &zero, sizeof zero, 0, bytes, 0, NULL, NULL);
    if (!code)
        code = d->api.Finish(d->queue);
    if (code)
        d->api.ReleaseMemObject(*out);
    return code;
}

static mr_status no_memory(const mr_opencl *d, size_t bytes, int32_t code, mr_error *err)
{
    return mr_fail(err, MR_SYSTEM,
                   "opencl: no memory on %s for %zu bytes more, with %llu of %llu in use (%s, code %d); use a smaller "
                   "batch or model",
                   d->name, bytes, (unsigned long long)d->used, (unsigned long long)d->memory, mr_cl_error_text(code),
                   (int)code);
}

mr_status mr_cl_alloc(mr_device *device, size_t bytes, void **out, mr_error *err)
{
    mr_opencl *d = mr_opencl_of(device);
    mr_cl_block b = {.bytes = bytes / PAGE * PAGE + PAGE, .asked = bytes};
    MR_TRY(mr_cl_program_open(d, err));
    if (bytes > d->memory)
        return no_memory(d, bytes, MR_CL_INVALID_BUFFER_SIZE, err);
    int32_t code = make_buffer(d, (bytes + 63) / 64 * 64 + 64, &b.memory);
    if (code)
        return no_memory(d, bytes, code, err);
    uint8_t *all =
        mmap(NULL, b.bytes + (size_t)2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED || !MR_GROW(d->blocks, d->count, d->room)) {
        d->api.ReleaseMemObject(b.memory);
        if (all != MAP_FAILED)
            munmap(all, b.bytes + (size_t)2 * PAGE);
        return mr_fail_memory(err, "memory of the device");
    }
    b.data = all + PAGE;
    size_t at = rank_of(d, b.data);
    memmove(d->blocks + at + 1, d->blocks + at, (d->count - at) * sizeof *d->blocks);
    d->blocks[at] = b;
    d->count++;
    d->used += bytes;
    *out = b.data;
    return MR_OK;
}

void mr_cl_free(mr_device *device, void *memory)
{
    mr_opencl *d = mr_opencl_of(device);
    size_t at = memory ? rank_of(d, memory) : 0;
    if (!at || d->blocks[at - 1].data != memory)
        return;
    release(d, &d->blocks[at - 1]);
    memmove(d->blocks + at - 1, d->blocks + at, (d->count - at) * sizeof *d->blocks);
    d->count--;
}

/* The block of [at, at + bytes) and its offset there; NULL: after a failure, or it is none of the device's. */
static const mr_cl_block *find(mr_opencl *d, const char *what, const void *at, size_t bytes, size_t *offset)
{
    const mr_cl_block *b = d->wrong[0] ? NULL : mr_cl_block_of(d, at);
    if (b)
        *offset = (size_t)((const uint8_t *)at - b->data);
    if (b && bytes <= b->bytes - *offset)
        return b;
    if (!d->wrong[0])
        snprintf(d->wrong, sizeof d->wrong, "%s: not memory of the device", what);
    return NULL;
}

void mr_cl_upload(mr_device *device, void *to, const void *from, size_t bytes)
{
    mr_opencl *d = mr_opencl_of(device);
    size_t offset;
    const mr_cl_block *b = bytes ? find(d, "upload", to, bytes, &offset) : NULL;
    if (b)
        mr_cl_note(d, "upload",
                   d->api.EnqueueWriteBuffer(d->queue, b->memory, true, offset, bytes, from, 0, NULL, NULL));
}

void mr_cl_download(mr_device *device, void *to, const void *from, size_t bytes)
{
    mr_opencl *d = mr_opencl_of(device);
    size_t offset;
    const mr_cl_block *b = bytes ? find(d, "download", from, bytes, &offset) : NULL;
    if (b)
        mr_cl_note(d, "download",
                   d->api.EnqueueReadBuffer(d->queue, b->memory, true, offset, bytes, to, 0, NULL, NULL));
    if (bytes && d->wrong[0])
        memset(to, 0xff, bytes);
}

void mr_cl_zero(mr_device *device, void *memory, size_t bytes)
{
    static const uint32_t zero = 0;
    mr_opencl *d = mr_opencl_of(device);
    size_t offset;
    const mr_cl_block *b = bytes ? find(d, "zero", memory, bytes, &offset) : NULL;
    if (b) {
        size_t size = offset % sizeof zero || bytes % sizeof zero ? 1 : sizeof zero;
        mr_cl_note(d, "zero", d->api.EnqueueFillBuffer(d->queue, b->memory, &zero, size, offset, bytes, 0, NULL, NULL));
    }
}
