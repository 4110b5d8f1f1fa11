/* gradients.c - the gradients of one rank, on the device, and the sum of all ranks'. */
#include "train/run/gradients.h"

#include <string.h>

#include "base/scope.h"

enum { PIECE = (25 << 20) / sizeof(float) }; /* copied at once */

/* ---- devices that sum ------------------------------------------------------------------------------------------- */

/* NULL: all can.  Every rank reads the same facts. */
static const char *reason_of(const mr_sums_facts *all, unsigned world, unsigned *rank)
{
    for (*rank = 0; *rank < world; ++*rank)
        if (!all[*rank].can)
            return all[*rank].how;
    for (*rank = 1; *rank < world; ++*rank) {
        if (all[*rank].version != all[0].version)
            return "its version differs from that of rank 0";
        for (unsigned i = 0; i < *rank; i++)
            if (memcmp(all[i].device, all[*rank].device, sizeof all[i].device) == 0)
                return "it shares its device with another rank";
    }
    return NULL;
}

static mr_status invite(mr_device *device, mr_ranks *ranks, mr_buf *id, mr_error *err)
{
    uint8_t made[MR_SUMS_ID] = {0};
    mr_status status = MR_OK;
    if (mr_ranks_rank(ranks) == 0)
        status = device->iface->sums->invite(device, made, err);
    mr_buf_add(id, made, sizeof made);
    if (status == MR_OK)
        status = mr_buf_status(id, err, "connecting to the other ranks");
    MR_TRY(mr_ranks_agree(ranks, status, err));
    return mr_ranks_share(ranks, id, err);
}

static mr_status meet(mr_device *device, mr_ranks *ranks, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf id = {0};
    MR_TRY(invite(device, ranks, &id, err));
    mr_ranks_waits(ranks, true);
    mr_status status = device->iface->sums->meet(device, id.data, mr_ranks_rank(ranks), mr_ranks_world(ranks), err);
    mr_ranks_waits(ranks, false);
    return mr_ranks_agree(ranks, status, err);
}

mr_status mr_gradients_meet(mr_device *device, mr_ranks *ranks, bool *direct, mr_buf *remarks, mr_error *err)
{
    unsigned world = mr_ranks_world(ranks), rank;
    mr_sums_facts mine;
    MR_AUTO(mr_buf_free) mr_buf one = {0};
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    *direct = false;
    if (world == 1 || !device->iface->sums) /* all ranks have a device of one kind */
        return MR_OK;
    device->iface->sums->look(device, &mine);
    mr_buf_add(&one, &mine, sizeof mine);
    MR_TRY(mr_ranks_agree(ranks, mr_buf_status(&one, err, "connecting to the other ranks"), err));
    MR_TRY(mr_ranks_gather(ranks, &one, &all, NULL, err));
    const char *why = reason_of((const mr_sums_facts *)(const void *)all.data, world, &rank);
    if (why) {
        mr_buf_printf(remarks, "Gradients are summed on the host (%s: %s)\n", mr_ranks_name_of(ranks, rank).text, why);
        return MR_OK;
    }
    mr_buf_printf(remarks, "Gradients are summed on the devices by %s\n", mine.how);
    *direct = true;
    return meet(device, ranks, err);
}

/* Pieces from the end, as far as they are complete. */
static void ask(mr_gradients *g, uint64_t from)
{
    while (g->asked > 0) {
        uint64_t start = g->asked > g->piece ? g->asked - g->piece : 0;
        if (start < from)
            return;
        g->device->iface->sums->add(g->device, g->values + start, g->asked - start);
        g->asked = start;
    }
}

static bool is_summed(void *device)
{
    mr_device *d = device;
    return d->iface->sums->done(d);
}

static mr_status finish_direct(mr_gradients *g, mr_error *err)
{
    mr_error why;
    ask(g, 0);
    g->device->iface->wait(g->device, &why); /* for the backward pass; a failure stays for the next wait */
    mr_status status = mr_exchange_watch(g->exchange, is_summed, g->device, err);
    if (status != MR_OK)
        g->device->iface->sums->leave(g->device);
    return status == MR_AGAIN ? MR_OK : status;
}

/* ------------------------------------------------------------------------------------------------------------------ */

mr_status mr_gradients_open(mr_device *device, mr_exchange *exchange, const mr_gradients_options *o, mr_gradients *out,
                            mr_error *err)
{
    mr_gradients g = {.device = device,
                      .exchange = exchange,
                      .count = o->count,
                      .in_place = device->iface->host_memory,
                      .alone = o->alone,
                      .direct = o->direct,
                      .piece = o->kind == MR_EXCHANGE_BUCKETS ? PIECE : o->count};
    if (g.in_place)
        g.values = mr_exchange_gradients(exchange);
    else
        MR_TRY(device->iface->alloc(device, o->count * sizeof *g.values, "gradients", (void **)&g.values, err));
    *out = g;
    return MR_OK;
}

void mr_gradients_close(mr_gradients *g)
{
    if (g->device && !g->in_place)
        g->device->iface->free(g->device, g->values);
    *g = (mr_gradients){0};
}

void mr_gradients_zero(mr_gradients *g)
{
    g->device->iface->zero(g->device, g->values, g->count * sizeof *g->values);
    g->asked = g->count;
}

static void complete(void *gradients, uint64_t from)
{
    mr_gradients *g = gradients;
    if (g->direct)
        ask(g, from);
    else
        mr_exchange_ready(g->exchange, from);
}

mr_gradients_ready mr_gradients_listener(const mr_gradients *g)
{
    return g->in_place || (g->direct && g->piece < g->count) ? complete : NULL;
}

/* To the host, from the end on: what has arrived is summed while the device sends the rest. */
static void stage(const mr_gradients *g)
{
    float *host = mr_exchange_gradients(g->exchange);
    for (uint64_t end = g->count, from; end; end = from) {
        from = end > PIECE ? end - PIECE : 0;
        g->device->iface->download(g->device, host + from, g->values + from, (end - from) * sizeof *host);
        mr_exchange_ready(g->exchange, from);
    }
}

mr_status mr_gradients_finish(mr_gradients *g, const float **sum, mr_error *err)
{
    if (g->direct) {
        *sum = g->values;
        return finish_direct(g, err);
    }
    if (!g->in_place && !g->alone)
        stage(g);
    MR_TRY(mr_exchange_finish(g->exchange, sum, err));
    if (g->in_place)
        return MR_OK;
    if (!g->alone)
        g->device->iface->upload(g->device, g->values, *sum, g->count * sizeof *g->values);
    *sum = g->values;
    return MR_OK;
}
