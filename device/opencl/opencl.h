/* opencl.h - private to this module: an OpenCL device.
 * Invariant: operations only queue; the first failure is kept, later operations do nothing, and wait() reports it.
 *
 *      opencl.c      the interface: devices, opening, describing
 *      memory.c      addresses of tensors, never accessible -> one of a few large buffers, and an offset in it
 *      copies.c      uploads that do not wait, downloads that do
 *      program.c     the text of device/kernels, built when memory is first asked for; launches of kernels
 *      launch/       the operations, which are those of every device that launches these kernels */
#ifndef MR_OPENCL_H
#define MR_OPENCL_H

#include "device/launch/launch.h"
#include "device/opencl/api.h"

typedef struct mr_cl_block {
    uint8_t *data; /* addresses only */
    size_t bytes;  /* whole pages */
    size_t asked;
    const char *purpose;
    mr_cl_memory memory; /* the buffer it is in */
    size_t start;        /* where it begins there */
} mr_cl_block;

typedef struct mr_cl_arena { /* a buffer of the driver */
    mr_cl_memory memory;
    uint8_t *base; /* addresses of its bytes */
    size_t bytes;
    size_t blocks; /* in it */
} mr_cl_arena;

enum { MR_CL_SMALL_PARCELS = 32, MR_CL_LARGE_PARCELS = 4 };

typedef struct mr_cl_parcel { /* bytes on their way to the device */
    void *bytes;
    size_t capacity;
    mr_cl_event sent; /* NULL: none are */
} mr_cl_parcel;

typedef struct mr_opencl {
    mr_launcher launcher;
    mr_cl_api api;
    mr_cl_device id;
    mr_cl_context context;
    mr_cl_queue queue;
    mr_cl_program programs[MR_LAUNCH_TYPES];
    mr_cl_kernel kernels[MR_LAUNCH_TYPES][MR_KERNEL_COUNT];
    mr_cl_block *blocks; /* by address */
    size_t count, capacity;
    mr_cl_arena *arenas;
    size_t arena_count, arena_capacity;
    bool exact;               /* a buffer of its own for each tensor, so that oclgrind sees where it ends */
    uint64_t used, held;      /* bytes of tensors, of buffers */
    uint64_t memory, largest; /* bytes of the device, of its largest buffer */
    mr_cl_parcel parcels[MR_CL_SMALL_PARCELS + MR_CL_LARGE_PARCELS];
    unsigned small, large; /* parcels used so far */
    char name[128], driver[64], text[320];
    char wrong[MR_LAUNCH_WRONG]; /* the first failure; "": none */
} mr_opencl;

static inline mr_opencl *mr_opencl_of(mr_device *device)
{
    return (mr_opencl *)(void *)device;
}

/* Keeps the first failure for wait(); `what` is the operation. */
void mr_cl_note(mr_opencl *d, const char *what, int32_t code);

/* memory.c.  A device's blocks are released by mr_cl_memory_close(). */
mr_status mr_cl_alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err);
void mr_cl_free(mr_device *device, void *memory);
void mr_cl_memory_close(mr_opencl *d);
const mr_cl_block *mr_cl_block_of(const mr_opencl *d, const void *at); /* NULL: not memory of the device */

/* copies.c */
void mr_cl_upload(mr_device *device, void *to, const void *from, size_t bytes);
/* After a failure the host gets bytes 0xff, as floats not numbers. */
void mr_cl_download(mr_device *device, void *to, const void *from, size_t bytes);
void mr_cl_zero(mr_device *device, void *memory, size_t bytes);
void mr_cl_copies_done(mr_opencl *d);  /* the queue is empty: nothing is on its way */
void mr_cl_copies_close(mr_opencl *d); /* the same, and for good */

/* program.c.  Builds the kernels, or loads them from the cache. */
mr_status mr_cl_program_open(mr_opencl *d, mr_error *err);
void mr_cl_program_close(mr_opencl *d);
extern const mr_launch_iface mr_cl_launches;

#endif
