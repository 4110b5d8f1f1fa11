/* rows.c - operations on rows: layer norm, sums over rows, unit vectors, losses.
 * Invariant: sums over rows are computed in parts chosen by the shape alone, and added in order. */
#include <assert.h>

#include "launch/launch.h"

enum { PARTS_MAX = 64, ROWS_MIN = 16 }; /* partial sums, and rows of one */

/* ---- sums over rows ------------------------------------------------------------------------------------------- */

static void fold(mr_device *device, const float *parts, float *sums, size_t count, size_t stride, size_t width)
{
    mr_call c = mr_call_of(device, MR_KERNEL_sum_fold, MR_F32);
    mr_call_floats(&c, parts);
    mr_call_floats(&c, sums);
    mr_call_u32(&c, count);
    mr_call_u32(&c, stride);
    mr_call_u32(&c, width);
    mr_call_run_flat(&c, width);
}

/* s->sums += the sums of x, or with `n` of x h, and then n->d_bias += the sums of x. */
static void sum_rows(mr_device *device, const mr_sum_rows *s, const mr_norm_back *n)
{
    float *scratch = mr_launcher_of(device)->scratch;
    size_t rows = s->rows, width = s->width, floats = n ? 2 * width : width,
           most = floats ? MR_LAUNCH_SCRATCH_FLOATS / floats : 1;
    most = most < 1 ? 1 : most > PARTS_MAX ? PARTS_MAX : most;
    size_t per_part = (rows + most - 1) / most;
    per_part = per_part < ROWS_MIN ? ROWS_MIN : per_part;
    size_t parts = (rows + per_part - 1) / per_part;
    mr_call c = mr_call_of(device, MR_KERNEL_sum_part, s->type);
    mr_call_typed(&c, s->x);
    mr_call_typed(&c, n ? n->total : NULL);
    mr_call_floats(&c, n ? n->mean : NULL);
    mr_call_floats(&c, n ? n->rstd : NULL);
    mr_call_floats(&c, scratch);
    mr_call_u32(&c, rows);
    if (floats > MR_LAUNCH_SCRATCH_FLOATS)
        mr_call_refuse(&c, "is too large");
    mr_call_u32(&c, width);
    mr_call_u32(&c, per_part);
    mr_call_u32(&c, n != NULL);
    mr_call_run_rows(&c, width, parts);
    fold(device, scratch, s->sums, parts, floats, width);
    if (n)
        fold(device, scratch + width, n->d_bias, parts, floats, width);
}

void mr_launch_sum_rows(mr_device *device, const mr_sum_rows *s)
{
    if (s->rows && s->width)
        sum_rows(device, s, NULL);
}

/* ---- layer norm ----------------------------------------------------------------------------------------------- */

void mr_launch_norm(mr_device *device, const mr_norm *n)
{
    assert(n->total || (!n->residual && !(n->dropout.rate > 0)));
    if (!n->rows || !n->width)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_norm, n->type);
    const void *const typed[] = {n->x, n->residual, n->total, n->y}, *const floats[] = {n->gain, n->bias, n->mean,
                                                                                        n->rstd};
    for (size_t i = 0; i < MR_COUNT(typed); i++)
        mr_call_typed(&c, typed[i]);
    for (size_t i = 0; i < MR_COUNT(floats); i++)
        mr_call_floats(&c, floats[i]);
    mr_call_u32(&c, n->width);
    mr_call_u32(&c, n->sample_rows);
    mr_call_f32(&c, (double)n->eps);
    mr_call_u32(&c, n->residual != NULL);
    mr_call_u32(&c, n->total != NULL);
    mr_call_u32(&c, n->y != NULL);
    mr_call_dropout(&c, &n->dropout);
    mr_call_run_groups(&c, n->rows, MR_LAUNCH_WIDTH);
}

