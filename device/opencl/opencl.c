/* opencl.c - the interface of the device `opencl`: any OpenCL 1.2 device, with kernels of our own.
 * Invariant: devices are numbered in the order of platforms and of devices in them, GPUs and accelerators before
 * processors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "device/opencl/opencl.h"

enum { PLATFORMS_MAX = 16, DEVICES_MAX = 64 };

static void info(const mr_opencl *d, mr_cl_device id, uint32_t what, void *value, size_t size)
{
    memset(value, 0, size);
    d->api.GetDeviceInfo(id, what, size, value, NULL);
}

static bool is_usable(const mr_opencl *d, mr_cl_device id, bool processors)
{
    uint32_t available = 0, little = 0;
    mr_cl_bits type = 0;
    info(d, id, MR_CL_DEVICE_AVAILABLE, &available, sizeof available);
    info(d, id, MR_CL_DEVICE_ENDIAN_LITTLE, &little, sizeof little);
    info(d, id, MR_CL_DEVICE_TYPE, &type, sizeof type);
    return available && little && ((type & MR_CL_DEVICE_TYPE_CPU) != 0) == processors;
}

static size_t list_devices(const mr_opencl *d, mr_cl_device *out)
{
    mr_cl_platform platforms[PLATFORMS_MAX];
    mr_cl_device devices[DEVICES_MAX];
    uint32_t platform_count = 0, device_count;
    size_t count = 0;
    if (d->api.GetPlatformIDs(PLATFORMS_MAX, platforms, &platform_count) != 0)
        return 0;
    for (unsigned processors = 0; processors < 2; processors++)
        for (uint32_t p = 0; p < platform_count && p < PLATFORMS_MAX; p++) {
            device_count = 0;
            if (d->api.GetDeviceIDs(platforms[p], MR_CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &device_count) != 0)
                continue;
            for (uint32_t i = 0; i < device_count && i < DEVICES_MAX && count < DEVICES_MAX; i++)
                if (is_usable(d, devices[i], processors))
                    out[count++] = devices[i];
        }
    return count;
}

/* Names come with spaces at the end, and are shown in a line. */
static void info_text(const mr_opencl *d, uint32_t what, char *text, size_t size)
{
    char all[512];
    info(d, d->id, what, all, sizeof all - 1);
    all[sizeof all - 1] = '\0';
    size_t from = strspn(all, " "), len = 0;
    for (; all[from + len] && len + 1 < size; len++) {
        text[len] = all[from + len];
        if (text[len] < ' ' || (unsigned char)text[len] >= 127)
            text[len] = ' ';
    }
    while (len && text[len - 1] == ' ')
        len--;
    text[len] = '\0';
}

static mr_status choose(mr_opencl *d, const mr_device_options *options, mr_error *err)
{
    mr_cl_device devices[DEVICES_MAX];
    size_t count = list_devices(d, devices);
    if (!count)
        return mr_fail(err, MR_SYSTEM,
                       "opencl: no OpenCL device found; install the driver of one, or of the processor: "
                       "apt-get install pocl-opencl-icd");
    if (options->index >= count)
        return mr_fail(err, MR_MISUSE, "--device: there is no opencl:%u; the last is opencl:%zu", options->index,
                       count - 1);
    d->id = devices[options->index + options->local_rank % (count - options->index)];
    return MR_OK;
}

static mr_status check(const mr_opencl *d, mr_error *err)
{
    enum { LOCAL_BYTES = 16384 }; /* more than any kernel has */
    size_t lanes;
    uint64_t local;
    info(d, d->id, MR_CL_DEVICE_MAX_WORK_GROUP_SIZE, &lanes, sizeof lanes);
    info(d, d->id, MR_CL_DEVICE_LOCAL_MEM_SIZE, &local, sizeof local);
    if (lanes < MR_LAUNCH_GEMM_LANES || local < LOCAL_BYTES)
        return mr_fail(err, MR_SYSTEM,
                       "opencl: %s is too small: groups of %zu lanes with %llu bytes; %d and %d are needed", d->name,
                       lanes, (unsigned long long)local, MR_LAUNCH_GEMM_LANES, LOCAL_BYTES);
    return MR_OK;
}

