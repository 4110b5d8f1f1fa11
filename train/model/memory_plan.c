/* memory_plan.c - one piece of a device's memory, divided by a walk. */
#include "train/model/memory_plan.h"

void *mr_memory_take(mr_memory_plan *p, size_t rows, size_t width, size_t size)
{
    size_t bytes, at = p->used;
    if (__builtin_mul_overflow(rows, width, &bytes) || __builtin_mul_overflow(bytes, size, &bytes) ||
        __builtin_add_overflow(bytes, MR_MEMORY_ALIGN - 1, &bytes) ||
        __builtin_add_overflow(p->used, bytes / MR_MEMORY_ALIGN * MR_MEMORY_ALIGN, &p->used)) {
        p->overflow = true;
        return NULL;
    }
    return p->base && bytes >= MR_MEMORY_ALIGN ? p->base + at : NULL;
}
