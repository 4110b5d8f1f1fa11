/* opencl.h - private to this room: an OpenCL device.
 * Invariant: operations only queue; the first failure is kept, later operations do nothing, and wait() reports it.
 *
 *      opencl.c      the card: devices, opening, describing
 *      memory.c      addresses of tensors, never accessible -> one of a few large buffers, and an offset in it
 *      copies.c      uploads that do not wait, downloads that do
 *      program.c     the text of device/kernels, built when memory is first asked for, and cached
 *      call.c        one launch of a kernel
 *      dense.c, rows.c, tokens.c, loss.c, attention.c, decode.c    the operations
 */
#ifndef MR_OPENCL_H
#define MR_OPENCL_H

#include "base/scope.h"
#include "device/device.h"
#include "opencl/api.h"

#define MR_CL_KERNELS(X)                                                                                               \
    X(gemm)                                                                                                            \
    X(drop)                                                                                                            \
    X(activate)                                                                                                        \
    X(add)                                                                                                             \
    X(sgd)                                                                                                             \
    X(adamw)                                                                                                           \
    X(scale)                                                                                                           \
    X(scale_back)                                                                                                      \
    X(norm)                                                                                                            \
    X(norm_back)                                                                                                       \
    X(sum_part)                                                                                                        \
    X(sum_fold)                                                                                                        \
    X(unit)                                                                                                            \
    X(unit_back)                                                                                                       \
    X(cross_entropy)                                                                                                   \
    X(sigmoid_loss)                                                                                                    \
    X(squares)                                                                                                         \
    X(patches)                                                                                                         \
    X(tokens)                                                                                                          \
    X(tokens_back)                                                                                                     \
    X(rows)                                                                                                            \
    X(lookup)                                                                                                          \
    X(lookup_back)                                                                                                     \
    X(attention_forward)                                                                                               \
    X(attention_along)                                                                                                 \
    X(attention_back_q)                                                                                                \
    X(attention_back_kv)                                                                                               \
    X(jpeg_entropy)                                                                                                    \
    X(jpeg_idct)                                                                                                       \
    X(jpeg_pixels)                                                                                                     \
    X(jpeg_across)                                                                                                     \
    X(jpeg_down)

typedef enum mr_cl_kernel_id {
#define X(name) MR_CL_##name,
    MR_CL_KERNELS(X)
#undef X
        MR_CL_KERNEL_COUNT
} mr_cl_kernel_id;

enum {
    MR_CL_WIDTH = 64,       /* lanes of a group: MR_WIDTH of device/kernels/base.cl */
    MR_CL_GEMM_LANES = 256, /* of a product's group, which computes */
    MR_CL_TILE = 64,        /* rows and columns */
    MR_CL_HEAD_MAX = 256,
    MR_CL_FEW = 8,
    MR_CL_SCRATCH_FLOATS = 1 << 20, /* for partial sums */
};

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
    size_t room;
    mr_cl_event sent; /* NULL: none are */
} mr_cl_parcel;

typedef struct mr_opencl {
    mr_device device;
    mr_cl_api api;
    mr_cl_device id;
    mr_cl_context context;
    mr_cl_queue queue;
    mr_cl_program program;
    mr_cl_kernel kernels[MR_CL_KERNEL_COUNT];
    mr_cl_block *blocks; /* by address */
    size_t count, room;
    mr_cl_arena *arenas;
    size_t arena_count, arena_room;
    bool exact;               /* a buffer of its own for each tensor, so that oclgrind sees where it ends */
    uint64_t used, held;      /* bytes of tensors, of buffers */
    uint64_t memory, largest; /* bytes of the device, of its largest buffer */
    mr_cl_parcel parcels[MR_CL_SMALL_PARCELS + MR_CL_LARGE_PARCELS];
    unsigned small, large; /* parcels used so far */
    void *scratch;         /* f32[MR_CL_SCRATCH_FLOATS] */
    char name[128], driver[64], text[320];
    char wrong[256]; /* the first failure; "": none */
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

/* call.c.  A launch: mr_cl_begin(), the kernel's arguments in their order, mr_cl_run...(). */
typedef struct mr_cl_call {
    mr_opencl *d;
    mr_cl_kernel_id id;
    uint32_t at; /* of the next argument */
    bool fails;
} mr_cl_call;

mr_cl_call mr_cl_begin(mr_device *device, mr_cl_kernel_id id);
/* The next argument cannot be right, for the reason `why`: nothing is launched, and wait() reports it. */
void mr_cl_refuse(mr_cl_call *c, const char *why);
void mr_cl_tensor(mr_cl_call *c, const void *x, size_t size); /* of elements of `size` bytes; NULL: not used */
void mr_cl_floats(mr_cl_call *c, const void *x);              /* of 4 bytes */
void mr_cl_u32(mr_cl_call *c, size_t value);                  /* at most UINT32_MAX */
void mr_cl_u64(mr_cl_call *c, size_t value);
void mr_cl_f32(mr_cl_call *c, double value);
void mr_cl_dropout(mr_cl_call *c, const mr_dropout *d);
void mr_cl_run_groups(mr_cl_call *c, size_t groups, size_t lanes);
void mr_cl_run_flat(mr_cl_call *c, size_t count);
void mr_cl_run_rows(mr_cl_call *c, size_t width, size_t rows);

/* The operations, as in mr_device_card. */
void mr_cl_gemm(mr_device *device, const mr_gemm *g);
void mr_cl_drop(mr_device *device, mr_type type, size_t rows, size_t width, size_t sample_rows,
                const mr_dropout *dropout, const void *d_y, void *d_x);
void mr_cl_activate(mr_device *device, const mr_activate *a);
void mr_cl_activate_back(mr_device *device, const mr_activate *a);
void mr_cl_add(mr_device *device, mr_type type, size_t count, const void *a, const void *b, void *sum);
void mr_cl_sgd(mr_device *device, const mr_update *u);
void mr_cl_adamw(mr_device *device, const mr_update *u);
double mr_cl_sum_squares(mr_device *device, size_t count, const float *x);
void mr_cl_scale(mr_device *device, const mr_scale *s);
void mr_cl_scale_back(mr_device *device, const mr_scale *s);

void mr_cl_sum_rows(mr_device *device, mr_type type, size_t rows, size_t width, const void *x, float *sums);
void mr_cl_norm(mr_device *device, const mr_norm *n);
void mr_cl_norm_back(mr_device *device, const mr_norm_back *n);
void mr_cl_unit(mr_device *device, const mr_unit *u);
void mr_cl_unit_back(mr_device *device, const mr_unit *u);
void mr_cl_cross_entropy(mr_device *device, const mr_cross_entropy *c);
void mr_cl_sigmoid_loss(mr_device *device, const mr_sigmoid_loss *l);

void mr_cl_patches(mr_device *device, const mr_patches *p);
void mr_cl_tokens(mr_device *device, const mr_tokens *t);
void mr_cl_tokens_back(mr_device *device, const mr_tokens *t);
void mr_cl_rows(mr_device *device, const mr_rows *r);
void mr_cl_lookup(mr_device *device, const mr_lookup *l);
void mr_cl_lookup_back(mr_device *device, const mr_lookup *l);

mr_status mr_cl_plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err);
void mr_cl_attention(mr_device *device, const mr_attention *a);
void mr_cl_attention_back(mr_device *device, const mr_attention_back *b);

void mr_cl_decode(mr_device *device, const mr_decode *x);

#endif