/* d_gain and d_bias first: d_total may replace d_y. */
void mr_launch_norm_back(mr_device *device, const mr_norm_back *n)
{
    if (!n->rows || !n->width)
        return;
    sum_rows(device, &(mr_sum_rows){n->type, n->rows, n->width, n->d_y, n->d_gain}, n);
    mr_call c = mr_call_of(device, MR_KERNEL_norm_back, n->type);
    mr_call_typed(&c, n->d_y);
    mr_call_typed(&c, n->total);
    mr_call_floats(&c, n->gain);
    mr_call_floats(&c, n->mean);
    mr_call_floats(&c, n->rstd);
    mr_call_typed(&c, n->d_residual);
    mr_call_typed(&c, n->d_total);
    mr_call_u32(&c, n->width);
    mr_call_u32(&c, n->d_residual != NULL);
    mr_call_run_groups(&c, n->rows, MR_LAUNCH_WIDTH);
}

/* ---- unit vectors --------------------------------------------------------------------------------------------- */

void mr_launch_unit(mr_device *device, const mr_unit *u)
{
    if (!u->rows || !u->width)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_unit, MR_F32);
    mr_call_floats(&c, u->x);
    mr_call_floats(&c, u->y);
    mr_call_floats(&c, u->lengths);
    mr_call_u32(&c, u->width);
    mr_call_f32(&c, (double)u->eps);
    mr_call_run_groups(&c, u->rows, MR_LAUNCH_WIDTH);
}

void mr_launch_unit_back(mr_device *device, const mr_unit *u)
{
    if (!u->rows || !u->width)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_unit_back, u->type);
    mr_call_floats(&c, u->y);
    mr_call_floats(&c, u->lengths);
    mr_call_floats(&c, u->d_y);
    mr_call_typed(&c, u->d_x);
    mr_call_u32(&c, u->width);
    mr_call_f32(&c, (double)u->eps);
    mr_call_run_groups(&c, u->rows, MR_LAUNCH_WIDTH);
}

/* ---- cross entropy -------------------------------------------------------------------------------------------- */

enum { WEIGHTS = 1, COLUMNS = 2, GROUPS = 4, BACK = 8, BEST = 16, ADD = 32 }; /* MR_LOSS_... of loss.cl */

void mr_launch_cross_entropy(mr_device *device, const mr_cross_entropy *l)
{
    assert(l->classes);
    if (!l->rows)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_cross_entropy, l->type);
    const void *const before[] = {l->logits, l->labels, l->weights, l->losses}, *const after[] = {l->best, l->columns,
                                                                                                  l->groups};
    for (size_t i = 0; i < MR_COUNT(before); i++)
        mr_call_floats(&c, before[i]);
    mr_call_typed(&c, l->d_logits);
    for (size_t i = 0; i < MR_COUNT(after); i++)
        mr_call_floats(&c, after[i]);
    mr_call_u32(&c, l->classes);
    mr_call_f32(&c, l->share != 0 ? (double)l->share : 1);
    mr_call_f32(&c, (double)l->smoothing);
    mr_call_u32(&c, (l->weights ? WEIGHTS : 0U) | (l->columns ? COLUMNS : 0U) | (l->groups ? GROUPS : 0U) |
                        (l->d_logits ? BACK : 0U) | (l->best ? BEST : 0U) | (l->add_losses ? ADD : 0U));
    mr_call_run_groups(&c, l->rows, MR_LAUNCH_WIDTH);
}

void mr_launch_sigmoid_loss(mr_device *device, const mr_sigmoid_loss *l)
{
    assert(l->classes);
    if (!l->rows)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_sigmoid_loss, l->type);
    const void *const before[] = {l->logits, l->targets, l->positive, l->weights, l->losses};
    for (size_t i = 0; i < MR_COUNT(before); i++)
        mr_call_floats(&c, before[i]);
    mr_call_typed(&c, l->d_logits);
    mr_call_floats(&c, l->best);
    mr_call_u32(&c, l->classes);
    mr_call_u32(&c, (l->weights ? WEIGHTS : 0U) | (l->positive ? COLUMNS : 0U) | (l->d_logits ? BACK : 0U) |
                        (l->best ? BEST : 0U));
    mr_call_run_groups(&c, l->rows, MR_LAUNCH_WIDTH);
}
