/* cuda.h - private to this module: a CUDA device.
 * Invariant: all operations of a device are in one stream, in the order of the calls; the first failure is kept, later
 * operations do nothing, and wait() reports it.
 *
 *      cuda.c        the interface: devices, opening, describing
 *      failure.c     the first failure, which is kept
 *      memory.c      tensors
 *      copies.c      copies by way of pinned memory
 *      slabs.c       pinned memory for others, and its uploads, which run beside operations
 *      compile.c     the text of device/kernels, compiled for the device
 *      program.c     its modules, made when memory is first asked for; launches of kernels
 *      product.c     products by cuBLASLt, whose choices are kept
 *      recorder.c    operations captured as a graph, and launched as one
 *      clock.c       when operations begin and end, by events
 *      sums.c        sums over the devices of several processes by NCCL, in a stream of their own
 *      launch/       the operations, which are those of every device that launches these kernels */
#ifndef MR_CUDA_H
#define MR_CUDA_H

#include <pthread.h>

#include "device/cuda/api.h"
#include "device/launch/launch.h"

enum {
    MR_CUDA_PIECES = 4,            /* pieces of pinned memory */
    MR_CUDA_PIECE_BYTES = 4 << 20, /* bytes of each piece */
    MR_CUDA_STAGES = 2,
    MR_CUDA_WORKSPACE = 32 << 20, /* bytes that a product may use */
    MR_CUDA_OPTIONS = 4,          /* options of the compiler, at most */
};

typedef struct mr_cuda_block { /* of memory */
    mr_cu_memory data;
    size_t bytes; /* as asked for */
} mr_cuda_block;

typedef struct mr_cuda_slab { /* pieces of pinned memory */
    uintptr_t at;
    size_t bytes;
} mr_cuda_slab;

typedef struct mr_cuda_stage { /* where an upload is staged on the device */
    void *memory;
    size_t bytes;
    mr_cu_event consumed; /* in `stream`: it may be written */
} mr_cuda_stage;

typedef struct mr_cuda_plan mr_cuda_plan; /* how products of one shape are computed */

typedef struct mr_cuda {
    mr_launcher launcher;
    mr_cuda_api api;
    int id, major, minor, multiprocessors;
    mr_cu_context context;
    mr_cu_stream stream, second; /* streams of the queue that is entered, and of the other; NULL: not yet */
    bool entered;                /* the second queue is */
    mr_cu_event passed[2];       /* recorded where the queues meet */
    mr_cu_module modules[MR_LAUNCH_TYPES];
    mr_cu_function functions[MR_LAUNCH_TYPES][MR_KERNEL_COUNT];
    mr_cuda_block *blocks; /* by address */
    size_t count, capacity;
    uint64_t used, memory; /* bytes of tensors; bytes of the device */
    uint64_t freed;        /* tensors so far */
    bool records;
    mr_nccl_comm peers;        /* NULL: they have not met, or were left */
    mr_cu_stream sums;         /* NULL: not yet */
    mr_cu_event given, summed; /* in `stream`: the inputs of the last sum are ready; in `sums`: it is done */
    mr_cu_event *stamps;       /* times of the clock, by number */
    size_t stamp_count, stamp_capacity;
    uint8_t *pinned; /* MR_CUDA_PIECES pieces, used in turn; NULL until the first copy */
    mr_cu_event copied[MR_CUDA_PIECES];
    unsigned turn;
    mr_allocator allocator; /* of slabs */
    pthread_mutex_t guard;  /* guards the two members below */
    mr_cuda_slab *slabs;
    size_t slab_count, slab_capacity;
    mr_cu_stream copies; /* stream of uploads from slabs; NULL until the first */
    mr_cu_event arrived; /* in `copies` */
    mr_cuda_stage stages[MR_CUDA_STAGES];
    unsigned stage_turn;
    mr_lt_handle lt; /* NULL: products are computed by kernels */
    mr_cuda_plan *plans;
    size_t plan_count, plan_capacity;
    void *workspace, *narrowed[3]; /* for products: scratch; a, b and bias rounded to bf16 */
    size_t narrowed_bytes[3];
    char name[128], text[320], products[320];
    char declined[200];          /* what mr_cuda_declined() returns */
    char wrong[MR_LAUNCH_WRONG]; /* the first failure; "": none */
} mr_cuda;

