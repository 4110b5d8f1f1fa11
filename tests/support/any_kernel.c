/* any_kernel.c - an operation on shapes and numbers that follow from bytes.
 * Invariant: the first bytes choose the operation and its shapes, and all of them, again and again, are its numbers,
 * labels, ids and masks, whatever these mean. */
#include "support/any_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"

enum { TENSORS = 16, ROWS = 12, WIDTH = 150, CHOICE_BYTES = 16 };

static void must(bool held)
{
    if (held)
        return;
    fprintf(stderr, "any_kernel: the device refuses what is right, or is out of memory\n");
    abort();
}

typedef struct input {
    const uint8_t *data;
    size_t size, at;
    mr_random draw;
    mr_device *d;
    mr_type type;
    size_t limit; /* of every size */
    uint64_t digest;
    struct {
        void *at;
        size_t bytes;
    } tensors[TENSORS];
    size_t count;
} input;

static size_t pick(input *in, size_t most)
{
    return 1 + (size_t)mr_random_below(&in->draw, most < in->limit ? most : in->limit);
}

static bool yes(input *in)
{
    return mr_random_below(&in->draw, 2);
}

/* Bytes of the input, again and again: any number, also none. */
static uint8_t *fill(input *in, size_t bytes)
{
    uint8_t *filled = malloc(bytes + 1);
    must(filled != NULL);
    for (size_t i = 0; i < bytes; i++)
        filled[i] = in->size ? in->data[in->at++ % in->size] : 0;
    return filled;
}

static void *give(input *in, uint8_t *filled, size_t bytes)
{
    mr_error err;
    void *memory = NULL;
    must(in->count < TENSORS && in->d->card->alloc(in->d, bytes, "fuzzing", &memory, &err) == MR_OK);
    in->d->card->upload(in->d, memory, filled, bytes);
    free(filled);
    in->tensors[in->count].at = memory;
    in->tensors[in->count++].bytes = bytes;
    return memory;
}

static void *tensor(input *in, size_t bytes)
{
    return give(in, fill(in, bytes), bytes);
}

/* Half are of 0 .. entries - 1, the others just miss that, and a few are anything. */
static void *ids(input *in, size_t count, size_t entries)
{
    size_t bytes = count * sizeof(int32_t);
    uint8_t *filled = fill(in, bytes);
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, filled + i * sizeof word, sizeof word);
        int32_t end = (int32_t)entries, near = (int32_t)((word >> 4) % entries);
        near = word % 4 == 1 ? -1 : word % 4 == 2 ? end : near;
        if (word % 16)
            memcpy(filled + i * sizeof near, &near, sizeof near);
    }
    return give(in, filled, bytes);
}

static void *floats(input *in, size_t count)
{
    return tensor(in, count * sizeof(float));
}

static void *reals(input *in, size_t count)
{
    return tensor(in, count * mr_type_size(in->type));
}

