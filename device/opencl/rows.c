/* rows.c - operations on rows: layer norm, sums over rows, unit vectors, losses.
 * Invariant: sums over rows are computed in parts chosen by the shape alone, and added in order. */
#include <assert.h>

#include "opencl/opencl.h"

enum { PARTS_MAX = 64, ROWS_MIN = 16 }; /* partial sums, and rows of one */

/* ---- sums over rows ------------------------------------------------------------------------------------------- */

static void fold(mr_device *device, const float *parts, float *sums, size_t count, size_t stride, size_t width)
{
    mr_cl_call c = mr_cl_begin(device, MR_CL_sum_fold);
    mr_cl_floats(&c, parts);
    mr_cl_floats(&c, sums);
    mr_cl_u32(&c, count);
    mr_cl_u32(&c, stride);
    mr_cl_u32(&c, width);
    mr_cl_run_flat(&c, width);
}

/* first += the sums of x, or with `n` of x h, and then n->d_bias += the sums of x. */
static void sum_rows(mr_device *device, size_t rows, size_t width, const void *x, const mr_norm_back *n, float *first)
{
    float *scratch = mr_opencl_of(device)->scratch;
    size_t floats = n ? 2 * width : width, most = floats ? MR_CL_SCRATCH_FLOATS / floats : 1;
    most = most < 1 ? 1 : most > PARTS_MAX ? PARTS_MAX : most;
    size_t per_part = (rows + most - 1) / most;
    per_part = per_part < ROWS_MIN ? ROWS_MIN : per_part;
    size_t parts = (rows + per_part - 1) / per_part;
    mr_cl_call c = mr_cl_begin(device, MR_CL_sum_part);
    mr_cl_floats(&c, x);
    mr_cl_floats(&c, n ? n->total : NULL);
    mr_cl_floats(&c, n ? n->mean : NULL);
    mr_cl_floats(&c, n ? n->rstd : NULL);
    mr_cl_floats(&c, scratch);
    mr_cl_u32(&c, rows);
    if (floats > MR_CL_SCRATCH_FLOATS)
        mr_cl_refuse(&c, "is too large");
    mr_cl_u32(&c, width);
    mr_cl_u32(&c, per_part);
    mr_cl_u32(&c, n != NULL);
    mr_cl_run_rows(&c, width, parts);
    fold(device, scratch, first, parts, floats, width);
    if (n)
        fold(device, scratch + width, n->d_bias, parts, floats, width);
}

void mr_cl_sum_rows(mr_device *device, mr_type type, size_t rows, size_t width, const void *x, float *sums)
{
    assert(type == MR_F32);
    (void)type;
    if (rows && width)
        sum_rows(device, rows, width, x, NULL, sums);
}

/* ---- layer norm ----------------------------------------------------------------------------------------------- */

void mr_cl_norm(mr_device *device, const mr_norm *n)
{
    assert(n->type == MR_F32);
    assert(n->total || (!n->residual && !(n->dropout.rate > 0)));
    if (!n->rows || !n->width)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_norm);
    const void *const tensors[] = {n->x, n->residual, n->total, n->y, n->gain, n->bias, n->mean, n->rstd};
    for (size_t i = 0; i < MR_COUNT(tensors); i++)
        mr_cl_floats(&c, tensors[i]);
    mr_cl_u32(&c, n->width);
    mr_cl_u32(&c, n->sample_rows);
    mr_cl_f32(&c, (double)n->eps);
    mr_cl_u32(&c, n->residual != NULL);
    mr_cl_u32(&c, n->total != NULL);
    mr_cl_u32(&c, n->y != NULL);
    mr_cl_dropout(&c, &n->dropout);
    mr_cl_run_groups(&c, n->rows, MR_CL_WIDTH);
}

