/* train_bench.c - seconds of a training step on a device: forward, backward, clipping and update, nothing else.
 * Invariant: steps run when they are asked for, one answer a line, so that a peer can take turns with it.
 *
 *      train_bench [--model ViT-B_16] [--image 224] [--batch 8] [--classes 1000] [--threads 0] [--dropout 0]
 *                  [--config FILE] [--weights FILE] [--text 64] [--tokens 40] [--forward] [--steps N]
 *                  [--precision float32|bf16] [--device cpu]
 *
 * It says {"device": ..., "bytes": resident before anything was opened, ...} when it is ready.  Then a line with a
 * number N on standard input makes N steps, and the answer is {"seconds": [wall time of each], "cpu_seconds": of all,
 * "loss": of the last, "peak_bytes": most that was resident}.  --steps N: N steps at once, and no input is read.
 * --forward: a step is a forward pass of a model that was opened without a backward pass.
 *
 * --config: BridgeTower by the hub's config.json, with AdamW; --weights: its start values.  Text number b of a batch
 * has --tokens tokens, less b modulo 8; pixels and tokens follow from their places alone (scattered()), so that a peer
 * can make the same batch.  Dropout is the file's; --dropout sets both of its rates. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/random.h"
#include "train/model/model.h"
#include "train/model/optimizer.h"
#include "base/cli/term.h"
#include "loader/bench/bench_limits.h"

enum { BATCH_MAX = 4096 };
enum { BEGIN = 0, PAD = 1, END = 2, WORDS = 4 }; /* ids of RoBERTa's tokens; words follow */
enum { FIRST_PLACE = 2 };                        /* row of the table of positions */

typedef struct bench {
    mr_model_config config;
    mr_device_options device_options;
    size_t batch, length;
    uint64_t steps, update;
    const char *weights_file, *on;
    double dropout; /* below 0: the model's own */
    bool forward;
    uint64_t start_bytes;
    mr_device *device;
    mr_params params;
    mr_model *model;
    mr_optimizer optimizer;
    float *values, *gradients, *images;
    int32_t *labels, *tokens, *places;
    uint8_t *seen;
    uint64_t *keys;
    double loss;
} bench;

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "train_bench: %s\n", why);
    exit(3);
}

static uint64_t peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_maxrss * 1024;
}

static void *on_device(bench *b, size_t bytes)
{
    void *memory;
    mr_error err;
    if (b->device->iface->alloc(b->device, bytes, "measuring", &memory, &err))
        stop(err.text);
    return memory;
}

/* Memory of the host to write to, which moved() brings to the device: the same where the host can touch it. */
static void *to_fill(bench *b, size_t bytes)
{
    void *memory = b->device->iface->host_memory ? on_device(b, bytes) : calloc(1, bytes);
    if (!memory)
        stop("out of memory");
    return memory;
}

