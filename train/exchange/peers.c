/* peers.c - the buffer of all ranks over MPI.
 * Invariant: every rank asks for the same sums in the same order; a rank whose sum failed does not call MPI again. */
#include "train/exchange/peers.h"

#include <stdlib.h>
#include <string.h>

static void sum_over_ranks(mr_peers *p)
{
    if (p->status == MR_OK && p->world > 1)
        p->status = mr_ranks_reduce(p->ctx, MR_RANKS_SUM, p->all, (uint64_t)p->world * p->capacity, &p->why);
}

mr_status mr_peers_open(mr_ranks *ranks, size_t samples, size_t row, mr_peers *out, mr_error *err)
{
    mr_peers p = {.rank = mr_ranks_rank(ranks),
                  .world = mr_ranks_world(ranks),
                  .samples = samples,
                  .sum = sum_over_ranks,
                  .status = MR_OK,
                  .ctx = ranks};
    size_t floats, bytes;
    if (__builtin_mul_overflow(samples, row, &p.capacity) ||
        __builtin_mul_overflow(p.capacity, (size_t)p.world, &floats) ||
        __builtin_mul_overflow(floats, sizeof *p.all, &bytes))
        return mr_fail(err, MR_MISUSE,
                       "%zu samples of %zu numbers from each of %u ranks cannot fit in memory; use a smaller batch",
                       samples, row, p.world);
    p.all = mr_alloc(floats ? floats : 1, sizeof *p.all);
    if (!p.all)
        return mr_fail_memory(err, "sharing samples with other ranks");
    *out = p;
    return MR_OK;
}

void mr_peers_close(mr_peers *p)
{
    free(p->all);
    *p = (mr_peers){0};
}

void mr_peers_idle(mr_peers *p, bool training)
{
    for (int i = 0; i < (training ? 2 : 1); i++) {
        memset(p->all, 0, (size_t)p->world * p->capacity * sizeof *p->all);
        p->sum(p);
    }
}
