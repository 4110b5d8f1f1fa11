/* dense.c - matrix products, elementwise operations, and sums of whole buffers.
 * Invariant: a transposed operand is the same operand with its two strides exchanged. */
#include <math.h>

#include "device/launch/launch.h"

enum { GROUPS = 2048 };       /* that share a whole buffer: a large GPU has room for as many */
enum { A = 1, B = 2, C = 4 }; /* MR_GEMM_..._BF16 of gemm.cl */

void mr_launch_gemm(mr_device *device, const mr_gemm *g)
{
    size_t lda = g->lda ? g->lda : g->transpose_a ? g->m : g->k, ldb = g->ldb ? g->ldb : g->transpose_b ? g->k : g->n;
    size_t down = (g->m + MR_LAUNCH_TILE - 1) / MR_LAUNCH_TILE, across = (g->n + MR_LAUNCH_TILE - 1) / MR_LAUNCH_TILE;
    unsigned types =
        (g->a_type == MR_BF16 ? A : 0U) | (g->b_type == MR_BF16 ? B : 0U) | (g->c_type == MR_BF16 ? C : 0U);
    MR_LAUNCH(device, gemm, MR_F32,
              mr_grid_groups(down * across, mr_launcher_of(device)->one_lane ? 1 : MR_LAUNCH_GEMM_LANES),
              MR_EITHER(g->a, g->a_type), MR_EITHER(g->b, g->b_type), MR_EITHER(g->c, g->c_type), MR_FLOATS(g->bias),
              MR_U32(g->m), MR_U32(g->n), MR_U32(g->k), MR_U64(g->transpose_a ? 1 : lda),
              MR_U64(g->transpose_a ? lda : 1), MR_U64(g->transpose_b ? 1 : ldb), MR_U64(g->transpose_b ? ldb : 1),
              MR_U64(g->ldc ? g->ldc : g->n), MR_U32(g->accumulate), MR_U32(g->bias != NULL), MR_U32(types));
}

void mr_launch_drop(mr_device *device, const mr_drop *x)
{
    MR_LAUNCH(device, drop, x->type, mr_grid_rows(mr_launch_eights(x->width), x->rows), MR_REALS(x->d_y),
              MR_REALS(x->d_x), MR_U32(x->width), MR_U32(x->sample_rows), MR_WHOLE(x->width, x->d_y, x->d_x),
              MR_KEPT(x->dropout));
}

void mr_launch_activate(mr_device *device, const mr_activate *a)
{
    MR_LAUNCH(device, activate, a->type, mr_grid_rows(mr_launch_eights(a->width), a->rows), MR_REALS(a->x),
              MR_REALS(a->y), MR_U32(a->kind), MR_U32(a->width), MR_U32(a->sample_rows), MR_WHOLE(a->width, a->x, a->y),
              MR_KEPT(a->dropout));
}

void mr_launch_activate_back(mr_device *device, const mr_activate *a)
{
    MR_LAUNCH(device, activate_back, a->type, mr_grid_rows(mr_launch_eights(a->width), a->rows), MR_REALS(a->x),
              MR_REALS(a->d_y), MR_REALS(a->d_x), MR_U32(a->kind), MR_U32(a->width), MR_U32(a->sample_rows),
              MR_WHOLE(a->width, a->x, a->d_y, a->d_x), MR_KEPT(a->dropout));
}

/* ---- flat buffers --------------------------------------------------------------------------------------------- */

void mr_launch_add(mr_device *device, const mr_add *x)
{
    MR_LAUNCH(device, add, x->type, mr_grid_flat(mr_launch_eights(x->count)), MR_REALS(x->a), MR_REALS(x->b),
              MR_REALS(x->sum), MR_U64(x->count), MR_WHOLE(0, x->a, x->b, x->sum));
}

void mr_launch_sgd(mr_device *device, const mr_update *u)
{
    MR_LAUNCH(device, sgd, MR_F32, mr_grid_flat(u->count), MR_FLOATS(u->w), MR_FLOATS(u->g), MR_FLOATS(u->m),
              MR_U64(u->count), MR_REAL(u->g_scale), MR_REAL(u->lr), MR_REAL(u->decay), MR_REAL(u->momentum));
}

void mr_launch_adamw(mr_device *device, const mr_update *u)
{
    MR_LAUNCH(device, adamw, MR_F32, mr_grid_flat(mr_launch_eights(u->count)), MR_FLOATS(u->w), MR_FLOATS(u->g),
              MR_FLOATS(u->m), MR_FLOATS(u->v), MR_U64(u->count), MR_REAL(u->g_scale), MR_REAL(1 - u->lr * u->decay),
              MR_REAL(u->beta1), MR_REAL(1 - u->beta1), MR_REAL(u->beta2), MR_REAL(1 - u->beta2),
              MR_REAL(u->lr / u->correction1), MR_REAL(1 / sqrt(u->correction2)), MR_REAL(u->eps),
              MR_WHOLE(0, u->w, u->g, u->m, u->v));
}

static size_t groups_of(size_t count)
{
    size_t groups = (count + MR_LAUNCH_WIDTH - 1) / MR_LAUNCH_WIDTH;
    return groups < GROUPS ? groups : GROUPS;
}

void mr_launch_sum_squares(mr_device *device, const mr_sum_squares *x)
{
    enum { PARTS = 6 };
    static const int powers[PARTS] = {160, 160, 0, 0, -160, -160}; /* as in mr_squares, device/kernels/updates.cl */
    mr_launcher *d = mr_launcher_of(device);
    float parts[GROUPS * PARTS];
    size_t groups = groups_of(x->count);
    *x->sum = 0;
    if (!x->count)
        return;
    MR_LAUNCH(device, squares, MR_F32, mr_grid_groups(groups, MR_LAUNCH_WIDTH), MR_FLOATS(x->x), MR_FLOATS(d->scratch),
              MR_U64(x->count), MR_U32(groups), MR_WHOLE(0, x->x));
    device->iface->download(device, parts, d->scratch, groups * PARTS * sizeof *parts);
    for (size_t i = 0; i < groups * PARTS; i++)
        *x->sum += ldexp((double)parts[i], powers[i % PARTS]);
}

void mr_launch_scale(mr_device *device, const mr_scale *s)
{
    MR_LAUNCH(device, scale, MR_F32, mr_grid_flat(s->count), MR_FLOATS(s->log_scale), MR_FLOATS(s->x), MR_FLOATS(s->y),
              MR_U64(s->count));
}

void mr_launch_scale_back(mr_device *device, const mr_scale *s)
{
    mr_launcher *d = mr_launcher_of(device);
    size_t groups = groups_of(s->count);
    if (!s->count)
        return;
    MR_LAUNCH(device, scale_back, MR_F32, mr_grid_groups(groups, MR_LAUNCH_WIDTH), MR_FLOATS(s->log_scale),
              MR_FLOATS(s->y), MR_FLOATS(s->d_y), MR_FLOATS(s->d_x), MR_FLOATS(d->scratch), MR_U64(s->count),
              MR_U32(groups));
    MR_LAUNCH(device, sum_fold, MR_F32, mr_grid_flat(1), MR_FLOATS(d->scratch), MR_FLOATS(s->d_log_scale),
              MR_U32(groups), MR_U32(1), MR_U32(1));
}
