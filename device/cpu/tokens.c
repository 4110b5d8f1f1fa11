/* tokens.c - the CPU's operations that arrange a model's rows: patches, tokens, picked rows.
 * Invariant: sums over samples are computed in the order of the samples, by the task that owns the sum. */
#include <assert.h>
#include <string.h>

#include "cpu/cpu.h"

enum { WORK = 1 << 15 }; /* elements per task */

/* ---- patches -------------------------------------------------------------------------------------------------- */

typedef struct patches_job {
    const mr_patches *p;
    size_t grid;
} patches_job;

/* One line of a patch: `patch` pixels of each channel. */
static void patch_line(const mr_patches *p, const float *from, float *to, size_t y)
{
    size_t plane = p->side * p->side, n = p->patch;
    for (size_t c = 0; c < 3; c++) {
        const float *line = from + c * plane + y * p->side;
        if (p->channel_first)
            memcpy(to + (c * n + y) * n, line, n * sizeof *to);
        for (size_t x = 0; !p->channel_first && x < n; x++)
            to[(y * n + x) * 3 + c] = line[x];
    }
}

/* One line of patches. */
static void patches_line(void *ctx, size_t task, unsigned member)
{
    const patches_job *j = ctx;
    const mr_patches *p = j->p;
    size_t width = p->patch * p->patch * 3, sample = task / j->grid, row = task % j->grid;
    const float *image = p->images + sample * 3 * p->side * p->side + row * p->patch * p->side;
    float *to = (float *)p->rows + task * j->grid * width;
    (void)member;
    for (size_t i = 0; i < j->grid; i++)
        for (size_t y = 0; y < p->patch; y++)
            patch_line(p, image + i * p->patch, to + i * width, y);
}

void mr_cpu_patches(mr_device *device, const mr_patches *p)
{
    assert(p->type == MR_F32);
    patches_job j = {.p = p, .grid = p->patch ? p->side / p->patch : 0};
    mr_team_run(mr_cpu_of(device)->team, p->batch * j.grid, patches_line, &j);
}

/* ---- tokens --------------------------------------------------------------------------------------------------- */

typedef struct tokens_job {
    const mr_cpu *d;
    const mr_tokens *t;
    size_t per_task; /* rows of all samples; backward: of one */
} tokens_job;

static void tokens_rows(void *ctx, size_t task, unsigned member)
{
    const tokens_job *j = ctx;
    const mr_tokens *t = j->t;
    size_t rows = t->batch * t->rows, first = task * j->per_task;
    size_t last = first + j->per_task < rows ? first + j->per_task : rows;
    (void)member;
    for (size_t i = first; i < last; i++) {
        size_t sample = i / t->rows, row = i % t->rows;
        const float *x = row ? (const float *)t->x + (sample * (t->rows - 1) + row - 1) * t->width : t->first;
        float *y = (float *)t->y + i * t->width;
        mr_cpu_mask mask = mr_cpu_mask_of(&t->dropout, sample);
        j->d->kernels->add(t->width, x, t->position + row * t->width, y);
        if (mask.threshold)
            j->d->kernels->mask(t->width, &mask, (uint32_t)(row * t->width), y, y);
    }
}

void mr_cpu_tokens(mr_device *device, const mr_tokens *t)
{
    mr_cpu *d = mr_cpu_of(device);
    assert(t->type == MR_F32);
    size_t rows = t->batch * t->rows;
    tokens_job j = {.d = d, .t = t, .per_task = mr_cpu_rows_per_task(rows, t->width, WORK)};
    mr_team_run(d->team, (rows + j.per_task - 1) / j.per_task, tokens_rows, &j);
}

/* d_y of one row of one sample, through the mask, to d_x or to the first token. */
static void token_back(const tokens_job *j, size_t sample, size_t row)
{
    const mr_tokens *t = j->t;
    const mr_cpu_kernels *k = j->d->kernels;
    const float *d_y = (const float *)t->d_y + (sample * t->rows + row) * t->width;
    float *d_position = t->d_position + row * t->width;
    float *d_x = row ? (float *)t->d_x + (sample * (t->rows - 1) + row - 1) * t->width : t->d_first;
    mr_cpu_mask mask = mr_cpu_mask_of(&t->dropout, sample);
    if (row == 0 && mask.threshold) { /* both sums need the masked d_y: computed in small blocks */
        float block[256];
        for (size_t at = 0; at < t->width; at += MR_COUNT(block)) {
            size_t n = t->width - at < MR_COUNT(block) ? t->width - at : MR_COUNT(block);
            k->mask(n, &mask, (uint32_t)at, d_y + at, block);
            k->add(n, d_x + at, block, d_x + at);
            k->add(n, d_position + at, block, d_position + at);
        }
        return;
    }
    if (row == 0)
        k->add(t->width, d_x, d_y, d_x);
    else if (mask.threshold)
        k->mask(t->width, &mask, (uint32_t)(row * t->width), d_y, d_x);
    else if (d_x != d_y)
        memcpy(d_x, d_y, t->width * sizeof *d_x);
    k->add(t->width, d_position, row && mask.threshold ? d_x : d_y, d_position);
}

static void tokens_back_rows(void *ctx, size_t task, unsigned member)
{
    const tokens_job *j = ctx;
    size_t first = task * j->per_task, last = first + j->per_task < j->t->rows ? first + j->per_task : j->t->rows;
    (void)member;
    for (size_t row = first; row < last; row++)
        for (size_t sample = 0; sample < j->t->batch; sample++)
            token_back(j, sample, row);
}

void mr_cpu_tokens_back(mr_device *device, const mr_tokens *t)
{
    mr_cpu *d = mr_cpu_of(device);
    assert(t->type == MR_F32);
    tokens_job j = {.d = d, .t = t, .per_task = mr_cpu_rows_per_task(t->rows, t->batch * t->width, WORK)};
    mr_team_run(d->team, (t->rows + j.per_task - 1) / j.per_task, tokens_back_rows, &j);
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

typedef struct pick_job {
    const mr_cpu *d;
    const mr_rows *r;
    size_t from_stride, to_stride, per_task;
} pick_job;

static void pick_rows(void *ctx, size_t task, unsigned member)
{
    const pick_job *j = ctx;
    const mr_rows *r = j->r;
    size_t first = task * j->per_task, last = first + j->per_task < r->rows ? first + j->per_task : r->rows;
    (void)member;
    for (size_t row = first; row < last; row++) {
        const float *from = (const float *)r->from + row * j->from_stride;
        float *to = (float *)r->to + row * j->to_stride;
        if (r->accumulate)
            j->d->kernels->add(r->width, to, from, to);
        else if (to != from)
            memcpy(to, from, r->width * sizeof *to);
    }
}

void mr_cpu_rows(mr_device *device, const mr_rows *r)
{
    mr_cpu *d = mr_cpu_of(device);
    assert(r->type == MR_F32);
    pick_job j = {.d = d,
                  .r = r,
                  .from_stride = r->from_stride ? r->from_stride : r->width,
                  .to_stride = r->to_stride ? r->to_stride : r->width,
                  .per_task = mr_cpu_rows_per_task(r->rows, r->width, WORK)};
    mr_team_run(d->team, (r->rows + j.per_task - 1) / j.per_task, pick_rows, &j);
}
