/* halves.c - a piece of gradients through its three steps.
 * Invariant: scatters and spreads have a group of ranks each: MPI matches what a group begins by its order, and hosts
 * may see scatters complete at different times. */
#include "train/exchange/halves.h"

#include <stdlib.h>

#include "base/bf16.h"
#include "base/scope.h"

typedef struct piece {
    uint16_t *mine; /* the host's piece, then the sum */
    uint16_t *all;  /* this host's slice of each host */
} piece;

struct mr_halves {
    mr_ranks *scatters, *spreads; /* the first is lent */
    unsigned slots;
    piece *items;
    float *sum; /* sum of a slice */
};

static mr_status make(mr_halves *h, uint64_t largest, mr_error *err)
{
    uint64_t hosts = mr_ranks_world(h->scatters), slice = largest / hosts + 1;
    h->items = mr_alloc(h->slots, sizeof *h->items);
    h->sum = mr_alloc(slice, sizeof *h->sum);
    bool made = h->items && h->sum;
    for (unsigned i = 0; made && i < h->slots; i++) {
        h->items[i].mine = mr_alloc(largest, sizeof *h->items[i].mine);
        h->items[i].all = mr_alloc(slice * hosts, sizeof *h->items[i].all);
        made = h->items[i].mine && h->items[i].all;
    }
    return made ? MR_OK : mr_fail_memory(err, "exchanging gradients in bf16");
}

mr_status mr_halves_open(mr_ranks *leaders, uint64_t largest, unsigned slots, mr_halves **out, mr_error *err)
{
    mr_halves *h = mr_alloc(1, sizeof *h);
    mr_status status = h ? MR_OK : mr_fail_memory(err, "exchanging gradients in bf16");
    if (h) {
        *h = (mr_halves){.scatters = leaders, .slots = slots};
        status = make(h, largest, err);
    }
    status = mr_ranks_agree(leaders, status, err);
    if (status == MR_OK)
        status = mr_ranks_split(leaders, 0, &h->spreads, err);
    if (status == MR_OK)
        *out = h;
    else
        mr_halves_free(h);
    return status;
}

void mr_halves_free(mr_halves *h)
{
    if (!h)
        return;
    for (unsigned i = 0; h->items && i < h->slots; i++) {
        free(h->items[i].mine);
        free(h->items[i].all);
    }
    mr_ranks_end(h->spreads);
    free(h->items);
    free(h->sum);
    free(h);
}

mr_status mr_halves_scatter(mr_halves *h, unsigned slot, const float *values, uint64_t count, void **request,
                            mr_error *err)
{
    uint16_t *mine = h->items[slot].mine;
    for (uint64_t i = 0; i < count; i++)
        mine[i] = mr_bf16_of(values[i]);
    return mr_ranks_scatter_begin(h->scatters, mine, count, h->items[slot].all, request, err);
}

static void add(float *restrict sum, const uint16_t *restrict values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sum[i] += mr_bf16_float(values[i]);
}

mr_status mr_halves_spread(mr_halves *h, unsigned slot, uint64_t count, void **request, mr_error *err)
{
    unsigned hosts = mr_ranks_world(h->scatters), host = mr_ranks_rank(h->scatters);
    uint64_t from = mr_ranks_slice(count, host, hosts), slice = mr_ranks_slice(count, host + 1, hosts) - from;
    uint16_t *mine = h->items[slot].mine;
    const uint16_t *all = h->items[slot].all;
    for (uint64_t i = 0; i < slice; i++)
        h->sum[i] = mr_bf16_float(all[i]);
    for (unsigned other = 1; other < hosts; other++)
        add(h->sum, all + other * slice, slice);
    for (uint64_t i = 0; i < slice; i++)
        mine[from + i] = mr_bf16_of(h->sum[i]);
    return mr_ranks_spread_begin(h->spreads, mine, count, request, err);
}

void mr_halves_take(const mr_halves *h, unsigned slot, float *values, uint64_t count)
{
    const uint16_t *mine = h->items[slot].mine;
    for (uint64_t i = 0; i < count; i++)
        values[i] = mr_bf16_float(mine[i]);
}
