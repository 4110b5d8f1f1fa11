/* coded_bench.c - what describing pictures for a device costs the host: coded batches against encoded ones.
 *
 *      coded_bench DATASET SPLIT [SIZE]      one thread, alternating by whole epochs, medians of the CPU time per image
 *
 * Invariant: both read and hash the same records in the same order into slabs of one loader each. */
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "loader/batch/loader.h"
#include "loader/bench/bench_limits.h"
#include "tests/bench/measure.h"

enum { TURNS = 15, ENOUGH = 2048 }; /* ENOUGH: images of a turn, in whole epochs */

typedef struct lane {
    mr_loader *loader;
    double us[TURNS];
} lane;

static void open_lane(lane *l, const mr_dataset *ds, const char *split, uint32_t size, mr_delivery deliver)
{
    mr_error err;
    mr_loader_options o = {.split = split, .global_batch = 64, .deliver = deliver, .tail = MR_TAIL_PARTIAL};
    o.epochs = UINT32_MAX;
    o.transform.size = size;
    o.transform.flip = 0.5f;
    must(mr_loader_open(ds, &o, &l->loader, &err), &err);
}

/* Returns CPU microseconds per image. */
static double run_turn(lane *l, uint64_t *coded)
{
    mr_error err;
    uint64_t images = 0, steps = mr_loader_steps(l->loader);
    double start = mr_bench_thread_cpu();
    for (uint64_t i = 0; i % steps || images < ENOUGH; i++) {
        const mr_batch *b;
        must(mr_loader_next(l->loader, &b, &err), &err);
        images += b->count;
        if (coded)
            *coded += ((const mr_coded *)b->data)->images;
        mr_batch_release(l->loader, b);
    }
    return (mr_bench_thread_cpu() - start) * 1e6 / (double)images;
}

int main(int argc, char **argv)
{
    mr_dataset *ds = NULL;
    mr_error err;
    lane encoded = {.loader = NULL}, coded = {.loader = NULL};
    double over[TURNS];
    uint64_t images = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: coded_bench DATASET SPLIT [SIZE]\n");
        return 2;
    }
    must(mr_dataset_open(argv[1], &ds, &err), &err);
    uint32_t size = argc > 3 ? (uint32_t)atoi(argv[3]) : 224;
    open_lane(&encoded, ds, argv[2], size, MR_DELIVER_ENCODED);
    open_lane(&coded, ds, argv[2], size, MR_DELIVER_CODED);
    run_turn(&encoded, NULL);
    run_turn(&coded, &images);
    for (int i = 0; i < TURNS; i++) {
        encoded.us[i] = run_turn(&encoded, NULL);
        coded.us[i] = run_turn(&coded, &images);
        over[i] = coded.us[i] - encoded.us[i];
    }
    printf("%llu pictures described, %u pixels: encoded %.1f us, coded %.1f us, difference %.1f us per image\n",
           (unsigned long long)images, size, median(encoded.us, TURNS), median(coded.us, TURNS), median(over, TURNS));
    mr_loader_free(encoded.loader);
    mr_loader_free(coded.loader);
    mr_dataset_free(ds);
    return 0;
}
