/* opencl.c - a libOpenCL.so.1 without any device, for what the program does around its kernels: listing, memory,
 * waiting, failures.  Programs always build, and kernels do nothing.
 * Invariant: buffers are memory of the host, so that a run is a run on zeros.
 *
 *      MILLRACE_FAKE_DEVICES   how many there are, 2
 *      MILLRACE_FAKE_MEMORY    bytes of each, 1 GiB
 *      MILLRACE_FAKE_BUFFER    bytes of the largest buffer, those of the memory
 *      MILLRACE_FAKE_LAUNCHES  how many succeed before the device is lost, all
 *      MILLRACE_FAKE_RANK      of Open MPI: the only rank whose device is lost
 *      MILLRACE_FAKE_CALLS     a folder for a file per process, with a letter per call that queues or waits: b a new
 *                              buffer, k a kernel, f a fill, w a write that does not wait, W one that does, R a read,
 *                              E for an event, F for all */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOST = -36, NO_MEMORY = -4, INVALID = -30 };

typedef struct fake_buffer {
    size_t size;
    char bytes[];
} fake_buffer;

static uint64_t used, launches;
static char thing; /* what all handles but those of buffers point to */

static uint64_t setting(const char *name, uint64_t standard)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : standard;
}

static bool is_lost(void)
{
    uint64_t rank = setting("OMPI_COMM_WORLD_RANK", 0);
    return setting("MILLRACE_FAKE_RANK", rank) == rank && launches > setting("MILLRACE_FAKE_LAUNCHES", UINT64_MAX - 1);
}

/* Calls that wait are in capitals. */
static void note(char call)
{
    static FILE *file;
    const char *folder = getenv("MILLRACE_FAKE_CALLS");
    char path[4096];
    if (!folder)
        return;
    if (!file) {
        snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
        file = fopen(path, "w");
    }
    if (file)
        fputc(call, file);
}

static void *made(int32_t *code)
{
    if (code)
        *code = 0;
    return &thing;
}

int32_t clGetPlatformIDs(uint32_t capacity, void **out, uint32_t *count);
int32_t clGetPlatformIDs(uint32_t capacity, void **out, uint32_t *count)
{
    if (capacity && out)
        out[0] = &thing;
    *count = 1;
    return 0;
}

int32_t clGetDeviceIDs(void *platform, uint64_t type, uint32_t capacity, void **out, uint32_t *count);
int32_t clGetDeviceIDs(void *platform, uint64_t type, uint32_t capacity, void **out, uint32_t *count)
{
    static char devices[64];
    (void)platform, (void)type;
    *count = (uint32_t)setting("MILLRACE_FAKE_DEVICES", 2);
    for (uint32_t i = 0; i < *count && i < capacity; i++)
        out[i] = &devices[i];
    return *count ? 0 : -1;
}

static int32_t give(void *out, size_t capacity, const void *value, size_t size)
{
    if (capacity < size)
        return INVALID;
    memcpy(out, value, size);
    return 0;
}

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t capacity, void *out, size_t *size);
int32_t clGetDeviceInfo(void *device, uint32_t what, size_t capacity, void *out, size_t *size)
{
    const uint64_t gpu = 4, memory = setting("MILLRACE_FAKE_MEMORY", 1 << 30), local = 32768,
                   largest = setting("MILLRACE_FAKE_BUFFER", memory);
    const uint32_t units = 3, yes = 1;
    const size_t lanes = 256;
    (void)device, (void)size;
    switch (what) {
    case 0x1000:
        return give(out, capacity, &gpu, sizeof gpu);
    case 0x1002:
        return give(out, capacity, &units, sizeof units);
    case 0x1004:
        return give(out, capacity, &lanes, sizeof lanes);
    case 0x1010:
        return give(out, capacity, &largest, sizeof largest);
    case 0x101F:
        return give(out, capacity, &memory, sizeof memory);
    case 0x1023:
        return give(out, capacity, &local, sizeof local);
    case 0x1026:
    case 0x1027:
        return give(out, capacity, &yes, sizeof yes);
    case 0x102B:
        return give(out, capacity, " Fake\nGPU  ", 12);
    case 0x102D:
        return give(out, capacity, "7.5", 4);
    default:
        return give(out, capacity, "OpenCL 1.2 none", 16);
    }
}

void *clCreateContext(const intptr_t *p, uint32_t n, void *const *d, void *notify, void *user, int32_t *code);
void *clCreateContext(const intptr_t *p, uint32_t n, void *const *d, void *notify, void *user, int32_t *code)
{
    (void)p, (void)n, (void)d, (void)notify, (void)user;
    return made(code);
}

void *clCreateCommandQueue(void *context, void *device, uint64_t flags, int32_t *code);
void *clCreateCommandQueue(void *context, void *device, uint64_t flags, int32_t *code)
{
    (void)context, (void)device, (void)flags;
    return made(code);
}

void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int32_t *code);
void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int32_t *code)
{
    (void)context, (void)flags, (void)host;
    uint64_t memory = setting("MILLRACE_FAKE_MEMORY", 1 << 30);
    bool fits = used + size <= memory && size <= setting("MILLRACE_FAKE_BUFFER", memory);
    fake_buffer *b = fits ? calloc(1, sizeof *b + size) : NULL;
    note('b');
    *code = b ? 0 : NO_MEMORY;
    if (b)
        b->size = size;
    used += b ? size : 0;
    return b;
}

int32_t clReleaseMemObject(void *memory);
int32_t clReleaseMemObject(void *memory)
{
    used -= ((fake_buffer *)memory)->size;
    free(memory);
    return 0;
}

