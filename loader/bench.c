/* bench.c - how fast the loader is, beside what this machine can do with the same records.
 *
 *   a turn    warm: plain pread of its records | product | limit | [copy]      odd turns: limit before product
 *
 * A loader with threads has `prefetch` batches ready when a turn begins and again when it ends: it has then loaded as
 * many as were taken, `prefetch` batches further on in the order; those are the records of the turn. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "bench_limits.h"
#include "bench_stages.h"
#include "loader.h"
#include "term.h"

enum { BATCH = 64, PREFETCH = 2, MIN_TURNS = 3 };

static const double turn_seconds = 0.5;

typedef struct turn {
    mr_bench_times product, limit, copy, steps;
    uint64_t images;
} turn;

typedef struct bench {
    const mr_bench_options *o;
    mr_work work;                   /* for the limits: rows, views, steps */
    mr_passes *passes;
    mr_loader *loader;
    uint64_t taken;                 /* batches, since the first epoch began */
    mr_bench_record *records;
    size_t batches, room;           /* of a turn; records there is room for */
    size_t record_count;
    turn *turns;
    size_t turn_count, turn_room;
} bench;

static mr_status open_all(bench *b, const mr_dataset *ds, mr_loader_options o, mr_bench_result *out, mr_error *err)
{
    const mr_batch *batch;
    mr_status status = mr_work_open(&b->work, ds, &o, err);
    if (status == MR_OK)
        status = mr_passes_new(&b->work, o.threads ? o.threads : 1, &b->passes, err);
    double start = mr_seconds();
    if (status == MR_OK)
        status = mr_loader_open(ds, &o, &b->loader, err);
    if (status == MR_OK)
        status = mr_loader_next(b->loader, &batch, err);
    if (status != MR_OK)
        return status;
    out->first_batch_ms = (mr_seconds() - start) * 1e3;
    mr_batch_release(b->loader, batch);
    b->taken = 1;
    b->batches = 1;
    return MR_OK;
}

static mr_status begin(bench *b, const mr_dataset *ds, mr_bench_result *out, mr_error *err)
{
    mr_loader_options o = b->o->loader;
    unsigned world = o.world ? o.world : 1;
    uint64_t samples = mr_dataset_samples(ds, o.split), each = samples / world < BATCH ? samples / world : BATCH;
    if (samples && each == 0)
        return mr_fail(err, MR_MISUSE, "split \"%s\": %llu samples for %u ranks; use fewer ranks", o.split,
                       (unsigned long long)samples, world);
    if (mr_manifest_split(mr_dataset_manifest(ds), o.split) && samples == 0)
        return mr_fail(err, MR_MISUSE, "split \"%s\": has no samples to measure with", o.split);
    o.global_batch = (each ? each : 1) * world;
    o.prefetch = PREFETCH;
    o.deliver = b->o->stage == MR_BENCH_READ ? MR_DELIVER_ENCODED : MR_DELIVER_F32_NCHW;
    o.epochs = UINT64_MAX;
    out->batch = (unsigned)each;
    return open_all(b, ds, o, out, err);
}

/* The records that the product will load in this turn. */
static mr_status list_records(bench *b, mr_error *err)
{
    const mr_schedule *s = &b->work.schedule;
    uint64_t each = mr_schedule_count(s, 0, b->work.o.rank), first = b->taken + (b->work.o.threads ? PREFETCH : 0);
    size_t n = 0;
    if (b->room < b->batches * each) {
        mr_bench_record *more = mr_realloc(b->records, b->batches * each, sizeof *more);
        if (!more)
            return mr_fail_memory(err, "measuring");
        b->records = more;
        b->room = b->batches * each;
    }
    for (uint64_t k = first; k < first + b->batches; k++)
        for (uint64_t i = 0; i < each; i++, n++) {
            mr_bench_record *r = &b->records[n];
            r->epoch = k / s->steps;
            r->sample = mr_schedule_slot(s, r->epoch, k % s->steps, b->work.o.rank, i).sample;
            mr_status status = mr_work_row(&b->work, r->sample, &r->row, err);
            if (status != MR_OK)
                return status;
        }
    b->record_count = n;
    return MR_OK;
}

