/* slabs.c - pinned memory for a loader's batches, and its uploads.
 * Invariant: an upload waits for its bytes to leave the slab, not for operations: it goes to the device in a stream of
 * its own, while they run, and is copied to its place there in their order.
 *
 *      slab  --copies-->  stage 0 or 1  --stream-->  tensor
 *
 * A stage is written again when the copy from it, two uploads before, is done. */
#include <stdlib.h>

#include "device/cuda/cuda.h"

/* ---- memory, from any thread ------------------------------------------------------------------------------------ */

static void *slab_alloc(void *device, size_t bytes)
{
    mr_cuda *d = device;
    void *memory = NULL;
    if (d->api.cu.context_use(d->context) != 0 || d->api.cu.host_alloc(&memory, bytes, 0) != 0)
        return NULL;
    pthread_mutex_lock(&d->guard);
    bool kept = MR_GROW(d->slabs, d->slab_count, d->slab_capacity);
    if (kept)
        d->slabs[d->slab_count++] = (mr_cuda_slab){(uintptr_t)memory, bytes};
    pthread_mutex_unlock(&d->guard);
    if (kept)
        return memory;
    d->api.cu.host_free(memory);
    return NULL;
}

static void slab_free(void *device, void *memory, size_t bytes)
{
    mr_cuda *d = device;
    (void)bytes;
    pthread_mutex_lock(&d->guard);
    for (size_t i = 0; i < d->slab_count; i++)
        if (d->slabs[i].at == (uintptr_t)memory) {
            d->slabs[i] = d->slabs[--d->slab_count];
            break;
        }
    pthread_mutex_unlock(&d->guard);
    d->api.cu.context_use(d->context);
    d->api.cu.host_free(memory);
}

bool mr_cuda_slab_has(mr_cuda *d, const void *from, size_t bytes)
{
    bool found = false;
    pthread_mutex_lock(&d->guard);
    for (size_t i = 0; i < d->slab_count && !found; i++) {
        uintptr_t offset = (uintptr_t)from - d->slabs[i].at; /* huge if before it */
        found = offset <= d->slabs[i].bytes && bytes <= d->slabs[i].bytes - offset;
    }
    pthread_mutex_unlock(&d->guard);
    return found;
}

const mr_allocator *mr_cuda_slabs(mr_device *device)
{
    return &mr_cuda_of(device)->allocator;
}

void mr_cuda_slabs_open(mr_cuda *d)
{
    pthread_mutex_init(&d->guard, NULL);
    d->allocator = (mr_allocator){slab_alloc, slab_free, d};
}

/* ---- uploads ---------------------------------------------------------------------------------------------------- */

static bool open_stream(mr_cuda *d)
{
    if (d->copies)
        return true;
    bool fine = mr_cuda_note(d, "upload", d->api.cu.event_create(&d->arrived, MR_CU_NO_TIMING));
    for (size_t i = 0; i < MR_CUDA_STAGES && fine; i++)
        fine = mr_cuda_note(d, "upload", d->api.cu.event_create(&d->stages[i].consumed, MR_CU_NO_TIMING));
    return fine && mr_cuda_note(d, "upload", d->api.cu.stream_create(&d->copies, MR_CU_NON_BLOCKING));
}

/* A new one is zeroed in the stream of operations, after which it may be written. */
static bool grow(mr_cuda *d, mr_cuda_stage *s, size_t bytes)
{
    mr_error err;
    size_t more = bytes + bytes / 8;
    if (s->bytes >= bytes)
        return true;
    mr_cuda_free(&d->launcher.device, s->memory);
    s->memory = NULL;
    s->bytes = 0;
    if (mr_cuda_alloc(&d->launcher.device, more, "uploads", &s->memory, &err) != MR_OK) {
        mr_cuda_fail(d, &err);
        return false;
    }
    s->bytes = more;
    return mr_cuda_note(d, "upload", d->api.cu.event_record(s->consumed, d->stream));
}

void mr_cuda_slab_upload(mr_cuda *d, void *to, const void *from, size_t bytes)
{
    const char *const what = "upload";
    mr_cuda_stage *s = &d->stages[d->stage_turn++ % MR_CUDA_STAGES];
    if (!open_stream(d) || !grow(d, s, bytes))
        return;
    mr_cu_memory stage = (uintptr_t)s->memory;
    if (mr_cuda_note(d, what, d->api.cu.stream_wait_event(d->copies, s->consumed, 0)) &&
        mr_cuda_note(d, what, d->api.cu.upload(stage, from, bytes, d->copies)) &&
        mr_cuda_note(d, what, d->api.cu.event_record(d->arrived, d->copies)) &&
        mr_cuda_note(d, what, d->api.cu.event_wait(d->arrived)) && /* the slab may be filled again */
        mr_cuda_note(d, what, d->api.cu.copy((uintptr_t)to, stage, bytes, d->stream)))
        mr_cuda_note(d, what, d->api.cu.event_record(s->consumed, d->stream));
}

void mr_cuda_slabs_close(mr_cuda *d)
{
    if (d->copies) {
        d->api.cu.stream_wait(d->copies);
        d->api.cu.stream_destroy(d->copies);
    }
    if (d->arrived)
        d->api.cu.event_destroy(d->arrived);
    for (size_t i = 0; i < MR_CUDA_STAGES; i++)
        if (d->stages[i].consumed)
            d->api.cu.event_destroy(d->stages[i].consumed);
    free(d->slabs);
    pthread_mutex_destroy(&d->guard);
}
