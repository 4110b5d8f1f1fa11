/* dense.c - products of matrices, elementwise operations, and sums of whole buffers.
 * Invariant: a transposed operand is the same operand with its two strides exchanged. */
#include <math.h>

#include "launch/launch.h"

enum { GROUPS = 256 };        /* that share a whole buffer */
enum { A = 1, B = 2, C = 4 }; /* MR_GEMM_..._BF16 of gemm.cl */

void mr_launch_gemm(mr_device *device, const mr_gemm *g)
{
    size_t lda = g->lda ? g->lda : g->transpose_a ? g->m : g->k, ldb = g->ldb ? g->ldb : g->transpose_b ? g->k : g->n;
    if (g->m == 0 || g->n == 0)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_gemm, MR_F32);
    mr_call_either(&c, g->a, g->a_type);
    mr_call_either(&c, g->b, g->b_type);
    mr_call_either(&c, g->c, g->c_type);
    mr_call_floats(&c, g->bias);
    mr_call_u32(&c, g->m);
    mr_call_u32(&c, g->n);
    mr_call_u32(&c, g->k);
    mr_call_u64(&c, g->transpose_a ? 1 : lda);
    mr_call_u64(&c, g->transpose_a ? lda : 1);
    mr_call_u64(&c, g->transpose_b ? 1 : ldb);
    mr_call_u64(&c, g->transpose_b ? ldb : 1);
    mr_call_u64(&c, g->ldc ? g->ldc : g->n);
    mr_call_u32(&c, g->accumulate);
    mr_call_u32(&c, g->bias != NULL);
    mr_call_u32(&c,
                (g->a_type == MR_BF16 ? A : 0U) | (g->b_type == MR_BF16 ? B : 0U) | (g->c_type == MR_BF16 ? C : 0U));
    mr_call_run_groups(&c,
                       (g->m + MR_LAUNCH_TILE - 1) / MR_LAUNCH_TILE * ((g->n + MR_LAUNCH_TILE - 1) / MR_LAUNCH_TILE),
                       c.d->one_lane ? 1 : MR_LAUNCH_GEMM_LANES);
}

void mr_launch_drop(mr_device *device, const mr_drop *x)
{
    if (!x->rows || !x->width)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_drop, x->type);
    mr_call_typed(&c, x->d_y);
    mr_call_typed(&c, x->d_x);
    mr_call_u32(&c, x->width);
    mr_call_u32(&c, x->sample_rows);
    mr_call_dropout(&c, &x->dropout);
    mr_call_run_rows(&c, x->width, x->rows);
}

static void run_activate(mr_device *device, const mr_activate *a, const void *d_y, void *to)
{
    if (!a->rows || !a->width)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_activate, a->type);
    mr_call_typed(&c, a->x);
    mr_call_typed(&c, d_y);
    mr_call_typed(&c, to);
    mr_call_u32(&c, a->kind);
    mr_call_u32(&c, d_y != NULL);
    mr_call_u32(&c, a->width);
    mr_call_u32(&c, a->sample_rows);
    mr_call_dropout(&c, &a->dropout);
    mr_call_run_rows(&c, a->width, a->rows);
}

void mr_launch_activate(mr_device *device, const mr_activate *a)
{
    run_activate(device, a, NULL, a->y);
}

void mr_launch_activate_back(mr_device *device, const mr_activate *a)
{
    run_activate(device, a, a->d_y, a->d_x);
}

/* ---- flat buffers --------------------------------------------------------------------------------------------- */

void mr_launch_add(mr_device *device, const mr_add *x)
{
    if (!x->count)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_add, x->type);
    mr_call_typed(&c, x->a);
    mr_call_typed(&c, x->b);
    mr_call_typed(&c, x->sum);
    mr_call_u64(&c, x->count);
    mr_call_run_flat(&c, x->count);
}

void mr_launch_sgd(mr_device *device, const mr_update *u)
{
    if (!u->count)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_sgd, MR_F32);
    mr_call_floats(&c, u->w);
    mr_call_floats(&c, u->g);
    mr_call_floats(&c, u->m);
    mr_call_u64(&c, u->count);
    mr_call_f32(&c, u->g_scale);
    mr_call_f32(&c, u->lr);
    mr_call_f32(&c, u->decay);
    mr_call_f32(&c, u->momentum);
    mr_call_run_flat(&c, u->count);
}

void mr_launch_adamw(mr_device *device, const mr_update *u)
{
    const double factors[] = {
        u->g_scale,
        1 - u->lr * u->decay,
        u->beta1,
        1 - u->beta1,
        u->beta2,
        1 - u->beta2,
        u->lr / u->correction1,
        1 / sqrt(u->correction2),
        u->eps,
    };
    if (!u->count)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_adamw, MR_F32);
    mr_call_floats(&c, u->w);
    mr_call_floats(&c, u->g);
    mr_call_floats(&c, u->m);
    mr_call_floats(&c, u->v);
    mr_call_u64(&c, u->count);
    for (size_t i = 0; i < MR_COUNT(factors); i++)
        mr_call_f32(&c, factors[i]);
    mr_call_run_flat(&c, u->count);
}

static size_t groups_of(size_t count)
{
    size_t groups = (count + MR_LAUNCH_WIDTH - 1) / MR_LAUNCH_WIDTH;
    return groups < GROUPS ? groups : GROUPS;
}

void mr_launch_sum_squares(mr_device *device, const mr_sum_squares *x)
{
    enum { PARTS = 6 };
    static const int powers[PARTS] = {160, 160, 0, 0, -160, -160}; /* of mr_squares in device/kernels/loss.cl */
    mr_launcher *d = mr_launcher_of(device);
    float parts[GROUPS * PARTS];
    size_t groups = groups_of(x->count);
    *x->sum = 0;
    if (!x->count)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_squares, MR_F32);
    mr_call_floats(&c, x->x);
    mr_call_floats(&c, d->scratch);
    mr_call_u64(&c, x->count);
    mr_call_u32(&c, groups);
    mr_call_run_groups(&c, groups, MR_LAUNCH_WIDTH);
    device->card->download(device, parts, d->scratch, groups * PARTS * sizeof *parts);
    for (size_t i = 0; i < groups * PARTS; i++)
        *x->sum += ldexp((double)parts[i], powers[i % PARTS]);
}

void mr_launch_scale(mr_device *device, const mr_scale *s)
{
    if (!s->count)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_scale, MR_F32);
    mr_call_floats(&c, s->log_scale);
    mr_call_floats(&c, s->x);
    mr_call_floats(&c, s->y);
    mr_call_u64(&c, s->count);
    mr_call_run_flat(&c, s->count);
}

void mr_launch_scale_back(mr_device *device, const mr_scale *s)
{
    mr_launcher *d = mr_launcher_of(device);
    size_t groups = groups_of(s->count);
    if (!s->count)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_scale_back, MR_F32);
    mr_call_floats(&c, s->log_scale);
    mr_call_floats(&c, s->y);
    mr_call_floats(&c, s->d_y);
    mr_call_floats(&c, s->d_x);
    mr_call_floats(&c, d->scratch);
    mr_call_u64(&c, s->count);
    mr_call_u32(&c, groups);
    mr_call_run_groups(&c, groups, MR_LAUNCH_WIDTH);
    c = mr_call_of(device, MR_KERNEL_sum_fold, MR_F32);
    mr_call_floats(&c, d->scratch);
    mr_call_floats(&c, s->d_log_scale);
    mr_call_u32(&c, groups);
    mr_call_u32(&c, 1);
    mr_call_u32(&c, 1);
    mr_call_run_flat(&c, 1);
}
