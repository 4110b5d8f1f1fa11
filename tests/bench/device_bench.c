/* device_bench.c - each operation of a device at the shapes of ViT-B/16, batch 8, against what the machine can do.
 * Invariant: an operation and its limit are timed alternately in the same run, and each keeps its best time, so that
 * what else runs on the machine hurts both alike.
 *
 *      device_bench [THREADS [IMAGE]]        image: 224 or 160 pixels a side
 *
 * Limits: one cblas_sgemm of the whole shape on one thread times the threads, and the rate of a copy by all threads.
 */
#include <cblas.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pool.h"
#include "device/device.h"

enum { BATCH = 8, HIDDEN = 768, MLP = 3072, HEADS = 12, PATCH = 16, ROUNDS = 15, PARAMETERS = 86 << 20 };

typedef struct bench {
    mr_device *d;
    void (*sgemm)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE a_way, enum CBLAS_TRANSPOSE b_way, blasint m, blasint n,
                  blasint k, float alpha, const float *a, blasint lda, const float *b, blasint ldb, float beta,
                  float *c, blasint ldc);
    unsigned threads;
    size_t image, tokens, rows;
    float *x, *y, *z, *w, *g, *m, *v; /* [rows, MLP] three times; parameters and their company */
    float *gain, *mean, *rstd, *saved;
    uint64_t *keys;
    double rate, copy; /* limits: operations and bytes a second */
} bench;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *take(mr_device *d, size_t bytes)
{
    mr_error err;
    void *p = NULL;
    if (d->card->alloc(d, bytes, "measuring", &p, &err) != MR_OK) {
        fprintf(stderr, "device_bench: %s\n", err.text);
        exit(3);
    }
    return p;
}

static void fill(mr_device *d, float *x, size_t count)
{
    static float block[65536];
    for (size_t i = 0; i < MR_COUNT(block); i++)
        block[i] = (float)(i * 2654435761U % 2001) * 1e-3F - 1;
    for (size_t at = 0; at < count; at += MR_COUNT(block))
        d->card->upload(d, x + at, block, (count - at < MR_COUNT(block) ? count - at : MR_COUNT(block)) * sizeof *x);
}

/* ---- gemm ----------------------------------------------------------------------------------------------------- */

typedef struct product {
    const char *name;
    size_t m, n, k;
    bool transpose_a, transpose_b, accumulate, bias;
} product;

static double time_gemm(const bench *b, const product *p)
{
    mr_gemm g = {.m = p->m,
                 .n = p->n,
                 .k = p->k,
                 .transpose_a = p->transpose_a,
                 .transpose_b = p->transpose_b,
                 .accumulate = p->accumulate,
                 .a = b->x,
                 .b = p->transpose_a ? b->y : b->w,
                 .c = p->transpose_a ? b->g : b->z,
                 .bias = p->bias ? b->gain : NULL};
    double start = now();
    b->d->card->gemm(b->d, &g);
    b->d->card->wait(b->d, NULL);
    return now() - start;
}

static double time_limit(const bench *b, const product *p)
{
    double start = now();
    b->sgemm(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans, p->transpose_b ? CblasTrans : CblasNoTrans,
             (blasint)p->m, (blasint)p->n, (blasint)p->k, 1, b->x, (blasint)(p->transpose_a ? p->m : p->k),
             p->transpose_a ? b->y : b->w, (blasint)(p->transpose_b ? p->k : p->n), p->accumulate ? 1 : 0,
             p->transpose_a ? b->g : b->z, (blasint)p->n);
    return (now() - start) / b->threads;
}

static void bench_gemms(bench *b)
{
    const product products[] = {
        {"patches", b->rows, HIDDEN, HIDDEN, false, false, false, true},
        {"q, k, v, out", b->rows, HIDDEN, HIDDEN, false, false, false, true},
        {"mlp up", b->rows, MLP, HIDDEN, false, false, false, true},
        {"mlp down", b->rows, HIDDEN, MLP, false, false, false, true},
        {"q back to x", b->rows, HIDDEN, HIDDEN, false, true, true, false},
        {"mlp up back to x", b->rows, HIDDEN, MLP, false, true, false, false},
        {"mlp down back to x", b->rows, MLP, HIDDEN, false, true, false, false},
        {"q to weights", HIDDEN, HIDDEN, b->rows, true, false, true, false},
        {"mlp to weights", HIDDEN, MLP, b->rows, true, false, true, false},
    };
    double best[MR_COUNT(products)], limit[MR_COUNT(products)], all = 0, all_limit = 0;
    for (size_t i = 0; i < MR_COUNT(products); i++)
        best[i] = limit[i] = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < MR_COUNT(products); i++) {
            double t = time_gemm(b, &products[i]), l = time_limit(b, &products[i]);
            best[i] = t < best[i] ? t : best[i];
            limit[i] = l < limit[i] ? l : limit[i];
        }
    }
    for (size_t i = 0; i < MR_COUNT(products); i++) {
        const product *p = &products[i];
        double work = 2e-9 * (double)p->m * (double)p->n * (double)p->k;
        printf("%-24s %9.3f ms %9.1f GFLOP/s  of one thread's, whole, x threads %5.2f\n", p->name, best[i] * 1e3,
               work / best[i], limit[i] / best[i]);
        all += best[i];
        all_limit += limit[i];
        b->rate = work / limit[i] > b->rate ? work / limit[i] : b->rate;
    }
    printf("%-24s %9.3f ms %55.2f\n", "all products", all * 1e3, all_limit / all);
}

/* ---- the rest ------------------------------------------------------------------------------------------------- */

typedef void run_fn(bench *b);

static void copy(bench *b)
{
    mr_rows r = {.rows = b->rows, .width = MLP, .from = b->x, .to = b->y};
    b->d->card->rows(b->d, &r);
}

