/* copies.c - copies between a CUDA device and the host.
 * Invariant: a copy from the host has left its source when the call returns: bytes go to pinned memory first, a piece
 * at a time, and a piece is used again when the event that was recorded after its copy has happened.  Slabs (slabs.c)
 * are pinned themselves.
 *
 *      host  --memcpy-->  | piece | piece | piece | piece |  --stream-->  device     and back, when it is waited for */
#include <stdio.h>
#include <string.h>

#include "device/cuda/cuda.h"

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
        mr_cuda_note(d, "upload", d->api.cu.upload(mr_cuda_number_of(to) + done, piece, part, d->stream));
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
            mr_cuda_note(d, "download",
                         d->api.cu.download(pieces[i % 2], mr_cuda_number_of(from) + queued, part, d->stream));
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
        mr_cuda_note(d, "zero", d->api.cu.fill(mr_cuda_number_of(memory), 0, bytes, d->stream));
}
