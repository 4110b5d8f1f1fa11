/* slab.c - large blocks of memory that are reused.
 *
 *   mmap of capacity + 2 MiB:   | unmapped |  capacity, aligned to 2 MiB, MADV_HUGEPAGE  | unmapped | */
#include "base/system/slab.h"

#include <string.h>
#include <sys/mman.h>

enum { HUGE = 2 << 20, PAGE = 4096, ALIGN = 64 };

static uint8_t *map_huge(size_t bytes)
{
    uint8_t *all = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)all & (HUGE - 1));
    if (before)
        munmap(all, before);
    munmap(all + before + bytes, HUGE - before);
    /* May fail: a kernel without huge pages uses small ones. */
    madvise(all + before, bytes, MADV_HUGEPAGE);
    return all + before;
}

/* Huge pages for at least half a huge page, small pages below. */
static uint8_t *map(size_t *bytes)
{
    size_t unit = *bytes >= HUGE / 2 ? HUGE : PAGE;
    *bytes = (*bytes + unit - 1) / unit * unit;
    if (unit == HUGE)
        return map_huge(*bytes);
    uint8_t *data = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static void release(mr_slab *s, const mr_allocator *allocator)
{
    if (s->data && s->mapped)
        munmap(s->data, s->mapped);
    else if (s->data && allocator)
        allocator->free(allocator->ctx, s->data, s->capacity);
}

mr_status mr_slab_reserve(mr_slab *s, size_t bytes, size_t keep, const mr_allocator *allocator, mr_error *err)
{
    if (bytes <= s->capacity)
        return MR_OK;
    if (bytes > SIZE_MAX / 4)
        return mr_fail_memory(err, "making a batch");
    /* Batches differ a little in size: an eighth of slack avoids growing for each larger one. */
    size_t capacity = bytes + (keep || s->capacity ? bytes / 8 : 0);
    mr_slab grown = {.capacity = (capacity + ALIGN - 1) / ALIGN * ALIGN};
    /* With nothing to keep, the old memory is freed first: never both at once. */
    if (keep == 0)
        mr_slab_free(s, allocator);
    if (allocator) {
        grown.data = allocator->alloc(allocator->ctx, grown.capacity);
    } else {
        grown.data = map(&grown.capacity);
        grown.mapped = grown.capacity;
    }
    if (!grown.data)
        return mr_fail(err, MR_SYSTEM, "making a batch of %zu bytes: out of memory; use a smaller batch or prefetch",
                       bytes);
    if ((uintptr_t)grown.data % ALIGN) {
        release(&grown, allocator);
        return mr_fail(err, MR_MISUSE, "allocator: its memory is not aligned to %d bytes", ALIGN);
    }
    if (keep)
        memcpy(grown.data, s->data, keep);
    release(s, allocator);
    *s = grown;
    return MR_OK;
}

void mr_slab_free(mr_slab *s, const mr_allocator *allocator)
{
    release(s, allocator);
    *s = (mr_slab){0};
}
