/* queues.c - a second stream, for what runs beside the operations of the first.
 * Invariant: d->stream is the stream of the current queue, to which all operations go. */
#include "device/cuda/cuda.h"

static void swap(mr_cuda *d)
{
    mr_cu_stream other = d->second;
    d->second = d->stream;
    d->stream = other;
    d->entered = !d->entered;
}

/* What is queued in `to` from now on waits for what has been queued in `from` so far. */
static void follow(mr_cuda *d, mr_cu_stream to, mr_cu_stream from, mr_cu_event passed)
{
    if (mr_cuda_note(d, "queues", d->api.cu.event_record(passed, from)))
        mr_cuda_note(d, "queues", d->api.cu.stream_wait_event(to, passed, 0));
}

static void meet(mr_device *device)
{
    mr_cuda *d = mr_cuda_of(device);
    if (!d->second || !mr_cuda_use(d))
        return;
    follow(d, d->stream, d->second, d->passed[0]);
    follow(d, d->second, d->stream, d->passed[1]);
}

static bool open_second(mr_cuda *d)
{
    bool fine = true;
    for (size_t i = 0; i < MR_COUNT(d->passed) && fine; i++)
        fine = d->passed[i] || mr_cuda_note(d, "queues", d->api.cu.event_create(&d->passed[i], MR_CU_NO_TIMING));
    if (!fine || !mr_cuda_note(d, "queues", d->api.cu.stream_create(&d->second, MR_CU_NON_BLOCKING)))
        return false;
    meet(&d->launcher.device);
    return true;
}

static void enter(mr_device *device)
{
    mr_cuda *d = mr_cuda_of(device);
    if (!d->entered && mr_cuda_use(d) && (d->second || open_second(d)))
        swap(d);
}

static void leave(mr_device *device)
{
    mr_cuda *d = mr_cuda_of(device);
    if (d->entered)
        swap(d);
}

void mr_cuda_queues_close(mr_cuda *d)
{
    leave(&d->launcher.device);
    if (d->second) {
        d->api.cu.stream_wait(d->second);
        d->api.cu.stream_destroy(d->second);
    }
    for (size_t i = 0; i < MR_COUNT(d->passed); i++)
        if (d->passed[i])
            d->api.cu.event_destroy(d->passed[i]);
}

const mr_second_queue mr_cuda_second = {.enter = enter, .leave = leave, .meet = meet};
