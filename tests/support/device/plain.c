/* plain.c - the interface of the device "plain", see plain.h. */
#include "tests/support/device/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/launch/launch.h"
#include "tests/support/isolated.h"
#include "tests/support/device/lanes.h"
#include "tests/support/device/plain_table.h"

enum { CANARY = 64, BYTE = 0xA5 };

typedef struct block {
    uint8_t *data; /* between two canaries */
    size_t bytes;
} block;

typedef struct plain {
    mr_launcher launcher;
    block *blocks;
    size_t count, capacity;
    char wrong[MR_LAUNCH_WRONG];
} plain;

static plain *plain_of(mr_device *device)
{
    return (plain *)(void *)device;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

#if defined(__SANITIZE_ADDRESS__)
#define FENCES
#elif defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer)
#define FENCES
#endif
#endif
#ifdef FENCES
#include <sanitizer/asan_interface.h>
#define FENCE(at, bytes)   ASAN_POISON_MEMORY_REGION(at, bytes)
#define UNFENCE(at, bytes) ASAN_UNPOISON_MEMORY_REGION(at, bytes)
#else
#define FENCE(at, bytes)   ((void)0)
#define UNFENCE(at, bytes) ((void)0)
#endif

static void check_canaries(plain *p, const block *b)
{
    UNFENCE(b->data - CANARY, CANARY);
    UNFENCE(b->data + b->bytes, CANARY);
    for (size_t i = 0; i < CANARY; i++)
        if (((b->data - CANARY)[i] != BYTE || b->data[b->bytes + i] != BYTE) && !p->wrong[0])
            snprintf(p->wrong, sizeof p->wrong, "a kernel wrote beside a tensor of %zu bytes", b->bytes);
    FENCE(b->data - CANARY, CANARY);
    FENCE(b->data + b->bytes, CANARY);
}

static mr_status alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    plain *p = plain_of(device);
    void *aligned = NULL;
    bool fits = bytes < SIZE_MAX / 4 && MR_GROW(p->blocks, p->count, p->capacity) &&
                posix_memalign(&aligned, CANARY, bytes + 2 * CANARY) == 0;
    uint8_t *all = aligned;
    if (!fits)
        return mr_fail(err, MR_SYSTEM, "plain: no memory for %zu bytes of %s; use a smaller batch or model", bytes,
                       purpose);
    memset(all, BYTE, bytes + 2 * CANARY);
    memset(all + CANARY, 0, bytes);
    p->blocks[p->count] = (block){all + CANARY, bytes};
    *out = all + CANARY;
    FENCE(all, CANARY);
    FENCE(all + CANARY + bytes, CANARY);
    p->count++;
    return MR_OK;
}

static void release(plain *p, const block *b)
{
    check_canaries(p, b);
    UNFENCE(b->data - CANARY, CANARY);
    UNFENCE(b->data + b->bytes, CANARY);
    free(b->data - CANARY);
}

static void free_memory(mr_device *device, void *memory)
{
    plain *p = plain_of(device);
    for (size_t i = 0; memory && i < p->count; i++)
        if (p->blocks[i].data == memory) {
            release(p, &p->blocks[i]);
            p->blocks[i] = p->blocks[--p->count];
            return;
        }
}

static void copy(mr_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes)
        memmove(to, from, bytes);
}

static void zero(mr_device *device, void *memory, size_t bytes)
{
    (void)device;
    if (bytes)
        memset(memory, 0, bytes);
}

static mr_status wait_done(mr_device *device, mr_error *err)
{
    plain *p = plain_of(device);
    for (size_t i = 0; i < p->count; i++)
        check_canaries(p, &p->blocks[i]);
    return p->wrong[0] ? mr_fail(err, MR_SYSTEM, "plain: %s", p->wrong) : MR_OK;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static bool place(const mr_launcher *launcher, const void *x, uint64_t *memory, size_t *offset)
{
    const plain *p = (const plain *)(const void *)launcher;
    for (size_t i = 0; i < p->count; i++)
        if ((const uint8_t *)x >= p->blocks[i].data && (const uint8_t *)x <= p->blocks[i].data + p->blocks[i].bytes) {
            *memory = (uintptr_t)p->blocks[i].data;
            *offset = (size_t)((const uint8_t *)x - p->blocks[i].data);
            return true;
        }
    return false;
}

static void launch(const mr_call *c, const mr_grid *grid)
{
    const plain_kernel *k = c->d->one_lane && c->id == MR_KERNEL_gemm ? plain_one_lane
                            : c->type == MR_F32                       ? plain_f32
                                                                      : plain_bf16;
    while (k->word && strcmp(k->word, mr_kernel_word(c->id)) != 0)
        k++;
    if (!k->word || k->lanes != grid->lanes)
        snprintf(c->d->wrong, MR_LAUNCH_WRONG, "%s: not a kernel in plain C of %zu lanes", mr_kernel_word(c->id),
                 grid->lanes);
    else
        lanes_run(k->call, c->values, k->lanes, (uint32_t)grid->groups, (uint32_t)grid->rows, k->has_barriers);
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

static const mr_launch_iface launches = {.place = place, .launch = launch};

static void close_plain(mr_device *device)
{
    plain *p = plain_of(device);
    for (size_t i = 0; i < p->count; i++)
        release(p, &p->blocks[i]);
    free(p->blocks);
    free(p);
}

static mr_status open_plain(const mr_device_options *options, mr_device **out, mr_error *err)
{
    void *scratch;
    plain *p = mr_alloc(1, sizeof *p);
    if (!p)
        return mr_fail_memory(err, "opening the device");
    p->launcher = (mr_launcher){
        .device = {&support_plain}, .iface = &launches, .wrong = p->wrong, .one_lane = options->threads > 1};
    mr_status status = alloc(&p->launcher.device, MR_LAUNCH_SCRATCH_FLOATS * sizeof(float), "sums", &scratch, err);
    if (status != MR_OK) {
        close_plain(&p->launcher.device);
        return status;
    }
    p->launcher.scratch = scratch;
    *out = &p->launcher.device;
    return MR_OK;
}

static const char *describe(const mr_device *device)
{
    (void)device;
    return "kernels in plain C";
}

static const char *products(const mr_device *device, mr_type type)
{
    (void)device, (void)type;
    return "kernels in plain C";
}

mr_status support_open(const char *word, const mr_device_options *options, mr_device **out, mr_error *err)
{
    if (strcmp(word, mr_device_isolated.name) == 0)
        return mr_device_isolated.open(options, out, err);
    if (strcmp(word, support_plain.name) != 0)
        return mr_device_open(word, options, out, err);
    return open_plain(options, out, err);
}

const mr_device_iface support_plain = {
    .name = "plain",
    .what = "the kernels as plain C",
    .types = 1U << MR_F32 | 1U << MR_BF16,
    .open = open_plain,
    .close = close_plain,
    .describe = describe,
    .products = products,
    .alloc = alloc,
    .free = free_memory,
    .upload = copy,
    .download = copy,
    .zero = zero,
    .wait = wait_done,
    .plan_attention = mr_launch_plan_attention,
    .run = mr_launch_run,
};
