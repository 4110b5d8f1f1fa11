/* program.c - the kernels, compiled by NVRTC for one device, and launched.
 * Invariant: kernels for bf16 are compiled when one is first launched, all others when memory is first asked for; what
 * the compiler made is kept in the user's cache.
 *
 * Products and sums are rounded one by one (--fmad=false), as the pixels of decoded JPEGs and the sums of squares have
 * to be; kernels ask for fused ones where they pay (MR_MAD). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "launch/cache.h"
#include "launch/text.h"

enum { OPTIONS = 3, ARCHS_MAX = 64 };

typedef struct target { /* of the compiler */
    char arch[48];      /* "--gpu-architecture=sm_90" */
    bool ptx;           /* newer than the compiler: the driver compiles on */
    char options[96];   /* all of them, for the cache */
    size_t text_size;
} target;

/* Code for sm_XY runs on devices of X.Y and later ones of X; PTX for compute_XY on all later ones (CUDA C++ Programming
 * Guide, "Application Compatibility"). */
static mr_status choose_target(const mr_cuda *d, mr_type type, target *t, mr_error *err)
{
    int archs[ARCHS_MAX], count = 0, best = 0, older = 0;
    if (d->api.nvrtc.archs_count(&count) != 0 || count <= 0 || count > ARCHS_MAX || d->api.nvrtc.archs(archs) != 0)
        return mr_fail(err, MR_SYSTEM, "cuda: NVRTC does not tell what it compiles for; install that of CUDA 12 or 13");
    for (int i = 0; i < count; i++) {
        if (archs[i] / 10 == d->major && archs[i] % 10 <= d->minor && archs[i] > best)
            best = archs[i];
        if (archs[i] / 10 < d->major && archs[i] > older)
            older = archs[i];
    }
    t->ptx = !best;
    if (!best && !older)
        return mr_fail(err, MR_SYSTEM,
                       "cuda: %s has compute capability %d.%d, for which NVRTC no longer compiles; "
                       "install that of an older CUDA, or choose another --device",
                       d->name, d->major, d->minor);
    snprintf(t->arch, sizeof t->arch, "--gpu-architecture=%s_%d", best ? "sm" : "compute", best ? best : older);
    snprintf(t->options, sizeof t->options, "%s --fmad=false%s", t->arch, type == MR_BF16 ? " -DMR_REAL_BF16" : "");
    t->text_size = type == MR_F32 ? mr_launch_text_size : mr_launch_text_typed;
    return MR_OK;
}

static mr_launch_build build_of(const mr_cuda *d, const target *t)
{
    return (mr_launch_build){.folder = "cuda", .device = d->text, .options = t->options, .text_size = t->text_size};
}

/* ---- compiling -------------------------------------------------------------------------------------------------- */

/* The compiler's first messages, in a line. */
static mr_status fail_compile(const mr_cuda *d, mr_nvrtc_program program, mr_error *err)
{
    size_t size = 0;
    MR_AUTO(mr_buf_free) mr_buf log = {0};
    if (d->api.nvrtc.log_size(program, &size) == 0 && size && size < MR_LAUNCH_BINARY_MAX &&
        mr_buf_reserve(&log, size) && d->api.nvrtc.log(program, (char *)log.data) == 0)
        log.len = strnlen((const char *)log.data, size);
    for (size_t i = 0; i < log.len; i++)
        log.data[i] = log.data[i] < ' ' || log.data[i] > '~' ? ' ' : log.data[i];
    return mr_fail(err, MR_SYSTEM, "cuda: %s: the kernels cannot be compiled; please report it: %.300s", d->name,
                   mr_buf_text(&log));
}

static mr_status take_result(const mr_cuda *d, mr_nvrtc_program program, bool ptx, mr_buf *made, mr_error *err)
{
    size_t size = 0;
    int code = ptx ? d->api.nvrtc.ptx_size(program, &size) : d->api.nvrtc.cubin_size(program, &size);
    if (code || !size || size > MR_LAUNCH_BINARY_MAX)
        return fail_compile(d, program, err);
    if (!mr_buf_reserve(made, size))
        return mr_fail_memory(err, "the kernels");
    code = ptx ? d->api.nvrtc.ptx(program, (char *)made->data) : d->api.nvrtc.cubin(program, (char *)made->data);
    made->len = size;
    return code ? fail_compile(d, program, err) : MR_OK;
}

static mr_status compile_as(const mr_cuda *d, mr_nvrtc_program program, const target *t, mr_type type, mr_buf *made,
                            mr_error *err)
{
    const char *const options[OPTIONS] = {t->arch, "--fmad=false", "-DMR_REAL_BF16"};
    if (d->api.nvrtc.compile(program, type == MR_BF16 ? OPTIONS : OPTIONS - 1, options) != 0)
        return fail_compile(d, program, err);
    return take_result(d, program, t->ptx, made, err);
}

static mr_status compile(const mr_cuda *d, const target *t, mr_type type, mr_buf *made, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_nvrtc_program program = NULL;
    mr_buf_add(&text, mr_launch_text, t->text_size);
    MR_TRY(mr_buf_status(&text, err, "the kernels"));
    if (d->api.nvrtc.create(&program, mr_buf_text(&text), "millrace.cu", 0, NULL, NULL) != 0)
        return mr_fail(err, MR_SYSTEM, "cuda: NVRTC cannot be used; install that of CUDA 12 or 13");
    mr_status status = compile_as(d, program, t, type, made, err);
    d->api.nvrtc.destroy(&program);
    return status;
}

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
        if (type == MR_BF16 && !mr_kernel_typed(id))
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
    target t;
    char why[160];
    MR_AUTO(mr_buf_free) mr_buf made = {0};
    MR_TRY(choose_target(d, type, &t, err));
    const mr_launch_build b = build_of(d, &t);
    d->api.cu.context_use(d->context);
    if (load_cached(d, type, &b))
        return MR_OK;
    MR_TRY(compile(d, &t, type, &made, err));
    int code = load(d, type, made.data);
    if (code) {
        mr_cuda_error_text(d, code, why, sizeof why);
        return mr_fail(err, MR_SYSTEM, "cuda: %s does not take the kernels (%s); install a newer driver", d->name, why);
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
    mr_status status = mr_cuda_alloc(&d->launcher.device, MR_LAUNCH_SCRATCH_FLOATS * sizeof(float), &scratch, err);
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
        snprintf(d->wrong, sizeof d->wrong, "%s: more work than a launch can have", mr_kernel_word(c->id));
        return;
    }
    if (!d->modules[c->type] && open_type(d, c->type, &err) != MR_OK) {
        snprintf(d->wrong, sizeof d->wrong, "%.*s", (int)sizeof d->wrong - 1, err.text);
        return;
    }
    for (uint32_t i = 0; i < c->count; i++)
        arguments[i] = (void *)(uintptr_t)&c->values[i];
    mr_cuda_note(d, mr_kernel_word(c->id),
                 d->api.cu.launch(d->functions[c->type][c->id], (unsigned)across, (unsigned)down, 1,
                                  (unsigned)grid->lanes, 1, 1, 0, d->stream, arguments, NULL));
}

const mr_launch_card mr_cuda_launches = {.place = place, .launch = launch};
