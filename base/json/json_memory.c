/* json_memory.c - jansson's allocator in a program: counts failures and serves them from the thread's reserve.
 * Invariant: while a reserve lasts, its thread's jansson is never given NULL. */
#include "base/json/json_memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <jansson.h>

static atomic_ulong refused;
static bool watching;

static _Thread_local struct {
    uint8_t *bytes;
    size_t used, size;
} reserve;

static void *watched(size_t size)
{
    void *block = malloc(size);
    if (block)
        return block;
    atomic_fetch_add(&refused, 1);
    if (size > reserve.size - reserve.used)
        return NULL;
    block = reserve.bytes + reserve.used;
    size = (size + 15) & ~(size_t)15;
    reserve.used = size < reserve.size - reserve.used ? reserve.used + size : reserve.size;
    return block;
}

static void unwatched(void *block)
{
    uintptr_t at = (uintptr_t)block, begin = (uintptr_t)reserve.bytes;
    if (at < begin || at >= begin + reserve.size)
        free(block);
}

bool mr_json_reserve(size_t len)
{
    enum { VALUES = 256 << 10 }; /* for the values in 1 KiB of text */
    if (!watching)
        return true;
    if (len > SIZE_MAX / 8 || !(reserve.bytes = malloc(4 * len + VALUES)))
        return false;
    reserve.size = 4 * len + VALUES;
    return true;
}

void mr_json_reserve_end(void)
{
    free(reserve.bytes);
    reserve.bytes = NULL;
    reserve.used = reserve.size = 0;
}

void mr_json_watch(void)
{
    watching = true;
    json_set_alloc_funcs(watched, unwatched);
}

unsigned long mr_json_refused(void)
{
    return atomic_load(&refused);
}
