/* losses.c - the losses of one update, kept on the device until its gradients are done.
 * Invariant: every loss is copied before its model computes the next ones, as operations run in their order. */
#include "train/run/losses.h"

#include <assert.h>
#include <stdlib.h>

#include "base/scope.h"

mr_status mr_losses_open(mr_device *device, size_t batch, size_t micro_steps, mr_losses *out, mr_error *err)
{
    MR_AUTO(mr_losses_close) mr_losses l = {.device = device};
    if (__builtin_mul_overflow(batch, micro_steps, &l.capacity) || l.capacity > SIZE_MAX / sizeof *l.kept)
        return mr_fail(err, MR_MISUSE, "%zu x %zu losses of an update cannot fit in memory; use a smaller --grad-accum",
                       batch, micro_steps);
    l.host = mr_alloc(l.capacity, sizeof *l.host);
    if (!l.host)
        return mr_fail_memory(err, "training");
    MR_TRY(device->iface->alloc(device, l.capacity * sizeof *l.kept, "losses", (void **)&l.kept, err));
    *out = l;
    l = (mr_losses){0};
    return MR_OK;
}

void mr_losses_close(mr_losses *l)
{
    if (l->device)
        l->device->iface->free(l->device, l->kept);
    free(l->host);
    *l = (mr_losses){0};
}

void mr_losses_clear(mr_losses *l)
{
    l->count = 0;
}

void mr_losses_keep(mr_losses *l, const float *losses, size_t count)
{
    assert(count <= l->capacity - l->count);
    const mr_rows copy = {.type = MR_F32, .rows = 1, .width = count, .from = losses, .to = l->kept + l->count};
    mr_run_rows(l->device, &copy);
    l->count += count;
}

mr_status mr_losses_sum(mr_losses *l, double *sum, mr_error *err)
{
    const mr_device_iface *c = l->device->iface;
    *sum = 0;
    c->download(l->device, l->host, l->kept, l->count * sizeof *l->host);
    MR_TRY(c->wait(l->device, err));
    for (size_t i = 0; i < l->count; i++)
        *sum += (double)l->host[i];
    return MR_OK;
}
