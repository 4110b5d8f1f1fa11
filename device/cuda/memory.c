/* memory.c - tensors of a CUDA device, and copies between it and the host.
 * Invariant: a copy from the host has left its source when the call returns: bytes go to pinned memory first, a piece
 * at a time, and a piece is used again when the event that was recorded after its copy has happened.  Slabs (slabs.c)
 * are pinned themselves.
 *
 *      host  --memcpy-->  | piece | piece | piece | piece |  --stream-->  device          and back, when it is waited
 * for
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

enum { GRAIN = 64 }; /* a block ends with at least a byte that is not used: what is just past a tensor is in no other */

static mr_cu_memory number_of(const void *at)
{
    return (mr_cu_memory)(uintptr_t)at;
}

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
    size_t i = rank_of(d, number_of(at));
    const mr_cuda_block *b = i ? &d->blocks[i - 1] : NULL;
    size_t offset = b ? (size_t)(number_of(at) - b->data) : 0;
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
    MR_TRY(mr_cuda_program_open(d, err));
    if (bytes > d->memory)
        return no_memory(d, bytes, purpose, MR_CU_OUT_OF_MEMORY, err);
    if (!MR_GROW(d->blocks, d->count, d->room))
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
    size_t at = memory ? rank_of(d, number_of(memory)) : 0;
    if (!at || d->blocks[at - 1].data != number_of(memory))
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
    d->count = d->room = 0;
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

static bool open_pieces(mr_cuda *d)
{
    void *memory = NULL;
    if (d->pinned)
        return true;
    for (size_t i = 0; i < MR_CUDA_PIECES; i++)
        if (!mr_cuda_note(d, "copies", d->api.cu.event_create(&d->copied[i], MR_CU_NO_TIMING)))
            return false;
    if (!mr_cuda_note(d, "copies", d->api.cu.host_alloc(&memory, (size_t)MR_CUDA_PIECES * MR_CUDA_PIECE_BYTES, 0)))
        return false;
    d->pinned = memory;
    return true;
}

/* False: nothing is copied. */
static bool begin(mr_cuda *d, const char *what, const void *at, size_t bytes)
{
    if (!bytes || !mr_cuda_use(d))
        return false;
    if (!mr_cuda_has(d, at, bytes)) {
        snprintf(d->wrong, sizeof d->wrong, "%s: not memory of the device", what);
        return false;
    }
    return open_pieces(d);
}

/* The next piece, once what it was last used for is done. */
static uint8_t *next_piece(mr_cuda *d, unsigned *turn)
{
    *turn = d->turn++ % MR_CUDA_PIECES;
    mr_cuda_note(d, "copies", d->api.cu.event_wait(d->copied[*turn]));
    return d->pinned + (size_t)*turn * MR_CUDA_PIECE_BYTES;
}

static size_t part_of(size_t left)
{
    return left < MR_CUDA_PIECE_BYTES ? left : MR_CUDA_PIECE_BYTES;
}

void mr_cuda_upload(mr_device *device, void *to, const void *from, size_t bytes)
{
    mr_cuda *d = mr_cuda_of(device);
    if (!begin(d, "upload", to, bytes))
        return;
    if (bytes > MR_CUDA_PIECE_BYTES && mr_cuda_slab_has(d, from, bytes)) {
        mr_cuda_slab_upload(d, to, from, bytes);
        return;
    }
    for (size_t done = 0, part; done < bytes && !d->wrong[0]; done += part) {
        unsigned turn;
        uint8_t *piece = next_piece(d, &turn);
        part = part_of(bytes - done);
        memcpy(piece, (const uint8_t *)from + done, part);
        mr_cuda_note(d, "upload", d->api.cu.upload(number_of(to) + done, piece, part, d->stream));
        mr_cuda_note(d, "upload", d->api.cu.event_record(d->copied[turn], d->stream));
    }
}

/* A piece is on its way while the one before it is copied to the host. */
static void download(mr_cuda *d, uint8_t *to, const void *from, size_t bytes)
{
    size_t queued = 0, done = 0;
    unsigned turns[2] = {0, 0};
    uint8_t *pieces[2] = {NULL, NULL};
    for (size_t i = 0; done < bytes && !d->wrong[0]; i++) {
        if (queued < bytes) {
            size_t part = part_of(bytes - queued);
            pieces[i % 2] = next_piece(d, &turns[i % 2]);
            mr_cuda_note(d, "download", d->api.cu.download(pieces[i % 2], number_of(from) + queued, part, d->stream));
            mr_cuda_note(d, "download", d->api.cu.event_record(d->copied[turns[i % 2]], d->stream));
            queued += part;
        }
        if (i > 0) {
            size_t part = part_of(bytes - done), last = (i - 1) % 2;
            if (mr_cuda_note(d, "download", d->api.cu.event_wait(d->copied[turns[last]])))
                memcpy(to + done, pieces[last], part);
            done += part;
        }
    }
}

void mr_cuda_download(mr_device *device, void *to, const void *from, size_t bytes)
{
    mr_cuda *d = mr_cuda_of(device);
    if (begin(d, "download", from, bytes))
        download(d, to, from, bytes);
    if (bytes && d->wrong[0])
        memset(to, 0xff, bytes);
}

void mr_cuda_zero(mr_device *device, void *memory, size_t bytes)
{
    mr_cuda *d = mr_cuda_of(device);
    if (begin(d, "zero", memory, bytes))
        mr_cuda_note(d, "zero", d->api.cu.fill(number_of(memory), 0, bytes, d->stream));
}
