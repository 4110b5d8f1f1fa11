/* isolated.c - a device that opens its memory for the operations of the CPU; see isolated.h.
 *
 *      | inaccessible | block, a whole number of pages | inaccessible |      mprotect() for each operation */
#include "tests/support/isolated.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/scope.h"

enum { PAGE = 4096 };

typedef struct block {
    uint8_t *data;
    size_t bytes, pages; /* asked for; mapped, in bytes, with a page at either end that is never opened */
    unsigned use;        /* of the operation that runs */
} block;

typedef struct isolated {
    mr_device device;
    mr_device *cpu;
    block *blocks;
    size_t count, capacity;
    char text[128], wrong[128]; /* wrong: the first operation that was given other memory; "": none */
} isolated;

static isolated *isolated_of(const mr_device *d)
{
    return (isolated *)(uintptr_t)d;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void unmap(const block *b)
{
    munmap(b->data - PAGE, b->pages + (size_t)2 * PAGE);
}

static mr_status alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    isolated *d = isolated_of(device);
    block b = {.bytes = bytes, .pages = bytes / PAGE * PAGE + PAGE};
    bool fits = bytes < SIZE_MAX / 4 && MR_GROW(d->blocks, d->count, d->capacity);
    uint8_t *all =
        fits ? mmap(NULL, b.pages + (size_t)2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
             : MAP_FAILED;
    if (all == MAP_FAILED)
        return mr_fail(err, MR_SYSTEM, "isolated: no memory for %zu bytes of %s; use a smaller batch or model", bytes,
                       purpose);
    b.data = all + PAGE;
    d->blocks[d->count++] = b;
    *out = b.data;
    return MR_OK;
}

static void free_memory(mr_device *device, void *memory)
{
    isolated *d = isolated_of(device);
    for (size_t i = 0; memory && i < d->count; i++)
        if (d->blocks[i].data == memory) {
            unmap(&d->blocks[i]);
            d->blocks[i] = d->blocks[--d->count];
            return;
        }
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static void ask_for(isolated *d, const char *word, size_t argument, const void *at, size_t bytes, unsigned use)
{
    const char *wrong = "is not memory of the device";
    for (size_t i = 0; i < d->count; i++) {
        block *b = &d->blocks[i];
        if ((const uint8_t *)at < b->data || (const uint8_t *)at >= b->data + b->pages)
            continue;
        b->use |= use;
        if (bytes <= b->bytes - (size_t)((const uint8_t *)at - b->data))
            return;
        wrong = "is longer than its memory";
    }
    if (!d->wrong[0])
        snprintf(d->wrong, sizeof d->wrong, "%s: argument %zu %s", word, argument, wrong);
}

static void set_access(isolated *d, bool open)
{
    for (size_t i = 0; i < d->count; i++) {
        block *b = &d->blocks[i];
        int access = !open ? PROT_NONE : b->use & MR_OUT ? PROT_READ | PROT_WRITE : PROT_READ;
        if (b->use && mprotect(b->data, b->pages, access) != 0)
            abort();
        b->use = open ? b->use : 0;
    }
}

static void run(mr_device *device, const mr_op *op)
{
    isolated *d = isolated_of(device);
    mr_operand o[MR_OPERANDS_MAX];
    for (size_t i = 0, n = mr_op_operands(op, o); i < n; i++)
        if (*o[i].pointer && o[i].capacity)
            ask_for(d, mr_op_word(op->kind), i + 1, *o[i].pointer, o[i].capacity * o[i].size, o[i].use);
    set_access(d, true);
    d->cpu->iface->run(d->cpu, op);
    set_access(d, false);
}

/* A copy is an operation with one operand. */
static isolated *begin_copy(mr_device *device, const char *word, const void *at, size_t bytes, unsigned use)
{
    isolated *d = isolated_of(device);
    if (bytes)
        ask_for(d, word, 1, at, bytes, use);
    set_access(d, true);
    return d;
}

static void upload(mr_device *device, void *to, const void *from, size_t bytes)
{
    isolated *d = begin_copy(device, "upload", to, bytes, MR_OUT);
    d->cpu->iface->upload(d->cpu, to, from, bytes);
    set_access(d, false);
}

static void download(mr_device *device, void *to, const void *from, size_t bytes)
{
    isolated *d = begin_copy(device, "download", from, bytes, MR_IN);
    d->cpu->iface->download(d->cpu, to, from, bytes);
    set_access(d, false);
}

static void zero(mr_device *device, void *memory, size_t bytes)
{
    isolated *d = begin_copy(device, "zero", memory, bytes, MR_OUT);
    d->cpu->iface->zero(d->cpu, memory, bytes);
    set_access(d, false);
}

static mr_status wait_done(mr_device *device, mr_error *err)
{
    isolated *d = isolated_of(device);
    return d->wrong[0] ? mr_fail(err, MR_SYSTEM, "isolated: %s", d->wrong) : d->cpu->iface->wait(d->cpu, err);
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

static const char *describe(const mr_device *device)
{
    return isolated_of(device)->text;
}

static const char *products(const mr_device *device, mr_type type)
{
    const mr_device *cpu = isolated_of(device)->cpu;
    return cpu->iface->products(cpu, type);
}

static mr_status plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err)
{
    mr_device *cpu = isolated_of(device)->cpu;
    return cpu->iface->plan_attention(cpu, a, saved_bytes, err);
}

static void close_both(mr_device *device)
{
    isolated *d = isolated_of(device);
    for (size_t i = 0; i < d->count; i++)
        unmap(&d->blocks[i]);
    free(d->blocks);
    mr_device_close(d->cpu);
    free(d);
}

static mr_status open_isolated(const mr_device_options *options, mr_device **out, mr_error *err)
{
    isolated *d = mr_alloc(1, sizeof *d);
    if (!d)
        return mr_fail_memory(err, "opening the device");
    *d = (isolated){.device = {&mr_device_isolated}};
    mr_status status = mr_device_open("cpu", options, &d->cpu, err);
    if (status != MR_OK) {
        free(d);
        return status;
    }
    snprintf(d->text, sizeof d->text, "isolated memory, %s", d->cpu->iface->describe(d->cpu));
    *out = &d->device;
    return MR_OK;
}

const mr_device_iface mr_device_isolated = {
    .name = "isolated",
    .what = "the processors of this machine, on memory of their own: for tests",
    .types = 1U << MR_F32 | 1U << MR_BF16,
    .open = open_isolated,
    .close = close_both,
    .describe = describe,
    .products = products,
    .alloc = alloc,
    .free = free_memory,
    .upload = upload,
    .download = download,
    .zero = zero,
    .wait = wait_done,
    .plan_attention = plan_attention,
    .run = run,
};
