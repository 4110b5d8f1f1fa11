/* tokens.c - operations that arrange a model's rows: patches, tokens, picked rows, rows of a table.
 * Invariant: what several rows add to belongs to one lane, which adds them in their order. */
#include "device/launch/launch.h"

enum { BUCKETS = 32 }; /* buckets of a table's rows; a power of two */

void mr_launch_patches(mr_device *device, const mr_patches *p)
{
    size_t grid = p->patch ? p->side / p->patch : 0;
    MR_LAUNCH(device, patches, p->type, mr_grid_rows(3 * p->patch * p->patch, p->batch * grid * grid),
              MR_FLOATS(p->images), MR_REALS(p->rows), MR_U32(p->side), MR_U32(p->patch), MR_U32(grid),
              MR_U32(p->channel_first));
}

void mr_launch_tokens(mr_device *device, const mr_tokens *t)
{
    MR_LAUNCH(device, tokens, t->type, mr_grid_rows(t->width, t->batch * t->rows), MR_REALS(t->x), MR_FLOATS(t->first),
              MR_FLOATS(t->position), MR_REALS(t->y), MR_U32(t->rows), MR_U32(t->width), MR_KEPT(t->dropout));
}

void mr_launch_tokens_back(mr_device *device, const mr_tokens *t)
{
    if (!t->batch || !t->rows || !t->width)
        return;
    MR_LAUNCH(device, tokens_back, t->type, mr_grid_rows(t->width, t->rows), MR_REALS(t->d_y), MR_REALS(t->d_x),
              MR_FLOATS(t->d_first), MR_FLOATS(t->d_position), MR_U32(t->batch), MR_U32(t->rows), MR_U32(t->width),
              MR_KEPT(t->dropout));
}

void mr_launch_rows(mr_device *device, const mr_rows *r)
{
    MR_LAUNCH(device, rows, r->type, mr_grid_rows(r->width, r->rows), MR_REALS(r->from), MR_REALS(r->to),
              MR_U32(r->width), MR_U64(r->from_stride ? r->from_stride : r->width),
              MR_U64(r->to_stride ? r->to_stride : r->width), MR_U32(r->accumulate));
}

void mr_launch_lookup(mr_device *device, const mr_lookup *l)
{
    MR_LAUNCH(device, lookup, l->type, mr_grid_rows(l->width, l->rows), MR_FLOATS(l->ids), MR_FLOATS(l->table),
              MR_REALS(l->y), MR_U32(l->width), MR_U32(l->ids ? l->entries : 1), MR_U32(l->ids != NULL),
              MR_U32(l->accumulate));
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
    MR_LAUNCH(device, lookup_back, l->type, mr_grid_rows(l->width, BUCKETS), MR_FLOATS(l->ids), MR_REALS(l->d_y),
              MR_FLOATS(l->d_table), MR_U32(l->rows), MR_U32(l->width), MR_U32(l->entries), MR_U32(BUCKETS),
              MR_U32((uint32_t)l->skip));
}
