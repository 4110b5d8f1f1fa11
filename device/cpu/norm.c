/* norm.c - the CPU's layer norm, forward and backward, and sums over rows.
 * Invariant: sums over rows are computed in at most MR_CPU_PARTS parts, chosen by the shape alone, and added in order.
 *
 *      rows   | part 0 | part 1 | ... |        d->parts   | sums of part 0 | sums of part 1 | ... |
 */
#include <assert.h>
#include <string.h>

#include "cpu/cpu.h"

enum { WORK = 1 << 14 }; /* elements per task, about 10 us */

typedef struct job {
    mr_cpu *d;
    size_t rows, width, per_task;
    size_t parts, part_floats; /* a single part is added to the result directly */
    const mr_norm *n;
    const mr_norm_back *back;
    const float *x;
    float *sums[2];
} job;

static size_t last_row(const job *j, size_t task)
{
    return (task + 1) * j->per_task < j->rows ? (task + 1) * j->per_task : j->rows;
}

static void norm_rows(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    const mr_norm *n = j->n;
    (void)member;
    for (size_t row = task * j->per_task, last = last_row(j, task); row < last; row++) {
        size_t at = row * n->width, in_sample = n->sample_rows ? row % n->sample_rows : row;
        mr_cpu_mask mask = mr_cpu_mask_of(&n->dropout, n->sample_rows ? row / n->sample_rows : 0);
        mr_cpu_norm_row r = {
            .x = (const float *)n->x + at,
            .residual = n->residual ? (const float *)n->residual + at : NULL,
            .total = n->total ? (float *)n->total + at : NULL,
            .y = n->y ? (float *)n->y + at : NULL,
            .gain = n->gain,
            .bias = n->bias,
            .eps = n->eps,
        };
        j->d->kernels->norm(n->width, &r, &mask, (uint32_t)(in_sample * n->width));
        if (n->y) {
            n->mean[row] = r.mean;
            n->rstd[row] = r.rstd;
        }
    }
}

void mr_cpu_norm(mr_device *device, const mr_norm *n)
{
    assert(n->type == MR_F32);
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

static void sum_part(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    float *sums = j->parts > 1 ? part_of(j, task) : j->sums[0];
    (void)member;
    for (size_t row = task * j->per_task, last = last_row(j, task); row < last; row++)
        j->d->kernels->add(j->width, sums, j->x + row * j->width, sums);
}

void mr_cpu_sum_rows(mr_device *device, mr_type type, size_t rows, size_t width, const void *x, float *sums)
{
    assert(type == MR_F32);
    (void)type;
    job j = {.d = mr_cpu_of(device), .rows = rows, .width = width, .x = x, .sums = {sums}};
    cut_parts(&j, width);
    mr_team_run(j.d->team, j.parts, sum_part, &j);
    add_parts(&j, 0, sums);
}

static void norm_back_part(void *ctx, size_t task, unsigned member)
{
    const job *j = ctx;
    const mr_norm_back *n = j->back;
    float *d_gain = j->sums[0], *d_bias = j->sums[1];
    (void)member;
    if (j->parts > 1) {
        d_gain = part_of(j, task);
        d_bias = d_gain + j->width;
    }
    for (size_t row = task * j->per_task, last = last_row(j, task); row < last; row++) {
        size_t at = row * j->width;
        mr_cpu_norm_row r = {
            .x = (const float *)n->total + at, .gain = n->gain, .mean = n->mean[row], .rstd = n->rstd[row]};
        j->d->kernels->norm_back(j->width, &r, (const float *)n->d_y + at,
                                 n->d_residual ? (const float *)n->d_residual + at : NULL, (float *)n->d_total + at,
                                 d_gain, d_bias);
    }
}

void mr_cpu_norm_back(mr_device *device, const mr_norm_back *n)
{
    assert(n->type == MR_F32);
    job j = {.d = mr_cpu_of(device), .rows = n->rows, .width = n->width, .back = n, .sums = {n->d_gain, n->d_bias}};
    cut_parts(&j, 2 * n->width);
    mr_team_run(j.d->team, j.parts, norm_back_part, &j);
    add_parts(&j, 0, n->d_gain);
    add_parts(&j, n->width, n->d_bias);
}
