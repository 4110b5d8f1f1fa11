/* exchange_bench.c - summing the gradients of ranks, of one host or several: the shared window beside MPI_Allreduce and
 * memcpy. Invariant: all ways work on the same buffers in the same run, alternating, and their sums are checked before.
 *
 *      mpirun -n 2 exchange_bench [MB [ROUNDS [RANKS_A_HOST [float32|bf16]]]] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/term.h"
#include "train/exchange/exchange.h"
#include "tests/bench/measure.h"

enum { FLAT, BUCKETS, ALLREDUCE, COPY, WAYS };

static unsigned period = 1000; /* sums stay whole numbers of the type */

static void fill(float *g, uint64_t count, unsigned rank)
{
    for (uint64_t i = 0; i < count; i++)
        g[i] = (float)(i % period + rank);
}

static void check(const float *sum, uint64_t count, unsigned world, const char *what)
{
    for (uint64_t i = 0; i < count; i++)
        if (sum[i] != (float)(i % period * world + world * (world - 1) / 2)) {
            fprintf(stderr, "exchange_bench: %s: element %" PRIu64 " is %g\n", what, i, (double)sum[i]);
            exit(1);
        }
}

static const float *exchange(mr_exchange *x, mr_error *err)
{
    const float *sum = NULL;
    must(mr_exchange_begin(x, MR_OK, NULL, 0, NULL, err), err);
    must(mr_exchange_finish(x, &sum, err), err);
    return sum;
}

/* `times` of the first way, those of the others each `step` behind. */
static void report(const char *what, const double *times, size_t step)
{
    double ms[WAYS];
    for (size_t way = 0; way < WAYS; way++)
        ms[way] = times[way * step] * 1e3;
    printf("%-6s ms: flat %.1f  buckets %.1f  MPI_Allreduce %.1f  memcpy %.1f;  ", what, ms[FLAT], ms[BUCKETS],
           ms[ALLREDUCE], ms[COPY]);
    printf("MPI_Allreduce / flat %.2f  MPI_Allreduce / buckets %.2f  memcpy / flat %.2f\n", ms[ALLREDUCE] / ms[FLAT],
           ms[ALLREDUCE] / ms[BUCKETS], ms[COPY] / ms[FLAT]);
}

int main(int argc, char **argv)
{
    uint64_t mb = argc > 1 ? strtoull(argv[1], NULL, 10) : 350, count = mb * 1000000 / sizeof(float);
    size_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 11;
    mr_exchange_options o = {.count = count,
                             .ranks_a_host = argc > 3 ? (unsigned)atoi(argv[3]) : 0,
                             .halves = argc > 4 && strcmp(argv[4], "bf16") == 0};
    period = o.halves ? 8 : period;
    mr_error err;
    mr_ranks *ranks = NULL;
    mr_exchange *x[2] = {NULL, NULL};
    must(mr_ranks_begin(&ranks, &err), &err);
    unsigned rank = mr_ranks_rank(ranks), world = mr_ranks_world(ranks);
    double *times = mr_alloc(rounds * WAYS, sizeof *times);
    for (int kind = FLAT; kind <= BUCKETS; kind++) {
        o.kind = kind == FLAT ? MR_EXCHANGE_FLAT : MR_EXCHANGE_BUCKETS;
        must(mr_exchange_open(ranks, &o, &x[kind], &err), &err);
        fill(mr_exchange_gradients(x[kind]), count, rank);
        check(exchange(x[kind], &err), count, world, kind == FLAT ? "flat" : "buckets");
    }
    /* memcpy moves two bytes for one; the sum reads all ranks' and writes one, each rank its part. */
    float *g = mr_exchange_gradients(x[FLAT]);
    size_t copied = count / world * (world + 1) / 2 * sizeof(float);
    copied = copied < count * sizeof(float) ? copied : count * sizeof(float);
    float *to = mr_alloc(copied, 1);
    if (!to || !times)
        return 3;
    for (size_t k = 0; k < rounds; k++) {
        for (int way = 0; way < WAYS; way++) {
            fill(g, count, rank);
            fill(mr_exchange_gradients(x[BUCKETS]), count, rank);
            must(mr_ranks_barrier(ranks, &err), &err);
            double t = mr_seconds();
            if (way <= BUCKETS)
                exchange(x[way], &err);
            else if (way == ALLREDUCE)
                must(mr_ranks_reduce(ranks, MR_RANKS_SUM, g, count, &err), &err);
            else
                memcpy(to, g, copied);
            must(mr_ranks_barrier(ranks, &err), &err);
            times[(size_t)way * rounds + k] = mr_seconds() - t;
            if (k == 0 && way == ALLREDUCE)
                check(g, count, world, "MPI_Allreduce");
        }
    }
    for (int way = 0; way < WAYS; way++)
        median(times + (size_t)way * rounds, rounds);
    if (rank == 0) {
        printf("%" PRIu64 " MB, %u ranks, %zu rounds; memcpy: of as many bytes moved\n", mb, world, rounds);
        report("median", times + rounds / 2, rounds);
        report("best", times, rounds);
    }
    for (int kind = FLAT; kind <= BUCKETS; kind++)
        mr_exchange_free(x[kind]);
    free(to);
    free(times);
    mr_ranks_end(ranks);
    return 0;
}
