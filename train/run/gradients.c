/* gradients.c - the gradients of one rank, on the device, and the sum of all ranks'. */
#include "run/gradients.h"

#include "base/scope.h"

enum { PIECE = (25 << 20) / sizeof(float) }; /* as the exchange sums them, unless told otherwise */

mr_status mr_gradients_open(mr_device *device, mr_exchange *exchange, uint64_t count, bool alone, mr_gradients *out,
                            mr_error *err)
{
    mr_gradients g = {
        .device = device, .exchange = exchange, .count = count, .in_place = device->card->host_memory, .alone = alone};
    if (g.in_place)
        g.values = mr_exchange_gradients(exchange);
    else
        MR_TRY(device->card->alloc(device, count * sizeof *g.values, "gradients", (void **)&g.values, err));
    *out = g;
    return MR_OK;
}

void mr_gradients_close(mr_gradients *g)
{
    if (g->device && !g->in_place)
        g->device->card->free(g->device, g->values);
    *g = (mr_gradients){0};
}

void mr_gradients_zero(mr_gradients *g)
{
    g->device->card->zero(g->device, g->values, g->count * sizeof *g->values);
}

void mr_gradients_complete(void *gradients, uint64_t from)
{
    mr_gradients *g = gradients;
    if (g->in_place || g->alone)
        mr_exchange_ready(g->exchange, from);
}

/* To the host, from the end on: what has arrived is summed while the device sends the rest. */
static void stage(const mr_gradients *g)
{
    float *host = mr_exchange_gradients(g->exchange);
    for (uint64_t end = g->count, from; end; end = from) {
        from = end > PIECE ? end - PIECE : 0;
        g->device->card->download(g->device, host + from, g->values + from, (end - from) * sizeof *host);
        mr_exchange_ready(g->exchange, from);
    }
}

mr_status mr_gradients_finish(mr_gradients *g, const float **sum, mr_error *err)
{
    if (!g->in_place && !g->alone)
        stage(g);
    MR_TRY(mr_exchange_finish(g->exchange, sum, err));
    if (g->in_place)
        return MR_OK;
    if (!g->alone)
        g->device->card->upload(g->device, g->values, *sum, g->count * sizeof *g->values);
    *sum = g->values;
    return MR_OK;
}
