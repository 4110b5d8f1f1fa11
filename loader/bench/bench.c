/* bench.c - how fast the loader is, compared with what this machine can do with the same records.
 *
 *   a turn    warm: plain pread of its records | product | limit | [copy] | steps     odd turns: limit before product
 *
 * A loader with threads has `prefetch` batches ready when a turn begins and again when it ends.  Meanwhile it has
 * loaded as many as were taken, `prefetch` batches further on in the order: those are the records of the turn. */
#include "loader/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "loader/batch/loader.h"
#include "loader/bench/bench_limits.h"
#include "loader/bench/bench_stages.h"
#include "loader/bench/bench_turns.h"

enum { BATCH = 64 };

static const uint64_t max_batch_bytes = 128 << 20; /* as delivered: memory has to be filled first */

typedef struct bench {
    const mr_bench_options *o;
    mr_work work; /* for the limits: rows, views, steps */
    mr_bench_passes *passes;
    mr_loader *loader;
    mr_bench_device device;
    uint64_t taken; /* batches since the first epoch began */
    size_t batches; /* per turn */
    mr_bench_record *records;
    size_t record_count, capacity;
    mr_bench_turn *turns;
    size_t turn_count, turn_capacity;
} bench;

static void close_work(bench *b)
{
    mr_bench_passes_free(b->passes);
    b->passes = NULL;
    mr_work_close(&b->work);
}

static mr_status open_work(bench *b, const mr_dataset *ds, const mr_loader_options *o, mr_error *err)
{
    MR_TRY(mr_work_open(&b->work, ds, o, err));
    return mr_bench_passes_new(&b->work, o->threads ? o->threads : 1, &b->passes, err);
}

static mr_status list_batches(bench *b, uint64_t first, uint64_t batches, mr_error *err);
static mr_status run_limit(bench *b, size_t count, mr_bench_times *times, mr_error *err);

/* Measures how long an image takes: one per thread, from the last batch, which the loader does not load first.  The
 * first round allocates memory, so there is a second one if time allows. */
static mr_status probe(bench *b, mr_bench_probe *out, mr_error *err)
{
    unsigned threads = b->work.o.threads ? b->work.o.threads : 1;
    mr_bench_times steps = {0}, limit = {0};
    *out = (mr_bench_probe){.images = 0};
    MR_TRY(list_batches(b, b->work.schedule.steps - 1, 1, err));
    size_t count = out->images = b->record_count < threads ? b->record_count : threads;
    MR_TRY(mr_bench_passes_run(b->passes, MR_PASS_PREAD, 0, b->records, count, &limit, err));
    for (int i = 0; i < 2 && (i == 0 || mr_bench_again(&b->o->budget, mr_seconds(), out)); i++) {
        MR_TRY(mr_bench_passes_run(b->passes, MR_PASS_STEPS, b->o->stage, b->records, count, &steps, err));
        MR_TRY(run_limit(b, count, &limit, err));
        *out = (mr_bench_probe){count, steps.wall, limit.wall};
    }
    return MR_OK;
}

static mr_status open_all(bench *b, const mr_dataset *ds, mr_loader_options o, mr_bench_result *out, mr_error *err)
{
    const mr_batch *batch;
    mr_bench_probe slow;
    unsigned world = o.world ? o.world : 1;
    MR_TRY(open_work(b, ds, &o, err));
    mr_status status = probe(b, &slow, err);
    if (!mr_status_is_bad(status)) /* the loader reports a damaged sample better */
        MR_TRY(status);
    uint64_t each = o.global_batch / world, fit = mr_bench_batch(&b->o->budget, mr_seconds(), each, &slow);
    if (fit < each) { /* another batch is another schedule */
        close_work(b);
        o.global_batch = fit * world;
        MR_TRY(open_work(b, ds, &o, err));
    }
    out->batch = (unsigned)fit;
    double start = mr_seconds();
    MR_TRY(mr_loader_open(ds, &o, &b->loader, err));
    MR_TRY(mr_loader_next(b->loader, &batch, err));
    out->first_batch_ms = (mr_seconds() - start) * 1e3;
    mr_bench_device_count(&b->device, batch);
    mr_batch_release(b->loader, batch);
    b->taken = 1;
    b->batches = 1;
    return MR_OK;
}

