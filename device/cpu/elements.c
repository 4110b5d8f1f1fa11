/* elements.c - the CPU's elementwise operations: dropout, activations, sums, updates.
 * Invariant: work is divided between rows, or at multiples of 64 elements of flat buffers, by the shape alone. */
#include <assert.h>
#include <math.h>

#include "device/cpu/lines.h"

enum { /* elements per task, about 10 us of work */
       WORK_COPY = 1 << 15,
       WORK_MATH = 1 << 14,
       WORK_UPDATE = 1 << 15,
       WORK_SQUARES = 1 << 16,
};

typedef struct rows_job {
    const mr_cpu *d;
    const mr_activate *a;
    size_t per_task; /* rows */
    void (*row)(const mr_lines *l, const mr_activate *a, size_t row, const mr_cpu_mask *mask, uint32_t e);
} rows_job;

static void do_rows(void *ctx, size_t task, unsigned member)
{
    const rows_job *j = ctx;
    const mr_activate *a = j->a;
    size_t first = task * j->per_task, last = first + j->per_task < a->rows ? first + j->per_task : a->rows;
    const mr_lines l = {.d = j->d, .member = member, .type = a->type, .width = a->width};
    for (size_t row = first; row < last; row++) {
        mr_cpu_mask mask = mr_cpu_mask_of(&a->dropout, a->sample_rows ? row / a->sample_rows : 0);
        j->row(&l, a, row, &mask, (uint32_t)((a->sample_rows ? row % a->sample_rows : row) * a->width));
    }
}

static void run_rows(mr_device *device, const mr_activate *a, size_t work,
                     void (*row)(const mr_lines *, const mr_activate *, size_t, const mr_cpu_mask *, uint32_t))
{
    mr_cpu *d = mr_cpu_of(device);
    rows_job j = {.d = d, .a = a, .per_task = mr_cpu_rows_per_task(a->rows, a->width, work), .row = row};
    mr_team_run(d->team, (a->rows + j.per_task - 1) / j.per_task, do_rows, &j);
}

static void drop_row(const mr_lines *l, const mr_activate *a, size_t row, const mr_cpu_mask *mask, uint32_t e)
{
    size_t at = row * a->width;
    if (!mask->threshold) {
        mr_line_copy(l, a->d_y, at, a->d_x, at);
        return;
    }
    float *d_x = mr_line_out(l, 1, a->d_x, at);
    l->d->kernels->mask(a->width, mask, e, mr_line_read(l, 0, a->d_y, at), d_x);
    mr_line_write(l, d_x, a->d_x, at);
}

void mr_cpu_drop(mr_device *device, const mr_drop *x)
{
    mr_activate a = {.type = x->type,
                     .rows = x->rows,
                     .width = x->width,
                     .sample_rows = x->sample_rows,
                     .d_y = x->d_y,
                     .d_x = x->d_x,
                     .dropout = x->dropout};
    run_rows(device, &a, WORK_COPY, drop_row);
}

static void activate_row(const mr_lines *l, const mr_activate *a, size_t row, const mr_cpu_mask *mask, uint32_t e)
{
    const mr_cpu_kernels *k = l->d->kernels;
    size_t at = row * a->width;
    float *y = mr_line_out(l, 1, a->y, at);
    k->activate(a->width, a->kind, mr_line_read(l, 0, a->x, at), y);
    if (mask->threshold)
        k->mask(a->width, mask, e, y, y);
    mr_line_write(l, y, a->y, at);
}

void mr_cpu_activate(mr_device *device, const mr_activate *a)
{
    run_rows(device, a, WORK_MATH, activate_row);
}

static void activate_back_row(const mr_lines *l, const mr_activate *a, size_t row, const mr_cpu_mask *mask, uint32_t e)
{
    const mr_cpu_kernels *k = l->d->kernels;
    size_t at = row * a->width;
    float *d_x = mr_line_out(l, 2, a->d_x, at);
    k->activate_back(a->width, a->kind, mr_line_read(l, 0, a->x, at), mr_line_read(l, 1, a->d_y, at), d_x);
    if (mask->threshold)
        k->mask(a->width, mask, e, d_x, d_x);
    mr_line_write(l, d_x, a->d_x, at);
}

