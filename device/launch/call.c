/* call.c - a launch of a kernel and its arguments.
 * Invariant: a launch whose arguments are wrong is not queued, and wait() reports it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "launch/launch.h"

static const struct {
    const char *word;
    bool typed;
} kernels[] = {
#define X(name, typed) {#name, typed},
    MR_LAUNCH_KERNELS(X)
#undef X
};

const char *mr_kernel_word(mr_kernel_id id)
{
    return kernels[id].word;
}

bool mr_kernel_typed(mr_kernel_id id)
{
    return kernels[id].typed;
}

void mr_call_refuse(mr_call *c, const char *why)
{
    c->fails = true;
    if (!c->d->wrong[0])
        snprintf(c->d->wrong, MR_LAUNCH_WRONG, "%s: argument %u %s", kernels[c->id].word, c->count + 1, why);
}

mr_call mr_call_of(mr_device *device, mr_kernel_id id, mr_type type)
{
    mr_launcher *d = mr_launcher_of(device);
    return (mr_call){.d = d, .id = id, .type = kernels[id].typed ? type : MR_F32, .fails = d->wrong[0] || !d->scratch};
}

static void put(mr_call *c, size_t size, const void *value)
{
    assert(c->count < MR_LAUNCH_ARGUMENTS);
    memcpy(&c->values[c->count], value, size);
    c->sizes[c->count++] = (uint8_t)size;
}

/* Elements are at multiples of `size` bytes, and their number is counted in `unit` bytes. */
static void put_tensor(mr_call *c, const void *x, size_t size, size_t unit)
{
    uint64_t memory = 0;
    size_t offset = 0;
    if (c->fails)
        return;
    /* In the place of a tensor that is not used stands one that always is there. */
    if (!c->d->card->place(c->d, x ? x : c->d->scratch, &memory, &offset)) {
        mr_call_refuse(c, "is not memory of the device");
        return;
    }
    if (offset % size || (uintptr_t)x % size) {
        mr_call_refuse(c, "is not aligned");
        return;
    }
    put(c, sizeof memory, &memory);
    mr_call_u64(c, offset / unit);
}

void mr_call_tensor(mr_call *c, const void *x, size_t size)
{
    put_tensor(c, x, size, size);
}

void mr_call_typed(mr_call *c, const void *x)
{
    put_tensor(c, x, mr_type_size(c->type), mr_type_size(c->type));
}

void mr_call_floats(mr_call *c, const void *x)
{
    put_tensor(c, x, sizeof(float), sizeof(float));
}

void mr_call_either(mr_call *c, const void *x, mr_type type)
{
    put_tensor(c, x, mr_type_size(type), sizeof(uint16_t));
}

void mr_call_u32(mr_call *c, size_t value)
{
    uint32_t small = (uint32_t)value;
    if (value > UINT32_MAX && !c->fails)
        mr_call_refuse(c, "is too large");
    if (!c->fails)
        put(c, sizeof small, &small);
}

void mr_call_u64(mr_call *c, size_t value)
{
    uint64_t wide = value;
    if (!c->fails)
        put(c, sizeof wide, &wide);
}

void mr_call_f32(mr_call *c, double value)
{
    float single = (float)value;
    if (!c->fails)
        put(c, sizeof single, &single);
}

void mr_call_dropout(mr_call *c, const mr_dropout *d)
{
    double rate = (double)d->rate;
    mr_call_tensor(c, d->rate > 0 ? d->keys : NULL, sizeof *d->keys);
    mr_call_u32(c, d->rate > 0 ? (size_t)(rate * (1 << 24) + 0.5) : 0);
    mr_call_f32(c, 1 / (1 - rate));
    mr_call_u32(c, d->site);
}

static void launch(mr_call *c, const mr_grid *grid)
{
    if (!c->fails && (grid->groups > UINT32_MAX / grid->lanes || grid->rows > UINT32_MAX))
        mr_call_refuse(c, "leads to more work than a launch can have");
    if (!c->fails && grid->groups && grid->rows)
        c->d->card->launch(c, grid);
}

static size_t groups_of(size_t items)
{
    return (items + MR_LAUNCH_WIDTH - 1) / MR_LAUNCH_WIDTH;
}

void mr_call_run_groups(mr_call *c, size_t groups, size_t lanes)
{
    launch(c, &(mr_grid){.groups = groups, .rows = 1, .lanes = lanes});
}

void mr_call_run_flat(mr_call *c, size_t count)
{
    mr_call_run_groups(c, groups_of(count), MR_LAUNCH_WIDTH);
}

void mr_call_run_rows(mr_call *c, size_t width, size_t rows)
{
    launch(c, &(mr_grid){.groups = groups_of(width), .rows = rows, .lanes = MR_LAUNCH_WIDTH, .by_row = true});
}

void mr_call_run_images(mr_call *c, size_t items, size_t images)
{
    launch(c, &(mr_grid){.groups = groups_of(items), .rows = images, .lanes = MR_LAUNCH_WIDTH});
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

void mr_launch_run(mr_device *device, const mr_op *op)
{
    switch (op->kind) {
#define X(name, ...)                                                                                                   \
    case MR_OP_##name:                                                                                                 \
        mr_launch_##name(device, op->arguments);                                                                       \
        break;
        MR_OPERATIONS(X)
#undef X
    default:
        break;
    }
}