static void *moved(bench *b, void *filled, size_t bytes)
{
    if (b->device->iface->host_memory || !filled)
        return filled;
    void *memory = on_device(b, bytes);
    b->device->iface->upload(b->device, memory, filled, bytes);
    free(filled);
    return memory;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

/* Knuth's multiplicative hash (The Art of Computer Programming 3, 6.4); its upper bits are good. */
static uint32_t scattered(size_t i)
{
    return (uint32_t)i * UINT32_C(2654435761);
}

static void fill_labels(bench *b, size_t pixels)
{
    mr_random r;
    mr_random_seed(&r, 1);
    b->labels = to_fill(b, b->batch * sizeof *b->labels);
    for (size_t i = 0; i < pixels; i++)
        b->images[i] = (float)mr_random_real(&r, -1, 1);
    for (size_t i = 0; i < b->batch; i++) {
        b->labels[i] = (int32_t)mr_random_below(&r, b->config.classes);
        b->keys[i] = mr_random_u64(&r);
    }
}

static void fill_text(bench *b, size_t sample)
{
    size_t tokens = b->length - sample % 8;
    for (size_t i = 0; i < b->length; i++) {
        size_t at = sample * b->length + i;
        uint32_t word = WORDS + (scattered(at) >> 4) % (b->config.vocab - WORDS);
        b->seen[at] = i < tokens;
        b->places[at] = i < tokens ? FIRST_PLACE + (int32_t)i : PAD;
        b->tokens[at] = i >= tokens ? PAD : i + 1 == tokens ? END : i ? (int32_t)word : BEGIN;
    }
}

static void fill_pairs(bench *b, size_t pixels)
{
    size_t rows = b->batch * b->length;
    b->tokens = to_fill(b, rows * sizeof *b->tokens);
    b->places = to_fill(b, rows * sizeof *b->places);
    b->seen = to_fill(b, rows * sizeof *b->seen);
    for (size_t i = 0; i < pixels; i++)
        b->images[i] = (float)(scattered(i) >> 8) / (1 << 23) - 1;
    for (size_t i = 0; i < b->batch; i++) {
        b->keys[i] = scattered(i + 1);
        fill_text(b, i);
    }
}

static void fill_batch(bench *b)
{
    size_t pixels = b->batch * 3 * b->config.image * b->config.image;
    b->images = to_fill(b, pixels * sizeof *b->images);
    b->keys = to_fill(b, b->batch * sizeof *b->keys);
    if (b->config.iface->text)
        fill_pairs(b, pixels);
    else
        fill_labels(b, pixels);
    size_t rows = b->batch * b->length;
    b->images = moved(b, b->images, pixels * sizeof *b->images);
    b->keys = moved(b, b->keys, b->batch * sizeof *b->keys);
    b->labels = moved(b, b->labels, b->batch * sizeof *b->labels);
    b->tokens = moved(b, b->tokens, rows * sizeof *b->tokens);
    b->places = moved(b, b->places, rows * sizeof *b->places);
    b->seen = moved(b, b->seen, rows * sizeof *b->seen);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static void start_values(bench *b)
{
    mr_buf said = {0};
    mr_error err;
    b->values = to_fill(b, b->params.total * sizeof *b->values);
    if (!b->weights_file)
        b->config.iface->start(&b->config, &b->params, 1, b->values);
    else if (b->config.iface->load(&b->config, &b->params, b->weights_file, b->values, &said, &err))
        stop(err.text);
    b->values = moved(b, b->values, b->params.total * sizeof *b->values);
    mr_buf_free(&said);
}

static void open_bench(bench *b)
{
    const mr_schedule_lr lr = {.base = b->config.iface->text ? 1e-5 : 1e-3, .decay = MR_DECAY_NONE};
    const mr_optimizer_options sgd = {.kind = MR_SGD, .lr = lr, .momentum = 0.9, .clip = 1};
    const mr_optimizer_options adamw = {
        .kind = MR_ADAMW, .lr = lr, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01, .clip = 1};
    mr_error err;
    if (mr_device_open(b->on, &b->device_options, &b->device, &err) ||
        b->config.iface->params(&b->config, &b->params, &err) ||
        b->config.iface->open(&b->config, &b->params, b->device, b->batch, !b->forward, &b->model, &err))
        stop(err.text);
    fill_batch(b);
    start_values(b);
    if (b->forward)
        return;
    if (mr_optimizer_open(b->config.iface->text ? &adamw : &sgd, &b->params, b->device, &b->optimizer, &err))
        stop(err.text);
    b->gradients = on_device(b, b->params.total * sizeof *b->gradients);
}

static void close_bench(bench *b)
{
    mr_optimizer_close(&b->optimizer);
    b->config.iface->close(b->model);
    mr_params_release(&b->params);
    mr_device_close(b->device);
}

static void introduce(const bench *b)
{
    mr_model_costs costs;
    b->config.iface->costs(&b->config, b->batch, !b->forward, &costs);
    printf("{\"device\": \"%s\", \"bytes\": %llu, \"parameters\": %llu, \"activation_bytes\": %llu}\n",
           b->device->iface->describe(b->device), (unsigned long long)b->start_bytes,
           (unsigned long long)costs.parameters, (unsigned long long)costs.activation_bytes);
    fflush(stdout);
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static void step(bench *b)
{
    const mr_model_input in = {.count = b->batch,
                               .training = !b->forward,
                               .images = b->images,
                               .labels = b->labels,
                               .keys = b->keys,
                               .tokens = b->tokens,
                               .places = b->places,
                               .seen = b->seen,
                               .length = b->length};
    const mr_model_iface *iface = b->config.iface;
    mr_model_output out;
    mr_error err;
    float losses[BATCH_MAX];
    iface->forward(b->model, b->values, &in, &out);
    if (!b->forward) {
        b->device->iface->zero(b->device, b->gradients, b->params.total * sizeof *b->gradients);
        iface->backward(b->model, b->values, b->gradients, NULL, NULL);
        if (mr_optimizer_update(&b->optimizer, ++b->update, (double)b->batch, b->gradients, b->values, NULL, &err))
            stop(err.text);
    }
    b->device->iface->download(b->device, losses, out.losses, b->batch * sizeof *losses);
    if (b->device->iface->wait(b->device, &err))
        stop(err.text);
    b->loss = 0;
    for (size_t i = 0; i < b->batch; i++)
        b->loss += (double)losses[i] / (double)b->batch;
}

static void answer(bench *b, uint64_t steps)
{
    double cpu = mr_bench_cpu();
    printf("{\"seconds\": [");
    for (uint64_t i = 0; i < steps; i++) {
        double begin = mr_seconds();
        step(b);
        printf("%s%.6f", i ? ", " : "", mr_seconds() - begin);
    }
    printf("], \"cpu_seconds\": %.6f, \"loss\": %.6f, \"peak_bytes\": %llu}\n", mr_bench_cpu() - cpu, b->loss,
           (unsigned long long)peak_bytes());
    fflush(stdout);
}

static void find_model(bench *b, const char *word)
{
    mr_error err;
    if (mr_model_find(word, &b->config, &err))
        stop(err.text);
}

static void read_config(bench *b, const char *path)
{
    mr_error err;
    find_model(b, "bridgetower");
    if (b->config.iface->configure(path, &b->config, &err))
        stop(err.text);
}

/* What was said about the model, whichever came first. */
static void settle(bench *b, uint32_t image, uint32_t text)
{
    mr_model_config *c = &b->config;
    c->image = image ? image : c->image;
    c->dropout = b->dropout >= 0 ? b->dropout : c->dropout;
    if (!c->iface->text)
        return;
    c->attention_dropout = b->dropout >= 0 ? b->dropout : c->attention_dropout;
    c->text = text;
    if (b->length < 10 || b->length > text)
        stop("--tokens: give a number from 10 to that of --text");
}

static void read_options(bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        {"model", required_argument, NULL, 'm'},
        {"image", required_argument, NULL, 'i'},
        {"batch", required_argument, NULL, 'b'},
        {"classes", required_argument, NULL, 'c'},
        {"threads", required_argument, NULL, 't'},
        {"dropout", required_argument, NULL, 'd'},
        {"config", required_argument, NULL, 'C'},
        {"weights", required_argument, NULL, 'w'},
        {"text", required_argument, NULL, 'x'},
        {"tokens", required_argument, NULL, 'n'},
        {"forward", no_argument, NULL, 'f'},
        {"steps", required_argument, NULL, 's'},
        {"precision", required_argument, NULL, 'p'},
        {"device", required_argument, NULL, 'D'},
        {0},
    };
    uint32_t image = 0, text = 64;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        unsigned long n = optarg ? strtoul(optarg, NULL, 10) : 0;
        switch (o) {
        case 'm':
            find_model(b, optarg);
            break;
        case 'i':
            image = (uint32_t)n;
            break;
        case 'b':
            b->batch = n;
            break;
        case 'c':
            b->config.classes = (uint32_t)n;
            break;
        case 't':
            b->device_options.threads = (unsigned)n;
            break;
        case 'd':
            b->dropout = strtod(optarg, NULL);
            break;
        case 'C':
            read_config(b, optarg);
            break;
        case 'w':
            b->weights_file = optarg;
            break;
        case 'x':
            text = (uint32_t)n;
            break;
        case 'n':
            b->length = n;
            break;
        case 'f':
            b->forward = true;
            break;
        case 's':
            b->steps = n;
            break;
        case 'p':
            b->config.compute = mr_type_of(optarg);
            break;
        case 'D':
            b->on = optarg;
            break;
        default:
            stop("its head says how it is used");
        }
    }
    if (b->batch > BATCH_MAX)
        stop("--batch: at most 4096");
    settle(b, image, text);
}

int main(int argc, char **argv)
{
    bench b = {.batch = 8, .length = 40, .dropout = -1, .on = "cpu", .start_bytes = peak_bytes()};
    char line[64];
    find_model(&b, "ViT-B_16");
    b.config.classes = 1000;
    read_options(&b, argc, argv);
    open_bench(&b);
    introduce(&b);
    if (b.steps)
        answer(&b, b.steps);
    while (!b.steps && fgets(line, sizeof line, stdin))
        answer(&b, strtoul(line, NULL, 10));
    close_bench(&b);
    return 0;
}
