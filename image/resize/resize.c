/* resize.c - antialiased resampling of what is needed, in an order that suits caches.
 * Invariant: a row is resampled across once, when an output row first needs it, and leaves the ring after the last one.
 *
 *      input rows --across--> ring of rows, crop_width pixels each --down--> one row --> uint8, or three planes
 *
 * Only the kept part is computed: its columns, and the input rows that it needs; only those must be in memory, and rows
 * and columns count from the first one held.  Mirroring is free: the columns' coefficients are in reversed order.  A
 * pass that does not change the size is a copy. */
#include "image/resize/resize.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"
#include "base/f16.h"
#include "base/scope.h"
#include "image/resize/kernels.h"

enum { MAX_SIDE = 1 << 24, ABREAST = 4 }; /* MAX_SIDE: longest side of the input; ABREAST: rows per call of `across` */

struct mr_resizer {
    const mr_resize_kernels *kernels;
    mr_resize_axis columns, rows;
    uint8_t *memory; /* ring, one row to convert to floats, ABREAST input rows with slack */
    size_t memory_capacity;
    const uint8_t **taps; /* the rows that contribute to one */
    size_t taps_capacity;
    mr_resize_norm norm;
    mr_resize_unrounded unrounded;
    float *values; /* unrounded planes, before conversion to bfloat16 */
    size_t values_capacity;
    const _Atomic bool *stop; /* NULL: never */
};

typedef struct resizing {
    mr_resizer *r;
    const mr_resize_job *job;
    mr_resize_side across, down;
    size_t in_stride, row_bytes, slot_bytes, slots;
    bool direct; /* no pass across: rows are used from the input */
    uint8_t *ring, *line, *copies;
    uint32_t ready; /* rows before this one have been resampled */
    uint8_t *u8;    /* one of the four */
    float *f32;
    uint16_t *bf16, *f16;
} resizing;

mr_resizer *mr_resizer_new(void)
{
    mr_resizer *r = mr_alloc(1, sizeof *r);
    if (r)
        r->kernels = mr_resize_kernels_best();
    return r;
}

void mr_resizer_use(mr_resizer *r, const mr_resize_kernels *kernels)
{
    r->kernels = kernels;
}

void mr_resizer_stop(mr_resizer *r, const _Atomic bool *stop)
{
    r->stop = stop;
}

void mr_resizer_free(mr_resizer *r)
{
    if (!r)
        return;
    mr_resize_axis_free(&r->columns);
    mr_resize_axis_free(&r->rows);
    free(r->memory);
    free(r->taps);
    mr_resize_unrounded_free(&r->unrounded);
    free(r->values);
    free(r);
}

/* ---- checking a job --------------------------------------------------------------------------------------------- */

void mr_resize_needs(const mr_resize_job *job, mr_resize_span *columns, mr_resize_span *rows)
{
    const mr_resize_side across = mr_resize_across(job), down = mr_resize_down(job);
    *columns = mr_resize_side_needs(&across);
    *rows = mr_resize_side_needs(&down);
}

static bool fits(uint32_t out, uint32_t from, uint32_t count)
{
    return count && from < out && count <= out - from;
}

static mr_status check_held(const mr_resize_side *s, mr_error *err)
{
    mr_resize_span held = s->held, need = mr_resize_side_needs(s);
    if (fits(s->in, held.from, held.count) && need.from >= held.from &&
        need.count <= held.count - (need.from - held.from))
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "resizing %u pixels at %u of %u, but %u at %u are needed", held.count, held.from,
                   s->in, need.count, need.from);
}

