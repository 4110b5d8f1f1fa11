/* pairs.c - the CPU's operations for models of images and text: embedding lookups, unit vectors, a learned scale.
 * Invariant: a table's row gets its gradients in the order of the rows that used it, from the task that owns the row's
 * bucket and the columns:
 *
 *      lookup_back     columns     | 0 .. 127 | 128 .. 255 | ...
 *      ids % 8 = 0                 |  task 0  |   task 8   |          each task reads all ids and adds its own rows; so
 *      ids % 8 = 1                 |  task 1  |   task 9   |          only rows that were used are touched, and nothing
 *      ...                                                            is sorted or stored */
#include <math.h>
#include <string.h>

#include "device/cpu/lines.h"

enum {
    WORK = 1 << 15, /* elements per task */
    WORK_UNIT = 1 << 14,
    BUCKETS = 8, /* a power of two */
    COLUMNS = 128,
};

/* ---- rows of a table ------------------------------------------------------------------------------------------ */

typedef struct lookup_job {
    const mr_cpu *d;
    const mr_lookup *l;
    size_t per_task;         /* rows */
    size_t columns, buckets; /* columns per task; number of buckets */
} lookup_job;

/* Callers check their ids; one that is wrong must not reach beyond the table. */
static bool is_entry(const mr_lookup *l, size_t row)
{
    return !l->ids || (l->ids[row] >= 0 && (size_t)l->ids[row] < l->entries);
}

static void lookup_rows(void *ctx, size_t task, unsigned member)
{
    const lookup_job *j = ctx;
    const mr_lookup *l = j->l;
    size_t first = task * j->per_task, last = first + j->per_task < l->rows ? first + j->per_task : l->rows;
    const mr_lines lines = {.d = j->d, .member = member, .type = l->type, .width = l->width};
    for (size_t row = first; row < last; row++) {
        float *y = mr_line_out(&lines, 1, l->y, row * l->width);
        if (!is_entry(l, row)) {
            if (!l->accumulate)
                mr_line_write(&lines, memset(y, 0, l->width * sizeof *y), l->y, row * l->width);
            continue;
        }
        const float *from = l->table + (l->ids ? (size_t)l->ids[row] : 0) * l->width;
        if (l->accumulate)
            j->d->kernels->add(l->width, mr_line_read(&lines, 0, l->y, row * l->width), from, y);
        else if (l->type == MR_F32)
            memcpy(y, from, l->width * sizeof *y);
        mr_line_write(&lines, l->accumulate ? y : from, l->y, row * l->width);
    }
}

void mr_cpu_lookup(mr_device *device, const mr_lookup *l)
{
    mr_cpu *d = mr_cpu_of(device);
    lookup_job j = {.d = d, .l = l, .per_task = mr_cpu_rows_per_task(l->rows, l->width, WORK)};
    mr_team_run(d->team, (l->rows + j.per_task - 1) / j.per_task, lookup_rows, &j);
}

static void lookup_back_part(void *ctx, size_t task, unsigned member)
{
    const lookup_job *j = ctx;
    const mr_lookup *l = j->l;
    size_t at = task / j->buckets * j->columns, bucket = task % j->buckets;
    size_t n = l->width - at < j->columns ? l->width - at : j->columns;
    const mr_lines lines = {.d = j->d, .member = member, .type = l->type, .width = n};
    for (size_t row = 0; row < l->rows; row++) {
        if (((uint32_t)l->ids[row] & (j->buckets - 1)) != bucket || l->ids[row] == l->skip || !is_entry(l, row))
            continue;
        float *sum = l->d_table + (size_t)l->ids[row] * l->width + at;
        j->d->kernels->add(n, sum, mr_line_read(&lines, 0, l->d_y, row * l->width + at), sum);
    }
}

void mr_cpu_lookup_back(mr_device *device, const mr_lookup *l)
{
    mr_cpu *d = mr_cpu_of(device);
    if (!l->ids) { /* a single row gets all gradients */
        if (l->skip != 0)
            mr_cpu_sum_rows(device, &(mr_sum_rows){l->type, l->rows, l->width, l->d_y, l->d_table});
        return;
    }
    bool small = l->rows * l->width < WORK;
    lookup_job j = {.d = d, .l = l, .columns = small ? l->width : COLUMNS, .buckets = small ? 1 : BUCKETS};
    if (l->width)
        mr_team_run(d->team, (l->width + j.columns - 1) / j.columns * j.buckets, lookup_back_part, &j);
}

