/* device_bench.c - each operation of a device at the shapes of ViT-B/16, batch 8, against what the machine can do.
 * Invariant: an operation and its limit are timed alternately in the same run, and each keeps its best time, so that
 * what else runs on the machine hurts both alike.
 *
 *      device_bench [THREADS [IMAGE]]        image: 224 or 160 pixels a side
 *
 * Limits: one cblas_sgemm of the whole shape on one thread times the threads, and the rate of a copy by all threads.
 */
#include "bench/device_bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/library.h"
#include "base/pool.h"

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

typedef struct product {
    const char *name;
    size_t m, n, k;
    bool transpose_a, transpose_b, accumulate, bias;
} product;

static double time_gemm(const device_bench *b, const product *p)
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
    double start = bench_now();
    mr_run_gemm(b->d, &g);
    b->d->card->wait(b->d, NULL);
    return bench_now() - start;
}

static double time_limit(const device_bench *b, const product *p)
{
    double start = bench_now();
    b->sgemm(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans, p->transpose_b ? CblasTrans : CblasNoTrans,
             (blasint)p->m, (blasint)p->n, (blasint)p->k, 1, b->x, (blasint)(p->transpose_a ? p->m : p->k),
             p->transpose_a ? b->y : b->w, (blasint)(p->transpose_b ? p->k : p->n), p->accumulate ? 1 : 0,
             p->transpose_a ? b->g : b->z, (blasint)p->n);
    return (bench_now() - start) / b->threads;
}

static void bench_gemms(device_bench *b)
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

int main(int argc, char **argv)
{
    mr_error err;
    device_bench b = {.threads = argc > 1 ? (unsigned)atoi(argv[1]) : mr_pool_processors(),
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
    mr_library_find(mr_library_load("libopenblas.so.0", NULL), "cblas_sgemm", &b.sgemm); /* the device has loaded it */
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
    mr_attention a = bench_attention(&b);
    size_t saved;
    if (b.d->card->plan_attention(b.d, &a, &saved, &err) != MR_OK)
        return 3;
    b.saved = take(b.d, saved);
    printf("%s; ViT-B/16, batch %d, %zu pixels\n", b.d->card->describe(b.d), BATCH, b.image);
    bench_gemms(&b);
    bench_operations(&b);
    mr_device_close(b.d);
    return 0;
}