static uint64_t max_images(const bench *b, const mr_dataset *ds)
{
    uint64_t side = b->o->loader.transform.size, one = side * side * 3 * sizeof(float);
    const mr_split *split = mr_manifest_split(mr_dataset_manifest(ds), b->o->loader.split);
    if (b->o->stage == MR_BENCH_READ)
        one = split ? mr_split_mean_bytes(split) : 0;
    uint64_t fit = max_batch_bytes / (one ? one : 1);
    return fit > BATCH ? BATCH : fit ? fit : 1;
}

static mr_status begin(bench *b, const mr_dataset *ds, mr_bench_result *out, mr_error *err)
{
    mr_loader_options o = b->o->loader;
    unsigned world = o.world ? o.world : 1;
    uint64_t samples = mr_dataset_samples(ds, o.split), max = max_images(b, ds);
    uint64_t each = samples / world < max ? samples / world : max;
    if (samples && each == 0)
        return mr_fail(err, MR_MISUSE, "split \"%s\": %llu samples for %u ranks; use fewer ranks", o.split,
                       (unsigned long long)samples, world);
    if (mr_manifest_split(mr_dataset_manifest(ds), o.split) && samples == 0)
        return mr_fail(err, MR_MISUSE, "split \"%s\": has no samples to measure with", o.split);
    o.global_batch = (each ? each : 1) * world;
    o.prefetch = MR_BENCH_PREFETCH;
    bool device = b->o->device && b->o->stage != MR_BENCH_READ;
    o.deliver = b->o->stage == MR_BENCH_READ ? MR_DELIVER_ENCODED : device ? MR_DELIVER_CODED : MR_DELIVER_F32_NCHW;
    o.epochs = UINT64_MAX;
    MR_TRY(mr_bench_device_open(&b->device, device ? b->o->device : NULL, err));
    return open_all(b, ds, o, out, err);
}

static mr_status list_batches(bench *b, uint64_t first, uint64_t batches, mr_error *err)
{
    const mr_schedule *s = &b->work.schedule;
    uint64_t each = mr_schedule_count(s, 0, b->work.o.rank);
    size_t n = 0;
    if (b->capacity < batches * each) {
        mr_bench_record *more = mr_realloc(b->records, batches * each, sizeof *more);
        if (!more)
            return mr_fail_memory(err, "measuring");
        b->records = more;
        b->capacity = batches * each;
    }
    for (uint64_t k = first; k < first + batches; k++)
        for (uint64_t i = 0; i < each; i++, n++) {
            mr_bench_record *r = &b->records[n];
            r->epoch = k / s->steps;
            r->sample = mr_schedule_slot(s, r->epoch, k % s->steps, b->work.o.rank, i).sample;
            MR_TRY(mr_work_row(&b->work, r->sample, &r->row, err));
        }
    b->record_count = n;
    return MR_OK;
}

/* The records that the loader will load in this turn. */
static mr_status list_records(bench *b, mr_error *err)
{
    return list_batches(b, b->taken + (b->work.o.threads ? MR_BENCH_PREFETCH : 0), b->batches, err);
}

static mr_status run_loader(bench *b, mr_bench_times *times, mr_error *err)
{
    double wall = mr_seconds(), cpu = mr_bench_cpu();
    *times = (mr_bench_times){.cut = false};
    for (size_t i = 0; i < b->batches; i++) {
        times->cut = i && mr_seconds() >= mr_bench_end(&b->o->budget);
        if (times->cut)
            return MR_OK;
        const mr_batch *batch;
        MR_TRY(mr_loader_next(b->loader, &batch, err));
        MR_TRY(mr_bench_device_run(&b->device, b->loader, batch, b->work.o.transform.size, err));
        mr_batch_release(b->loader, batch);
    }
    mr_loader_settle(b->loader);
    *times = (mr_bench_times){.wall = mr_seconds() - wall, .cpu = mr_bench_cpu() - cpu};
    return MR_OK;
}