static mr_status run_loader(bench *b, mr_bench_times *times, mr_error *err)
{
    double wall = mr_seconds(), cpu = mr_bench_cpu();
    for (size_t i = 0; i < b->batches; i++) {
        const mr_batch *batch;
        mr_status status = mr_loader_next(b->loader, &batch, err);
        if (status != MR_OK)
            return status;
        mr_batch_release(b->loader, batch);
    }
    mr_loader_settle(b->loader);
    *times = (mr_bench_times){.wall = mr_seconds() - wall, .cpu = mr_bench_cpu() - cpu};
    return MR_OK;
}

static mr_status run_product(bench *b, size_t count, mr_bench_times *times, mr_error *err)
{
    if (b->o->stage == MR_BENCH_DECODE)
        return mr_passes_run(b->passes, MR_PASS_STEPS, MR_BENCH_DECODE, b->records, count, times, err);
    return run_loader(b, times, err);
}

static mr_status run_limit(bench *b, size_t count, mr_bench_times *times, mr_error *err)
{
    mr_bench_pass pass = b->o->stage == MR_BENCH_READ ? MR_PASS_PREAD : MR_PASS_DECODE;
    return mr_passes_run(b->passes, pass, 0, b->records, count, times, err);
}

static mr_status run_turn(bench *b, turn *t, mr_error *err)
{
    mr_bench_times warm;
    mr_loader_settle(b->loader);
    mr_status status = list_records(b, err);
    size_t count = t->images = b->batches * mr_schedule_count(&b->work.schedule, 0, b->work.o.rank);
    if (status == MR_OK)
        status = mr_passes_run(b->passes, MR_PASS_PREAD, 0, b->records, count, &warm, err);
    bool odd = b->turn_count & 1;
    if (status == MR_OK && odd)
        status = run_limit(b, count, &t->limit, err);
    if (status == MR_OK)
        status = run_product(b, count, &t->product, err);
    if (status == MR_OK && !odd)
        status = run_limit(b, count, &t->limit, err);
    if (status == MR_OK && b->o->stage == MR_BENCH_READ) {
        /* The first copy fills the memory that is copied. */
        status = mr_passes_run(b->passes, MR_PASS_COPY, 0, b->records, count, &warm, err);
        if (status == MR_OK)
            status = mr_passes_run(b->passes, MR_PASS_COPY, 0, b->records, count, &t->copy, err);
    }
    if (status == MR_OK)
        status = mr_passes_run(b->passes, MR_PASS_STEPS, b->o->stage, b->records, count, &t->steps, err);
    b->taken += b->batches;
    return status;
}

