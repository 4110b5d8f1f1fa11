/* device_operations.c - every operation but the products, for device_bench.
 * Invariant: an operation's limit is its bytes at the rate of the copy, and its products at the best rate of those. */
#include <stdio.h>

#include "bench/device_bench.h"

typedef void run_fn(device_bench *b);

static void copy(device_bench *b)
{
    mr_rows r = {.rows = b->rows, .width = MLP, .from = b->x, .to = b->y};
    mr_run_rows(b->d, &r);
}

static mr_activate activate_of(device_bench *b, float rate)
{
    return (mr_activate){.kind = MR_GELU,
                         .rows = b->rows,
                         .width = MLP,
                         .sample_rows = b->tokens,
                         .x = b->x,
                         .y = b->y,
                         .d_y = b->y,
                         .d_x = b->z,
                         .dropout = {.rate = rate, .site = 1, .keys = b->keys}};
}

static void gelu(device_bench *b)
{
    mr_activate a = activate_of(b, 0);
    mr_run_activate(b->d, &a);
}

static void gelu_dropout(device_bench *b)
{
    mr_activate a = activate_of(b, 0.1F);
    mr_run_activate(b->d, &a);
}

static void gelu_back(device_bench *b)
{
    mr_activate a = activate_of(b, 0);
    mr_run_activate_back(b->d, &a);
}

static void gelu_dropout_back(device_bench *b)
{
    mr_activate a = activate_of(b, 0.1F);
    mr_run_activate_back(b->d, &a);
}

static void run_norm(device_bench *b, float rate)
{
    mr_norm n = {.rows = b->rows,
                 .width = HIDDEN,
                 .sample_rows = b->tokens,
                 .x = b->x,
                 .residual = b->y,
                 .total = b->z,
                 .y = b->z + b->rows * HIDDEN,
                 .gain = b->gain,
                 .bias = b->gain,
                 .mean = b->mean,
                 .rstd = b->rstd,
                 .eps = 1e-6F,
                 .dropout = {.rate = rate, .site = 1, .keys = b->keys}};
    mr_run_norm(b->d, &n);
}

static void norm(device_bench *b)
{
    run_norm(b, 0);
}

static void norm_dropout(device_bench *b)
{
    run_norm(b, 0.1F);
}

static void norm_back(device_bench *b)
{
    mr_norm_back n = {.rows = b->rows,
                      .width = HIDDEN,
                      .d_y = b->x,
                      .total = b->y,
                      .gain = b->gain,
                      .mean = b->mean,
                      .rstd = b->rstd,
                      .d_residual = b->z,
                      .d_total = b->z,
                      .d_gain = b->g,
                      .d_bias = b->g + HIDDEN};
    mr_run_norm_back(b->d, &n);
}

static void sum_rows(device_bench *b)
{
    mr_run_sum_rows(b->d, &(mr_sum_rows){MR_F32, b->rows, MLP, b->x, b->g});
}

static void drop(device_bench *b)
{
    mr_dropout d = {.rate = 0.1F, .site = 1, .keys = b->keys};
    mr_run_drop(b->d, &(mr_drop){MR_F32, b->rows, HIDDEN, b->tokens, d, b->x, b->y});
}

static void add(device_bench *b)
{
    mr_run_add(b->d, &(mr_add){MR_F32, b->rows * HIDDEN, b->x, b->y, b->y});
}

mr_attention bench_attention(const device_bench *b)
{
    return (mr_attention){.batch = BATCH,
                          .heads = HEADS,
                          .head_dim = HIDDEN / HEADS,
                          .queries = b->tokens,
                          .keys = b->tokens,
                          .q = b->x,
                          .k = b->x + HIDDEN,
                          .v = b->x + 2 * HIDDEN,
                          .q_stride = 3 * HIDDEN,
                          .k_stride = 3 * HIDDEN,
                          .v_stride = 3 * HIDDEN,
                          .scale = 0.125F,
                          .saved = b->saved,
                          .out = b->y};
}

static void attention(device_bench *b)
{
    mr_attention a = bench_attention(b);
    mr_run_attention(b->d, &a);
}

static void attention_back(device_bench *b)
{
    mr_attention a = bench_attention(b);
    mr_attention_back back = {
        .forward = &a, .d_out = b->y, .d_q = b->z, .d_k = b->z + HIDDEN, .d_v = b->z + 2 * HIDDEN};
    mr_run_attention_back(b->d, &back);
}

