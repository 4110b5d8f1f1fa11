/* compile.c - what NVRTC makes of the text of the kernels for a device.
 * Invariant: the options are those of mr_cuda_target, which name what is compiled for.
 *
 * Products and sums are rounded one by one (--fmad=false), as the pixels of decoded JPEGs and the sums of squares have
 * to be; kernels ask for fused ones where they pay (MR_MAD). */
#include <stdio.h>
#include <string.h>

#include "device/cuda/cuda.h"
#include "device/launch/cache.h"
#include "device/launch/text.h"

enum { ARCHS_MAX = 64 };

/* Code for sm_XY runs on devices of X.Y and later ones of X; PTX for compute_XY on all later ones (CUDA C++ Programming
 * Guide, "Application Compatibility"). */
mr_status mr_cuda_target_of(const mr_cuda *d, mr_type type, mr_cuda_target *t, mr_error *err)
{
    int archs[ARCHS_MAX], count = 0, best = 0, older = 0;
    if (d->api.nvrtc.archs_count(&count) != 0 || count <= 0 || count > ARCHS_MAX || d->api.nvrtc.archs(archs) != 0)
        return mr_fail(
            err, MR_SYSTEM,
            "cuda: NVRTC does not report which architectures it supports; install the one from CUDA 12 or 13");
    for (int i = 0; i < count; i++) {
        if (archs[i] / 10 == d->major && archs[i] % 10 <= d->minor && archs[i] > best)
            best = archs[i];
        if (archs[i] / 10 < d->major && archs[i] > older)
            older = archs[i];
    }
    if (!best && !older)
        return mr_fail(err, MR_SYSTEM,
                       "cuda: %s has compute capability %d.%d, for which NVRTC no longer compiles; install the one "
                       "from an older CUDA, or choose another --device",
                       d->name, d->major, d->minor);
    *t = (mr_cuda_target){.options = {t->arch, "--fmad=false", "-DMR_REAL_BF16", "-DMR_MMA"},
                          .count = type == MR_F32  ? 2
                                   : d->major >= 8 ? 4
                                                   : 3,
                          .ptx = !best,
                          .text_size = type == MR_F32 ? mr_launch_text_size : mr_launch_text_typed};
    snprintf(t->arch, sizeof t->arch, "--gpu-architecture=%s_%d", best ? "sm" : "compute", best ? best : older);
    for (int i = 0, at = 0; i < t->count; i++)
        at += snprintf(t->text + at, sizeof t->text - (size_t)at, "%s%s", i ? " " : "", t->options[i]);
    return MR_OK;
}

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

mr_status mr_cuda_compile(const mr_cuda *d, const mr_cuda_target *t, mr_buf *made, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_nvrtc_program program = NULL;
    mr_buf_add(&text, mr_launch_text, t->text_size);
    MR_TRY(mr_buf_status(&text, err, "the kernels"));
    if (d->api.nvrtc.create(&program, mr_buf_text(&text), "millrace.cu", 0, NULL, NULL) != 0)
        return mr_fail(err, MR_SYSTEM, "cuda: NVRTC cannot be used; install the one from CUDA 12 or 13");
    mr_status status = d->api.nvrtc.compile(program, t->count, t->options) == 0
                           ? take_result(d, program, t->ptx, made, err)
                           : fail_compile(d, program, err);
    d->api.nvrtc.destroy(&program);
    return status;
}
