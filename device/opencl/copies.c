/* copies.c - bytes to the device and back.
 * Invariant: an upload does not wait for the operations that are queued before it: its bytes are copied to memory of
 * the host that stays until the device has them.
 *
 *      parcels   | small, in turn ... | large, in turn |      one that is reused waits for its own last upload only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/opencl/opencl.h"

enum {
    SMALL_BYTES = 1 << 16,
    LARGE_BYTES = 64 << 20 /* more than a batch: weights, sums of gradients; these wait */
};

static void arrived(mr_opencl *d, mr_cl_parcel *p)
{
    if (p->sent)
        d->api.ReleaseEvent(p->sent);
    p->sent = NULL;
}

void mr_cl_copies_done(mr_opencl *d)
{
    for (size_t i = 0; i < MR_COUNT(d->parcels); i++)
        arrived(d, &d->parcels[i]);
}

void mr_cl_copies_close(mr_opencl *d)
{
    mr_cl_copies_done(d);
    for (size_t i = 0; i < MR_COUNT(d->parcels); i++)
        free(d->parcels[i].bytes);
}

/* The block of [at, at + bytes) and its offset in the buffer; NULL: after a failure, or it is not ours. */
static const mr_cl_block *find(mr_opencl *d, const char *what, const void *at, size_t bytes, size_t *offset)
{
    const mr_cl_block *b = d->wrong[0] ? NULL : mr_cl_block_of(d, at);
    size_t in_block = b ? (size_t)((const uint8_t *)at - b->data) : 0;
    if (b && bytes <= b->bytes - in_block) {
        *offset = b->start + in_block;
        return b;
    }
    if (!d->wrong[0])
        snprintf(d->wrong, sizeof d->wrong, "%s: not memory of the device", what);
    return NULL;
}

/* NULL: there is no memory for it. */
static mr_cl_parcel *take_parcel(mr_opencl *d, size_t bytes)
{
    bool small = bytes <= SMALL_BYTES;
    unsigned turn = small ? d->small++ % MR_CL_SMALL_PARCELS : MR_CL_SMALL_PARCELS + d->large++ % MR_CL_LARGE_PARCELS;
    mr_cl_parcel *p = &d->parcels[turn];
    if (p->sent)
        mr_cl_note(d, "upload", d->api.WaitForEvents(1, &p->sent));
    arrived(d, p);
    if (p->capacity < bytes) {
        free(p->bytes);
        p->capacity = 0;
        p->bytes = malloc(small ? SMALL_BYTES : bytes);
        if (p->bytes)
            p->capacity = small ? SMALL_BYTES : bytes;
    }
    return p->bytes ? p : NULL;
}

void mr_cl_upload(mr_device *device, void *to, const void *from, size_t bytes)
{
    mr_opencl *d = mr_opencl_of(device);
    size_t offset;
    const mr_cl_block *b = bytes ? find(d, "upload", to, bytes, &offset) : NULL;
    mr_cl_parcel *p = b && bytes <= LARGE_BYTES ? take_parcel(d, bytes) : NULL;
    if (p)
        from = memcpy(p->bytes, from, bytes);
    if (b)
        mr_cl_note(
            d, "upload",
            d->api.EnqueueWriteBuffer(d->queue, b->memory, !p, offset, bytes, from, 0, NULL, p ? &p->sent : NULL));
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
