/* bench_stages.c - what each step of millrace's own JPEG decoder costs; see bench_stages.h.
 *
 *      header alone  <=  + entropy-coded bytes  <=  + IDCT  <=  + upsampling and colour
 *
 * The steps are interleaved, and a clock around each would cost as much as they do: so images are decoded with more
 * and more steps, and the differences are the steps.  Each run goes through all images, as a loader does: the same
 * image twice in a row would find its tables built and its branches predicted. */
#include "loader/bench/bench_stages.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "loader/bench/partial.h"

enum { PICTURES = 200, RUNS = 5, LEVELS = 4 }; /* levels: the header, and one for each mr_jpeg_parts */
enum { RUN_COST = 3 };                         /* cost of a run over all levels, in full decodes */

static const size_t max_bytes = 64 << 20;

typedef struct picture {
    mr_jpeg_job job;
    uint8_t *memory;   /* file and seek index */
    double ms[LEVELS]; /* best of the runs */
} picture;

typedef struct stages {
    mr_work *work;
    mr_worker worker;
    mr_slab rgb;
    mr_jpeg_decoder *decoders[MR_JPEG_PARTS_ALL + 1];
    picture pictures[PICTURES];
    size_t count, bytes;
    double seconds;
} stages;

/* ---- images --------------------------------------------------------------------------------------------------- */

static mr_jpeg_job job_of(const stages *s, const mr_bench_record *r)
{
    mr_view v = mr_work_view(s->work, r->epoch, r->sample, &r->row);
    mr_region stored = mr_work_region(s->work, &r->row, &v);
    return (mr_jpeg_job){
        .len = r->row.image_len,
        .width = r->row.width,
        .height = r->row.height,
        .left = stored.left,
        .top = stored.top,
        .crop_width = stored.width,
        .crop_height = stored.height,
        .seek_len = s->worker.seek_len,
    };
}

/* Seconds of one decode, or of its header alone; negative: not an image for this decoder. */
static double decode(stages *s, const picture *p, int level)
{
    mr_jpeg_job job = p->job;
    job.rgb = s->rgb.data;
    job.width += level == 0; /* the decoder stops at a header with another size */
    double start = mr_bench_thread_cpu();
    mr_jpeg_outcome outcome = mr_jpeg_decode_region(s->decoders[level ? level - 1 : MR_JPEG_PARTS_ALL], &job);
    double took = mr_bench_thread_cpu() - start;
    return level && outcome != MR_JPEG_DONE ? -1 : took;
}

/* Keeps the record's image if the decoder supports it. */
static mr_status take(stages *s, const mr_bench_record *r, mr_error *err)
{
    picture *p = &s->pictures[s->count];
    mr_status status = mr_work_fetch(s->work, &s->worker, r->sample, &r->row, err);
    if (status != MR_OK)
        return status == MR_BAD_SAMPLE ? MR_OK : status;
    *p = (picture){.job = job_of(s, r)};
    MR_TRY(mr_slab_reserve(&s->rgb, (size_t)p->job.crop_width * p->job.crop_height * 3, 0, NULL, err));
    p->memory = malloc(p->job.len + p->job.seek_len);
    if (!p->memory)
        return mr_fail_memory(err, "measuring");
    memcpy(p->memory, s->worker.bytes.data, p->job.len);
    p->job.bytes = p->memory;
    if (p->job.seek_len) {
        memcpy(p->memory + p->job.len, s->worker.seek.data, p->job.seek_len);
        p->job.seek = p->memory + p->job.len;
    }
    double took = decode(s, p, LEVELS - 1);
    if (took < 0) {
        free(p->memory);
        return MR_OK;
    }
    s->seconds += took;
    s->bytes += p->job.len + p->job.seek_len;
    s->count++;
    return MR_OK;
}

/* ---- measuring -------------------------------------------------------------------------------------------------- */

static void measure(stages *s, int runs, mr_bench_stages *out)
{
    double *const steps[LEVELS] = {&out->parse_ms, &out->entropy_ms, &out->idct_ms, &out->colour_ms};
    double sums[LEVELS] = {0};
    for (int run = 0; run < runs; run++)
        for (int level = 0; level < LEVELS; level++)
            for (size_t i = 0; i < s->count; i++) {
                double *best = &s->pictures[i].ms[level], ms = decode(s, &s->pictures[i], level) * 1e3;
                *best = run == 0 || ms < *best ? ms : *best;
            }
    for (size_t i = 0; i < s->count; i++) {
        out->with_seek += s->pictures[i].job.seek != NULL;
        for (int level = 0; level < LEVELS; level++)
            sums[level] += s->pictures[i].ms[level];
    }
    out->pictures = s->count;
    for (int level = 0; level < LEVELS && s->count; level++)
        *steps[level] = (sums[level] - (level ? sums[level - 1] : 0)) / (double)s->count;
}

static void free_stages(stages **held)
{
    stages *s = *held;
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        free(s->pictures[i].memory);
    for (size_t i = 0; i < MR_COUNT(s->decoders); i++)
        mr_jpeg_decoder_free(s->decoders[i]);
    mr_slab_free(&s->rgb, NULL);
    mr_worker_free(&s->worker);
    free(s);
}

/* Fewer runs for slow images. */
static int runs_within(const stages *s, double seconds)
{
    double runs = s->seconds > 0 ? seconds / (s->seconds * RUN_COST) : RUNS;
    return runs >= RUNS ? RUNS : runs >= 1 ? (int)runs : 1;
}

mr_status mr_bench_stages_measure(mr_work *w, const mr_bench_record *records, size_t count, double seconds,
                                  mr_bench_stages *out, mr_error *err)
{
    MR_AUTO(free_stages) stages *s = mr_alloc(1, sizeof *s);
    *out = (mr_bench_stages){.pictures = 0};
    if (!s)
        return mr_fail_memory(err, "measuring");
    s->work = w;
    MR_TRY(mr_worker_init(&s->worker, w, err));
    for (size_t i = 0; i < MR_COUNT(s->decoders); i++) {
        s->decoders[i] = mr_jpeg_partial_new((mr_jpeg_parts)i);
        if (!s->decoders[i])
            return mr_fail_memory(err, "measuring");
    }
    for (size_t i = 0; i < count && s->count < PICTURES && s->bytes < max_bytes; i++) {
        if (s->seconds * RUNS * RUN_COST >= seconds)
            break;
        if (records[i].row.codec == MR_CODEC_JPEG)
            MR_TRY(take(s, &records[i], err));
    }
    measure(s, runs_within(s, seconds), out);
    return MR_OK;
}