/* d_gain and d_bias first: d_total may replace d_y. */
void mr_cl_norm_back(mr_device *device, const mr_norm_back *n)
{
    assert(n->type == MR_F32);
    if (!n->rows || !n->width)
        return;
    sum_rows(device, n->rows, n->width, n->d_y, n, n->d_gain);
    mr_cl_call c = mr_cl_begin(device, MR_CL_norm_back);
    const void *const tensors[] = {n->d_y, n->total, n->gain, n->mean, n->rstd, n->d_residual, n->d_total};
    for (size_t i = 0; i < MR_COUNT(tensors); i++)
        mr_cl_floats(&c, tensors[i]);
    mr_cl_u32(&c, n->width);
    mr_cl_u32(&c, n->d_residual != NULL);
    mr_cl_run_groups(&c, n->rows, MR_CL_WIDTH);
}

/* ---- unit vectors --------------------------------------------------------------------------------------------- */

void mr_cl_unit(mr_device *device, const mr_unit *u)
{
    assert(u->type == MR_F32);
    if (!u->rows || !u->width)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_unit);
    mr_cl_floats(&c, u->x);
    mr_cl_floats(&c, u->y);
    mr_cl_floats(&c, u->lengths);
    mr_cl_u32(&c, u->width);
    mr_cl_f32(&c, (double)u->eps);
    mr_cl_run_groups(&c, u->rows, MR_CL_WIDTH);
}

void mr_cl_unit_back(mr_device *device, const mr_unit *u)
{
    assert(u->type == MR_F32);
    if (!u->rows || !u->width)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_unit_back);
    mr_cl_floats(&c, u->y);
    mr_cl_floats(&c, u->lengths);
    mr_cl_floats(&c, u->d_y);
    mr_cl_floats(&c, u->d_x);
    mr_cl_u32(&c, u->width);
    mr_cl_f32(&c, (double)u->eps);
    mr_cl_run_groups(&c, u->rows, MR_CL_WIDTH);
}

/* ---- cross entropy -------------------------------------------------------------------------------------------- */

enum { WEIGHTS = 1, COLUMNS = 2, GROUPS = 4, BACK = 8, BEST = 16, ADD = 32 }; /* MR_LOSS_... of loss.cl */

void mr_cl_cross_entropy(mr_device *device, const mr_cross_entropy *l)
{
    assert(l->type == MR_F32 && l->classes);
    if (!l->rows)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_cross_entropy);
    const void *const tensors[] = {l->logits,   l->labels, l->weights, l->losses,
                                   l->d_logits, l->best,   l->columns, l->groups};
    for (size_t i = 0; i < MR_COUNT(tensors); i++)
        mr_cl_floats(&c, tensors[i]);
    mr_cl_u32(&c, l->classes);
    mr_cl_f32(&c, l->share != 0 ? (double)l->share : 1);
    mr_cl_f32(&c, (double)l->smoothing);
    mr_cl_u32(&c, (l->weights ? WEIGHTS : 0U) | (l->columns ? COLUMNS : 0U) | (l->groups ? GROUPS : 0U) |
                      (l->d_logits ? BACK : 0U) | (l->best ? BEST : 0U) | (l->add_losses ? ADD : 0U));
    mr_cl_run_groups(&c, l->rows, MR_CL_WIDTH);
}

void mr_cl_sigmoid_loss(mr_device *device, const mr_sigmoid_loss *l)
{
    assert(l->type == MR_F32 && l->classes);
    if (!l->rows)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_sigmoid_loss);
    const void *const tensors[] = {l->logits, l->targets, l->positive, l->weights, l->losses, l->d_logits, l->best};
    for (size_t i = 0; i < MR_COUNT(tensors); i++)
        mr_cl_floats(&c, tensors[i]);
    mr_cl_u32(&c, l->classes);
    mr_cl_u32(&c, (l->weights ? WEIGHTS : 0U) | (l->positive ? COLUMNS : 0U) | (l->d_logits ? BACK : 0U) |
                      (l->best ? BEST : 0U));
    mr_cl_run_groups(&c, l->rows, MR_CL_WIDTH);
}
