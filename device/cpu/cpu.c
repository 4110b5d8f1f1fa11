/* cpu.c - the CPU as a device: the reference for all others.
 * Invariant: every operation is complete when its call returns, and only products of bf16 allocate, for operands that
 * they convert; wait() reports if they could not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/bf16.h"
#include "base/system/pool.h"
#include "base/system/processor.h"
#include "base/scope.h"

/* ---- choosing the kernels ------------------------------------------------------------------------------------- */

typedef struct choice {
    const mr_cpu_kernels *kernels;
    mr_processor_set needs;
} choice;

/* The best set that this machine supports. */
static const mr_cpu_kernels *best_kernels(void)
{
    const choice choices[] = {
    /* best first */
#ifdef MR_CPU_X86
        {&mr_cpu_kernels_avx512, MR_AVX512},
        {&mr_cpu_kernels_avx2, MR_AVX2},
#endif
        {&mr_cpu_kernels_plain, MR_PLAIN_C},
    };
    size_t i = 0;
    while (i + 1 < MR_COUNT(choices) && !mr_processor_has(choices[i].needs))
        i++;
    return choices[i].kernels;
}

/* ---- opening and closing -------------------------------------------------------------------------------------- */

static void close_cpu(mr_device *device)
{
    mr_cpu *d = mr_cpu_of(device);
    mr_team_close(d->team);
    mr_cpu_blas_close(&d->blas);
    mr_cpu_onednn_close(&d->onednn);
    mr_cpu_bf16_close(&d->bf16);
    for (size_t i = 0; i < d->memory.count; i++)
        mr_slab_free(&d->memory.items[i], NULL);
    free(d->memory.items);
    mr_slab_free(&d->parts, NULL);
    mr_slab_free(&d->lines, NULL);
    mr_slab_free(&d->scratch, NULL);
    free(d);
}

static mr_status set_up(mr_cpu *d, const mr_device_options *options, mr_error *err)
{
    if (options->index)
        return mr_fail(err, MR_MISUSE, "--device: there is only one cpu, number 0");
    MR_TRY(mr_processor_check(err));
    d->kernels = best_kernels();
    MR_TRY(mr_cpu_blas_open(&d->blas, err));
    MR_TRY(mr_slab_reserve(&d->parts, MR_CPU_PART_FLOATS * sizeof(float), 0, NULL, err));
    MR_TRY(mr_team_open(options->threads ? options->threads : mr_pool_processors(), &d->team, err));
    unsigned threads = mr_team_threads(d->team);
    size_t lines = (size_t)threads * MR_CPU_LINES * MR_CPU_LINE * sizeof(float);
    MR_TRY(mr_slab_reserve(&d->lines, lines, 0, NULL, err));
    if (strcmp(d->kernels->name, "avx512") == 0)
        mr_cpu_onednn_open(&d->onednn);
    snprintf(d->text, sizeof d->text, "%u thread%s, %s loops, %sOpenBLAS for %s", threads, threads == 1 ? "" : "s",
             d->kernels->name, d->onednn.gemm_f32 ? "oneDNN and " : "", d->blas.core);
    MR_TRY(mr_cpu_blas_reserve(&d->blas, threads, err));
    return mr_cpu_onednn_reserve(&d->onednn, err);
}

static mr_status open_cpu(const mr_device_options *options, mr_device **out, mr_error *err)
{
    mr_cpu *d = mr_alloc(1, sizeof *d);
    if (!d)
        return mr_fail_memory(err, "opening the CPU");
    d->device.iface = &mr_device_cpu;
    mr_status status = set_up(d, options, err);
    if (status == MR_OK)
        *out = &d->device;
    else
        close_cpu(&d->device);
    return status;
}

static const char *describe(const mr_device *device)
{
    return ((const mr_cpu *)(const void *)device)->text;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static mr_status alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    mr_cpu_memory *m = &mr_cpu_of(device)->memory;
    mr_slab slab = {0};
    if (!MR_GROW(m->items, m->count, m->capacity) || mr_slab_reserve(&slab, bytes ? bytes : 1, 0, NULL, NULL) != MR_OK)
        return mr_fail(err, MR_SYSTEM, "cpu: no memory left for %zu bytes of %s; use a smaller batch or model", bytes,
                       purpose);
    m->items[m->count++] = slab;
    *out = slab.data;
    return MR_OK;
}

static void free_memory(mr_device *device, void *memory)
{
    mr_cpu_memory *m = &mr_cpu_of(device)->memory;
    for (size_t i = 0; memory && i < m->count; i++) {
        if (m->items[i].data == memory) {
            mr_slab_free(&m->items[i], NULL);
            m->items[i] = m->items[--m->count];
            return;
        }
    }
}

static void copy(mr_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

static void zero(mr_device *device, void *memory, size_t bytes)
{
    (void)device;
    if (bytes)
        memset(memory, 0, bytes);
}

static mr_status wait_done(mr_device *device, mr_error *err)
{
    return atomic_exchange(&mr_cpu_of(device)->no_memory, false)
               ? mr_fail(err, MR_SYSTEM, "cpu: no memory left for bf16 products; use a smaller batch or model")
               : MR_OK;
}

static const char *products(const mr_device *device, mr_type type)
{
    const mr_cpu *d = (const mr_cpu *)(const void *)device;
    if (type == MR_F32)
        return d->onednn.gemm_f32 ? "oneDNN" : "OpenBLAS";
    return d->onednn.gemm_bf16 ? "oneDNN"
           : mr_processor_has(MR_AVX512_BF16)
               ? "OpenBLAS in float32, as oneDNN is missing (`apt-cache search libdnnl` names its package): "
                 "half the memory, the same speed"
               : "OpenBLAS in float32, as this processor has no bf16 instructions: half the "
                 "memory, the same speed";
}

static void run(mr_device *device, const mr_op *op)
{
    switch (op->kind) {
#define X(name, ...)                                                                                                   \
    case MR_OP_##name:                                                                                                 \
        mr_cpu_##name(device, op->arguments);                                                                          \
        break;
        MR_OPERATIONS(X)
#undef X
    default:
        break;
    }
}

const mr_device_iface mr_device_cpu = {
    .name = "cpu",
    .what = "the processors of this machine",
    .types = 1U << MR_F32 | 1U << MR_BF16,
    .open = open_cpu,
    .close = close_cpu,
    .describe = describe,
    .products = products,
    .alloc = alloc,
    .free = free_memory,
    .upload = copy,
    .download = copy,
    .zero = zero,
    .wait = wait_done,
    .host_memory = true,
    .plan_attention = mr_cpu_plan_attention,
    .run = run,
};
