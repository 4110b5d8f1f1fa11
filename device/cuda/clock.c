/* clock.c - when operations begin and end, by events in their stream.
 * Invariant: an event belongs to a number, and is kept until the device is closed. */
#include <stdlib.h>

#include "device/cuda/cuda.h"

static bool has_event(mr_cuda *d, size_t n)
{
    while (d->stamp_count <= n) {
        if (!MR_GROW(d->stamps, d->stamp_count, d->stamp_capacity)) {
            mr_cuda_fail(d, &(mr_error){.text = "no memory for events"});
            return false;
        }
        if (!mr_cuda_note(d, "events", d->api.cu.event_create(&d->stamps[d->stamp_count], MR_CU_TIMING)))
            return false;
        d->stamp_count++;
    }
    return true;
}

static void stamp(mr_device *device, size_t n)
{
    mr_cuda *d = mr_cuda_of(device);
    if (mr_cuda_use(d) && has_event(d, n))
        mr_cuda_note(d, "events", d->api.cu.event_record(d->stamps[n], d->stream));
}

static double between(mr_device *device, size_t from, size_t to)
{
    mr_cuda *d = mr_cuda_of(device);
    float ms = 0;
    if (!mr_cuda_use(d) || !mr_cuda_note(d, "events", d->api.cu.event_wait(d->stamps[to])) ||
        !mr_cuda_note(d, "events", d->api.cu.event_elapsed(&ms, d->stamps[from], d->stamps[to])))
        return 0;
    return (double)ms / 1000;
}

void mr_cuda_clock_close(mr_cuda *d)
{
    for (size_t i = 0; i < d->stamp_count; i++)
        d->api.cu.event_destroy(d->stamps[i]);
    free(d->stamps);
}

const mr_clock mr_cuda_clock = {.stamp = stamp, .between = between};
