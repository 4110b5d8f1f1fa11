/* bench_limits.c - what a program without a loader would do with the records of a turn. */
#include "loader/bench/bench_limits.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/files/file.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "loader/bench/bench.h"

enum { KEPT = 64 }; /* records a plain program would have in its batch */

/* Size of the memory that copies are read from, and the limit of the memory that they are written to, in all threads
 * and in each: more than caches hold. */
static const size_t copied = 256 << 20, copied_each = 16 << 20;

/* One record after another, wrapping around. */
typedef struct ring {
    mr_slab slab;
    size_t used;
} ring;

typedef struct worker {
    mr_worker worker;
    mr_pixels_scratch *plain; /* libjpeg-turbo for all JPEGs */
    ring batch;               /* where plain reads and copies go */
    ring source;              /* where copies come from */
    float *out;
    double read, hash, decode, resize;
    char padding[64]; /* keeps the workers' numbers in cache lines of their own */
} worker;

struct mr_bench_passes {
    mr_work *work;
    unsigned threads;
    worker *workers;
    size_t batch_capacity, source_capacity; /* capacities of a worker's rings */
    /* For the current pass: */
    mr_bench_pass pass;
    int until;
    const mr_bench_record *records;
    double end; /* no record is begun after it */
    atomic_bool cut;
};

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double mr_bench_cpu(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

double mr_bench_thread_cpu(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

void mr_bench_passes_free(mr_bench_passes *b)
{
    if (!b)
        return;
    for (unsigned i = 0; b->workers && i < b->threads; i++) {
        mr_worker_free(&b->workers[i].worker);
        mr_pixels_scratch_free(b->workers[i].plain);
        mr_slab_free(&b->workers[i].batch.slab, NULL);
        mr_slab_free(&b->workers[i].source.slab, NULL);
        free(b->workers[i].out);
    }
    free(b->workers);
    free(b);
}

/* A thread's share of that memory; less if `records` records are smaller, even if they fit into a cache. */
static size_t share(const mr_split *split, uint64_t records, unsigned threads)
{
    uint64_t each = copied / threads > copied_each ? copied / threads : copied_each;
    uint64_t bytes = mr_split_mean_bytes(split) * records;
    return (size_t)(bytes < each ? bytes : each);
}

static mr_status worker_init(worker *t, const mr_work *w, mr_error *err)
{
    MR_TRY(mr_worker_init(&t->worker, w, err));
    t->plain = mr_pixels_scratch_new();
    t->out = mr_alloc((size_t)w->o.transform.size * w->o.transform.size * 3, sizeof(float));
    if (!t->out || !t->plain)
        return mr_fail_memory(err, "measuring");
    mr_pixels_scratch_libraries(t->plain);
    return MR_OK;
}

mr_status mr_bench_passes_new(mr_work *w, unsigned threads, mr_bench_passes **out, mr_error *err)
{
    mr_bench_passes *b = mr_alloc(1, sizeof *b);
    if (!b)
        return mr_fail_memory(err, "measuring");
    *b = (mr_bench_passes){.work = w,
                           .threads = threads,
                           .batch_capacity = share(w->split, KEPT, threads),
                           .source_capacity = share(w->split, w->split->samples / threads, threads),
                           .end = INFINITY,
                           .workers = mr_alloc(threads, sizeof *b->workers)};
    mr_status status = b->workers ? MR_OK : mr_fail_memory(err, "measuring");
    for (unsigned i = 0; status == MR_OK && i < threads; i++)
        status = worker_init(&b->workers[i], w, err);
    if (status == MR_OK)
        *out = b;
    else
        mr_bench_passes_free(b);
    return status;
}

mr_pixels_counts mr_bench_passes_counts(const mr_bench_passes *b)
{
    mr_pixels_counts sum = {0};
    for (unsigned i = 0; i < b->threads; i++) {
        mr_pixels_counts c = mr_pixels_scratch_counts(b->workers[i].worker.pixels);
        sum.own += c.own;
        sum.libjpeg += c.libjpeg;
        sum.seek += c.seek;
    }
    return sum;
}

/* ---- one record ------------------------------------------------------------------------------------------------- */

/* The next place, in memory that has been written to: pages never written all map to the same zero page. */
static mr_status next_place(ring *r, size_t capacity, size_t len, uint8_t **out, mr_error *err)
{
    size_t before = r->slab.capacity;
    MR_TRY(mr_slab_reserve(&r->slab, capacity > len ? capacity : len, 0, NULL, err));
    if (r->slab.capacity != before)
        memset(r->slab.data, 0xA5, r->slab.capacity);
    if (len > r->slab.capacity - r->used)
        r->used = 0;
    *out = r->slab.data + r->used;
    r->used += len;
    return MR_OK;
}

static mr_status read_to(mr_bench_passes *b, const mr_bench_record *r, uint8_t *out, mr_error *err)
{
    const mr_open_shard *open;
    mr_error why;
    MR_TRY(mr_shard_files_borrow(b->work->files, r->sample, &open, err));
    mr_status status =
        mr_shard_files_read(b->work->files, open->shard, open->mdb,
                            (mr_shard_span){r->row.image_offset, r->row.image_len, "its image"}, out, NULL, &why);
    const char *shard = open->shard->name;
    mr_shard_files_return(b->work->files, open);
    return status == MR_OK
               ? status
               : mr_fail(err, status, "%s.mdb: sample %llu: %s", shard, (unsigned long long)r->sample, why.text);
}

static mr_status read_plain(mr_bench_passes *b, worker *w, const mr_bench_record *r, mr_error *err)
{
    uint8_t *out;
    MR_TRY(next_place(&w->batch, b->batch_capacity, r->row.image_len, &out, err));
    return read_to(b, r, out, err);
}

static mr_status fetch(mr_bench_passes *b, worker *w, const mr_bench_record *r, mr_error *err)
{
    MR_TRY(mr_slab_reserve(&w->worker.bytes, r->row.image_len, 0, NULL, err));
    return read_to(b, r, w->worker.bytes.data, err);
}

/* As many bytes as the record has, from the program's own memory: a mapped file, if truncated, would raise SIGBUS. */
static mr_status copy(mr_bench_passes *b, worker *w, const mr_bench_record *r, mr_error *err)
{
    size_t len = r->row.image_len;
    uint8_t *out, *from;
    MR_TRY(next_place(&w->batch, b->batch_capacity, len, &out, err));
    MR_TRY(next_place(&w->source, b->source_capacity, len, &from, err));
    memcpy(out, from, len);
    return MR_OK;
}

/* The whole image by the codec's library alone. */
static mr_status decode_plain(mr_bench_passes *b, worker *w, const mr_bench_record *r, mr_error *err)
{
    const mr_row *row = &r->row;
    const mr_image_facts facts = {.width = row->width,
                                  .height = row->height,
                                  .codec = row->codec,
                                  .orientation = row->orientation,
                                  .components = row->components,
                                  .bits = row->bits,
                                  .flags = row->flags};
    const mr_region whole = {0, 0, row->width, row->height};
    const uint8_t *rgb;
    mr_error why;
    const mr_image_limits limits = {.max_pixels = b->work->o.max_pixels};
    MR_TRY(fetch(b, w, r, err));
    mr_status status = mr_image_check_size("an image", row->width, row->height, &limits, &why);
    if (status == MR_OK)
        status = mr_pixels_decode(w->plain, w->worker.bytes.data, row->image_len, &facts, &whole, &rgb, &why);
    return status == MR_OK ? status : mr_fail(err, status, "sample %llu: %s", (unsigned long long)r->sample, why.text);
}

static double lap(double *since)
{
    double now = mr_bench_thread_cpu(), took = now - *since;
    *since = now;
    return took;
}

static mr_status steps(mr_bench_passes *b, worker *w, const mr_bench_record *r, mr_error *err)
{
    const uint8_t *rgb;
    double since = mr_bench_thread_cpu();
    MR_TRY(fetch(b, w, r, err));
    mr_work_fetch_seek(b->work, &w->worker, r->sample, &r->row);
    w->read += lap(&since);
    if (mr_hash64(w->worker.bytes.data, r->row.image_len) != r->row.image_hash)
        return mr_fail(err, MR_BAD_SAMPLE,
                       "sample %llu: its image differs from what was ingested; `millrace verify` shows the extent",
                       (unsigned long long)r->sample);
    w->hash += lap(&since);
    if (b->until == MR_BENCH_READ)
        return MR_OK;
    mr_view v = mr_work_view(b->work, r->epoch, r->sample, &r->row);
    MR_TRY(mr_work_decode(b->work, &w->worker, r->sample, &r->row, &v, &rgb, err));
    w->decode += lap(&since);
    if (b->until == MR_BENCH_DECODE)
        return MR_OK;
    MR_TRY(mr_work_resize(b->work, &w->worker, &v, rgb, w->out, err));
    w->resize += lap(&since);
    return MR_OK;
}

void mr_bench_passes_until(mr_bench_passes *b, double end)
{
    b->end = end;
}

/* Reading the clock costs about as much as reading a small record, so not every record does. */
static bool time_is_up(mr_bench_passes *b, size_t item)
{
    enum { ASKS = 16 };
    bool often = b->pass == MR_PASS_DECODE || b->pass == MR_PASS_STEPS;
    if (!atomic_load_explicit(&b->cut, memory_order_relaxed) && (often || item % ASKS == 0) && mr_seconds() >= b->end)
        b->cut = true;
    return b->cut;
}

static mr_status run_record(void *ctx, size_t item, unsigned number, mr_error *err)
{
    mr_bench_passes *b = ctx;
    worker *w = &b->workers[number];
    const mr_bench_record *r = &b->records[item];
    if (time_is_up(b, item))
        return MR_OK;
    switch (b->pass) {
    case MR_PASS_PREAD:
        return read_plain(b, w, r, err);
    case MR_PASS_COPY:
        return copy(b, w, r, err);
    case MR_PASS_STEPS:
        return steps(b, w, r, err);
    case MR_PASS_DECODE:
        break;
    }
    return decode_plain(b, w, r, err);
}

/* ---- one pass --------------------------------------------------------------------------------------------------- */

mr_status mr_bench_passes_run(mr_bench_passes *b, mr_bench_pass pass, int until, const mr_bench_record *records,
                              size_t count, mr_bench_times *times, mr_error *err)
{
    b->pass = pass;
    b->until = until;
    b->records = records;
    b->cut = false;
    for (unsigned i = 0; i < b->threads; i++)
        b->workers[i].read = b->workers[i].hash = b->workers[i].decode = b->workers[i].resize = 0;
    double wall = mr_seconds(), cpu = mr_bench_cpu();
    mr_status status = mr_pool_run(count, b->threads, run_record, b, err);
    *times = (mr_bench_times){.wall = mr_seconds() - wall, .cpu = mr_bench_cpu() - cpu, .cut = b->cut};
    for (unsigned i = 0; i < b->threads; i++) {
        times->read += b->workers[i].read;
        times->hash += b->workers[i].hash;
        times->decode += b->workers[i].decode;
        times->resize += b->workers[i].resize;
    }
    return status;
}
