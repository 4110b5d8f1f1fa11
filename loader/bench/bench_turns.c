/* bench_turns.c - the medians of several turns' figures. */
#include "loader/bench/bench_turns.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef double (*figure)(const mr_bench_turn *t);

static double product_cpu(const mr_bench_turn *t)
{
    return t->product.cpu / (double)t->images * 1e3;
}
static double product_rate(const mr_bench_turn *t)
{
    return (double)t->images / t->product.wall;
}
static double limit_cpu(const mr_bench_turn *t)
{
    return t->limit.cpu / (double)t->images * 1e3;
}
static double limit_rate(const mr_bench_turn *t)
{
    return (double)t->images / t->limit.wall;
}
static double copy_cpu(const mr_bench_turn *t)
{
    return t->copy.cpu / (double)t->images * 1e3;
}
static double copy_rate(const mr_bench_turn *t)
{
    return t->copy.wall > 0 ? (double)t->images / t->copy.wall : 0;
}
static double cpu_ratio(const mr_bench_turn *t)
{
    return product_cpu(t) / limit_cpu(t);
}
static double rate_ratio(const mr_bench_turn *t)
{
    return product_rate(t) / limit_rate(t);
}
static double read_ms(const mr_bench_turn *t)
{
    return t->steps.read / (double)t->images * 1e3;
}
static double hash_ms(const mr_bench_turn *t)
{
    return t->steps.hash / (double)t->images * 1e3;
}
static double decode_ms(const mr_bench_turn *t)
{
    return t->steps.decode / (double)t->images * 1e3;
}
static double resize_ms(const mr_bench_turn *t)
{
    return t->steps.resize / (double)t->images * 1e3;
}

static double resized_ratio(const mr_bench_turn *t)
{
    return t->steps.resize > 0 ? t->product.cpu / (t->limit.cpu + t->steps.resize) : 0;
}

typedef struct sorted {
    const mr_bench_turn *turns;
    size_t count;
    double *values;
} sorted;

/* The value below which `share` of the turns are, between two of them in proportion. */
static double quantile(const sorted *s, figure f, double share)
{
    double at = share * (double)(s->count - 1);
    size_t below = (size_t)at, above = below + 1 < s->count ? below + 1 : below;
    for (size_t i = 0; i < s->count; i++)
        s->values[i] = f(&s->turns[i]);
    qsort(s->values, s->count, sizeof *s->values, by_value);
    return s->values[below] + (at - (double)below) * (s->values[above] - s->values[below]);
}

static double median(const sorted *s, figure f)
{
    return quantile(s, f, 0.5);
}

mr_status mr_bench_turns_sum(const mr_bench_turn *turns, size_t count, mr_bench_result *out, mr_error *err)
{
    const sorted s = {turns, count, mr_alloc(count, sizeof *s.values)};
    if (!s.values)
        return mr_fail_memory(err, "measuring");
    out->product = (mr_bench_rate){median(&s, product_cpu), median(&s, product_rate)};
    out->cpu_low_ms = quantile(&s, product_cpu, 0.25);
    out->cpu_high_ms = quantile(&s, product_cpu, 0.75);
    out->limit = (mr_bench_rate){median(&s, limit_cpu), median(&s, limit_rate)};
    out->copy = (mr_bench_rate){median(&s, copy_cpu), median(&s, copy_rate)};
    out->cpu_ratio = median(&s, cpu_ratio);
    out->rate_ratio = median(&s, rate_ratio);
    out->resized_ratio = median(&s, resized_ratio);
    out->read_ms = median(&s, read_ms);
    out->hash_ms = median(&s, hash_ms);
    out->decode_ms = median(&s, decode_ms);
    out->resize_ms = median(&s, resize_ms);
    out->turns = count;
    for (size_t i = 0; i < count; i++)
        out->images += turns[i].images;
    free(s.values);
    return MR_OK;
}
