/* overlap_bench.c - how much of an exchange between hosts takes place during the backward pass, beside what the link
 * allows on paper.
 * Invariant: both kinds of exchange take turns in one run, on one model; figures are medians, of the slowest rank.
 *
 *      overlap_bench GBIT_A_SECOND [ROUNDS [IMAGE [BATCH [float32|bf16 [BUCKET_KB [HIDDEN [LAYERS]]]]]]]
 *
 * One rank per host.  A step is a forward pass, a backward pass and the exchange:
 *
 *      computing   the passes are computed, on a processor that the exchange needs, too
 *      apart       they only take their time: the exchange has the processor, as where a host has some to spare
 *
 * On paper gradients are complete when the model reported them in steps of the flat kind, are sent in that order, each
 * 2 (n - 1) / n times by n hosts, and cost nothing but the link's time.  What the link still has to send when the
 * backward pass ends cannot be hidden; the rest can.  Three numbers say how much of that is hidden: the time that the
 * exchange takes less than the flat kind, that the step takes less, and that the exchange takes less than the link. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "base/cli/term.h"
#include "loader/bench/bench_limits.h"
#include "tests/bench/measure.h"
#include "train/exchange/exchange.h"
#include "train/model/model.h"

enum { MARKS = 256, SKIPPED = 2 };
enum { COMPUTING, APART, PLACES };

/* One rank's, with the others' beside it. */
typedef struct numbers {
    double step, exchange, cpu;
} numbers;

typedef struct bench {
    mr_ranks *ranks;
    unsigned world, rounds;
    double bits;
    mr_exchange_options options;
    mr_exchange *x[2];
    mr_device *device;
    mr_model_config config;
    mr_params params;
    mr_model *model;
    mr_model_input in;
    float *values;
    size_t marks;
    uint64_t from[MARKS];
    double at[MARKS], began; /* since the backward pass began; its median in the end */
    double *seen;            /* [MARKS + 1, rounds]: of flat steps; the last: the end of the forward pass */
} bench;

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void *zeroed(size_t count, size_t size)
{
    void *memory = mr_alloc(count, size);
    if (memory)
        return memory;
    fprintf(stderr, "overlap_bench: out of memory\n");
    exit(3);
}

static void open_model(bench *b, size_t batch)
{
    mr_error err;
    mr_random r;
    must(mr_device_open("cpu", &(mr_device_options){.threads = 1}, &b->device, &err), &err);
    must(b->config.iface->params(&b->config, &b->params, &err), &err);
    must(b->config.iface->open(&b->config, &b->params, b->device, batch, true, &b->model, &err), &err);
    b->values = zeroed(b->params.total, sizeof *b->values);
    b->config.iface->start(&b->config, &b->params, 1, b->values);
    size_t pixels = batch * 3 * b->config.image * b->config.image;
    float *images = zeroed(pixels, sizeof *images);
    mr_random_seed(&r, 1);
    for (size_t i = 0; i < pixels; i++)
        images[i] = (float)mr_random_real(&r, -1, 1);
    b->in = (mr_model_input){.count = batch,
                             .training = true,
                             .images = images,
                             .labels = zeroed(batch, sizeof *b->in.labels),
                             .keys = zeroed(batch, sizeof *b->in.keys)};
}

