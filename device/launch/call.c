/* call.c - a launch of a kernel and its arguments.
 * Invariant: a launch whose arguments are wrong is not queued, and wait() reports it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "device/launch/launch.h"

typedef enum kernel_set { ONCE = 0, TYPED, MMA } kernel_set;

static const struct {
    const char *word;
    kernel_set set;
} kernels[] = {
#define X(name, ...) {#name, TYPED},
    MR_TYPED_KERNELS(X)
#undef X
#define X(name, ...) {#name, MMA},
        MR_MMA_KERNELS(X)
#undef X
#define X(name, ...) {#name, ONCE},
            MR_UNTYPED_KERNELS(X) MR_JPEG_KERNELS(X)
#undef X
};

const char *mr_kernel_word(mr_kernel_id id)
{
    return kernels[id].word;
}

bool mr_kernel_exists(mr_kernel_id id, mr_type type, bool mma)
{
    kernel_set set = kernels[id].set;
    return type == MR_F32 ? set != MMA : set == TYPED || (set == MMA && mma);
}

static void refuse(mr_call *c, const char *why)
{
    c->fails = true;
    if (!c->d->wrong[0])
        snprintf(c->d->wrong, MR_LAUNCH_WRONG, "%s: argument %u %s", kernels[c->id].word, c->count + 1, why);
}

static void put(mr_call *c, size_t size, const void *value)
{
    assert(c->count < MR_LAUNCH_ARGUMENTS);
    memcpy(&c->values[c->count], value, size);
    c->sizes[c->count++] = (uint8_t)size;
}

/* Elements are at multiples of `size` bytes, and their number is counted in `unit` bytes. */
static void put_tensor(mr_call *c, const mr_argument *a)
{
    size_t own = mr_type_size(c->type), size = a->size ? a->size : own, offset = 0;
    uint64_t memory = 0, start;
    /* A tensor that is not used is replaced by one that always exists. */
    if (!c->d->iface->place(c->d, a->at ? a->at : c->d->scratch, &memory, &offset)) {
        refuse(c, "is not memory of the device");
        return;
    }
    if (offset % size || (uintptr_t)a->at % size) {
        refuse(c, "is not aligned");
        return;
    }
    start = offset / (a->unit ? a->unit : own);
    put(c, sizeof memory, &memory);
    put(c, sizeof start, &start);
}

static void put_argument(mr_call *c, const mr_argument *a)
{
    uint64_t wide = a->whole;
    uint32_t small = (uint32_t)a->whole;
    float single = (float)a->real;
    if (a->kind == MR_ARGUMENT_TENSOR)
        put_tensor(c, a);
    else if (a->kind == MR_ARGUMENT_U32 && a->whole > UINT32_MAX)
        refuse(c, "is too large");
    else if (a->kind == MR_ARGUMENT_U32)
        put(c, sizeof small, &small);
    else if (a->kind == MR_ARGUMENT_U64)
        put(c, sizeof wide, &wide);
    else
        put(c, sizeof single, &single);
}

void mr_launch_kernel(mr_device *device, mr_kernel_id id, mr_type type, mr_grid grid, const mr_argument *arguments,
                      size_t count)
{
    mr_launcher *d = mr_launcher_of(device);
    mr_call c = {
        .d = d, .id = id, .type = kernels[id].set == ONCE ? MR_F32 : type, .fails = d->wrong[0] || !d->scratch};
    if (!grid.groups || !grid.rows)
        return;
    for (size_t i = 0; i < count && !c.fails; i++)
        put_argument(&c, &arguments[i]);
    if (!c.fails && (grid.groups > UINT32_MAX / grid.lanes || grid.rows > UINT32_MAX))
        refuse(&c, "exceeds the limits of one launch");
    if (!c.fails)
        d->iface->launch(&c, &grid);
}

/* ---- grids ------------------------------------------------------------------------------------------------------- */

static size_t groups_of(size_t items)
{
    return (items + MR_LAUNCH_WIDTH - 1) / MR_LAUNCH_WIDTH;
}

mr_grid mr_grid_groups(size_t groups, size_t lanes)
{
    return (mr_grid){.groups = groups, .rows = 1, .lanes = lanes};
}

mr_grid mr_grid_flat(size_t count)
{
    return mr_grid_groups(groups_of(count), MR_LAUNCH_WIDTH);
}

mr_grid mr_grid_rows(size_t width, size_t rows)
{
    return (mr_grid){.groups = groups_of(width), .rows = rows, .lanes = MR_LAUNCH_WIDTH, .by_row = true};
}

mr_grid mr_grid_images(size_t items, size_t images)
{
    return (mr_grid){.groups = groups_of(items), .rows = images, .lanes = MR_LAUNCH_WIDTH};
}

bool mr_launch_whole(size_t width, const void *const *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((uintptr_t)tensors[i] % 16)
            return false;
    return width % 8 == 0;
}
