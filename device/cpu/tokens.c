/* tokens.c - the CPU's operations that arrange a model's rows: patches, tokens, picked rows.
 * Invariant: sums over samples are computed in the order of the samples, by the task that owns the sum. */
#include <string.h>

#include "device/cpu/lines.h"

enum { WORK = 1 << 15 }; /* elements per task */

/* ---- patches -------------------------------------------------------------------------------------------------- */

typedef struct patches_job {
    const mr_cpu *d;
    const mr_patches *p;
    size_t grid;
} patches_job;

/* One line of a patch: `patch` pixels of each channel, to `rows` from element `at` on. */
static void patch_line(const mr_cpu *d, const mr_patches *p, const float *from, size_t at, size_t y)
{
    size_t plane = p->side * p->side, n = p->patch;
    for (size_t c = 0; c < 3; c++) {
        const float *line = from + c * plane + y * p->side;
        size_t first = at + (c * n + y) * n;
        if (p->channel_first && p->type == MR_BF16)
            d->kernels->narrow(n, line, (uint16_t *)p->rows + first);
        else if (p->channel_first)
            memcpy((float *)p->rows + first, line, n * sizeof *line);
        for (size_t x = 0; !p->channel_first && x < n; x++)
            mr_line_store(p->type, p->rows, at + (y * n + x) * 3 + c, line[x]);
    }
}

/* One line of patches. */
static void patches_line(void *ctx, size_t task, unsigned member)
{
    const patches_job *j = ctx;
    const mr_patches *p = j->p;
    size_t width = p->patch * p->patch * 3, sample = task / j->grid, row = task % j->grid;
    const float *image = p->images + sample * 3 * p->side * p->side + row * p->patch * p->side;
    (void)member;
    for (size_t i = 0; i < j->grid; i++)
        for (size_t y = 0; y < p->patch; y++)
            patch_line(j->d, p, image + i * p->patch, (task * j->grid + i) * width, y);
}

void mr_cpu_patches(mr_device *device, const mr_patches *p)
{
    mr_cpu *d = mr_cpu_of(device);
    patches_job j = {.d = d, .p = p, .grid = p->patch ? p->side / p->patch : 0};
    mr_team_run(d->team, p->batch * j.grid, patches_line, &j);
}

/* ---- tokens --------------------------------------------------------------------------------------------------- */

typedef struct tokens_job {
    const mr_cpu *d;
    const mr_tokens *t;
    size_t per_task; /* rows of all samples; backward: rows of one */
} tokens_job;

static void tokens_rows(void *ctx, size_t task, unsigned member)
{
    const tokens_job *j = ctx;
    const mr_tokens *t = j->t;
    size_t rows = t->batch * t->rows, first = task * j->per_task;
    size_t last = first + j->per_task < rows ? first + j->per_task : rows;
    const mr_lines l = {.d = j->d, .member = member, .type = t->type, .width = t->width};
    for (size_t i = first; i < last; i++) {
        size_t sample = i / t->rows, row = i % t->rows;
        const float *x = row ? mr_line_read(&l, 0, t->x, (sample * (t->rows - 1) + row - 1) * t->width) : t->first;
        float *y = mr_line_out(&l, 1, t->y, i * t->width);
        mr_cpu_mask mask = mr_cpu_mask_of(&t->dropout, sample);
        j->d->kernels->add(t->width, x, t->position + row * t->width, y);
        if (mask.threshold)
            j->d->kernels->mask(t->width, &mask, (uint32_t)(row * t->width), y, y);
        mr_line_write(&l, y, t->y, i * t->width);
    }
}

void mr_cpu_tokens(mr_device *device, const mr_tokens *t)
{
    mr_cpu *d = mr_cpu_of(device);
    size_t rows = t->batch * t->rows;
    tokens_job j = {.d = d, .t = t, .per_task = mr_cpu_rows_per_task(rows, t->width, WORK)};
    mr_team_run(d->team, (rows + j.per_task - 1) / j.per_task, tokens_rows, &j);
}