/* Arguments of all three: queue, buffer, ..., offset, size. */
static int32_t check(const fake_buffer *b, size_t at, size_t size)
{
    return is_lost() ? LOST : at > b->size || size > b->size - at ? INVALID : 0;
}

int32_t clEnqueueWriteBuffer(void *q, fake_buffer *b, uint32_t now, size_t at, size_t size, const void *from,
                             uint32_t n, const void *w, void **e);
int32_t clEnqueueWriteBuffer(void *q, fake_buffer *b, uint32_t now, size_t at, size_t size, const void *from,
                             uint32_t n, const void *w, void **e)
{
    int32_t code = check(b, at, size);
    (void)q, (void)n, (void)w;
    note(now ? 'W' : 'w');
    if (!code)
        memcpy(b->bytes + at, from, size);
    if (!code && e)
        *e = &thing;
    return code;
}

int32_t clEnqueueReadBuffer(void *q, fake_buffer *b, uint32_t now, size_t at, size_t size, void *to, uint32_t n,
                            const void *w, void *e);
int32_t clEnqueueReadBuffer(void *q, fake_buffer *b, uint32_t now, size_t at, size_t size, void *to, uint32_t n,
                            const void *w, void *e)
{
    int32_t code = check(b, at, size);
    (void)q, (void)now, (void)n, (void)w, (void)e;
    note('R');
    if (!code)
        memcpy(to, b->bytes + at, size);
    return code;
}

int32_t clEnqueueFillBuffer(void *q, fake_buffer *b, const void *pattern, size_t length, size_t at, size_t size,
                            uint32_t n, const void *w, void *e);
int32_t clEnqueueFillBuffer(void *q, fake_buffer *b, const void *pattern, size_t length, size_t at, size_t size,
                            uint32_t n, const void *w, void *e)
{
    note('f');
    int32_t code = at % length || size % length ? INVALID : check(b, at, size);
    (void)q, (void)n, (void)w, (void)e;
    for (size_t i = 0; !code && i < size; i += length)
        memcpy(b->bytes + at + i, pattern, length);
    return code;
}

int32_t clEnqueueNDRangeKernel(void *q, void *kernel, uint32_t dimensions, const size_t *offset, const size_t *items,
                               const size_t *lanes, uint32_t n, const void *w, void *e);
int32_t clEnqueueNDRangeKernel(void *q, void *kernel, uint32_t dimensions, const size_t *offset, const size_t *items,
                               const size_t *lanes, uint32_t n, const void *w, void *e)
{
    (void)q, (void)kernel, (void)offset, (void)n, (void)w, (void)e;
    launches++;
    note('k');
    for (uint32_t i = 0; i < dimensions; i++)
        if (items[i] == 0 || items[i] % lanes[i])
            return INVALID;
    return is_lost() ? LOST : 0;
}

int32_t clFinish(void *q);
int32_t clFinish(void *q)
{
    (void)q;
    note('F');
    return is_lost() ? LOST : 0;
}

int32_t clWaitForEvents(uint32_t count, void *const *events);
int32_t clWaitForEvents(uint32_t count, void *const *events)
{
    (void)count, (void)events;
    note('E');
    return is_lost() ? LOST : 0;
}

void *clCreateProgramWithSource(void *context, uint32_t count, const char **text, const size_t *sizes, int32_t *code);
void *clCreateProgramWithSource(void *context, uint32_t count, const char **text, const size_t *sizes, int32_t *code)
{
    (void)context, (void)count, (void)text, (void)sizes;
    return made(code);
}

static const char binary[] = "a program";

void *clCreateProgramWithBinary(void *context, uint32_t n, void *const *devices, const size_t *sizes,
                                const uint8_t **bytes, int32_t *status, int32_t *code);
void *clCreateProgramWithBinary(void *context, uint32_t n, void *const *devices, const size_t *sizes,
                                const uint8_t **bytes, int32_t *status, int32_t *code)
{
    (void)context, (void)n, (void)devices;
    *status = *code = sizes[0] == sizeof binary && memcmp(bytes[0], binary, sizeof binary) == 0 ? 0 : INVALID;
    return &thing;
}

int32_t clGetProgramInfo(void *program, uint32_t what, size_t capacity, void *out, size_t *size);
int32_t clGetProgramInfo(void *program, uint32_t what, size_t capacity, void *out, size_t *size)
{
    const size_t length = sizeof binary;
    (void)program, (void)size;
    if (what == 0x1165)
        return give(out, capacity, &length, sizeof length);
    memcpy(*(void **)out, binary, sizeof binary);
    return 0;
}

void *clCreateKernel(void *program, const char *name, int32_t *code);
void *clCreateKernel(void *program, const char *name, int32_t *code)
{
    (void)program;
    *code = strncmp(name, "mr_", 3) == 0 ? 0 : INVALID;
    return &thing;
}

#define SUCCEEDS(name)                                                                                                 \
    int32_t name(void);                                                                                                \
    int32_t name(void)                                                                                                 \
    {                                                                                                                  \
        return 0;                                                                                                      \
    }
SUCCEEDS(clReleaseContext)
SUCCEEDS(clReleaseEvent)
SUCCEEDS(clReleaseCommandQueue)
SUCCEEDS(clBuildProgram)
SUCCEEDS(clGetProgramBuildInfo)
SUCCEEDS(clReleaseProgram)
SUCCEEDS(clReleaseKernel)
SUCCEEDS(clSetKernelArg)