void mr_cpu_activate_back(mr_device *device, const mr_activate *a)
{
    run_rows(device, a, WORK_MATH, activate_back_row);
}

/* ---- flat buffers --------------------------------------------------------------------------------------------- */

typedef struct flat_job {
    mr_cpu *d;
    size_t count, per_task;
    const mr_add *add;
    const float *squared;
    const mr_update *u;
    mr_cpu_adam adam;
} flat_job;

static size_t part(const flat_job *j, size_t task, size_t *first)
{
    *first = task * j->per_task;
    return j->count - *first < j->per_task ? j->count - *first : j->per_task;
}

static void run_flat(flat_job *j, mr_team_fn fn)
{
    mr_team_run(j->d->team, (j->count + j->per_task - 1) / j->per_task, fn, j);
}

static void add_part(void *ctx, size_t task, unsigned member)
{
    const flat_job *j = ctx;
    const mr_add *x = j->add;
    size_t at, count = part(j, task, &at);
    const mr_lines l = {.d = j->d, .member = member, .type = x->type, .width = count};
    float *sum = mr_line_out(&l, 2, x->sum, at);
    j->d->kernels->add(count, mr_line_read(&l, 0, x->a, at), mr_line_read(&l, 1, x->b, at), sum);
    mr_line_write(&l, sum, x->sum, at);
}

void mr_cpu_add(mr_device *device, const mr_add *x)
{
    flat_job j = {.d = mr_cpu_of(device), .count = x->count, .per_task = WORK_COPY, .add = x};
    run_flat(&j, add_part);
}

static void squares_part(void *ctx, size_t task, unsigned member)
{
    const flat_job *j = ctx;
    size_t at, count = part(j, task, &at);
    (void)member;
    j->d->squares[task] = j->d->kernels->sum_squares(count, j->squared + at);
}

void mr_cpu_sum_squares(mr_device *device, const mr_sum_squares *x)
{
    mr_cpu *d = mr_cpu_of(device);
    size_t per_task = (x->count + MR_CPU_SQUARES - 1) / MR_CPU_SQUARES;
    per_task = per_task < WORK_SQUARES ? WORK_SQUARES : (per_task + 63) / 64 * 64;
    flat_job j = {.d = d, .count = x->count, .per_task = per_task, .squared = x->x};
    run_flat(&j, squares_part);
    *x->sum = 0;
    for (size_t i = 0; i * per_task < x->count; i++)
        *x->sum += d->squares[i];
}

static void sgd_part(void *ctx, size_t task, unsigned member)
{
    const flat_job *j = ctx;
    const mr_update *u = j->u;
    size_t at, count = part(j, task, &at);
    (void)member;
    j->d->kernels->sgd(count, u->w + at, u->g + at, u->m + at, (float)u->g_scale, (float)u->lr, (float)u->decay,
                       (float)u->momentum);
}

void mr_cpu_sgd(mr_device *device, const mr_update *u)
{
    flat_job j = {.d = mr_cpu_of(device), .count = u->count, .per_task = WORK_UPDATE, .u = u};
    run_flat(&j, sgd_part);
}

static void adamw_part(void *ctx, size_t task, unsigned member)
{
    const flat_job *j = ctx;
    const mr_update *u = j->u;
    size_t at, count = part(j, task, &at);
    (void)member;
    j->d->kernels->adamw(count, u->w + at, u->g + at, u->m + at, u->v + at, &j->adam);
}

void mr_cpu_adamw(mr_device *device, const mr_update *u)
{
    flat_job j = {.d = mr_cpu_of(device), .count = u->count, .per_task = WORK_UPDATE, .u = u};
    j.adam = (mr_cpu_adam){
        .g_scale = (float)u->g_scale,
        .keep = (float)(1 - u->lr * u->decay),
        .beta1 = (float)u->beta1,
        .rest1 = (float)(1 - u->beta1),
        .beta2 = (float)u->beta2,
        .rest2 = (float)(1 - u->beta2),
        .step = (float)(u->lr / u->correction1),
        .root = (float)(1 / sqrt(u->correction2)),
        .eps = (float)u->eps,
    };
    run_flat(&j, adamw_part);
}