static mr_status run_product(bench *b, size_t count, mr_bench_times *times, mr_error *err)
{
    if (b->o->stage == MR_BENCH_DECODE && !b->device.device)
        return mr_bench_passes_run(b->passes, MR_PASS_STEPS, MR_BENCH_DECODE, b->records, count, times, err);
    return run_loader(b, times, err);
}

static mr_status run_limit(bench *b, size_t count, mr_bench_times *times, mr_error *err)
{
    mr_bench_pass pass = b->o->stage == MR_BENCH_READ ? MR_PASS_PREAD : MR_PASS_DECODE;
    return mr_bench_passes_run(b->passes, pass, 0, b->records, count, times, err);
}

typedef mr_status pass_fn(bench *b, size_t count, mr_bench_turn *t, mr_error *err);

static mr_status pass_warm(bench *b, size_t count, mr_bench_turn *t, mr_error *err)
{
    return mr_bench_passes_run(b->passes, MR_PASS_PREAD, 0, b->records, count, &t->warm, err);
}

static mr_status pass_product(bench *b, size_t count, mr_bench_turn *t, mr_error *err)
{
    return run_product(b, count, &t->product, err);
}

static mr_status pass_limit(bench *b, size_t count, mr_bench_turn *t, mr_error *err)
{
    return run_limit(b, count, &t->limit, err);
}

/* Twice, as the first one fills the memory that is copied. */
static mr_status pass_copy(bench *b, size_t count, mr_bench_turn *t, mr_error *err)
{
    for (int i = 0; i < 2 && b->o->stage == MR_BENCH_READ; i++)
        MR_TRY(mr_bench_passes_run(b->passes, MR_PASS_COPY, 0, b->records, count, &t->copy, err));
    return MR_OK;
}

static mr_status pass_steps(bench *b, size_t count, mr_bench_turn *t, mr_error *err)
{
    if (b->device.device) /* its steps are not the host's */
        return MR_OK;
    return mr_bench_passes_run(b->passes, MR_PASS_STEPS, b->o->stage, b->records, count, &t->steps, err);
}

static mr_status run_turn(bench *b, mr_bench_turn *t, mr_error *err)
{
    bool odd = b->turn_count & 1;
    pass_fn *const passes[] = {pass_warm, odd ? pass_limit : pass_product, odd ? pass_product : pass_limit, pass_copy,
                               pass_steps};
    double start = mr_seconds();
    *t = (mr_bench_turn){.images = b->batches * mr_schedule_count(&b->work.schedule, 0, b->work.o.rank)};
    mr_loader_settle(b->loader);
    MR_TRY(list_records(b, err));
    for (size_t i = 0; i < MR_COUNT(passes) && !t->cut; i++) {
        MR_TRY(passes[i](b, t->images, t, err));
        t->cut = t->warm.cut || t->product.cut || t->limit.cut || t->copy.cut || t->steps.cut;
    }
    b->taken += b->batches;
    t->wall = mr_seconds() - start;
    return MR_OK;
}

static mr_status keep_turn(bench *b, const mr_bench_turn *t, mr_error *err)
{
    if (!MR_GROW(b->turns, b->turn_count, b->turn_capacity))
        return mr_fail_memory(err, "measuring");
    b->turns[b->turn_count++] = *t;
    return MR_OK;
}

static double longest_pass(const mr_bench_turn *t)
{
    double longest = t->product.wall > t->limit.wall ? t->product.wall : t->limit.wall;
    return t->warm.wall > longest ? t->warm.wall : longest;
}

