/* cuda.c - the interface of the device `cuda`: NVIDIA GPUs, with kernels of our own and the products of cuBLASLt.
 * Invariant: devices are numbered as by the driver (CUDA_VISIBLE_DEVICES); a device that cannot be used says in one
 * sentence what is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "device/cuda/cuda.h"

static int attribute(const mr_cuda *d, int what)
{
    int value = 0;
    d->api.cu.device_attribute(&value, what, d->id);
    return value;
}

static mr_status choose(mr_cuda *d, const mr_device_options *options, mr_error *err)
{
    char why[160];
    int count = 0, code = d->api.cu.init(0);
    if (!code)
        code = d->api.cu.device_count(&count);
    if (!code && count <= 0)
        code = MR_CU_NO_DEVICE;
    if (code) {
        mr_cuda_error_text(d, code, why, sizeof why);
        return mr_fail(err, MR_SYSTEM, "cuda: no CUDA device can be used (%s); choose another --device", why);
    }
    unsigned devices = (unsigned)count;
    if (options->index >= devices)
        return mr_fail(err, MR_MISUSE, "--device: there is no cuda:%u; the last is cuda:%u", options->index,
                       devices - 1);
    unsigned chosen = options->index + options->local_rank % (devices - options->index);
    code = d->api.cu.device_get(&d->id, (int)chosen);
    if (!code)
        code = d->api.cu.device_name(d->name, sizeof d->name, d->id);
    if (!code) {
        size_t bytes = 0;
        code = d->api.cu.device_memory(&bytes, d->id);
        d->memory = bytes;
    }
    if (!code)
        return MR_OK;
    mr_cuda_error_text(d, code, why, sizeof why);
    return mr_fail(err, MR_SYSTEM, "cuda: cuda:%u cannot be used (%s)", chosen, why);
}

static void describe_it(mr_cuda *d)
{
    int driver = 0, major = 0, minor = 0;
    d->api.cu.version(&driver);
    d->api.nvrtc.version(&major, &minor);
    d->major = attribute(d, MR_CU_MAJOR);
    d->minor = attribute(d, MR_CU_MINOR);
    d->launcher.mma = d->major >= 8; /* bf16 on tensor cores: PTX ISA, mma.m16n8k16 */
    d->multiprocessors = attribute(d, MR_CU_MULTIPROCESSORS);
    snprintf(d->text, sizeof d->text,
             "%s, %.1f GiB, %d multiprocessors of compute capability %d.%d, driver %d.%d, NVRTC %d.%d", d->name,
             (double)d->memory / (1 << 30), d->multiprocessors, d->major, d->minor, driver / 1000, driver % 1000 / 10,
             major, minor);
}

static mr_status set_up(mr_cuda *d, const mr_device_options *options, mr_error *err)
{
    char why[160];
    MR_TRY(mr_cuda_api_open(&d->api, err));
    MR_TRY(choose(d, options, err));
    describe_it(d);
    int code = d->api.cu.context_retain(&d->context, d->id);
    if (!code)
        code = d->api.cu.context_use(d->context);
    if (!code)
        code = d->api.cu.stream_create(&d->stream, MR_CU_NON_BLOCKING);
    if (!code) {
        const char *set = mr_env("MILLRACE_CUDA_GRAPHS");
        d->records = !set || strcmp(set, "0") != 0;
        mr_cuda_products_open(d);
        return MR_OK;
    }
    mr_cuda_error_text(d, code, why, sizeof why);
    return mr_fail(err, MR_SYSTEM, "cuda: %s cannot be used (%s)", d->name, why);
}

static void close_cuda(mr_device *device)
{
    mr_cuda *d = mr_cuda_of(device);
    if (d->context)
        d->api.cu.context_use(d->context);
    mr_cuda_sums_close(d);
    mr_cuda_slabs_close(d);
    mr_cuda_queues_close(d);
    if (d->stream)
        d->api.cu.stream_wait(d->stream);
    mr_cuda_clock_close(d);
    mr_cuda_products_close(d);
    mr_cuda_memory_close(d);
    mr_cuda_program_close(d);
    if (d->stream)
        d->api.cu.stream_destroy(d->stream);
    if (d->context)
        d->api.cu.context_release(d->id);
    free(d);
}

static mr_status open_cuda(const mr_device_options *options, mr_device **out, mr_error *err)
{
    mr_cuda *d = mr_alloc(1, sizeof *d);
    if (!d)
        return mr_fail_memory(err, "opening the device");
    mr_cuda_slabs_open(d);
    d->launcher = (mr_launcher){.device = {&mr_device_cuda}, .iface = &mr_cuda_launches, .wrong = d->wrong};
    mr_status status = set_up(d, options, err);
    if (status == MR_OK)
        *out = &d->launcher.device;
    else
        close_cuda(&d->launcher.device);
    return status;
}

static const char *describe(const mr_device *device)
{
    return ((const mr_cuda *)(const void *)device)->text;
}

static const char *products(const mr_device *device, mr_type type)
{
    (void)type;
    return ((const mr_cuda *)(const void *)device)->products;
}

static mr_status wait_done(mr_device *device, mr_error *err)
{
    mr_cuda *d = mr_cuda_of(device);
    if (mr_cuda_use(d))
        mr_cuda_note(d, "wait", d->api.cu.stream_wait(d->stream));
    return d->wrong[0] ? mr_fail(err, MR_SYSTEM, "cuda: %s", d->wrong) : MR_OK;
}

static void run(mr_device *device, const mr_op *op)
{
    if (op->kind == MR_OP_gemm)
        mr_cuda_gemm(device, op->arguments);
    else
        mr_launch_run(device, op);
}

/* Kernels are compiled when memory is first asked for. */
static mr_status alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    MR_TRY(mr_cuda_program_open(mr_cuda_of(device), err));
    return mr_cuda_alloc(device, bytes, purpose, out, err);
}

const mr_device_iface mr_device_cuda = {
    .name = "cuda",
    .what = "an NVIDIA GPU",
    .types = 1U << MR_F32 | 1U << MR_BF16,
    .open = open_cuda,
    .close = close_cuda,
    .describe = describe,
    .products = products,
    .declined = mr_cuda_declined,
    .alloc = alloc,
    .free = mr_cuda_free,
    .upload = mr_cuda_upload,
    .download = mr_cuda_download,
    .zero = mr_cuda_zero,
    .wait = wait_done,
    .plan_attention = mr_launch_plan_attention,
    .run = run,
    .slabs = mr_cuda_slabs,
    .second = &mr_cuda_second,
    .recorder = &mr_cuda_recorder,
    .clock = &mr_cuda_clock,
    .sums = &mr_cuda_sums,
};
