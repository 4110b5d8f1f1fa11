/* tokens.c - operations that arrange a model's rows: patches, tokens, picked rows, rows of a table.
 * Invariant: what several rows add to belongs to one lane, which adds them in their order. */
#include <assert.h>

#include "opencl/opencl.h"

enum { BUCKETS = 32 }; /* of a table's rows; a power of two */

void mr_cl_patches(mr_device *device, const mr_patches *p)
{
    size_t grid = p->patch ? p->side / p->patch : 0;
    assert(p->type == MR_F32);
    if (!p->batch || !grid)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_patches);
    mr_cl_floats(&c, p->images);
    mr_cl_floats(&c, p->rows);
    mr_cl_u32(&c, p->side);
    mr_cl_u32(&c, p->patch);
    mr_cl_u32(&c, grid);
    mr_cl_u32(&c, p->channel_first);
    mr_cl_run_rows(&c, 3 * p->patch * p->patch, p->batch * grid * grid);
}

void mr_cl_tokens(mr_device *device, const mr_tokens *t)
{
    assert(t->type == MR_F32);
    if (!t->batch || !t->rows || !t->width)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_tokens);
    mr_cl_floats(&c, t->x);
    mr_cl_floats(&c, t->first);
    mr_cl_floats(&c, t->position);
    mr_cl_floats(&c, t->y);
    mr_cl_u32(&c, t->rows);
    mr_cl_u32(&c, t->width);
    mr_cl_dropout(&c, &t->dropout);
    mr_cl_run_rows(&c, t->width, t->batch * t->rows);
}

void mr_cl_tokens_back(mr_device *device, const mr_tokens *t)
{
    assert(t->type == MR_F32);
    if (!t->batch || !t->rows || !t->width)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_tokens_back);
    mr_cl_floats(&c, t->d_y);
    mr_cl_floats(&c, t->d_x);
    mr_cl_floats(&c, t->d_first);
    mr_cl_floats(&c, t->d_position);
    mr_cl_u32(&c, t->batch);
    mr_cl_u32(&c, t->rows);
    mr_cl_u32(&c, t->width);
    mr_cl_dropout(&c, &t->dropout);
    mr_cl_run_rows(&c, t->width, t->rows);
}

void mr_cl_rows(mr_device *device, const mr_rows *r)
{
    assert(r->type == MR_F32);
    if (!r->rows || !r->width)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_rows);
    mr_cl_floats(&c, r->from);
    mr_cl_floats(&c, r->to);
    mr_cl_u32(&c, r->width);
    mr_cl_u64(&c, r->from_stride ? r->from_stride : r->width);
    mr_cl_u64(&c, r->to_stride ? r->to_stride : r->width);
    mr_cl_u32(&c, r->accumulate);
    mr_cl_run_rows(&c, r->width, r->rows);
}

void mr_cl_lookup(mr_device *device, const mr_lookup *l)
{
    assert(l->type == MR_F32);
    if (!l->rows || !l->width)
        return;
    mr_cl_call c = mr_cl_begin(device, MR_CL_lookup);
    mr_cl_floats(&c, l->ids);
    mr_cl_floats(&c, l->table);
    mr_cl_floats(&c, l->y);
    mr_cl_u32(&c, l->width);
    mr_cl_u32(&c, l->ids != NULL);
    mr_cl_u32(&c, l->accumulate);
    mr_cl_run_rows(&c, l->width, l->rows);
}

void mr_cl_lookup_back(mr_device *device, const mr_lookup *l)
{
    assert(l->type == MR_F32);
    if (!l->rows || !l->width)
        return;
    if (!l->ids) { /* a single row gets all gradients */
        if (l->skip != 0)
            mr_cl_sum_rows(device, l->type, l->rows, l->width, l->d_y, l->d_table);
        return;
    }
    mr_cl_call c = mr_cl_begin(device, MR_CL_lookup_back);
    mr_cl_floats(&c, l->ids);
    mr_cl_floats(&c, l->d_y);
    mr_cl_floats(&c, l->d_table);
    mr_cl_u32(&c, l->rows);
    mr_cl_u32(&c, l->width);
    mr_cl_u32(&c, BUCKETS);
    mr_cl_u32(&c, (uint32_t)l->skip);
    mr_cl_run_rows(&c, l->width, BUCKETS);
}