/* ---- unit vectors --------------------------------------------------------------------------------------------- */

typedef struct unit_job {
    const mr_unit *u;
    size_t per_task;
    void (*row)(const mr_unit *u, size_t row);
} unit_job;

/* Lengths in double, where the squares of a float32 row cannot overflow; compiled without -ffast-math. */
static void unit_row(const mr_unit *u, size_t row)
{
    const float *x = u->x + row * u->width;
    float *y = u->y + row * u->width;
    double squares = 0;
    for (size_t i = 0; i < u->width; i++)
        squares += (double)x[i] * (double)x[i];
    double length = sqrt(squares);
    if (length < (double)u->eps)
        length = (double)u->eps;
    u->lengths[row] = (float)length;
    for (size_t i = 0; i < u->width; i++)
        y[i] = (float)((double)x[i] / length);
}

static void unit_back_row(const mr_unit *u, size_t row)
{
    const float *y = u->y + row * u->width, *d_y = u->d_y + row * u->width;
    double length = (double)u->lengths[row], along = 0;
    for (size_t i = 0; i < u->width && !(u->lengths[row] <= u->eps); i++)
        along += (double)y[i] * (double)d_y[i];
    for (size_t i = 0; i < u->width; i++)
        mr_line_store(u->type, u->d_x, row * u->width + i, (float)(((double)d_y[i] - (double)y[i] * along) / length));
}

static void unit_rows(void *ctx, size_t task, unsigned member)
{
    const unit_job *j = ctx;
    size_t first = task * j->per_task, last = first + j->per_task < j->u->rows ? first + j->per_task : j->u->rows;
    (void)member;
    for (size_t row = first; row < last; row++)
        j->row(j->u, row);
}

static void run_unit(mr_device *device, const mr_unit *u, void (*row)(const mr_unit *u, size_t row))
{
    unit_job j = {.u = u, .per_task = mr_cpu_rows_per_task(u->rows, u->width, WORK_UNIT), .row = row};
    mr_team_run(mr_cpu_of(device)->team, (u->rows + j.per_task - 1) / j.per_task, unit_rows, &j);
}

void mr_cpu_unit(mr_device *device, const mr_unit *u)
{
    run_unit(device, u, unit_row);
}

void mr_cpu_unit_back(mr_device *device, const mr_unit *u)
{
    run_unit(device, u, unit_back_row);
}

/* ---- a learned scale ------------------------------------------------------------------------------------------ */

typedef struct scale_job {
    mr_cpu *d;
    const mr_scale *s;
    size_t per_task;
    float factor;
} scale_job;

static void scale_part(void *ctx, size_t task, unsigned member)
{
    const scale_job *j = ctx;
    const mr_scale *s = j->s;
    size_t first = task * j->per_task, last = s->count - first < j->per_task ? s->count : first + j->per_task;
    (void)member;
    for (size_t i = first; i < last; i++)
        s->y[i] = s->x[i] * j->factor;
}

static void scale_back_part(void *ctx, size_t task, unsigned member)
{
    const scale_job *j = ctx;
    const mr_scale *s = j->s;
    size_t first = task * j->per_task, last = s->count - first < j->per_task ? s->count : first + j->per_task;
    double sum = 0;
    (void)member;
    for (size_t i = first; i < last; i++) {
        sum += (double)s->d_y[i] * (double)s->y[i];
        s->d_x[i] = s->d_y[i] * j->factor;
    }
    j->d->squares[task] = sum;
}

/* At most as many parts as there is room for their sums. */
static size_t run_scale(scale_job *j, mr_team_fn fn)
{
    j->per_task = (j->s->count + MR_CPU_SQUARES - 1) / MR_CPU_SQUARES;
    j->per_task = j->per_task < WORK ? WORK : j->per_task;
    j->factor = (float)exp((double)*j->s->log_scale);
    size_t parts = (j->s->count + j->per_task - 1) / j->per_task;
    mr_team_run(j->d->team, parts, fn, j);
    return parts;
}

void mr_cpu_scale(mr_device *device, const mr_scale *s)
{
    scale_job j = {.d = mr_cpu_of(device), .s = s};
    run_scale(&j, scale_part);
}

void mr_cpu_scale_back(mr_device *device, const mr_scale *s)
{
    scale_job j = {.d = mr_cpu_of(device), .s = s};
    size_t parts = run_scale(&j, scale_back_part);
    double sum = 0;
    for (size_t i = 0; i < parts; i++)
        sum += j.d->squares[i];
    *s->d_log_scale += (float)sum;
}
