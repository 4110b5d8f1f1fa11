/* rows.c - operations on rows: layer norm, sums over rows, unit vectors, losses.
 * Invariant: sums over rows are computed in parts chosen by the shape alone, and added in order. */
#include <assert.h>

#include "device/launch/launch.h"

enum { PARTS_MAX = 64, ROWS_MIN = 16 }; /* partial sums, and rows of one */

/* ---- sums over rows ------------------------------------------------------------------------------------------- */

static void fold(mr_device *device, const float *parts, float *sums, size_t count, size_t stride, size_t width)
{
    MR_LAUNCH(device, sum_fold, MR_F32, mr_grid_flat(width), MR_FLOATS(parts), MR_FLOATS(sums), MR_U32(count),
              MR_U32(stride), MR_U32(width));
}

/* s->sums += the sums of x, or with `n` of x h, and then n->d_bias += the sums of x. */
static void sum_rows(mr_device *device, const mr_sum_rows *s, const mr_norm_back *n)
{
    float *scratch = mr_launcher_of(device)->scratch;
    size_t rows = s->rows, width = s->width, floats = n ? 2 * width : width;
    size_t most = floats ? MR_LAUNCH_SCRATCH_FLOATS / floats : 1;
    most = most < 1 ? 1 : most > PARTS_MAX ? PARTS_MAX : most;
    size_t per_part = (rows + most - 1) / most;
    per_part = per_part < ROWS_MIN ? ROWS_MIN : per_part;
    size_t parts = (rows + per_part - 1) / per_part;
    MR_LAUNCH(device, sum_part, s->type, mr_grid_rows(width, parts), MR_REALS(s->x), MR_REALS(n ? n->total : NULL),
              MR_FLOATS(n ? n->mean : NULL), MR_FLOATS(n ? n->rstd : NULL), MR_FLOATS(scratch), MR_U32(rows),
              MR_U32(floats > MR_LAUNCH_SCRATCH_FLOATS ? SIZE_MAX : width), MR_U32(per_part), MR_U32(n != NULL),
              MR_WHOLE(width, s->x, n ? n->total : NULL));
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
    MR_LAUNCH(device, norm, n->type, mr_grid_groups(n->width ? n->rows : 0, MR_LAUNCH_WIDTH), MR_REALS(n->x),
              MR_REALS(n->residual), MR_REALS(n->total), MR_REALS(n->y), MR_FLOATS(n->gain), MR_FLOATS(n->bias),
              MR_FLOATS(n->mean), MR_FLOATS(n->rstd), MR_U32(n->width), MR_U32(n->sample_rows), MR_REAL(n->eps),
              MR_U32(n->residual != NULL), MR_U32(n->total != NULL), MR_U32(n->y != NULL),
              MR_WHOLE(n->width, n->x, n->residual, n->total, n->y, n->gain, n->bias), MR_KEPT(n->dropout));
}

/* d_gain and d_bias first: d_total may replace d_y. */
void mr_launch_norm_back(mr_device *device, const mr_norm_back *n)
{
    if (!n->rows || !n->width)
        return;
    sum_rows(device, &(mr_sum_rows){n->type, n->rows, n->width, n->d_y, n->d_gain}, n);
    MR_LAUNCH(device, norm_back, n->type, mr_grid_groups(n->rows, MR_LAUNCH_WIDTH), MR_REALS(n->d_y),
              MR_REALS(n->total), MR_FLOATS(n->gain), MR_FLOATS(n->mean), MR_FLOATS(n->rstd), MR_REALS(n->d_residual),
              MR_REALS(n->d_total), MR_U32(n->width), MR_U32(n->d_residual != NULL),
              MR_WHOLE(n->width, n->d_y, n->total, n->gain, n->d_residual, n->d_total));
}

/* ---- unit vectors --------------------------------------------------------------------------------------------- */

void mr_launch_unit(mr_device *device, const mr_unit *u)
{
    MR_LAUNCH(device, unit, MR_F32, mr_grid_groups(u->width ? u->rows : 0, MR_LAUNCH_WIDTH), MR_FLOATS(u->x),
              MR_FLOATS(u->y), MR_FLOATS(u->lengths), MR_U32(u->width), MR_REAL(u->eps));
}

void mr_launch_unit_back(mr_device *device, const mr_unit *u)
{
    MR_LAUNCH(device, unit_back, u->type, mr_grid_groups(u->width ? u->rows : 0, MR_LAUNCH_WIDTH), MR_FLOATS(u->y),
              MR_FLOATS(u->lengths), MR_FLOATS(u->d_y), MR_REALS(u->d_x), MR_U32(u->width), MR_REAL(u->eps));
}

/* ---- cross entropy -------------------------------------------------------------------------------------------- */

enum { WEIGHTS = 1, COLUMNS = 2, GROUPS = 4, BACK = 8, BEST = 16, ADD = 32 }; /* MR_LOSS_... of loss.cl */

void mr_launch_cross_entropy(mr_device *device, const mr_cross_entropy *l)
{
    assert(l->classes);
    unsigned what = (l->weights ? WEIGHTS : 0U) | (l->columns ? COLUMNS : 0U) | (l->groups ? GROUPS : 0U) |
                    (l->d_logits ? BACK : 0U) | (l->best ? BEST : 0U) | (l->add_losses ? ADD : 0U);
    MR_LAUNCH(device, cross_entropy, l->type, mr_grid_groups(l->rows, MR_LAUNCH_WIDTH), MR_FLOATS(l->logits),
              MR_FLOATS(l->labels), MR_FLOATS(l->weights), MR_FLOATS(l->losses), MR_REALS(l->d_logits),
              MR_FLOATS(l->best), MR_FLOATS(l->columns), MR_FLOATS(l->groups), MR_U32(l->classes),
              MR_REAL(l->share != 0 ? l->share : 1), MR_REAL(l->smoothing), MR_U32(what));
}

void mr_launch_sigmoid_loss(mr_device *device, const mr_sigmoid_loss *l)
{
    assert(l->classes);
    unsigned what =
        (l->weights ? WEIGHTS : 0U) | (l->positive ? COLUMNS : 0U) | (l->d_logits ? BACK : 0U) | (l->best ? BEST : 0U);
    MR_LAUNCH(device, sigmoid_loss, l->type, mr_grid_groups(l->rows, MR_LAUNCH_WIDTH), MR_FLOATS(l->logits),
              MR_FLOATS(l->targets), MR_FLOATS(l->positive), MR_FLOATS(l->weights), MR_FLOATS(l->losses),
              MR_REALS(l->d_logits), MR_FLOATS(l->best), MR_U32(l->classes), MR_U32(what));
}
