/* program.c - the kernels: built from their text for one device, and kept in the user's cache.
 * Invariant: a cached program is used only if its name says this device, driver and text and its digest fits its bytes;
 * any other is built again and replaced.  A cache that cannot be written costs time, nothing else.
 *
 *      $XDG_CACHE_HOME/millrace/opencl/DIGEST      | digest, 8 bytes | the driver's binary |
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "opencl/opencl.h"
#include "opencl/text.h"

enum { BINARY_MAX = 256 << 20 };

static const char build_options[] = "-cl-std=CL1.2";

static const char *const names[] = {
#define X(name) "mr_" #name,
    MR_CL_KERNELS(X)
#undef X
};

/* ---- cache ---------------------------------------------------------------------------------------------------- */

/* The folder is made if `make`; false: there is no place for it. */
static bool cache_path(const mr_opencl *d, bool make, char *path, size_t size)
{
    const char *root = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    uint64_t digest = mr_hash64(mr_cl_text, mr_cl_text_size);
    mr_error ignored;
    digest = mr_hash64_seeded(d->text, strlen(d->text), digest);
    digest = mr_hash64_seeded(build_options, sizeof build_options, digest);
    bool own = root && root[0] == '/';
    if (!own && (!home || home[0] != '/'))
        return false;
    int len = snprintf(path, size, "%s%s/millrace/opencl", own ? root : home, own ? "" : "/.cache");
    if (len < 0 || (size_t)len + 18 > size || (make && mr_dir_make(path, &ignored) != MR_OK))
        return false;
    snprintf(path + len, size - (size_t)len, "/%016llx", (unsigned long long)digest);
    return true;
}

static bool build(mr_opencl *d)
{
    return d->api.BuildProgram(d->program, 1, &d->id, build_options, NULL, NULL) == 0;
}

static void drop_program(mr_opencl *d)
{
    if (d->program)
        d->api.ReleaseProgram(d->program);
    d->program = NULL;
}

static bool load_cached(mr_opencl *d)
{
    char path[4096];
    mr_error ignored;
    uint64_t digest;
    MR_AUTO(mr_buf_free) mr_buf file = {0};
    if (!cache_path(d, false, path, sizeof path) ||
        mr_file_read_all(AT_FDCWD, path, BINARY_MAX, &file, &ignored) != MR_OK || file.len <= sizeof digest)
        return false;
    memcpy(&digest, file.data, sizeof digest);
    const uint8_t *binary = (const uint8_t *)file.data + sizeof digest;
    size_t size = file.len - sizeof digest;
    int32_t loaded = 0, code = 0;
    if (digest != mr_hash64(binary, size))
        return false;
    d->program = d->api.CreateProgramWithBinary(d->context, 1, &d->id, &size, &binary, &loaded, &code);
    if (!code && !loaded && build(d))
        return true;
    drop_program(d);
    return false;
}

static void keep(const mr_opencl *d)
{
    char path[4096];
    mr_error ignored;
    size_t size = 0;
    uint64_t digest;
    MR_AUTO(mr_buf_free) mr_buf file = {0};
    if (d->api.GetProgramInfo(d->program, MR_CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != 0 || !size ||
        size > BINARY_MAX || !cache_path(d, true, path, sizeof path) || !mr_buf_reserve(&file, size + sizeof digest))
        return;
    uint8_t *binary = (uint8_t *)file.data + sizeof digest;
    if (d->api.GetProgramInfo(d->program, MR_CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) != 0)
        return;
    digest = mr_hash64(binary, size);
    memcpy(file.data, &digest, sizeof digest);
    (void)mr_file_publish(AT_FDCWD, path, file.data, size + sizeof digest, &ignored);
}

/* ---- building ------------------------------------------------------------------------------------------------- */

/* The compiler's first messages, in a line. */
static mr_status fail_build(const mr_opencl *d, mr_error *err)
{
    size_t size = 0;
    MR_AUTO(mr_buf_free) mr_buf log = {0};
    if (d->program)
        d->api.GetProgramBuildInfo(d->program, d->id, MR_CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    if (size && size < BINARY_MAX && mr_buf_reserve(&log, size) &&
        d->api.GetProgramBuildInfo(d->program, d->id, MR_CL_PROGRAM_BUILD_LOG, size, log.data, NULL) == 0)
        log.len = size;
    for (size_t i = 0; i < log.len; i++)
        log.data[i] = log.data[i] < ' ' || log.data[i] > '~' ? ' ' : log.data[i];
    return mr_fail(err, MR_SYSTEM, "opencl: %s: the kernels cannot be built; please report it: %.300s", d->name,
                   mr_buf_text(&log));
}

static mr_status build_text(mr_opencl *d, mr_error *err)
{
    const char *text = (const char *)mr_cl_text;
    int32_t code = 0;
    d->program = d->api.CreateProgramWithSource(d->context, 1, &text, &mr_cl_text_size, &code);
    if (!code && build(d))
        return MR_OK;
    mr_status status = fail_build(d, err);
    drop_program(d);
    return status;
}

static mr_status make_kernels(mr_opencl *d, mr_error *err)
{
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        int32_t code = 0;
        d->kernels[i] = d->api.CreateKernel(d->program, names[i], &code);
        if (code)
            return mr_fail(err, MR_SYSTEM, "opencl: %s: kernel %s: %s (code %d)", d->name, names[i],
                           mr_cl_error_text(code), (int)code);
    }
    return mr_cl_alloc(&d->device, MR_CL_SCRATCH_FLOATS * sizeof(float), "partial sums", &d->scratch, err);
}

mr_status mr_cl_program_open(mr_opencl *d, mr_error *err)
{
    if (d->program)
        return MR_OK;
    if (!load_cached(d)) {
        MR_TRY(build_text(d, err));
        keep(d);
    }
    mr_status status = make_kernels(d, err);
    if (status != MR_OK)
        mr_cl_program_close(d);
    return status;
}

void mr_cl_program_close(mr_opencl *d)
{
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        if (d->kernels[i])
            d->api.ReleaseKernel(d->kernels[i]);
        d->kernels[i] = NULL;
    }
    drop_program(d);
}
