/* norm.c - the CPU's layer norm, forward and backward, and sums over rows.
 * Invariant: sums over rows are computed in at most MR_CPU_PARTS parts, chosen by the shape alone, and added in order.
 *
 *      rows   | part 0 | part 1 | ... |        d->parts   | sums of part 0 | sums of part 1 | ... | */
#include <assert.h>
#include <string.h>

#include "device/cpu/lines.h"

enum {
    WORK = 1 << 14, /* elements per task, about 10 us */
    PIECE = 1 << 12,
};

typedef struct job {
    mr_cpu *d;
    size_t rows, width, per_task;
    size_t parts, part_floats; /* a single part is added to the result directly */
    const mr_norm *n;
    const mr_norm_back *back;
    const void *x;
    mr_type type;
    float *sums[2];
} job;

static size_t last_row(const job *j, size_t task)
{
    return (task + 1) * j->per_task < j->rows ? (task + 1) * j->per_task : j->rows;
}

/* The sum is rounded to its type before it is normalized, as it is when the norm is recomputed from it. */
static void norm_row(const mr_lines *l, const mr_norm *n, size_t row)
{
    const mr_cpu_kernels *k = l->d->kernels;
    size_t at = row * n->width, in_sample = n->sample_rows ? row % n->sample_rows : row;
    const void *x = n->x;
    if (n->total) {
        mr_cpu_mask mask = mr_cpu_mask_of(&n->dropout, n->sample_rows ? row / n->sample_rows : 0);
        mr_cpu_norm_row sum = {.x = mr_line_read(l, 0, x, at),
                               .residual = mr_line_read(l, 1, n->residual, at),
                               .total = mr_line_out(l, 2, n->total, at)};
        k->norm(n->width, &sum, &mask, (uint32_t)(in_sample * n->width));
        mr_line_write(l, sum.total, n->total, at);
        x = n->total;
    }
    if (n->y) {
        mr_cpu_norm_row r = {.x = mr_line_read(l, 0, x, at),
                             .y = mr_line_out(l, 1, n->y, at),
                             .gain = n->gain,
                             .bias = n->bias,
                             .eps = n->eps};
        k->norm(n->width, &r, &(mr_cpu_mask){0}, 0);
        mr_line_write(l, r.y, n->y, at);
        n->mean[row] = r.mean;
        n->rstd[row] = r.rstd;
    }
}

static void norm_rows(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    const mr_lines l = {.d = j->d, .member = member, .type = j->n->type, .width = j->width};
    for (size_t row = task * j->per_task, last = last_row(j, task); row < last; row++)
        norm_row(&l, j->n, row);
}

void mr_cpu_norm(mr_device *device, const mr_norm *n)
{
    assert(n->total || (!n->residual && !(n->dropout.rate > 0)));
    job j = {.d = mr_cpu_of(device), .rows = n->rows, .width = n->width, .n = n};
    j.per_task = mr_cpu_rows_per_task(n->rows, n->width, WORK);
    mr_team_run(j.d->team, (n->rows + j.per_task - 1) / j.per_task, norm_rows, &j);
}

/* ---- sums over rows ------------------------------------------------------------------------------------------- */

static void cut_parts(job *j, size_t floats)
{
    size_t max = floats ? MR_CPU_PART_FLOATS / floats : 1;
    max = max < 1 ? 1 : max > MR_CPU_PARTS ? MR_CPU_PARTS : max;
    size_t least = mr_cpu_rows_per_task(j->rows, j->width, WORK);
    j->per_task = (j->rows + max - 1) / max;
    j->per_task = j->per_task < least ? least : j->per_task;
    j->parts = (j->rows + j->per_task - 1) / j->per_task;
    j->part_floats = floats;
}

static float *part_of(const job *j, size_t task)
{
    float *part = (float *)(void *)j->d->parts.data + task * j->part_floats;
    memset(part, 0, j->part_floats * sizeof *part);
    return part;
}

static void add_parts(const job *j, size_t offset, float *sums)
{
    float *all = (float *)(void *)j->d->parts.data + offset;
    for (size_t i = 1; j->parts > 1 && i < j->parts; i++)
        j->d->kernels->add(j->width, all, all + i * j->part_floats, all);
    if (j->parts > 1)
        j->d->kernels->add(j->width, sums, all, sums);
}

/* bf16: in pieces, as a row may be wider than a line. */
static void sum_part(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    float *sums = j->parts > 1 ? part_of(j, task) : j->sums[0];
    for (size_t row = task * j->per_task, last = last_row(j, task); row < last; row++) {
        for (size_t at = 0, n; at < j->width; at += n) {
            n = j->type == MR_F32 || j->width - at < PIECE ? j->width - at : PIECE;
            const mr_lines l = {.d = j->d, .member = member, .type = j->type, .width = n};
            j->d->kernels->add(n, sums + at, mr_line_read(&l, 0, j->x, row * j->width + at), sums + at);
        }
    }
}

void mr_cpu_sum_rows(mr_device *device, const mr_sum_rows *s)
{
    job j = {.d = mr_cpu_of(device), .rows = s->rows, .width = s->width, .x = s->x, .type = s->type, .sums = {s->sums}};
    cut_parts(&j, s->width);
    mr_team_run(j.d->team, j.parts, sum_part, &j);
    add_parts(&j, 0, s->sums);
}

static void norm_back_part(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    const mr_norm_back *n = j->back;
    const mr_lines l = {.d = j->d, .member = member, .type = n->type, .width = j->width};
    float *d_gain = j->sums[0], *d_bias = j->sums[1];
    if (j->parts > 1) {
        d_gain = part_of(j, task);
        d_bias = d_gain + j->width;
    }
    for (size_t row = task * j->per_task, last = last_row(j, task); row < last; row++) {
        size_t at = row * j->width;
        mr_cpu_norm_row r = {
            .x = mr_line_read(&l, 0, n->total, at), .gain = n->gain, .mean = n->mean[row], .rstd = n->rstd[row]};
        const float *d_y = mr_line_read(&l, 1, n->d_y, at), *d_residual = mr_line_read(&l, 2, n->d_residual, at);
        float *d_total = mr_line_out(&l, 3, n->d_total, at);
        j->d->kernels->norm_back(j->width, &r, d_y, d_residual, d_total, d_gain, d_bias);
        mr_line_write(&l, d_total, n->d_total, at);
    }
}

void mr_cpu_norm_back(mr_device *device, const mr_norm_back *n)
{
    job j = {.d = mr_cpu_of(device), .rows = n->rows, .width = n->width, .back = n, .sums = {n->d_gain, n->d_bias}};
    cut_parts(&j, 2 * n->width);
    mr_team_run(j.d->team, j.parts, norm_back_part, &j);
    add_parts(&j, 0, n->d_gain);
    add_parts(&j, n->width, n->d_bias);
}