/* ---- summing up ------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef double (*figure)(const turn *t);

static double product_cpu(const turn *t) { return t->product.cpu / (double)t->images * 1e3; }
static double product_rate(const turn *t) { return (double)t->images / t->product.wall; }
static double limit_cpu(const turn *t) { return t->limit.cpu / (double)t->images * 1e3; }
static double limit_rate(const turn *t) { return (double)t->images / t->limit.wall; }
static double copy_cpu(const turn *t) { return t->copy.cpu / (double)t->images * 1e3; }
static double copy_rate(const turn *t) { return t->copy.wall > 0 ? (double)t->images / t->copy.wall : 0; }
static double cpu_ratio(const turn *t) { return product_cpu(t) / limit_cpu(t); }
static double rate_ratio(const turn *t) { return product_rate(t) / limit_rate(t); }
static double read_ms(const turn *t) { return t->steps.read / (double)t->images * 1e3; }
static double hash_ms(const turn *t) { return t->steps.hash / (double)t->images * 1e3; }
static double decode_ms(const turn *t) { return t->steps.decode / (double)t->images * 1e3; }
static double resize_ms(const turn *t) { return t->steps.resize / (double)t->images * 1e3; }

static double resized_ratio(const turn *t)
{
    return t->steps.resize > 0 ? t->product.cpu / (t->limit.cpu + t->steps.resize) : 0;
}

static double median(const bench *b, double *values, figure f)
{
    for (size_t i = 0; i < b->turn_count; i++)
        values[i] = f(&b->turns[i]);
    qsort(values, b->turn_count, sizeof *values, by_value);
    size_t middle = b->turn_count / 2;
    return b->turn_count % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

static mr_status sum_up(const bench *b, mr_bench_result *out, mr_error *err)
{
    double *values = mr_alloc(b->turn_count, sizeof *values);
    if (!values)
        return mr_fail_memory(err, "measuring");
    out->product = (mr_bench_rate){median(b, values, product_cpu), median(b, values, product_rate)};
    out->limit = (mr_bench_rate){median(b, values, limit_cpu), median(b, values, limit_rate)};
    out->copy = (mr_bench_rate){median(b, values, copy_cpu), median(b, values, copy_rate)};
    out->cpu_ratio = median(b, values, cpu_ratio);
    out->rate_ratio = median(b, values, rate_ratio);
    out->resized_ratio = median(b, values, resized_ratio);
    out->read_ms = median(b, values, read_ms);
    out->hash_ms = median(b, values, hash_ms);
    out->decode_ms = median(b, values, decode_ms);
    out->resize_ms = median(b, values, resize_ms);
    mr_pixels_counts counts = mr_passes_counts(b->passes);
    out->own_jpegs = counts.own;
    out->seek_jpegs = counts.seek;
    mr_shard_files_counts found = mr_shard_files_count(b->work.files);
    out->seek_refused = found.refused + found.foreign;
    out->jpegs = counts.own + counts.libjpeg;
    out->turns = b->turn_count;
    out->mean_bytes = mr_split_mean_bytes(b->work.split);
    for (size_t i = 0; i < b->turn_count; i++)
        out->images += b->turns[i].images;
    free(values);
    return MR_OK;
}

/* The first turn is thrown away: it warms everything and says how many batches make a turn. */
static mr_status run_turns(bench *b, mr_error *err)
{
    turn t = {.images = 0};
    mr_status status = run_turn(b, &t, err);
    double took = t.product.wall > t.limit.wall ? t.product.wall : t.limit.wall, until = mr_seconds() + b->o->seconds;
    if (took > 0 && took < turn_seconds)
        b->batches = (size_t)(turn_seconds / took < 1000 ? turn_seconds / took : 1000);
    while (status == MR_OK && (b->turn_count < MIN_TURNS || mr_seconds() < until)) {
        t = (turn){.images = 0};
        status = run_turn(b, &t, err);
        if (status == MR_OK && !MR_GROW(b->turns, b->turn_count, b->turn_room))
            status = mr_fail_memory(err, "measuring");
        if (status == MR_OK)
            b->turns[b->turn_count++] = t;
    }
    return status;
}

mr_status mr_bench_run(const mr_dataset *ds, const mr_bench_options *o, mr_bench_result *out, mr_error *err)
{
    bench b = {.o = o};
    mr_bench_result result = {.turns = 0};
    mr_status status = begin(&b, ds, &result, err);
    if (status == MR_OK)
        status = run_turns(&b, err);
    if (status == MR_OK)
        status = sum_up(&b, &result, err);
    if (status == MR_OK && o->stage != MR_BENCH_READ && !o->loader.transform.libjpeg)
        status = mr_bench_stages_measure(&b.work, b.records, b.record_count, &result.stages, err);
    if (status == MR_OK)
        *out = result;
    mr_loader_free(b.loader);
    mr_passes_free(b.passes);
    mr_work_close(&b.work);
    free(b.records);
    free(b.turns);
    return status;
}
