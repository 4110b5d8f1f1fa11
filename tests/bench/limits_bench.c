/* limits_bench.c - what a device is, what it can do at most, and whether a large product of it is right.
 * Invariant: the product is compared with sums in double precision of the very operands, at places all over it.
 *
 *      limits_bench [--device cpu] [--precision float32|bf16] [--side 4096]
 *
 * Prints one JSON object: {"device": ..., "products": how they are computed, "declined": ... or null, "error": the
 * largest difference over the sum of the magnitudes that were added, "flops": a second, "side": of that product,
 * "bytes": a second}. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bf16.h"
#include "base/random.h"
#include "device/profile/limits.h"

enum { CHECKED = 500 };

typedef struct product {
    size_t side;
    float *a, *b; /* the operands, rounded to the type */
} product;

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "limits_bench: %s\n", why);
    exit(3);
}

static void *on_device(mr_device *d, size_t bytes)
{
    void *memory;
    mr_error err;
    if (d->iface->alloc(d, bytes, "measuring", &memory, &err))
        stop(err.text);
    return memory;
}

/* Random numbers from -1 to 1 in `type`, uploaded; *rounded: what they are. */
static void *draw(mr_device *d, mr_type type, size_t count, uint64_t seed, float **rounded)
{
    mr_random r;
    mr_random_seed(&r, seed);
    uint16_t *halves = malloc(count * sizeof *halves);
    *rounded = malloc(count * sizeof **rounded);
    if (!halves || !*rounded)
        stop("out of memory");
    for (size_t i = 0; i < count; i++) {
        (*rounded)[i] = (float)mr_random_real(&r, -1, 1);
        halves[i] = mr_bf16_of((*rounded)[i]);
        if (type == MR_BF16)
            (*rounded)[i] = mr_bf16_float(halves[i]);
    }
    void *memory = on_device(d, count * mr_type_size(type));
    d->iface->upload(d, memory, type == MR_BF16 ? (const void *)halves : *rounded, count * mr_type_size(type));
    free(halves);
    return memory;
}

/* The error of element (i, j) of the product, relative to the magnitudes of its terms. */
static double error_at(const product *p, size_t i, size_t j, float found)
{
    double sum = 0, magnitude = 0;
    for (size_t k = 0; k < p->side; k++) {
        double term = (double)p->a[i * p->side + k] * (double)p->b[k * p->side + j];
        sum += term;
        magnitude += fabs(term);
    }
    double error = fabs((double)found - sum) / magnitude;
    return isnan(error) ? INFINITY : error;
}

static double worst_error(mr_device *d, mr_type type, size_t side)
{
    product p = {.side = side};
    mr_random r;
    mr_error err;
    double worst = 0;
    void *a = draw(d, type, side * side, 1, &p.a), *b = draw(d, type, side * side, 2, &p.b);
    float *c = on_device(d, side * side * sizeof *c), *found = malloc(side * side * sizeof *found);
    if (!found)
        stop("out of memory");
    mr_run_gemm(d, &(mr_gemm){.a_type = type, .b_type = type, .m = side, .n = side, .k = side, .a = a, .b = b, .c = c});
    d->iface->download(d, found, c, side * side * sizeof *found);
    if (d->iface->wait(d, &err))
        stop(err.text);
    mr_random_seed(&r, 3);
    for (int n = 0; n < CHECKED; n++) {
        size_t i = mr_random_below(&r, side), j = mr_random_below(&r, side);
        worst = fmax(worst, error_at(&p, i, j, found[i * side + j]));
    }
    d->iface->free(d, a);
    d->iface->free(d, b);
    d->iface->free(d, c);
    free(p.a);
    free(p.b);
    free(found);
    return worst;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"device", required_argument, NULL, 'd'},
                                            {"precision", required_argument, NULL, 'p'},
                                            {"side", required_argument, NULL, 's'},
                                            {0}};
    const char *on = "cpu", *precision = "float32";
    size_t side = 4096;
    mr_device *d = NULL;
    mr_error err;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'd')
            on = optarg;
        else if (o == 'p')
            precision = optarg;
        else if (o == 's')
            side = strtoul(optarg, NULL, 10);
        else
            stop("its head says how it is used");
    }
    if (side < 1)
        stop("--side: at least 1");
    mr_type type = mr_type_of(precision);
    if (mr_device_open(on, &(mr_device_options){0}, &d, &err))
        stop(err.text);
    double error = worst_error(d, type, side);
    mr_limit flops = mr_limit_flops(d, type), bytes = mr_limit_bytes(d);
    const char *declined = d->iface->declined ? d->iface->declined(d) : NULL;
    printf("{\"device\": \"%s\", \"products\": \"%s\", \"declined\": %s%s%s, \"error\": %.3g, \"flops\": %.4g, "
           "\"side\": %zu, \"bytes\": %.4g}\n",
           d->iface->describe(d), d->iface->products(d, type), declined ? "\"" : "", declined ? declined : "null",
           declined ? "\"" : "", error, flops.rate, flops.size, bytes.rate);
    mr_device_close(d);
    return 0;
}