static inline mr_cuda *mr_cuda_of(mr_device *device)
{
    return (mr_cuda *)(void *)device;
}

/* failure.c.  "CUDA_ERROR_OUT_OF_MEMORY: out of memory", into text[size]. */
void mr_cuda_error_text(const mr_cuda *d, int code, char *text, size_t size);
/* Keeps the first failure for wait(); `what` is the operation.  True if the call succeeded. */
bool mr_cuda_note(mr_cuda *d, const char *what, int code);
void mr_cuda_fail(mr_cuda *d, const mr_error *err); /* keeps it likewise */
/* Before calls of the driver: makes the device the calling thread's.  False: nothing is to be done after a failure. */
bool mr_cuda_use(mr_cuda *d);

/* memory.c.  A device's blocks are released by mr_cuda_memory_close(). */
mr_status mr_cuda_alloc(mr_device *device, size_t bytes, const char *purpose, void **out, mr_error *err);
void mr_cuda_free(mr_device *device, void *memory);
void mr_cuda_memory_close(mr_cuda *d);
/* Whether [at, at + bytes) is memory of the device. */
bool mr_cuda_has(const mr_cuda *d, const void *at, size_t bytes);
/* Its address, as the driver takes it. */
static inline mr_cu_memory mr_cuda_number_of(const void *at)
{
    return (mr_cu_memory)(uintptr_t)at;
}

/* copies.c */
void mr_cuda_upload(mr_device *device, void *to, const void *from, size_t bytes);
/* After a failure the host gets bytes 0xff, as floats not numbers. */
void mr_cuda_download(mr_device *device, void *to, const void *from, size_t bytes);
void mr_cuda_zero(mr_device *device, void *memory, size_t bytes);

/* slabs.c */
const mr_allocator *mr_cuda_slabs(mr_device *device);
/* Whether all of it is in one slab. */
bool mr_cuda_slab_has(mr_cuda *d, const void *from, size_t bytes);
/* From a slab to memory of the device, both of which were checked. */
void mr_cuda_slab_upload(mr_cuda *d, void *to, const void *from, size_t bytes);
void mr_cuda_slabs_open(mr_cuda *d);
void mr_cuda_slabs_close(mr_cuda *d); /* before memory and streams */

/* compile.c */
typedef struct mr_cuda_target { /* what is compiled for; not to be moved, as `options` points into it */
    char arch[48];              /* "--gpu-architecture=sm_90" */
    const char *options[MR_CUDA_OPTIONS];
    int count;
    bool ptx;      /* the device is newer than the compiler: the driver compiles on */
    char text[96]; /* all options, for the cache */
    size_t text_size;
} mr_cuda_target;

/* For d's compute capability. */
mr_status mr_cuda_target_of(const mr_cuda *d, mr_type type, mr_cuda_target *t, mr_error *err);
/* Code, or PTX with its NUL, into `made`. */
mr_status mr_cuda_compile(const mr_cuda *d, const mr_cuda_target *t, mr_buf *made, mr_error *err);

/* program.c.  Compiles the kernels, or loads them from the cache. */
mr_status mr_cuda_program_open(mr_cuda *d, mr_error *err);
void mr_cuda_program_close(mr_cuda *d);
extern const mr_launch_iface mr_cuda_launches;

/* product.c */
void mr_cuda_products_open(mr_cuda *d);
void mr_cuda_products_close(mr_cuda *d);
const char *mr_cuda_declined(mr_device *device); /* declined() of the interface */
void mr_cuda_gemm(mr_device *device, const mr_gemm *g);

/* queues.c */
extern const mr_second_queue mr_cuda_second;
void mr_cuda_queues_close(mr_cuda *d); /* before memory */

/* recorder.c */
extern const mr_recorder mr_cuda_recorder;

/* clock.c */
extern const mr_clock mr_cuda_clock;
void mr_cuda_clock_close(mr_cuda *d);

/* sums.c */
extern const mr_sums_iface mr_cuda_sums;
void mr_cuda_sums_close(mr_cuda *d);

#endif
