/* driver.c - libcuda.so.1 of the fake device: devices and their memory; see fake.h.
 * Invariant: pinned memory is read and written when the stream runs, other memory of the host when the call is made; a
 * block lies between red zones, unless a sanitizer sees its ends. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fake.h"

enum {
    PINNED_MAX = 64,
    ALIGNED = 256, /* bytes, as of cuMemAlloc */
    RED = 0xa5,
};

#ifdef __SANITIZE_ADDRESS__
static const size_t zone = 0;
#else
static const size_t zone = 512; /* bytes, a multiple of ALIGNED */
#endif

typedef struct range {
    uint64_t at;
    size_t bytes;
} range;

static bool initialized;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* of pinned memory, which any thread asks for */
static char context;
static _Thread_local void *current;
static unsigned retained;
static uint64_t used;
static range *blocks, pinned[PINNED_MAX];
static size_t block_count, block_capacity;

uint64_t fake_setting(const char *name, uint64_t standard)
{
    const char *text = getenv(name), *only = getenv("MILLRACE_FAKE_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (only && rank && strcmp(only, rank) != 0 && strcmp(name, "MILLRACE_FAKE_DEVICES") != 0)
        return standard;
    return text ? strtoull(text, NULL, 10) : standard;
}

bool fake_has_context(void)
{
    return current == &context;
}

bool fake_has(uint64_t at, size_t bytes)
{
    for (size_t i = 0; i < block_count; i++)
        if (at >= blocks[i].at && at - blocks[i].at <= blocks[i].bytes &&
            bytes <= blocks[i].bytes - (at - blocks[i].at))
            return true;
    return false;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static bool is_red(const uint8_t *at)
{
    for (size_t i = 0; i < zone; i++)
        if (at[i] != RED)
            return false;
    return true;
}

void fake_check_memory(const char *after)
{
    for (size_t i = 0; i < block_count; i++) {
        const uint8_t *at = (const uint8_t *)(uintptr_t)blocks[i].at;
        if (is_red(at - zone) && is_red(at + blocks[i].bytes))
            continue;
        fprintf(stderr, "fake CUDA: %s wrote %s a block of %zu bytes\n", after,
                is_red(at - zone) ? "past the end of" : "before", blocks[i].bytes);
        abort();
    }
}

int cuMemAlloc_v2(uint64_t *out, size_t bytes);
int cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
    void *memory = NULL;
    if (!fake_has_context())
        return FAKE_NO_CONTEXT;
    if (fake_is_lost())
        return FAKE_LOST;
    if (fake_captures())
        return FAKE_CAPTURES;
    if (!bytes || used + bytes > fake_setting("MILLRACE_FAKE_MEMORY", 1 << 30))
        return bytes ? FAKE_NO_MEMORY : FAKE_INVALID;
    if (!MR_GROW(blocks, block_count, block_capacity) || posix_memalign(&memory, ALIGNED, zone + bytes + zone) != 0)
        return FAKE_NO_MEMORY;
    memset(memory, RED, zone + bytes + zone);
    *out = (uintptr_t)memory + zone;
    blocks[block_count++] = (range){*out, bytes};
    used += bytes;
    return 0;
}

int cuMemFree_v2(uint64_t memory);
int cuMemFree_v2(uint64_t memory)
{
    if (!fake_has_context() || fake_captures())
        return fake_has_context() ? FAKE_CAPTURES : FAKE_NO_CONTEXT;
    for (size_t i = 0; i < block_count; i++) {
        if (blocks[i].at != memory)
            continue;
        int code = fake_run_all();
        free((void *)(uintptr_t)(memory - zone));
        used -= blocks[i].bytes;
        blocks[i] = blocks[--block_count];
        return code;
    }
    return FAKE_INVALID;
}

int cuMemHostAlloc(void **out, size_t bytes, unsigned flags);
int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    if (!fake_has_context() || flags)
        return flags ? FAKE_INVALID : FAKE_NO_CONTEXT;
    *out = NULL;
    pthread_mutex_lock(&guard);
    for (size_t i = 0; i < PINNED_MAX; i++)
        if (!pinned[i].at) {
            *out = aligned_alloc(64, (bytes + 63) / 64 * 64);
            pinned[i] = (range){(uintptr_t)*out, bytes};
            break;
        }
    pthread_mutex_unlock(&guard);
    return *out ? 0 : FAKE_NO_MEMORY;
}

int cuMemFreeHost(void *memory);
int cuMemFreeHost(void *memory)
{
    bool found = false;
    pthread_mutex_lock(&guard);
    for (size_t i = 0; i < PINNED_MAX && !found; i++)
        if (pinned[i].at == (uintptr_t)memory) {
            pinned[i].at = 0;
            found = true;
        }
    pthread_mutex_unlock(&guard);
    if (found)
        free(memory);
    return found ? 0 : FAKE_INVALID;
}

static bool is_pinned(const void *memory, size_t bytes)
{
    bool found = false;
    pthread_mutex_lock(&guard);
    for (size_t i = 0; i < PINNED_MAX && !found; i++)
        found = pinned[i].at && (uintptr_t)memory >= pinned[i].at &&
                (uintptr_t)memory + bytes <= pinned[i].at + pinned[i].bytes;
    pthread_mutex_unlock(&guard);
    return found;
}