/* d_y of the first row of one sample, through the mask, is added to the first token and its position. */
static void first_token_back(const mr_lines *l, const mr_tokens *t, size_t sample)
{
    const mr_cpu_kernels *k = l->d->kernels;
    mr_cpu_mask mask = mr_cpu_mask_of(&t->dropout, sample);
    const float *d_y = mr_line_read(l, 0, t->d_y, sample * t->rows * t->width);
    float block[256];
    for (size_t at = 0; at < t->width; at += MR_COUNT(block)) {
        size_t n = t->width - at < MR_COUNT(block) ? t->width - at : MR_COUNT(block);
        if (mask.threshold)
            k->mask(n, &mask, (uint32_t)at, d_y + at, block);
        const float *d = mask.threshold ? block : d_y + at;
        k->add(n, t->d_first + at, d, t->d_first + at);
        k->add(n, t->d_position + at, d, t->d_position + at);
    }
}

/* The same for any other row: to d_x, and added to its position. */
static void token_back(const mr_lines *l, const mr_tokens *t, size_t sample, size_t row)
{
    const mr_cpu_kernels *k = l->d->kernels;
    size_t from = (sample * t->rows + row) * t->width, to = (sample * (t->rows - 1) + row - 1) * t->width;
    float *d_position = t->d_position + row * t->width;
    mr_cpu_mask mask = mr_cpu_mask_of(&t->dropout, sample);
    const float *d_y = mr_line_read(l, 0, t->d_y, from);
    if (!mask.threshold) {
        k->add(t->width, d_position, d_y, d_position);
        mr_line_copy(l, t->d_y, from, t->d_x, to);
        return;
    }
    float *d_x = mr_line_out(l, 1, t->d_x, to);
    k->mask(t->width, &mask, (uint32_t)(row * t->width), d_y, d_x);
    k->add(t->width, d_position, d_x, d_position);
    mr_line_write(l, d_x, t->d_x, to);
}

static void tokens_back_rows(void *ctx, size_t task, unsigned member)
{
    const tokens_job *j = ctx;
    const mr_tokens *t = j->t;
    size_t first = task * j->per_task, last = first + j->per_task < t->rows ? first + j->per_task : t->rows;
    const mr_lines l = {.d = j->d, .member = member, .type = t->type, .width = t->width};
    for (size_t row = first; row < last; row++)
        for (size_t sample = 0; sample < t->batch; sample++)
            if (row)
                token_back(&l, t, sample, row);
            else
                first_token_back(&l, t, sample);
}

void mr_cpu_tokens_back(mr_device *device, const mr_tokens *t)
{
    mr_cpu *d = mr_cpu_of(device);
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
    const mr_lines l = {.d = j->d, .member = member, .type = r->type, .width = r->width};
    for (size_t row = first; row < last; row++) {
        size_t from = row * j->from_stride, to = row * j->to_stride;
        if (!r->accumulate) {
            mr_line_copy(&l, r->from, from, r->to, to);
            continue;
        }
        float *sum = mr_line_out(&l, 2, r->to, to);
        j->d->kernels->add(r->width, mr_line_read(&l, 0, r->to, to), mr_line_read(&l, 1, r->from, from), sum);
        mr_line_write(&l, sum, r->to, to);
    }
}

void mr_cpu_rows(mr_device *device, const mr_rows *r)
{
    mr_cpu *d = mr_cpu_of(device);
    pick_job j = {.d = d,
                  .r = r,
                  .from_stride = r->from_stride ? r->from_stride : r->width,
                  .to_stride = r->to_stride ? r->to_stride : r->width,
                  .per_task = mr_cpu_rows_per_task(r->rows, r->width, WORK)};
    mr_team_run(d->team, (r->rows + j.per_task - 1) / j.per_task, pick_rows, &j);
}