static double passes_wall(const mr_bench_turn *t)
{
    return t->warm.wall + t->product.wall + t->limit.wall + 2 * t->copy.wall + t->steps.wall;
}

/* The first turn, of one batch, warms everything up and shows how many batches make a turn; it counts only if there is
 * no time for another. */
static mr_status run_turns(bench *b, mr_error *err)
{
    const mr_bench_budget *budget = &b->o->budget;
    mr_bench_turn first, t;
    MR_TRY(run_turn(b, &first, err));
    b->batches = mr_bench_batches(budget, mr_seconds(), passes_wall(&first), longest_pass(&first));
    mr_bench_passes_until(b->passes, mr_bench_end(budget));
    /* The shortest turn is the best estimate of the next: longer ones were slowed by something other than images. */
    double shortest = passes_wall(&first) * (double)b->batches;
    while (mr_bench_another(budget, mr_seconds(), shortest)) {
        MR_TRY(run_turn(b, &t, err));
        if (!t.cut)
            MR_TRY(keep_turn(b, &t, err));
        shortest = t.wall < shortest ? t.wall : shortest;
    }
    return b->turn_count ? MR_OK : keep_turn(b, &first, err);
}

/* No stages if a single image would take too long. */
static mr_status measure_stages(bench *b, mr_bench_result *out, mr_error *err)
{
    double seconds = mr_bench_stages_seconds(&b->o->budget, mr_seconds());
    if (b->o->stage == MR_BENCH_READ || b->device.device || b->o->loader.transform.libjpeg ||
        4 * out->decode_ms / 1e3 > seconds)
        return MR_OK;
    return mr_bench_stages_measure(&b->work, b->records, b->record_count, seconds, &out->stages, err);
}

/* The loader has done the work of more images than the device: those that are ready. */
static void sum_up_device(const bench *b, mr_bench_on_device *out)
{
    mr_loader_spent spent = mr_loader_time(b->loader);
    const uint64_t each = mr_schedule_count(&b->work.schedule, 0, b->work.o.rank);
    out->counts = mr_images_count(b->device.images);
    out->work = b->device.work;
    double decoded = (double)(out->counts.device + out->counts.host), ready = (double)(MR_BENCH_PREFETCH * each);
    double loaded = decoded + (double)each + (b->work.o.threads ? ready : 0); /* the first batch is not decoded */
    if (!(decoded > 0))
        return;
    out->read_us = spent.reading / loaded * 1e6;
    out->describe_us = spent.decoding / loaded * 1e6;
    out->device_us = b->device.seconds / decoded * 1e6;
}

static mr_status sum_up(const bench *b, mr_bench_result *out, mr_error *err)
{
    mr_pixels_counts counts = mr_bench_passes_counts(b->passes);
    mr_shard_files_counts found = mr_shard_files_count(b->work.files);
    out->own_jpegs = counts.own;
    out->seek_jpegs = counts.seek;
    out->seek_refused = found.refused + found.foreign;
    out->jpegs = counts.own + counts.libjpeg;
    out->mean_bytes = mr_split_mean_bytes(b->work.split);
    if (b->device.device)
        sum_up_device(b, &out->on_device);
    return mr_bench_turns_sum(b->turns, b->turn_count, out, err);
}

static void release(bench *b)
{
    mr_bench_device_close(&b->device);
    mr_loader_free(b->loader);
    close_work(b);
    free(b->records);
    free(b->turns);
}

mr_status mr_bench_run(const mr_dataset *ds, const mr_bench_options *o, mr_bench_result *out, mr_error *err)
{
    MR_AUTO(release) bench b = {.o = o};
    mr_bench_result result = {.turns = 0};
    MR_TRY(begin(&b, ds, &result, err));
    MR_TRY(run_turns(&b, err));
    MR_TRY(sum_up(&b, &result, err));
    MR_TRY(measure_stages(&b, &result, err));
    *out = result;
    return MR_OK;
}
