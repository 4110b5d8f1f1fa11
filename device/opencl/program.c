/* program.c - the kernels, built from their text for one device, and launched.
 * Invariant: kernels for bf16 are built when one is first launched, all others when memory is first asked for; what the
 * driver made is kept in the user's cache. */
#include <stdio.h>
#include <string.h>

#include "device/launch/cache.h"
#include "device/launch/text.h"
#include "device/opencl/opencl.h"

static const char *options_of(const mr_opencl *d, mr_type type)
{
    return type == MR_BF16        ? "-cl-std=CL1.2 -DMR_REAL_BF16"
           : d->launcher.one_lane ? "-cl-std=CL1.2 -DMR_ONE_LANE"
                                  : "-cl-std=CL1.2";
}

static mr_launch_build build_of(const mr_opencl *d, mr_type type)
{
    return (mr_launch_build){.folder = "opencl",
                             .device = d->text,
                             .options = options_of(d, type),
                             .text_size = type == MR_F32 ? mr_launch_text_size : mr_launch_text_typed};
}

static bool build(mr_opencl *d, mr_type type)
{
    return d->api.BuildProgram(d->programs[type], 1, &d->id, options_of(d, type), NULL, NULL) == 0;
}

static void drop_program(mr_opencl *d, mr_type type)
{
    if (d->programs[type])
        d->api.ReleaseProgram(d->programs[type]);
    d->programs[type] = NULL;
}

static bool load_cached(mr_opencl *d, mr_type type)
{
    const mr_launch_build b = build_of(d, type);
    MR_AUTO(mr_buf_free) mr_buf file = {0};
    const uint8_t *binary;
    size_t size;
    int32_t loaded = 0, code = 0;
    if (!mr_launch_cache_load(&b, &file, &binary, &size))
        return false;
    d->programs[type] = d->api.CreateProgramWithBinary(d->context, 1, &d->id, &size, &binary, &loaded, &code);
    if (!code && !loaded && build(d, type))
        return true;
    drop_program(d, type);
    return false;
}

static void keep(const mr_opencl *d, mr_type type)
{
    const mr_launch_build b = build_of(d, type);
    size_t size = 0;
    MR_AUTO(mr_buf_free) mr_buf made = {0};
    if (d->api.GetProgramInfo(d->programs[type], MR_CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != 0 || !size ||
        size > MR_LAUNCH_BINARY_MAX || !mr_buf_reserve(&made, size))
        return;
    uint8_t *binary = (uint8_t *)made.data;
    if (d->api.GetProgramInfo(d->programs[type], MR_CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == 0)
        mr_launch_cache_keep(&b, binary, size);
}

/* The compiler's first messages, in a line. */
static mr_status fail_build(const mr_opencl *d, mr_type type, mr_error *err)
{
    size_t size = 0;
    mr_cl_program program = d->programs[type];
    MR_AUTO(mr_buf_free) mr_buf log = {0};
    if (program)
        d->api.GetProgramBuildInfo(program, d->id, MR_CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    if (size && size < MR_LAUNCH_BINARY_MAX && mr_buf_reserve(&log, size) &&
        d->api.GetProgramBuildInfo(program, d->id, MR_CL_PROGRAM_BUILD_LOG, size, log.data, NULL) == 0)
        log.len = size;
    for (size_t i = 0; i < log.len; i++)
        log.data[i] = log.data[i] < ' ' || log.data[i] > '~' ? ' ' : log.data[i];
    return mr_fail(err, MR_SYSTEM, "opencl: %s: the kernels cannot be built; please report it: %.300s", d->name,
                   mr_buf_text(&log));
}

static mr_status build_text(mr_opencl *d, mr_type type, mr_error *err)
{
    const char *text = (const char *)mr_launch_text;
    const size_t size = build_of(d, type).text_size;
    int32_t code = 0;
    d->programs[type] = d->api.CreateProgramWithSource(d->context, 1, &text, &size, &code);
    if (!code && build(d, type))
        return MR_OK;
    mr_status status = fail_build(d, type, err);
    drop_program(d, type);
    return status;
}

static mr_status make_kernels(mr_opencl *d, mr_type type, mr_error *err)
{
    for (mr_kernel_id id = 0; id < MR_KERNEL_COUNT; id++) {
        int32_t code = 0;
        char name[64];
        if (!mr_kernel_exists(id, type, d->launcher.mma))
            continue;
        snprintf(name, sizeof name, "mr_%s", mr_kernel_word(id));
        d->kernels[type][id] = d->api.CreateKernel(d->programs[type], name, &code);
        if (code)
            return mr_fail(err, MR_SYSTEM, "opencl: %s: kernel %s: %s (code %d)", d->name, name, mr_cl_error_text(code),
                           (int)code);
    }
    return MR_OK;
}

static void close_type(mr_opencl *d, mr_type type)
{
    for (mr_kernel_id id = 0; id < MR_KERNEL_COUNT; id++) {
        if (d->kernels[type][id])
            d->api.ReleaseKernel(d->kernels[type][id]);
        d->kernels[type][id] = NULL;
    }
    drop_program(d, type);
}

static mr_status open_type(mr_opencl *d, mr_type type, mr_error *err)
{
    if (!load_cached(d, type)) {
        MR_TRY(build_text(d, type, err));
        keep(d, type);
    }
    mr_status status = make_kernels(d, type, err);
    if (status != MR_OK)
        close_type(d, type);
    return status;
}

mr_status mr_cl_program_open(mr_opencl *d, mr_error *err)
{
    void *scratch = NULL;
    if (d->programs[MR_F32])
        return MR_OK;
    MR_TRY(open_type(d, MR_F32, err));
    mr_status status =
        mr_cl_alloc(&d->launcher.device, MR_LAUNCH_SCRATCH_FLOATS * sizeof(float), "partial sums", &scratch, err);
    d->launcher.scratch = scratch;
    if (status != MR_OK)
        close_type(d, MR_F32);
    return status;
}

void mr_cl_program_close(mr_opencl *d)
{
    close_type(d, MR_F32);
    close_type(d, MR_BF16);
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

static bool place(const mr_launcher *launcher, const void *x, uint64_t *memory, size_t *offset)
{
    const mr_cl_block *b = mr_cl_block_of((const mr_opencl *)(const void *)launcher, x);
    if (!b)
        return false;
    memcpy(memory, &b->memory, sizeof b->memory);
    *offset = b->start + (size_t)((const uint8_t *)x - b->data);
    return true;
}

static void launch(const mr_call *c, const mr_grid *grid)
{
    mr_opencl *d = mr_opencl_of(&c->d->device);
    const size_t items[] = {grid->groups * grid->lanes, grid->rows}, lanes[] = {grid->lanes, 1};
    mr_error err;
    if (!d->programs[c->type] && open_type(d, c->type, &err) != MR_OK)
        snprintf(d->wrong, sizeof d->wrong, "%.*s", (int)sizeof d->wrong - 1, err.text);
    mr_cl_kernel kernel = d->kernels[c->type][c->id];
    int32_t code = 0;
    for (uint32_t i = 0; kernel && i < c->count && !code; i++)
        code = d->api.SetKernelArg(kernel, i, c->sizes[i], &c->values[i]);
    if (kernel && !code)
        code = d->api.EnqueueNDRangeKernel(d->queue, kernel, 2, NULL, items, lanes, 0, NULL, NULL);
    mr_cl_note(d, mr_kernel_word(c->id), code);
}

const mr_launch_iface mr_cl_launches = {.place = place, .launch = launch};