static mr_status check(const mr_resize_job *j, mr_error *err)
{
    if (!j->in_width || !j->in_height || j->in_width > MAX_SIDE || j->in_height > MAX_SIDE || !j->out_width ||
        !j->out_height || j->out_width > MR_RESIZE_LONGEST || j->out_height > MR_RESIZE_LONGEST)
        return mr_fail(err, MR_MISUSE,
                       "resizing %u x %u pixels to %u x %u: sides must be 1 to %d, resized ones 1 to %u", j->in_width,
                       j->in_height, j->out_width, j->out_height, MAX_SIDE, MR_RESIZE_LONGEST);
    if (!fits(j->out_width, j->crop_left, j->crop_width) || !fits(j->out_height, j->crop_top, j->crop_height))
        return mr_fail(err, MR_MISUSE,
                       "keeping %u x %u pixels at %u, %u of an image resized to %u x %u: they are not inside it",
                       j->crop_width, j->crop_height, j->crop_left, j->crop_top, j->out_width, j->out_height);
    const mr_resize_side across = mr_resize_across(j), down = mr_resize_down(j);
    MR_TRY(check_held(&across, err));
    return check_held(&down, err);
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static bool make_room(resizing *run)
{
    mr_resizer *r = run->r;
    size_t taps = r->rows.pairs * 2, copy = run->in_stride + MR_RESIZE_SLACK, ring, need;
    run->slots = taps + ABREAST;
    run->slot_bytes = run->row_bytes + MR_RESIZE_SLACK;
    if (__builtin_mul_overflow(run->slots, run->slot_bytes, &ring) ||
        __builtin_add_overflow(ring, run->slot_bytes + ABREAST * copy, &need))
        return false;
    if (need > r->memory_capacity) {
        free(r->memory);
        r->memory = mr_alloc(need, 1);
        r->memory_capacity = r->memory ? need : 0;
    }
    if (taps > r->taps_capacity) {
        free(r->taps);
        r->taps = mr_alloc(taps, sizeof *r->taps);
        r->taps_capacity = r->taps ? taps : 0;
    }
    run->ring = r->memory;
    if (!r->memory || !r->taps)
        return false;
    run->line = run->ring + ring;
    run->copies = run->line + run->slot_bytes;
    return true;
}

static uint8_t *slot(const resizing *run, uint32_t row)
{
    return run->ring + row % run->slots * run->slot_bytes;
}

/* A row that may be read past its end: the last ones are copied to memory with slack. */
static const uint8_t *input_row(const resizing *run, uint32_t row, uint32_t place)
{
    const uint8_t *from = run->job->rgb + run->in_stride * row;
    if (run->in_stride * (run->down.held.count - row - 1) >= MR_RESIZE_SLACK)
        return from;
    return memcpy(run->copies + (run->in_stride + MR_RESIZE_SLACK) * place, from, run->in_stride);
}

/* Resamples the next rows into the ring, four at a time; at the end of the input the last one is repeated. */
static void advance(resizing *run)
{
    const uint8_t *rows[ABREAST];
    uint8_t *out[ABREAST];
    uint32_t end = run->down.held.count, i;
    assert(run->ready < end);
    for (i = 0; i < ABREAST && run->ready + i < end; i++) {
        rows[i] = input_row(run, run->ready + i, i);
        out[i] = slot(run, run->ready + i);
    }
    run->ready += i;
    for (; i < ABREAST; i++) {
        rows[i] = rows[i - 1];
        out[i] = out[i - 1];
    }
    run->r->kernels->across(&run->r->columns, rows, out);
}

static void gather_taps(resizing *run, uint32_t start)
{
    const uint8_t *first = run->job->rgb + (size_t)(run->across.first - run->across.held.from) * 3; /* if direct */
    size_t taps = run->r->rows.pairs * 2;
    uint32_t end = run->down.held.count;
    for (size_t t = 0; t < taps; t++) {
        uint32_t row = start + (uint32_t)t < end ? start + (uint32_t)t : end - 1;
        while (!run->direct && run->ready <= row)
            advance(run);
        run->r->taps[t] = run->direct ? first + run->in_stride * row : slot(run, row);
    }
}

static mr_status put_rows(resizing *run)
{
    mr_resizer *r = run->r;
    size_t pairs = r->rows.pairs, width = run->job->crop_width, plane = width * run->job->crop_height;
    run->ready = r->rows.start[0];
    for (size_t y = 0; y < r->rows.outputs; y++) {
        if (r->stop && atomic_load_explicit(r->stop, memory_order_relaxed))
            return MR_END;
        uint8_t *line = run->u8 ? run->u8 + run->row_bytes * y : run->line;
        gather_taps(run, r->rows.start[y]);
        r->kernels->down(r->rows.k + y * pairs * 4, pairs, r->taps, run->row_bytes, line);
        if (run->f32)
            r->kernels->spread_f32(&r->norm, line, width, run->f32 + width * y, plane);
        if (run->bf16)
            r->kernels->spread_bf16(&r->norm, line, width, run->bf16 + width * y, plane);
        if (run->f16)
            mr_resize_spread_halves(r->norm.f16, line, width, run->f16 + width * y, plane);
    }
    mr_resize_fence();
    return MR_OK;
}

static mr_status resize(resizing *run, mr_error *err)
{
    const mr_resize_job *j = run->job;
    mr_resizer *r = run->r;
    run->across = mr_resize_across(j);
    run->down = mr_resize_down(j);
    run->in_stride = (size_t)run->across.held.count * 3;
    run->row_bytes = (size_t)j->crop_width * 3;
    run->direct = j->in_width == j->out_width && !j->flip;
    MR_TRY(mr_resize_axis_set(&r->rows, &run->down, err));
    if (!run->direct)
        MR_TRY(mr_resize_axis_set(&r->columns, &run->across, err));
    if (!make_room(run))
        return mr_fail_memory(err, "resizing an image");
    return put_rows(run);
}

static mr_status unrounded_f32(mr_resizer *r, const mr_resize_job *job, float *out, mr_error *err)
{
    MR_TRY(mr_resize_unrounded_run(&r->unrounded, job, r->stop, out, err));
    mr_resize_norm_planes(&r->norm, out, (size_t)job->crop_width * job->crop_height);
    return MR_OK;
}

static mr_status unrounded_halves(mr_resizer *r, const mr_resize_job *job, uint16_t (*narrow)(float), uint16_t *out,
                                  mr_error *err)
{
    size_t count;
    if (__builtin_mul_overflow((size_t)job->crop_width * 3, (size_t)job->crop_height, &count))
        return mr_fail_memory(err, "resizing an image");
    if (count > r->values_capacity) {
        free(r->values);
        r->values = mr_alloc(count, sizeof *r->values);
        r->values_capacity = r->values ? count : 0;
    }
    if (!r->values)
        return mr_fail_memory(err, "resizing an image");
    MR_TRY(unrounded_f32(r, job, r->values, err));
    for (size_t i = 0; i < count; i++)
        out[i] = narrow(r->values[i]);
    return MR_OK;
}

mr_status mr_resize_u8(mr_resizer *r, const mr_resize_job *job, uint8_t *out, mr_error *err)
{
    resizing run = {.r = r, .job = job, .u8 = out};
    MR_TRY(check(job, err));
    if (job->unrounded)
        return mr_fail(err, MR_MISUSE, "unrounded pixels are floats, not bytes");
    return resize(&run, err);
}

mr_status mr_resize_f32(mr_resizer *r, const mr_resize_job *job, const float mean[3], const float std[3], float *out,
                        mr_error *err)
{
    resizing run = {.r = r, .job = job, .f32 = out};
    MR_TRY(check(job, err));
    MR_TRY(mr_resize_norm_set(&r->norm, mean, std, err));
    return job->unrounded ? unrounded_f32(r, job, out, err) : resize(&run, err);
}

mr_status mr_resize_bf16(mr_resizer *r, const mr_resize_job *job, const float mean[3], const float std[3],
                         uint16_t *out, mr_error *err)
{
    resizing run = {.r = r, .job = job, .bf16 = out};
    MR_TRY(check(job, err));
    MR_TRY(mr_resize_norm_set(&r->norm, mean, std, err));
    return job->unrounded ? unrounded_halves(r, job, mr_bf16_of, out, err) : resize(&run, err);
}

mr_status mr_resize_f16(mr_resizer *r, const mr_resize_job *job, const float mean[3], const float std[3], uint16_t *out,
                        mr_error *err)
{
    resizing run = {.r = r, .job = job, .f16 = out};
    MR_TRY(check(job, err));
    MR_TRY(mr_resize_norm_set(&r->norm, mean, std, err));
    return job->unrounded ? unrounded_halves(r, job, mr_f16_of, out, err) : resize(&run, err);
}