static mr_dropout dropout(input *in, size_t samples)
{
    float rate = yes(in) ? 0.25F : 0;
    return (mr_dropout){.rate = rate, .site = 3, .keys = rate > 0 ? tensor(in, samples * sizeof(uint64_t)) : NULL};
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void one_label(input *in)
{
    size_t rows = pick(in, ROWS), classes = pick(in, WIDTH);
    const mr_cross_entropy c = {.type = in->type,
                                .rows = rows,
                                .classes = classes,
                                .logits = floats(in, rows * classes),
                                .labels = ids(in, rows, classes),
                                .weights = yes(in) ? floats(in, rows) : NULL,
                                .losses = floats(in, rows),
                                .d_logits = yes(in) ? reals(in, rows * classes) : NULL,
                                .best = yes(in) ? floats(in, rows) : NULL,
                                .add_losses = yes(in),
                                .columns = yes(in) ? floats(in, classes) : NULL,
                                .groups = yes(in) ? ids(in, classes, 3) : NULL,
                                .smoothing = yes(in) ? 0.1F : 0};
    mr_run_cross_entropy(in->d, &c);
}

static void several_labels(input *in)
{
    size_t rows = pick(in, ROWS), classes = pick(in, WIDTH);
    const mr_sigmoid_loss l = {.type = in->type,
                               .rows = rows,
                               .classes = classes,
                               .logits = floats(in, rows * classes),
                               .targets = floats(in, rows * classes),
                               .positive = yes(in) ? floats(in, classes) : NULL,
                               .weights = yes(in) ? floats(in, rows) : NULL,
                               .losses = floats(in, rows),
                               .d_logits = yes(in) ? reals(in, rows * classes) : NULL,
                               .best = yes(in) ? floats(in, rows) : NULL};
    mr_run_sigmoid_loss(in->d, &l);
}

static void table(input *in)
{
    size_t rows = pick(in, ROWS), width = pick(in, WIDTH), entries = pick(in, 40);
    mr_lookup l = {.type = in->type,
                   .rows = rows,
                   .width = width,
                   .entries = entries,
                   .ids = yes(in) ? ids(in, rows, entries) : NULL,
                   .table = floats(in, entries * width),
                   .y = reals(in, rows * width),
                   .accumulate = yes(in),
                   .d_y = reals(in, rows * width),
                   .d_table = floats(in, entries * width),
                   .skip = yes(in) ? -1 : (int32_t)pick(in, entries)};
    mr_run_lookup(in->d, &l);
    mr_run_lookup_back(in->d, &l);
}

static void attend(input *in)
{
    size_t batch = pick(in, 2), heads = pick(in, 3), dim = pick(in, 40), queries = pick(in, 80), keys = pick(in, 80);
    size_t wide = heads * dim, bytes;
    mr_error err;
    mr_attention a = {.type = in->type,
                      .batch = batch,
                      .heads = heads,
                      .head_dim = dim,
                      .queries = queries,
                      .keys = keys,
                      .q = reals(in, batch * queries * wide),
                      .k = reals(in, batch * keys * wide),
                      .v = reals(in, batch * keys * wide),
                      .key_mask = yes(in) ? tensor(in, batch * keys) : NULL,
                      .scale = 0.125F,
                      .dropout = dropout(in, batch),
                      .out = reals(in, batch * queries * wide)};
    must(in->d->card->plan_attention(in->d, &a, &bytes, &err) == MR_OK);
    a.saved = tensor(in, bytes);
    const mr_attention_back b = {.forward = &a,
                                 .d_out = reals(in, batch * queries * wide),
                                 .d_q = reals(in, batch * queries * wide),
                                 .d_k = reals(in, batch * keys * wide),
                                 .d_v = reals(in, batch * keys * wide)};
    mr_run_attention(in->d, &a);
    mr_run_attention_back(in->d, &b);
}

static void norms(input *in)
{
    size_t rows = pick(in, ROWS), width = pick(in, WIDTH);
    const mr_norm n = {.type = in->type,
                       .rows = rows,
                       .width = width,
                       .sample_rows = 1,
                       .x = reals(in, rows * width),
                       .residual = yes(in) ? reals(in, rows * width) : NULL,
                       .total = reals(in, rows * width),
                       .y = reals(in, rows * width),
                       .gain = floats(in, width),
                       .bias = floats(in, width),
                       .mean = floats(in, rows),
                       .rstd = floats(in, rows),
                       .eps = 1e-6F,
                       .dropout = dropout(in, rows)};
    const mr_norm_back b = {.type = in->type,
                            .rows = rows,
                            .width = width,
                            .d_y = reals(in, rows * width),
                            .total = n.total,
                            .gain = n.gain,
                            .mean = n.mean,
                            .rstd = n.rstd,
                            .d_total = reals(in, rows * width),
                            .d_gain = floats(in, width),
                            .d_bias = floats(in, width)};
    mr_run_norm(in->d, &n);
    mr_run_norm_back(in->d, &b);
}

static void product(input *in)
{
    size_t m = pick(in, 70), n = pick(in, 70), k = pick(in, 40);
    const mr_gemm g = {.a_type = in->type,
                       .c_type = in->type,
                       .m = m,
                       .n = n,
                       .k = k,
                       .a = reals(in, m * k),
                       .b = floats(in, k * n),
                       .c = reals(in, m * n),
                       .transpose_a = yes(in),
                       .transpose_b = yes(in),
                       .accumulate = yes(in),
                       .bias = yes(in) ? floats(in, n) : NULL};
    mr_run_gemm(in->d, &g);
}

static void arrange(input *in)
{
    size_t batch = pick(in, 3), side = pick(in, 20), patch = pick(in, side), grid = side / patch, width = pick(in, 70);
    const mr_patches p = {.type = in->type,
                          .batch = batch,
                          .side = side,
                          .patch = patch,
                          .channel_first = yes(in),
                          .images = floats(in, batch * 3 * side * side),
                          .rows = reals(in, batch * grid * grid * 3 * patch * patch)};
    const mr_tokens t = {.type = in->type,
                         .batch = batch,
                         .rows = 3,
                         .width = width,
                         .x = reals(in, batch * 2 * width),
                         .first = floats(in, width),
                         .position = floats(in, 3 * width),
                         .y = reals(in, batch * 3 * width),
                         .d_y = reals(in, batch * 3 * width),
                         .d_x = reals(in, batch * 2 * width),
                         .d_first = floats(in, width),
                         .d_position = floats(in, 3 * width),
                         .dropout = dropout(in, batch)};
    mr_run_patches(in->d, &p);
    mr_run_tokens(in->d, &t);
    mr_run_tokens_back(in->d, &t);
}

static void elements(input *in)
{
    size_t rows = pick(in, ROWS), width = pick(in, WIDTH), count = rows * width;
    const mr_activate a = {.type = in->type,
                           .kind = (mr_activation)mr_random_below(&in->draw, 3),
                           .rows = rows,
                           .width = width,
                           .sample_rows = 1,
                           .x = reals(in, count),
                           .y = reals(in, count),
                           .d_y = reals(in, count),
                           .d_x = reals(in, count),
                           .dropout = dropout(in, rows)};
    const mr_unit u = {.type = in->type,
                       .rows = rows,
                       .width = width,
                       .x = floats(in, count),
                       .y = floats(in, count),
                       .lengths = floats(in, rows),
                       .eps = 1e-6F,
                       .d_y = floats(in, count),
                       .d_x = a.d_x};
    mr_run_activate(in->d, &a);
    mr_run_activate_back(in->d, &a);
    mr_run_unit(in->d, &u);
    mr_run_unit_back(in->d, &u);
    double squares = mr_squares_of(in->d, count, u.x);
    in->digest = mr_hash64_seeded(&squares, sizeof squares, in->digest);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* What is in the tensors now. */
static void digest(input *in)
{
    const mr_device_card *c = in->d->card;
    for (size_t i = 0; i < in->count; i++) {
        size_t bytes = in->tensors[i].bytes;
        uint8_t *taken = malloc(bytes + 1);
        must(taken != NULL);
        c->download(in->d, taken, in->tensors[i].at, bytes);
        in->digest = mr_hash64_seeded(taken, bytes, in->digest);
        free(taken);
    }
}

mr_status any_kernel_run(mr_device *d, const uint8_t *data, size_t size, size_t limit, uint64_t *out, mr_error *err)
{
    static void (*const operations[])(input *) = {one_label, several_labels, table,   attend,
                                                  norms,     product,        arrange, elements};
    input in = {.data = data, .size = size, .limit = limit, .d = d};
    mr_random_seed(&in.draw, mr_hash64(data, size < CHOICE_BYTES ? size : CHOICE_BYTES));
    in.type = yes(&in) && d->card->types & 1U << MR_BF16 ? MR_BF16 : MR_F32;
    operations[mr_random_below(&in.draw, MR_COUNT(operations))](&in);
    mr_status status = d->card->wait(d, err);
    digest(&in);
    for (size_t i = 0; i < in.count; i++)
        d->card->free(d, in.tensors[i].at);
    *out = in.digest;
    return status;
}