static void open_exchanges(bench *b)
{
    mr_error err;
    b->options.count = b->params.total;
    for (int kind = MR_EXCHANGE_FLAT; kind <= MR_EXCHANGE_BUCKETS; kind++) {
        b->options.kind = (mr_exchange_kind)kind;
        must(mr_exchange_open(b->ranks, &b->options, &b->x[kind], &err), &err);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

typedef struct listener {
    bench *b;
    mr_exchange *x;
    size_t marks;
} listener;

static void on_ready(void *ctx, uint64_t from)
{
    listener *l = ctx;
    if (l->marks < MARKS) {
        l->b->from[l->marks] = from;
        l->b->at[l->marks++] = mr_seconds() - l->b->began;
    }
    mr_exchange_ready(l->x, from);
}

static void sleep_until(double when)
{
    double left = when - mr_seconds();
    if (left > 0)
        nanosleep(&(struct timespec){.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)},
                  NULL);
}

/* The passes of flat steps, by the clock. */
static void replay(bench *b, mr_exchange *x)
{
    for (size_t i = 0; i < b->marks; i++) {
        sleep_until(b->began + b->seen[i * b->rounds]);
        mr_exchange_ready(x, b->from[i]);
    }
}

static numbers step(bench *b, int kind, int place)
{
    mr_model_output out;
    mr_error err;
    const float *sum;
    mr_exchange *x = b->x[kind];
    listener l = {b, x, 0};
    must(mr_ranks_barrier(b->ranks, &err), &err);
    double since = mr_seconds(), exchanged = mr_exchange_seconds(x), cpu = mr_bench_cpu();
    float *gradients = mr_exchange_gradients(x);
    memset(gradients, 0, b->params.total * sizeof *gradients);
    if (place == COMPUTING)
        b->config.iface->forward(b->model, b->values, &b->in, &out);
    else
        sleep_until(since + b->seen[MARKS * b->rounds]);
    double forward = mr_seconds() - since;
    must(mr_exchange_begin(x, MR_OK, NULL, 0, NULL, &err), &err);
    b->began = mr_seconds();
    if (place == COMPUTING)
        b->config.iface->backward(b->model, b->values, gradients, on_ready, &l);
    else
        replay(b, x);
    must(mr_exchange_finish(x, &sum, &err), &err);
    numbers n = {mr_seconds() - since, mr_exchange_seconds(x) - exchanged, mr_bench_cpu() - cpu};
    if (place == COMPUTING) {
        b->marks = l.marks;
        b->at[b->marks] = forward;
    }
    return n;
}

/* A number of all ranks becomes the largest of them. */
static void take_slowest(bench *b, double *values, size_t count)
{
    mr_error err;
    mr_buf mine = {0}, all = {0};
    mr_buf_add(&mine, values, count * sizeof *values);
    must(mr_ranks_gather(b->ranks, &mine, &all, NULL, &err), &err);
    for (unsigned r = 0; r < b->world; r++)
        for (size_t i = 0; i < count; i++) {
            double theirs;
            memcpy(&theirs, all.data + (r * count + i) * sizeof theirs, sizeof theirs);
            values[i] = theirs > values[i] ? theirs : values[i];
        }
    mr_buf_free(&mine);
    mr_buf_free(&all);
}

static void measure(bench *b, int place, numbers *of)
{
    double *times = zeroed(2 * 3 * (size_t)b->rounds, sizeof *times);
    for (unsigned round = 0; round < b->rounds + SKIPPED; round++)
        for (int kind = MR_EXCHANGE_FLAT; kind <= MR_EXCHANGE_BUCKETS; kind++) {
            numbers n = step(b, kind, place);
            if (round < SKIPPED)
                continue;
            double *t = times + kind * 3 * (size_t)b->rounds + round - SKIPPED;
            t[0] = n.step;
            t[b->rounds] = n.exchange;
            t[2 * (size_t)b->rounds] = n.cpu;
            for (size_t i = 0; place == COMPUTING && kind == MR_EXCHANGE_FLAT && i <= b->marks; i++)
                b->seen[(i < b->marks ? i : MARKS) * b->rounds + round - SKIPPED] = b->at[i];
        }
    for (int kind = 0; kind < 2; kind++) {
        double *t = times + kind * 3 * (size_t)b->rounds, n[3];
        for (size_t k = 0; k < 3; k++)
            n[k] = median(t + k * b->rounds, b->rounds);
        take_slowest(b, n, 3);
        of[kind] = (numbers){n[0], n[1], n[2]};
    }
    for (size_t i = 0; place == COMPUTING && i <= b->marks; i++) {
        double *t = b->seen + (i < b->marks ? i : MARKS) * b->rounds;
        t[0] = median(t, b->rounds);
        take_slowest(b, t, 1);
    }
    free(times);
}

/* ---- on paper ---------------------------------------------------------------------------------------------------- */

static double link_seconds(const bench *b, uint64_t floats)
{
    double bytes = (double)floats * (b->options.halves ? 2 : 4);
    return 2.0 * (b->world - 1) / b->world * bytes * 8 / b->bits;
}

/* What is left to send when the backward pass ends. */
static double left_over(const bench *b)
{
    double free_at = 0;
    for (size_t i = 0; i < b->marks; i++) {
        double ready = b->seen[i * b->rounds];
        free_at =
            (free_at > ready ? free_at : ready) + link_seconds(b, (i ? b->from[i - 1] : b->params.total) - b->from[i]);
    }
    return free_at - b->seen[(b->marks - 1) * b->rounds];
}

static void report(const bench *b, numbers (*of)[2])
{
    double link = link_seconds(b, b->params.total), left = left_over(b), can = link - left;
    printf(
        "%u hosts, %.1f million gradients in %s: the link needs %.0f ms, the backward pass takes %.0f ms, and %.0f ms "
        "can be hidden\n",
        b->world, (double)b->params.total / 1e6, b->options.halves ? "bf16" : "float32", link * 1e3,
        b->seen[(b->marks - 1) * b->rounds] * 1e3, can * 1e3);
    printf("%-18s %6s %9s %6s    %s\n", "", "step", "exchange", "CPU", "hidden of that, by: exchange, step, link");
    for (int place = COMPUTING; place < PLACES; place++)
        for (int kind = 0; kind < 2; kind++) {
            const numbers *n = &of[place][kind], *flat = &of[place][0];
            printf("%-9s %-8s %6.0f %9.0f %6.0f", place == APART ? "apart" : "computing", kind ? "buckets" : "flat",
                   n->step * 1e3, n->exchange * 1e3, n->cpu * 1e3);
            if (kind)
                printf("    %.0f %%, %.0f %%, %.0f %%", 100 * (flat->exchange - n->exchange) / can,
                       100 * (flat->step - n->step) / can, 100 * (link - n->exchange) / can);
            printf("\n");
        }
}

static unsigned long argument(int argc, char **argv, int i, unsigned long otherwise)
{
    return argc > i ? strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    bench b = {.bits = argc > 1 ? strtod(argv[1], NULL) * 1e9 : 1e9, .rounds = (unsigned)argument(argc, argv, 2, 9)};
    numbers of[PLACES][2];
    mr_error err;
    must(mr_ranks_begin(&b.ranks, &err), &err);
    b.world = mr_ranks_world(b.ranks);
    must(mr_model_find("vit", &b.config, &err), &err);
    b.config.image = (uint32_t)argument(argc, argv, 3, 160);
    b.config.patch = 16;
    b.config.hidden = (uint32_t)argument(argc, argv, 7, 384);
    b.config.mlp = 4 * b.config.hidden;
    b.config.heads = b.config.hidden / 64;
    b.config.layers = (uint32_t)argument(argc, argv, 8, 6);
    b.config.classes = 10;
    b.config.dropout = 0;
    b.options.halves = argc > 5 && strcmp(argv[5], "bf16") == 0;
    b.options.bucket_bytes = argument(argc, argv, 6, 0) << 10;
    b.seen = zeroed((MARKS + 1) * (size_t)b.rounds, sizeof *b.seen);
    open_model(&b, argument(argc, argv, 4, 8));
    open_exchanges(&b);
    for (int place = COMPUTING; place < PLACES; place++)
        measure(&b, place, of[place]);
    if (mr_ranks_rank(b.ranks) == 0)
        report(&b, of);
    mr_exchange_free(b.x[0]);
    mr_exchange_free(b.x[1]);
    b.config.iface->close(b.model);
    mr_device_close(b.device);
    mr_params_release(&b.params);
    free((void *)b.in.images);
    free((void *)b.in.labels);
    free((void *)b.in.keys);
    free(b.values);
    free(b.seen);
    mr_ranks_end(b.ranks);
    return 0;
}
