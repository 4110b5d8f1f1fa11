/* program.c - the kernels, compiled by NVRTC for one device, and launched.
 * Invariant: kernels for bf16 are compiled when one is first launched, all others when memory is first asked for; what
 * the compiler made is kept in the user's cache.
 *
 * Products and sums are rounded one by one (--fmad=false), as the pixels of decoded JPEGs and the sums of squares have
 * to be; kernels ask for fused ones where they pay (MR_MAD). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"
#include "device/launch/cache.h"

/* ---- modules ---------------------------------------------------------------------------------------------------- */

static void close_type(mr_cuda *d, mr_type type)
{
    if (d->modules[type])
        d->api.cu.module_unload(d->modules[type]);
    d->modules[type] = NULL;
    memset(d->functions[type], 0, sizeof d->functions[type]);
}

static int load(mr_cuda *d, mr_type type, const void *image)
{
    int code = d->api.cu.module_load(&d->modules[type], image);
    for (mr_kernel_id id = 0; id < MR_KERNEL_COUNT && !code; id++) {
        char name[64];
        if (!mr_kernel_exists(id, type, d->launcher.mma))
            continue;
        snprintf(name, sizeof name, "mr_%s", mr_kernel_word(id));
        code = d->api.cu.module_function(&d->functions[type][id], d->modules[type], name);
    }
    if (code)
        close_type(d, type);
    return code;
}

static bool load_cached(mr_cuda *d, mr_type type, const mr_launch_build *b)
{
    MR_AUTO(mr_buf_free) mr_buf file = {0};
    const uint8_t *image;
    size_t size;
    return mr_launch_cache_load(b, &file, &image, &size) && load(d, type, image) == 0;
}

static mr_status open_type(mr_cuda *d, mr_type type, mr_error *err)
{
    mr_cuda_target t;
    char why[160];
    MR_AUTO(mr_buf_free) mr_buf made = {0};
    MR_TRY(mr_cuda_target_of(d, type, &t, err));
    const mr_launch_build b = {.folder = "cuda", .device = d->text, .options = t.text, .text_size = t.text_size};
    d->api.cu.context_use(d->context);
    if (load_cached(d, type, &b))
        return MR_OK;
    MR_TRY(mr_cuda_compile(d, &t, &made, err));
    int code = load(d, type, made.data);
    if (code) {
        mr_cuda_error_text(d, code, why, sizeof why);
        return mr_fail(err, MR_SYSTEM, "cuda: %s rejects the kernels (%s); install a newer driver", d->name, why);
    }
    mr_launch_cache_keep(&b, made.data, made.len);
    return MR_OK;
}

mr_status mr_cuda_program_open(mr_cuda *d, mr_error *err)
{
    void *scratch = NULL;
    if (d->modules[MR_F32])
        return MR_OK;
    MR_TRY(open_type(d, MR_F32, err));
    mr_status status =
        mr_cuda_alloc(&d->launcher.device, MR_LAUNCH_SCRATCH_FLOATS * sizeof(float), "partial sums", &scratch, err);
    d->launcher.scratch = scratch;
    if (status != MR_OK)
        close_type(d, MR_F32);
    return status;
}

void mr_cuda_program_close(mr_cuda *d)
{
    close_type(d, MR_F32);
    close_type(d, MR_BF16);
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

/* A pointer stands for itself. */
static bool place(const mr_launcher *launcher, const void *x, uint64_t *memory, size_t *offset)
{
    *memory = (uint64_t)(uintptr_t)x;
    *offset = 0;
    return mr_cuda_has((const mr_cuda *)(const void *)launcher, x, 0);
}

static void launch(const mr_call *c, const mr_grid *grid)
{
    mr_cuda *d = mr_cuda_of(&c->d->device);
    size_t across = grid->by_row ? grid->rows : grid->groups, down = grid->by_row ? grid->groups : grid->rows;
    void *arguments[MR_LAUNCH_ARGUMENTS];
    mr_error err;
    if (!mr_cuda_use(d))
        return;
    if (across > INT32_MAX || down > MR_CU_ROWS_MAX) {
        snprintf(d->wrong, sizeof d->wrong, "%s: exceeds the limits of one launch", mr_kernel_word(c->id));
        return;
    }
    if (!d->modules[c->type] && open_type(d, c->type, &err) != MR_OK) {
        mr_cuda_fail(d, &err);
        return;
    }
    for (uint32_t i = 0; i < c->count; i++)
        arguments[i] = (void *)(uintptr_t)&c->values[i];
    mr_cuda_note(d, mr_kernel_word(c->id),
                 d->api.cu.launch(d->functions[c->type][c->id], (unsigned)across, (unsigned)down, 1,
                                  (unsigned)grid->lanes, 1, 1, 0, d->stream, arguments, NULL));
}

const mr_launch_iface mr_cuda_launches = {.place = place, .launch = launch};