static bool run_upload(fake_work *w)
{
    memcpy((void *)(uintptr_t)w->to, w->data ? w->data : w->host, w->bytes);
    return true;
}

static bool run_download(fake_work *w)
{
    memcpy(w->host, (void *)(uintptr_t)w->from, w->bytes);
    return true;
}

static bool run_copy(fake_work *w)
{
    memmove((void *)(uintptr_t)w->to, (void *)(uintptr_t)w->from, w->bytes);
    return true;
}

static bool run_fill(fake_work *w)
{
    memset((void *)(uintptr_t)w->to, w->value, w->bytes);
    return true;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *s);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *s)
{
    fake_work w = {.run = run_upload, .to = to, .host = (void *)(uintptr_t)from, .bytes = bytes};
    if (!fake_has(to, bytes))
        return FAKE_INVALID;
    if (!is_pinned(from, bytes)) {
        w.data = malloc(bytes ? bytes : 1);
        w.data_bytes = bytes;
        if (!w.data)
            return FAKE_NO_MEMORY;
        memcpy(w.data, from, bytes);
    }
    return fake_queue(s, w);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *s);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *s)
{
    if (!fake_has(from, bytes))
        return FAKE_INVALID;
    int code = fake_queue(s, (fake_work){.run = run_download, .from = from, .host = to, .bytes = bytes});
    return code || is_pinned(to, bytes) ? code : fake_run_all();
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *s);
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *s)
{
    if (!fake_has(to, bytes) || !fake_has(from, bytes))
        return FAKE_INVALID;
    return fake_queue(s, (fake_work){.run = run_copy, .to = to, .from = from, .bytes = bytes});
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *s);
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *s)
{
    return fake_has(to, bytes) ? fake_queue(s, (fake_work){.run = run_fill, .to = to, .bytes = bytes, .value = value})
                               : FAKE_INVALID;
}

/* ---- devices ---------------------------------------------------------------------------------------------------- */

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    initialized = flags == 0;
    return initialized ? 0 : FAKE_INVALID;
}

int cuDriverGetVersion(int *out);
int cuDriverGetVersion(int *out)
{
    *out = (int)fake_setting("MILLRACE_FAKE_DRIVER", 13010);
    return 0;
}

int cuGetErrorName(int code, const char **out);
int cuGetErrorName(int code, const char **out)
{
    *out = code == FAKE_NO_MEMORY  ? "CUDA_ERROR_OUT_OF_MEMORY"
           : code == FAKE_LOST     ? "CUDA_ERROR_LAUNCH_FAILED"
           : code == FAKE_NO_IMAGE ? "CUDA_ERROR_INVALID_IMAGE"
                                   : NULL;
    return *out ? 0 : FAKE_INVALID;
}

int cuGetErrorString(int code, const char **out);
int cuGetErrorString(int code, const char **out)
{
    *out = code == FAKE_NO_MEMORY  ? "out of memory"
           : code == FAKE_LOST     ? "unspecified launch failure"
           : code == FAKE_NO_IMAGE ? "device kernel image is invalid"
                                   : NULL;
    return *out ? 0 : FAKE_INVALID;
}

int cuDeviceGetCount(int *out);
int cuDeviceGetCount(int *out)
{
    *out = (int)fake_setting("MILLRACE_FAKE_DEVICES", 1);
    return initialized ? 0 : FAKE_NO_DEVICE;
}

int cuDeviceGet(int *out, int number);
int cuDeviceGet(int *out, int number)
{
    *out = number;
    return 0;
}

int cuDeviceGetName(char *out, int capacity, int number);
int cuDeviceGetName(char *out, int capacity, int number)
{
    (void)number;
    return snprintf(out, (size_t)capacity, "Fake GPU") < capacity ? 0 : FAKE_INVALID;
}

int cuDeviceTotalMem_v2(size_t *out, int number);
int cuDeviceTotalMem_v2(size_t *out, int number)
{
    (void)number;
    *out = fake_setting("MILLRACE_FAKE_MEMORY", 1 << 30);
    return 0;
}

int cuDeviceGetAttribute(int *out, int what, int number);
int cuDeviceGetAttribute(int *out, int what, int number)
{
    int capability = (int)fake_setting("MILLRACE_FAKE_CAPABILITY", 90);
    (void)number;
    *out = what == 75 ? capability / 10 : what == 76 ? capability % 10 : what == 16 ? 3 : -1;
    return *out < 0 ? FAKE_INVALID : 0;
}

int cuDeviceGetUuid_v2(uint8_t *out, int number);
int cuDeviceGetUuid_v2(uint8_t *out, int number)
{
    memset(out, 0, 16);
    out[15] = (uint8_t)(number + 1);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **out, int number);
int cuDevicePrimaryCtxRetain(void **out, int number)
{
    (void)number;
    *out = &context;
    retained++;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int number);
int cuDevicePrimaryCtxRelease_v2(int number)
{
    (void)number;
    fake_tell();
    return retained-- ? 0 : FAKE_NO_CONTEXT;
}

int cuCtxSetCurrent(void *c);
int cuCtxSetCurrent(void *c)
{
    current = c;
    return retained && c == &context ? 0 : FAKE_NO_CONTEXT;
}