static void patches(device_bench *b)
{
    mr_patches p = {.batch = BATCH, .side = b->image, .patch = PATCH, .images = b->x, .rows = b->y};
    mr_run_patches(b->d, &p);
}

static void run_tokens(device_bench *b, float rate, bool back)
{
    mr_tokens t = {.batch = BATCH,
                   .rows = b->tokens,
                   .width = HIDDEN,
                   .x = b->x,
                   .first = b->gain,
                   .position = b->w,
                   .y = b->y,
                   .d_y = b->y,
                   .d_x = b->z,
                   .d_first = b->g,
                   .d_position = b->g + HIDDEN,
                   .dropout = {.rate = rate, .site = 1, .keys = b->keys}};
    (back ? mr_run_tokens_back : mr_run_tokens)(b->d, &t);
}

static void tokens(device_bench *b)
{
    run_tokens(b, 0.1F, false);
}

static void tokens_back(device_bench *b)
{
    run_tokens(b, 0.1F, true);
}

static void squares(device_bench *b)
{
    b->v[0] += (float)mr_squares_of(b->d, PARAMETERS, b->g) * 0;
}

static mr_update update_of(device_bench *b)
{
    return (mr_update){.count = PARAMETERS,
                       .w = b->w,
                       .g = b->g,
                       .m = b->m,
                       .v = b->v,
                       .g_scale = 1,
                       .lr = 1e-9,
                       .momentum = 0.9,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-8,
                       .correction1 = 1,
                       .correction2 = 1};
}

static void sgd(device_bench *b)
{
    mr_update u = update_of(b);
    mr_run_sgd(b->d, &u);
}

static void adamw(device_bench *b)
{
    mr_update u = update_of(b);
    mr_run_adamw(b->d, &u);
}

static double best_of(device_bench *b, run_fn *fn, double worst)
{
    double start = bench_now();
    fn(b);
    b->d->card->wait(b->d, NULL);
    double t = bench_now() - start;
    return t < worst ? t : worst;
}

void bench_operations(device_bench *b)
{
    const size_t x = b->rows * HIDDEN, wide = b->rows * MLP;
    const double products = 4.0 * BATCH * (double)b->tokens * (double)b->tokens * HIDDEN;
    const struct {
        const char *name;
        run_fn *fn;
        size_t floats; /* read and written */
        double work;   /* of matrix products */
    } runs[] = {
        {"copy", copy, 2 * wide, 0},
        {"gelu", gelu, 2 * wide, 0},
        {"gelu, dropout", gelu_dropout, 2 * wide, 0},
        {"gelu back", gelu_back, 3 * wide, 0},
        {"gelu back, dropout", gelu_dropout_back, 3 * wide, 0},
        {"norm", norm, 4 * x, 0},
        {"norm, dropout", norm_dropout, 4 * x, 0},
        {"norm back", norm_back, 4 * x, 0},
        {"sum rows", sum_rows, wide, 0},
        {"drop", drop, 2 * x, 0},
        {"add", add, 3 * x, 0},
        {"attention", attention, 4 * x, products},
        {"attention back", attention_back, 7 * x, 2.5 * products},
        {"patches", patches, 2 * BATCH * 3 * b->image * b->image, 0},
        {"tokens", tokens, 2 * x, 0},
        {"tokens back", tokens_back, 2 * x, 0},
        {"sum of squares", squares, PARAMETERS, 0},
        {"sgd", sgd, 5 * (size_t)PARAMETERS, 0},
        {"adamw", adamw, 7 * (size_t)PARAMETERS, 0},
    };
    double best[MR_COUNT(runs)];
    for (size_t i = 0; i < MR_COUNT(runs); i++)
        best[i] = 1e9;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < MR_COUNT(runs); i++)
            best[i] = best_of(b, runs[i].fn, best[i]);
    b->copy = (double)runs[0].floats * sizeof(float) / best[0];
    for (size_t i = 0; i < MR_COUNT(runs); i++) {
        double bytes = (double)runs[i].floats * sizeof(float), limit = bytes / b->copy + runs[i].work * 1e-9 / b->rate;
        printf("%-24s %9.3f ms %9.1f GB/s     of copying%s %11.2f\n", runs[i].name, best[i] * 1e3,
               bytes / best[i] * 1e-9, runs[i].work > 0 ? " + products" : "           ", limit / best[i]);
    }
}
