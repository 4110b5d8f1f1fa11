/* call.c - launches of kernels.
 * Invariant: a launch whose arguments are wrong is not queued, and wait() reports it. */
#include <stdio.h>

#include "opencl/opencl.h"

static const char *const names[] = {
#define X(name) #name,
    MR_CL_KERNELS(X)
#undef X
};

void mr_cl_note(mr_opencl *d, const char *what, int32_t code)
{
    if (code && !d->wrong[0])
        snprintf(d->wrong, sizeof d->wrong, "%s: %s: %s (code %d)", d->name, what, mr_cl_error_text(code), (int)code);
}

void mr_cl_refuse(mr_cl_call *c, const char *why)
{
    c->fails = true;
    if (!c->d->wrong[0])
        snprintf(c->d->wrong, sizeof c->d->wrong, "%s: argument %u %s", names[c->id], c->at + 1, why);
}

mr_cl_call mr_cl_begin(mr_device *device, mr_cl_kernel_id id)
{
    mr_opencl *d = mr_opencl_of(device);
    return (mr_cl_call){.d = d, .id = id, .fails = d->wrong[0] || !d->kernels[id]};
}

static void put(mr_cl_call *c, size_t size, const void *value)
{
    if (c->fails)
        return;
    int32_t code = c->d->api.SetKernelArg(c->d->kernels[c->id], c->at++, size, value);
    mr_cl_note(c->d, names[c->id], code);
    c->fails = code != 0;
}

void mr_cl_tensor(mr_cl_call *c, const void *x, size_t size)
{
    /* In the place of a tensor that is not used stands one that always is there. */
    const mr_cl_block *b = c->fails ? NULL : mr_cl_block_of(c->d, x ? x : c->d->scratch);
    if (!b && !c->fails)
        mr_cl_refuse(c, "is not memory of the device");
    if (!b)
        return;
    size_t offset = b->start + (x ? (size_t)((const uint8_t *)x - b->data) : 0);
    if (offset % size) {
        mr_cl_refuse(c, "is not aligned");
        return;
    }
    put(c, sizeof b->memory, &b->memory);
    mr_cl_u64(c, offset / size);
}

void mr_cl_floats(mr_cl_call *c, const void *x)
{
    mr_cl_tensor(c, x, sizeof(float));
}

void mr_cl_u32(mr_cl_call *c, size_t value)
{
    uint32_t small = (uint32_t)value;
    if (value > UINT32_MAX && !c->fails)
        mr_cl_refuse(c, "is too large");
    put(c, sizeof small, &small);
}

void mr_cl_u64(mr_cl_call *c, size_t value)
{
    uint64_t wide = value;
    put(c, sizeof wide, &wide);
}

void mr_cl_f32(mr_cl_call *c, double value)
{
    float single = (float)value;
    put(c, sizeof single, &single);
}

void mr_cl_dropout(mr_cl_call *c, const mr_dropout *d)
{
    double rate = (double)d->rate;
    mr_cl_tensor(c, d->rate > 0 ? d->keys : NULL, sizeof *d->keys);
    mr_cl_u32(c, d->rate > 0 ? (size_t)(rate * (1 << 24) + 0.5) : 0);
    mr_cl_f32(c, 1 / (1 - rate));
    mr_cl_u32(c, d->site);
}

static void launch(mr_cl_call *c, const size_t *items, const size_t *lanes)
{
    if (!c->fails && (items[0] > UINT32_MAX || items[1] > UINT32_MAX))
        mr_cl_refuse(c, "leads to more work than a launch can have");
    if (c->fails || !items[0] || !items[1])
        return;
    mr_cl_note(c->d, names[c->id],
               c->d->api.EnqueueNDRangeKernel(c->d->queue, c->d->kernels[c->id], 2, NULL, items, lanes, 0, NULL, NULL));
}

void mr_cl_run_groups(mr_cl_call *c, size_t groups, size_t lanes)
{
    launch(c, (size_t[]){groups * lanes, 1}, (size_t[]){lanes, 1});
}

void mr_cl_run_flat(mr_cl_call *c, size_t count)
{
    mr_cl_run_groups(c, (count + MR_CL_WIDTH - 1) / MR_CL_WIDTH, MR_CL_WIDTH);
}

void mr_cl_run_rows(mr_cl_call *c, size_t width, size_t rows)
{
    size_t items = (width + MR_CL_WIDTH - 1) / MR_CL_WIDTH * MR_CL_WIDTH;
    launch(c, (size_t[]){items, rows}, (size_t[]){MR_CL_WIDTH, 1});
}
