/* tokens.c - operations that arrange a model's rows: patches, tokens, picked rows, rows of a table.
 * Invariant: what several rows add to belongs to one lane, which adds them in their order. */
#include "launch/launch.h"

enum { BUCKETS = 32 }; /* of a table's rows; a power of two */

void mr_launch_patches(mr_device *device, const mr_patches *p)
{
    size_t grid = p->patch ? p->side / p->patch : 0;
    if (!p->batch || !grid)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_patches, p->type);
    mr_call_floats(&c, p->images);
    mr_call_typed(&c, p->rows);
    mr_call_u32(&c, p->side);
    mr_call_u32(&c, p->patch);
    mr_call_u32(&c, grid);
    mr_call_u32(&c, p->channel_first);
    mr_call_run_rows(&c, 3 * p->patch * p->patch, p->batch * grid * grid);
}

void mr_launch_tokens(mr_device *device, const mr_tokens *t)
{
    if (!t->batch || !t->rows || !t->width)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_tokens, t->type);
    mr_call_typed(&c, t->x);
    mr_call_floats(&c, t->first);
    mr_call_floats(&c, t->position);
    mr_call_typed(&c, t->y);
    mr_call_u32(&c, t->rows);
    mr_call_u32(&c, t->width);
    mr_call_dropout(&c, &t->dropout);
    mr_call_run_rows(&c, t->width, t->batch * t->rows);
}

void mr_launch_tokens_back(mr_device *device, const mr_tokens *t)
{
    if (!t->batch || !t->rows || !t->width)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_tokens_back, t->type);
    mr_call_typed(&c, t->d_y);
    mr_call_typed(&c, t->d_x);
    mr_call_floats(&c, t->d_first);
    mr_call_floats(&c, t->d_position);
    mr_call_u32(&c, t->batch);
    mr_call_u32(&c, t->rows);
    mr_call_u32(&c, t->width);
    mr_call_dropout(&c, &t->dropout);
    mr_call_run_rows(&c, t->width, t->rows);
}

void mr_launch_rows(mr_device *device, const mr_rows *r)
{
    if (!r->rows || !r->width)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_rows, r->type);
    mr_call_typed(&c, r->from);
    mr_call_typed(&c, r->to);
    mr_call_u32(&c, r->width);
    mr_call_u64(&c, r->from_stride ? r->from_stride : r->width);
    mr_call_u64(&c, r->to_stride ? r->to_stride : r->width);
    mr_call_u32(&c, r->accumulate);
    mr_call_run_rows(&c, r->width, r->rows);
}

void mr_launch_lookup(mr_device *device, const mr_lookup *l)
{
    if (!l->rows || !l->width)
        return;
    mr_call c = mr_call_of(device, MR_KERNEL_lookup, l->type);
    mr_call_floats(&c, l->ids);
    mr_call_floats(&c, l->table);
    mr_call_typed(&c, l->y);
    mr_call_u32(&c, l->width);
    mr_call_u32(&c, l->ids ? l->entries : 1);
    mr_call_u32(&c, l->ids != NULL);
    mr_call_u32(&c, l->accumulate);
    mr_call_run_rows(&c, l->width, l->rows);
}

void mr_launch_lookup_back(mr_device *device, const mr_lookup *l)
{
    if (!l->rows || !l->width)
        return;
    if (!l->ids) { /* a single row gets all gradients */
        if (l->skip != 0)
            mr_launch_sum_rows(device, &(mr_sum_rows){l->type, l->rows, l->width, l->d_y, l->d_table});
        return;
    }
    mr_call c = mr_call_of(device, MR_KERNEL_lookup_back, l->type);
    mr_call_floats(&c, l->ids);
    mr_call_typed(&c, l->d_y);
    mr_call_floats(&c, l->d_table);
    mr_call_u32(&c, l->rows);
    mr_call_u32(&c, l->width);
    mr_call_u32(&c, l->entries);
    mr_call_u32(&c, BUCKETS);
    mr_call_u32(&c, (uint32_t)l->skip);
    mr_call_run_rows(&c, l->width, BUCKETS);
}
