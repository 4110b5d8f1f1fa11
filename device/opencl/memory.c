/* memory.c - tensors of the device: addresses that the host cannot touch, backed by a few large buffers of the driver.
 * Invariant: an address is in one block or in none, as there is an unused page on either side of each block; so
 * pointers may be added to as on the host, and a stray access of the host ends the program.
 *
 *      buffer    | block, whole pages | page | block | page | free ...      an arena has as many as it needed so far
 *      address   | never accessible                                   |     base + offset in the buffer */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/opencl/opencl.h"

enum { PAGE = 4096, BUFFER_LEAST = 4 << 20, BUFFER_MOST = 256 << 20 };

/* Address space that a buffer takes: its own pages and a guard page on each side. */
static size_t span_of(const mr_cl_arena *a)
{
    return a->bytes / PAGE * PAGE + (size_t)3 * PAGE;
}

static void release(mr_opencl *d, const mr_cl_arena *a)
{
    d->api.ReleaseMemObject(a->memory);
    munmap(a->base - PAGE, span_of(a));
    d->held -= a->bytes;
}

void mr_cl_memory_close(mr_opencl *d)
{
    for (size_t i = 0; i < d->arena_count; i++)
        release(d, &d->arenas[i]);
    free(d->arenas);
    free(d->blocks);
    d->arenas = NULL;
    d->blocks = NULL;
    d->count = d->capacity = d->arena_count = d->arena_capacity = 0;
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

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* Drivers make buffers when they are first used: zeros are written, so that a lack of memory shows here. */
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

/* Each buffer is as large as all before it, so that they are few; where that is too much, just as large as needed. */
static int32_t add_arena(mr_opencl *d, size_t needed, mr_cl_arena **out)
{
    mr_cl_arena a = {.bytes = d->held < BUFFER_LEAST  ? BUFFER_LEAST
                              : d->held > BUFFER_MOST ? BUFFER_MOST
                                                      : (size_t)d->held};
    a.bytes = a.bytes > d->largest ? (size_t)d->largest / PAGE * PAGE : a.bytes;
    bool exact = d->exact || a.bytes <= needed;
    a.bytes = exact ? needed : a.bytes;
    if (!MR_GROW(d->arenas, d->arena_count, d->arena_capacity))
        return MR_CL_OUT_OF_HOST_MEMORY;
    int32_t code = make_buffer(d, a.bytes, &a.memory);
    if (code && !exact)
        code = make_buffer(d, a.bytes = needed, &a.memory);
    if (code)
        return code;
    uint8_t *all = mmap(NULL, span_of(&a), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        d->api.ReleaseMemObject(a.memory);
        return MR_CL_OUT_OF_HOST_MEMORY;
    }
    a.base = all + PAGE;
    d->held += a.bytes;
    d->arenas[d->arena_count] = a;
    *out = &d->arenas[d->arena_count++];
    return 0;
}

/* The first gap of `bytes` between the blocks of a buffer; NULL: none. */
static uint8_t *gap_in(const mr_opencl *d, const mr_cl_arena *a, size_t bytes)
{
    uint8_t *at = a->base, *end = a->base + a->bytes;
    for (size_t i = rank_of(d, a->base - 1); i < d->count && d->blocks[i].data < end; i++) {
        if (d->blocks[i].data >= at + bytes + PAGE)
            return at;
        at = d->blocks[i].data + d->blocks[i].bytes + PAGE;
    }
    return at <= end && (size_t)(end - at) >= bytes ? at : NULL;
}

/* A place of `bytes` in an existing buffer, or in a new one. */
static int32_t find_place(mr_opencl *d, size_t bytes, mr_cl_arena **arena, uint8_t **at)
{
    for (size_t i = 0; i < d->arena_count && !d->exact; i++) {
        *arena = &d->arenas[i];
        *at = gap_in(d, *arena, bytes);
        if (*at)
            return 0;
    }
    int32_t code = add_arena(d, bytes, arena);
    if (!code)
        *at = (*arena)->base;
    return code;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* What is in use, by purpose, in the order of first use. */
static void list_purposes(const mr_opencl *d, char *text, size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < d->count; i++) {
        uint64_t sum = 0;
        bool first = true;
        for (size_t k = 0; k < d->count; k++) {
            bool same = strcmp(d->blocks[k].purpose, d->blocks[i].purpose) == 0;
            first &= !same || k >= i;
            sum += same ? d->blocks[k].asked : 0;
        }
        if (first && len < size)
            len += (size_t)snprintf(text + len, size - len, "%s%s %llu", len ? ", " : ": ", d->blocks[i].purpose,
                                    (unsigned long long)sum);
    }
}

static mr_status no_memory(const mr_opencl *d, size_t bytes, const char *purpose, int32_t code, mr_error *err)
{
    char purposes[256];
    list_purposes(d, purposes, sizeof purposes);
    return mr_fail(err, MR_SYSTEM,
                   "opencl: no memory on %s for %zu bytes of %s, with %llu of %llu in use%s (%s, code %d%s); use a "
                   "smaller batch or model",
                   d->name, bytes, purpose, (unsigned long long)d->used, (unsigned long long)d->memory, purposes,
                   mr_cl_error_text(code), (int)code,
                   bytes > d->largest ? ", as its driver's buffers are smaller" : "");
}

mr_status mr_cl_alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    static const uint32_t zero = 0;
    mr_opencl *d = mr_opencl_of(device);
    mr_cl_block b = {.bytes = bytes / PAGE * PAGE + PAGE, .asked = bytes, .purpose = purpose};
    mr_cl_arena *a;
    if (bytes > d->memory)
        return no_memory(d, bytes, purpose, MR_CL_INVALID_BUFFER_SIZE, err);
    size_t place = !d->exact ? b.bytes : bytes ? (bytes + 3) / 4 * 4 : 4;
    int32_t code =
        MR_GROW(d->blocks, d->count, d->capacity) ? find_place(d, place, &a, &b.data) : MR_CL_OUT_OF_HOST_MEMORY;
    if (code)
        return no_memory(d, bytes, purpose, code, err);
    b.memory = a->memory;
    b.start = (size_t)(b.data - a->base);
    a->blocks++;
    /* It may have been in use before. */
    mr_cl_note(d, "alloc",
               d->api.EnqueueFillBuffer(d->queue, b.memory, &zero, sizeof zero, b.start, place, 0, NULL, NULL));
    size_t at = rank_of(d, b.data);
    memmove(d->blocks + at + 1, d->blocks + at, (d->count - at) * sizeof *d->blocks);
    d->blocks[at] = b;
    d->count++;
    d->used += bytes;
    *out = b.data;
    return MR_OK;
}

/* A buffer without blocks goes back to the driver. */
static void leave_arena(mr_opencl *d, mr_cl_memory memory)
{
    size_t i = 0;
    while (d->arenas[i].memory != memory)
        i++;
    if (--d->arenas[i].blocks)
        return;
    release(d, &d->arenas[i]);
    d->arenas[i] = d->arenas[--d->arena_count];
}

void mr_cl_free(mr_device *device, void *memory)
{
    mr_opencl *d = mr_opencl_of(device);
    size_t at = memory ? rank_of(d, memory) : 0;
    if (!at || d->blocks[at - 1].data != memory)
        return;
    mr_cl_block b = d->blocks[at - 1];
    memmove(d->blocks + at - 1, d->blocks + at, (d->count - at) * sizeof *d->blocks);
    d->count--;
    d->used -= b.asked;
    leave_arena(d, b.memory);
}
