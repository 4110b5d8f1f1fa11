/* json_memory.c - JSON libraries that do not bear to run out of memory.
 * Invariant: as long as the room lasts yajl is never given NULL, and `ran_out` says whether it would have been. */
#include "json/json_memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static void *from_reserve(mr_yajl *y, size_t size)
{
    size_t rounded = (size + 15) & ~(size_t)15;
    y->ran_out = true;
    if (rounded < size || rounded > y->size - y->used)
        abort();
    void *room = y->reserve + y->used;
    y->used += rounded;
    return room;
}

static bool of_reserve(const mr_yajl *y, const void *block)
{
    uintptr_t at = (uintptr_t)block, begin = (uintptr_t)y->reserve;
    return at >= begin && at < begin + y->size;
}

static void *take(void *ctx, size_t size)
{
    void *block = malloc(size);
    return block ? block : from_reserve(ctx, size);
}

static void give(void *ctx, void *block)
{
    if (!of_reserve(ctx, block))
        free(block);
}

static void *take_again(void *ctx, void *old, size_t size)
{
    mr_yajl *y = ctx;
    bool reserved = old && of_reserve(y, old);
    void *block = reserved ? take(y, size) : realloc(old, size);
    if (block && !reserved)
        return block;
    /* How much of a reserved block was in use is not known; it ends before the reserve's used part does. */
    size_t had = !old ? 0 : reserved ? (size_t)(y->reserve + y->used - (uint8_t *)old) : malloc_usable_size(old);
    if (!block)
        block = from_reserve(y, size);
    if (had)
        memmove(block, old, had < size ? had : size);
    if (!reserved)
        free(old);
    return block;
}

mr_status mr_yajl_open(mr_yajl *y, const yajl_callbacks *callbacks, void *ctx, size_t room, const char *what,
                       mr_error *err)
{
    *y = (mr_yajl){.functions = {take, take_again, give, y}, .reserve = malloc(room), .size = room};
    if (!y->reserve)
        return mr_fail_memory(err, what);
    y->parser = yajl_alloc(callbacks, &y->functions, ctx);
    if (y->parser && !y->ran_out)
        return MR_OK;
    mr_yajl_close(y);
    return mr_fail_memory(err, what);
}

void mr_yajl_close(mr_yajl *y)
{
    if (y->parser)
        yajl_free(y->parser);
    free(y->reserve);
    *y = (mr_yajl){0};
}

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
    enum { SHORT = 256 << 10 }; /* for the values of a KiB */
    if (!watching)
        return true;
    if (len > SIZE_MAX / 8 || !(reserve.bytes = malloc(4 * len + SHORT)))
        return false;
    reserve.size = 4 * len + SHORT;
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