static mr_activate activate_of(bench *b, float rate)
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

static void gelu(bench *b)
{
    mr_activate a = activate_of(b, 0);
    b->d->card->activate(b->d, &a);
}

static void gelu_dropout(bench *b)
{
    mr_activate a = activate_of(b, 0.1F);
    b->d->card->activate(b->d, &a);
}

static void gelu_back(bench *b)
{
    mr_activate a = activate_of(b, 0);
    b->d->card->activate_back(b->d, &a);
}

static void gelu_dropout_back(bench *b)
{
    mr_activate a = activate_of(b, 0.1F);
    b->d->card->activate_back(b->d, &a);
}

static void run_norm(bench *b, float rate)
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
    b->d->card->norm(b->d, &n);
}

static void norm(bench *b)
{
    run_norm(b, 0);
}

static void norm_dropout(bench *b)
{
    run_norm(b, 0.1F);
}

static void norm_back(bench *b)
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
    b->d->card->norm_back(b->d, &n);
}

static void sum_rows(bench *b)
{
    b->d->card->sum_rows(b->d, MR_F32, b->rows, MLP, b->x, b->g);
}

static void drop(bench *b)
{
    mr_dropout d = {.rate = 0.1F, .site = 1, .keys = b->keys};
    b->d->card->drop(b->d, MR_F32, b->rows, HIDDEN, b->tokens, &d, b->x, b->y);
}

static void add(bench *b)
{
    b->d->card->add(b->d, MR_F32, b->rows * HIDDEN, b->x, b->y, b->y);
}

static mr_attention attention_of(const bench *b)
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

static void attention(bench *b)
{
    mr_attention a = attention_of(b);
    b->d->card->attention(b->d, &a);
}

static void attention_back(bench *b)
{
    mr_attention a = attention_of(b);
    mr_attention_back back = {
        .forward = &a, .d_out = b->y, .d_q = b->z, .d_k = b->z + HIDDEN, .d_v = b->z + 2 * HIDDEN};
    b->d->card->attention_back(b->d, &back);
}

static void patches(bench *b)
{
    mr_patches p = {.batch = BATCH, .side = b->image, .patch = PATCH, .images = b->x, .rows = b->y};
    b->d->card->patches(b->d, &p);
}

static void run_tokens(bench *b, float rate, bool back)
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
    (back ? b->d->card->tokens_back : b->d->card->tokens)(b->d, &t);
}

static void tokens(bench *b)
{
    run_tokens(b, 0.1F, false);
}

static void tokens_back(bench *b)
{
    run_tokens(b, 0.1F, true);
}

static void squares(bench *b)
{
    b->v[0] += (float)b->d->card->sum_squares(b->d, PARAMETERS, b->g) * 0;
}

static mr_update update_of(bench *b)
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

static void sgd(bench *b)
{
    mr_update u = update_of(b);
    b->d->card->sgd(b->d, &u);
}

static void adamw(bench *b)
{
    mr_update u = update_of(b);
    b->d->card->adamw(b->d, &u);
}

static double best_of(bench *b, run_fn *fn, double worst)
{
    double start = now();
    fn(b);
    b->d->card->wait(b->d, NULL);
    double t = now() - start;
    return t < worst ? t : worst;
}

static void bench_rest(bench *b)
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

int main(int argc, char **argv)
{
    mr_error err;
    bench b = {.threads = argc > 1 ? (unsigned)atoi(argv[1]) : mr_pool_processors(),
               .image = argc > 2 ? (size_t)atoi(argv[2]) : 224};
    mr_device_options options = {.threads = b.threads};
    if (b.threads == 0 || b.image < PATCH || b.image > 1024) {
        fprintf(stderr, "usage: device_bench [THREADS [IMAGE]]\n");
        return 2;
    }
    if (mr_device_open("cpu", &options, &b.d, &err) != MR_OK) {
        fprintf(stderr, "device_bench: %s\n", err.text);
        return 3;
    }
    void *symbol = dlsym(dlopen("libopenblas.so.0", RTLD_NOW), "cblas_sgemm"); /* the device has loaded it */
    memcpy(&b.sgemm, &symbol, sizeof symbol);
    b.tokens = 1 + (b.image / PATCH) * (b.image / PATCH);
    b.rows = BATCH * b.tokens;
    float **wide[] = {&b.x, &b.y, &b.z}, **parameters[] = {&b.w, &b.g, &b.m, &b.v};
    for (size_t i = 0; i < MR_COUNT(wide); i++)
        fill(b.d, *wide[i] = take(b.d, b.rows * MLP * sizeof(float)), b.rows * MLP);
    for (size_t i = 0; i < MR_COUNT(parameters); i++)
        fill(b.d, *parameters[i] = take(b.d, (size_t)PARAMETERS * sizeof(float)), PARAMETERS);
    for (size_t i = 0; i < PARAMETERS; i++)
        b.v[i] *= b.v[i];
    fill(b.d, b.gain = take(b.d, MLP * sizeof(float)), MLP);
    fill(b.d, b.mean = take(b.d, b.rows * sizeof(float)), b.rows);
    fill(b.d, b.rstd = take(b.d, b.rows * sizeof(float)), b.rows);
    b.keys = take(b.d, BATCH * sizeof *b.keys);
    mr_attention a = attention_of(&b);
    size_t saved;
    if (b.d->card->plan_attention(b.d, &a, &saved, &err) != MR_OK)
        return 3;
    b.saved = take(b.d, saved);
    printf("%s; ViT-B/16, batch %d, %zu pixels\n", b.d->card->describe(b.d), BATCH, b.image);
    bench_gemms(&b);
    bench_rest(&b);
    mr_device_close(b.d);
    return 0;
}
