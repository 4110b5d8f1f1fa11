/* dense.c - products of matrices, elementwise operations, and sums of whole buffers.
 * Invariant: a transposed operand is the same operand with its two strides exchanged. */
#include <assert.h>
#include <math.h>

#include "opencl/opencl.h"

enum { GROUPS = 256 }; /* that share a whole buffer */

void mr_cl_gemm(mr_device *device, const mr_gemm *g)
{
    size_t lda = g->lda ? g->lda : g->transpose_a ? g->m : g->k, ldb = g->ldb ? g->ldb : g->transpose_b ? g->k : g->n;
    assert(g->a_type == MR_F32 && g->b_type == MR_F32 && g->c_type == MR_F32);
    if (g->m == 0 || g->n == 0)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_gemm);
    mr_cl_floats(&c, g->a);
    mr_cl_floats(&c, g->b);
    mr_cl_floats(&c, g->c);
    mr_cl_floats(&c, g->bias);
    mr_cl_u32(&c, g->m);
    mr_cl_u32(&c, g->n);
    mr_cl_u32(&c, g->k);
    mr_cl_u64(&c, g->transpose_a ? 1 : lda);
    mr_cl_u64(&c, g->transpose_a ? lda : 1);
    mr_cl_u64(&c, g->transpose_b ? 1 : ldb);
    mr_cl_u64(&c, g->transpose_b ? ldb : 1);
    mr_cl_u64(&c, g->ldc ? g->ldc : g->n);
    mr_cl_u32(&c, g->accumulate);
    mr_cl_u32(&c, g->bias != NULL);
    mr_cl_run_groups(&c, (g->m + MR_CL_TILE - 1) / MR_CL_TILE * ((g->n + MR_CL_TILE - 1) / MR_CL_TILE),
                     MR_CL_GEMM_LANES);
}

void mr_cl_drop(mr_device *device, mr_type type, size_t rows, size_t width, size_t sample_rows,
                const mr_dropout *dropout, const void *d_y, void *d_x)
{
    assert(type == MR_F32);
    (void)type;
    if (!rows || !width)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_drop);
    mr_cl_floats(&c, d_y);
    mr_cl_floats(&c, d_x);
    mr_cl_u32(&c, width);
    mr_cl_u32(&c, sample_rows);
    mr_cl_dropout(&c, dropout);
    mr_cl_run_rows(&c, width, rows);
}

static void run_activate(mr_device *device, const mr_activate *a, const void *d_y, void *to)
{
    assert(a->type == MR_F32);
    if (!a->rows || !a->width)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_activate);
    mr_cl_floats(&c, a->x);
    mr_cl_floats(&c, d_y);
    mr_cl_floats(&c, to);
    mr_cl_u32(&c, a->kind);
    mr_cl_u32(&c, d_y != NULL);
    mr_cl_u32(&c, a->width);
    mr_cl_u32(&c, a->sample_rows);
    mr_cl_dropout(&c, &a->dropout);
    mr_cl_run_rows(&c, a->width, a->rows);
}

void mr_cl_activate(mr_device *device, const mr_activate *a)
{
    run_activate(device, a, NULL, a->y);
}

void mr_cl_activate_back(mr_device *device, const mr_activate *a)
{
    run_activate(device, a, a->d_y, a->d_x);
}

/* ---- flat buffers --------------------------------------------------------------------------------------------- */

void mr_cl_add(mr_device *device, mr_type type, size_t count, const void *a, const void *b, void *sum)
{
    assert(type == MR_F32);
    (void)type;
    if (!count)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_add);
    mr_cl_floats(&c, a);
    mr_cl_floats(&c, b);
    mr_cl_floats(&c, sum);
    mr_cl_u64(&c, count);
    mr_cl_run_flat(&c, count);
}

void mr_cl_sgd(mr_device *device, const mr_update *u)
{
    if (!u->count)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_sgd);
    mr_cl_floats(&c, u->w);
    mr_cl_floats(&c, u->g);
    mr_cl_floats(&c, u->m);
    mr_cl_u64(&c, u->count);
    mr_cl_f32(&c, u->g_scale);
    mr_cl_f32(&c, u->lr);
    mr_cl_f32(&c, u->decay);
    mr_cl_f32(&c, u->momentum);
    mr_cl_run_flat(&c, u->count);
}

void mr_cl_adamw(mr_device *device, const mr_update *u)
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
    mr_cl_call c = mr_cl_begin(device, MR_CL_adamw);
    mr_cl_floats(&c, u->w);
    mr_cl_floats(&c, u->g);
    mr_cl_floats(&c, u->m);
    mr_cl_floats(&c, u->v);
    mr_cl_u64(&c, u->count);
    for (size_t i = 0; i < MR_COUNT(factors); i++)
        mr_cl_f32(&c, factors[i]);
    mr_cl_run_flat(&c, u->count);
}

static size_t groups_of(size_t count)
{
    size_t groups = (count + MR_CL_WIDTH - 1) / MR_CL_WIDTH;
    return groups < GROUPS ? groups : GROUPS;
}

double mr_cl_sum_squares(mr_device *device, size_t count, const float *x)
{
    enum { PARTS = 6 };
    static const int powers[PARTS] = {160, 160, 0, 0, -160, -160}; /* of mr_squares in device/kernels/loss.cl */
    mr_opencl *d = mr_opencl_of(device);
    float parts[GROUPS * PARTS];
    size_t groups = groups_of(count);
    double sum = 0;
    if (!count)
        return 0;
    mr_cl_call c = mr_cl_begin(device, MR_CL_squares);
    mr_cl_floats(&c, x);
    mr_cl_floats(&c, d->scratch);
    mr_cl_u64(&c, count);
    mr_cl_u32(&c, groups);
    mr_cl_run_groups(&c, groups, MR_CL_WIDTH);
    mr_cl_download(device, parts, d->scratch, groups * PARTS * sizeof *parts);
    for (size_t i = 0; i < groups * PARTS; i++)
        sum += ldexp((double)parts[i], powers[i % PARTS]);
    return sum;
}

void mr_cl_scale(mr_device *device, const mr_scale *s)
{
    if (!s->count)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_scale);
    mr_cl_floats(&c, s->log_scale);
    mr_cl_floats(&c, s->x);
    mr_cl_floats(&c, s->y);
    mr_cl_u64(&c, s->count);
    mr_cl_run_flat(&c, s->count);
}

void mr_cl_scale_back(mr_device *device, const mr_scale *s)
{
    mr_opencl *d = mr_opencl_of(device);
    size_t groups = groups_of(s->count);
    if (!s->count)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_scale_back);
    mr_cl_floats(&c, s->log_scale);
    mr_cl_floats(&c, s->y);
    mr_cl_floats(&c, s->d_y);
    mr_cl_floats(&c, s->d_x);
    mr_cl_floats(&c, d->scratch);
    mr_cl_u64(&c, s->count);
    mr_cl_u32(&c, groups);
    mr_cl_run_groups(&c, groups, MR_CL_WIDTH);
    c = mr_cl_begin(device, MR_CL_sum_fold);
    mr_cl_floats(&c, d->scratch);
    mr_cl_floats(&c, s->d_log_scale);
    mr_cl_u32(&c, groups);
    mr_cl_u32(&c, 1);
    mr_cl_u32(&c, 1);
    mr_cl_run_flat(&c, 1);
}
