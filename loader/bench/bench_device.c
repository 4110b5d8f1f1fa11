/* bench_device.c - a benchmark's batches decoded on a device; see bench_device.h. */
#include "bench/bench_device.h"

#include "base/scope.h"
#include "base/term.h"

mr_status mr_bench_device_open(mr_bench_device *d, mr_device *device, mr_error *err)
{
    d->device = device;
    return device ? mr_images_new(device, &d->images, err) : MR_OK;
}

void mr_bench_device_close(mr_bench_device *d)
{
    mr_images_free(d->images);
    if (d->device)
        d->device->card->free(d->device, d->out);
    *d = (mr_bench_device){.device = NULL};
}

mr_status mr_bench_device_run(mr_bench_device *d, mr_loader *l, const mr_batch *batch, uint32_t size, mr_error *err)
{
    size_t bytes = batch->count * 3 * size * size * sizeof(float);
    if (!d->device)
        return MR_OK;
    if (bytes > d->room) {
        d->device->card->free(d->device, d->out);
        d->out = NULL;
        d->room = 0;
        MR_TRY(d->device->card->alloc(d->device, bytes, "decoding", &d->out, err));
        d->room = bytes;
    }
    double start = mr_seconds();
    MR_TRY(mr_images_make(d->images, l, batch, d->out, err));
    MR_TRY(d->device->card->wait(d->device, err));
    d->seconds += mr_seconds() - start;
    return MR_OK;
}
