/* train_bench.c - seconds of a training step on the CPU device: forward, backward, clipping and update, nothing else.
 * Invariant: steps run when they are asked for, one answer a line, so that a peer can take turns with it.
 *
 *      train_bench [--model ViT-B_16] [--image 224] [--batch 8] [--classes 1000] [--threads 0] [--dropout 0]
 *                  [--steps N]
 *
 * It says {"device": ...} when it is ready.  Then a line with a number N on standard input makes N steps, and the
 * answer is {"seconds": [wall time of each], "cpu_seconds": of all, "loss": of the last}.  --steps N: N steps at once,
 * and no input is read. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "optimizer.h"
#include "model.h"
#include "random.h"

typedef struct bench {
    mr_model_config config;
    mr_device_options device_options;
    size_t batch;
    uint64_t steps, update;
    mr_device *device;
    mr_params params;
    mr_model *model;
    mr_optimizer optimizer;
    float *values, *gradients, *images;
    int32_t *labels;
    uint64_t *keys;
    double loss;
} bench;

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "train_bench: %s\n", why);
    exit(3);
}

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *on_device(bench *b, size_t bytes)
{
    void *memory;
    mr_error err;
    if (b->device->card->alloc(b->device, bytes, &memory, &err))
        stop(err.text);
    return memory;
}

static void open_bench(bench *b)
{
    const mr_optimizer_options options = {.kind = MR_SGD, .lr = {.base = 1e-3, .decay = MR_DECAY_NONE}, .momentum = 0.9,
                                          .clip = 1};
    mr_error err;
    if (mr_device_open("cpu", &b->device_options, &b->device, &err) ||
        b->config.card->params(&b->config, &b->params, &err) ||
        b->config.card->open(&b->config, &b->params, b->device, b->batch, true, &b->model, &err) ||
        mr_optimizer_open(&options, &b->params, b->device, &b->optimizer, &err))
        stop(err.text);
    size_t pixels = b->batch * 3 * b->config.image * b->config.image;
    b->values = on_device(b, b->params.total * sizeof *b->values);
    b->gradients = on_device(b, b->params.total * sizeof *b->gradients);
    b->images = on_device(b, pixels * sizeof *b->images);
    b->labels = on_device(b, b->batch * sizeof *b->labels);
    b->keys = on_device(b, b->batch * sizeof *b->keys);
    mr_random r;
    mr_random_seed(&r, 1);
    b->config.card->start(&b->config, &b->params, 1, b->values);
    for (size_t i = 0; i < pixels; i++)
        b->images[i] = (float)mr_random_real(&r, -1, 1);
    for (size_t i = 0; i < b->batch; i++) {
        b->labels[i] = (int32_t)mr_random_below(&r, b->config.classes);
        b->keys[i] = mr_random_u64(&r);
    }
}

static void close_bench(bench *b)
{
    mr_optimizer_close(&b->optimizer);
    b->config.card->close(b->model);
    mr_params_release(&b->params);
    mr_device_close(b->device);
}

static void step(bench *b)
{
    const mr_model_input in = {.count = b->batch, .training = true, .images = b->images, .labels = b->labels,
                               .keys = b->keys};
    const mr_model_card *card = b->config.card;
    mr_model_output out;
    mr_error err;
    card->forward(b->model, b->values, &in, &out);
    b->device->card->zero(b->device, b->gradients, b->params.total * sizeof *b->gradients);
    card->backward(b->model, b->values, b->gradients, NULL, NULL);
    if (mr_optimizer_update(&b->optimizer, ++b->update, (double)b->batch, b->gradients, b->values, NULL, &err) ||
        b->device->card->wait(b->device, &err))
        stop(err.text);
    b->loss = 0;
    for (size_t i = 0; i < b->batch; i++)
        b->loss += out.losses[i] / (double)b->batch;
}

static void answer(bench *b, uint64_t steps)
{
    double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    printf("{\"seconds\": [");
    for (uint64_t i = 0; i < steps; i++) {
        double begin = seconds_of(CLOCK_MONOTONIC);
        step(b);
        printf("%s%.6f", i ? ", " : "", seconds_of(CLOCK_MONOTONIC) - begin);
    }
    printf("], \"cpu_seconds\": %.6f, \"loss\": %.6f}\n", seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu, b->loss);
    fflush(stdout);
}

static void read_options(bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        {"model", required_argument, NULL, 'm'},   {"image", required_argument, NULL, 'i'},
        {"batch", required_argument, NULL, 'b'},   {"classes", required_argument, NULL, 'c'},
        {"threads", required_argument, NULL, 't'}, {"dropout", required_argument, NULL, 'd'},
        {"steps", required_argument, NULL, 's'},   {0},
    };
    uint32_t image = 0;
    mr_error err;
    if (mr_model_find("ViT-B_16", &b->config, &err))
        stop(err.text);
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        unsigned long n = optarg ? strtoul(optarg, NULL, 10) : 0;
        switch (o) {
        case 'm':
            if (mr_model_find(optarg, &b->config, &err))
                stop(err.text);
            break;
        case 'i': image = (uint32_t)n; break;
        case 'b': b->batch = n; break;
        case 'c': b->config.classes = (uint32_t)n; break;
        case 't': b->device_options.threads = (unsigned)n; break;
        case 'd': b->config.dropout = strtod(optarg, NULL); break;
        case 's': b->steps = n; break;
        default: stop("its head says how it is used");
        }
    }
    b->config.image = image ? image : b->config.image;
}

int main(int argc, char **argv)
{
    bench b = {.batch = 8, .config = {.classes = 1000}};
    char line[64];
    read_options(&b, argc, argv);
    open_bench(&b);
    printf("{\"device\": \"%s\"}\n", b.device->card->describe(b.device));
    fflush(stdout);
    if (b.steps)
        answer(&b, b.steps);
    while (!b.steps && fgets(line, sizeof line, stdin))
        answer(&b, strtoul(line, NULL, 10));
    close_bench(&b);
    return 0;
}