static mr_status set_up(mr_opencl *d, const mr_device_options *options, mr_error *err)
{
    uint32_t units = 0;
    mr_cl_bits type = 0;
    char version[64];
    int32_t code = 0;
    MR_TRY(mr_cl_api_open(&d->api, err));
    MR_TRY(choose(d, options, err));
    info_text(d, MR_CL_DEVICE_NAME, d->name, sizeof d->name);
    info_text(d, MR_CL_DRIVER_VERSION, d->driver, sizeof d->driver);
    info_text(d, MR_CL_DEVICE_VERSION, version, sizeof version);
    info(d, d->id, MR_CL_DEVICE_GLOBAL_MEM_SIZE, &d->memory, sizeof d->memory);
    info(d, d->id, MR_CL_DEVICE_MAX_MEM_ALLOC_SIZE, &d->largest, sizeof d->largest);
    info(d, d->id, MR_CL_DEVICE_MAX_COMPUTE_UNITS, &units, sizeof units);
    snprintf(d->text, sizeof d->text, "%s, %.1f GiB, %u unit%s, %.10s, driver %s", d->name,
             (double)d->memory / (1 << 30), units, units == 1 ? "" : "s", version, d->driver);
    MR_TRY(check(d, err));
    info(d, d->id, MR_CL_DEVICE_TYPE, &type, sizeof type);
    d->launcher.one_lane = (type & MR_CL_DEVICE_TYPE_CPU) && !(type & MR_CL_DEVICE_TYPE_GPU); /* oclgrind is both */
    d->context = d->api.CreateContext(NULL, 1, &d->id, NULL, NULL, &code);
    if (!code)
        d->queue = d->api.CreateCommandQueue(d->context, d->id, 0, &code);
    return code ? mr_fail(err, MR_SYSTEM, "opencl: %s cannot be used: %s (code %d)", d->name, mr_cl_error_text(code),
                          (int)code)
                : MR_OK;
}

static void close_opencl(mr_device *device)
{
    mr_opencl *d = mr_opencl_of(device);
    if (d->queue)
        d->api.Finish(d->queue);
    mr_cl_copies_close(d);
    mr_cl_memory_close(d);
    mr_cl_program_close(d);
    if (d->queue)
        d->api.ReleaseCommandQueue(d->queue);
    if (d->context)
        d->api.ReleaseContext(d->context);
    free(d);
}

static mr_status open_opencl(const mr_device_options *options, mr_device **out, mr_error *err)
{
    mr_opencl *d = mr_alloc(1, sizeof *d);
    if (!d)
        return mr_fail_memory(err, "opening the device");
    d->launcher = (mr_launcher){.device = {&mr_device_opencl}, .iface = &mr_cl_launches, .wrong = d->wrong};
    d->exact = mr_env("MILLRACE_OPENCL_EXACT") != NULL; /* for tests */
    mr_status status = set_up(d, options, err);
    if (status == MR_OK)
        *out = &d->launcher.device;
    else
        close_opencl(&d->launcher.device);
    return status;
}

static const char *describe(const mr_device *device)
{
    return ((const mr_opencl *)(const void *)device)->text;
}

static mr_status wait_done(mr_device *device, mr_error *err)
{
    mr_opencl *d = mr_opencl_of(device);
    mr_cl_note(d, "wait", d->api.Finish(d->queue));
    mr_cl_copies_done(d);
    return d->wrong[0] ? mr_fail(err, MR_SYSTEM, "opencl: %s", d->wrong) : MR_OK;
}

static const char *products(const mr_device *device, mr_type type)
{
    (void)device, (void)type;
    return "millrace's own kernels";
}

/* Kernels are compiled when memory is first asked for. */
static mr_status alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    MR_TRY(mr_cl_program_open(mr_opencl_of(device), err));
    return mr_cl_alloc(device, bytes, purpose, out, err);
}

const mr_device_iface mr_device_opencl = {
    .name = "opencl",
    .what = "any OpenCL 1.2 device, GPU or CPU",
    .types = 1U << MR_F32 | 1U << MR_BF16,
    .open = open_opencl,
    .close = close_opencl,
    .describe = describe,
    .products = products,
    .alloc = alloc,
    .free = mr_cl_free,
    .upload = mr_cl_upload,
    .download = mr_cl_download,
    .zero = mr_cl_zero,
    .wait = wait_done,
    .plan_attention = mr_launch_plan_attention,
    .run = mr_launch_run,
};
