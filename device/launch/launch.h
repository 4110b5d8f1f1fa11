/* launch.h - the operations as launches of the kernels of device/kernels, for every device that compiles their text.
 * Invariant: an operation is the same launches with the same arguments on each of them; a launch whose arguments are
 * wrong is not queued, the first failure is kept, and after it nothing is launched.
 *
 *      dense.c, rows.c, tokens.c, attention.c, decode.c    operations: which kernel, which arguments, how many groups
 *      operations.c                                        which of these launches an operation
 *      call.c                                              a launch and its arguments
 *      cache.c, text.h                                     the text of the kernels; what drivers made of it, in files
 *      kernels_table.h                                     their names and parameters, read from the text by the build
 *      mr_launch_iface                                     what a device adds: its memory, and how it launches */
#ifndef MR_LAUNCH_H
#define MR_LAUNCH_H

#include "base/scope.h"
#include "device/device.h"
#include "device/launch/kernels_table.h"

/* mr_NAME of device/kernels: those of MR_TYPED_KERNELS once per type of activations, those of MR_MMA_KERNELS in bf16
 * with MR_MMA, the others once. */
typedef enum mr_kernel_id {
#define X(name, ...) MR_KERNEL_##name,
    MR_TYPED_KERNELS(X) MR_MMA_KERNELS(X) MR_UNTYPED_KERNELS(X) MR_JPEG_KERNELS(X)
#undef X
        MR_KERNEL_COUNT
} mr_kernel_id;

enum {
    MR_LAUNCH_TYPES = 2,        /* types of activations */
    MR_LAUNCH_WIDTH = 64,       /* lanes of a group: MR_WIDTH of device/kernels/base.cl */
    MR_LAUNCH_GEMM_LANES = 256, /* lanes of a product's group, unless one_lane; the group computes */
    MR_LAUNCH_TILE = 64,        /* rows and columns */
    MR_LAUNCH_HEAD_MAX = 256,
    MR_LAUNCH_FEW = 8,         /* rows of a group of attention */
    MR_LAUNCH_MMA_LANES = 128, /* the same of bf16 with mma */
    MR_LAUNCH_MMA_FEW = 64,
    MR_LAUNCH_SCRATCH_FLOATS = 1 << 20, /* for partial sums */
    MR_LAUNCH_ARGUMENTS = 32,           /* at most, a tensor is two */
    MR_LAUNCH_WRONG = 256,
};

typedef struct mr_launcher mr_launcher;

/* A launch, as the device gets it. */
typedef struct mr_call {
    mr_launcher *d;
    mr_kernel_id id;
    mr_type type;   /* the type that the kernel is for; MR_F32 if it is not typed */
    uint32_t count; /* arguments so far */
    bool fails;
    uint8_t sizes[MR_LAUNCH_ARGUMENTS]; /* bytes of each value, at its start */
    uint64_t values[MR_LAUNCH_ARGUMENTS];
} mr_call;

/* `rows` times `groups` of `lanes`, none of them 0.  by_row: the kernel asks for MR_ROW() and MR_COLUMN(), and there
 * may be many rows; otherwise for MR_ITEM() or MR_GROUP_ID(), and MR_IMAGE(). */
typedef struct mr_grid {
    size_t groups, rows, lanes;
    bool by_row;
} mr_grid;

typedef struct mr_launch_iface {
    /* What stands for the memory at `x` in an argument, 8 bytes, and how many bytes after its start x is; false: not
     * memory of the device. */
    bool (*place)(const mr_launcher *d, const void *x, uint64_t *memory, size_t *offset);
    /* Queues; a failure is written to d->wrong. */
    void (*launch)(const mr_call *c, const mr_grid *grid);
} mr_launch_iface;

struct mr_launcher { /* first member of the struct of a device that launches kernels */
    mr_device device;
    const mr_launch_iface *iface;
    float *scratch; /* [MR_LAUNCH_SCRATCH_FLOATS] of the device */
    bool mma;       /* the text of bf16 is compiled with MR_MMA: attention uses tensor cores */
    bool one_lane;  /* the text is compiled with MR_ONE_LANE: a product's groups have one lane */
    char *wrong;    /* [MR_LAUNCH_WRONG]: the first failure; "": none */
};

static inline mr_launcher *mr_launcher_of(mr_device *device)
{
    return (mr_launcher *)(void *)device;
}

/* "norm"; the kernel's own name is "mr_norm". */
const char *mr_kernel_word(mr_kernel_id id);
/* Whether it is in the text that is compiled for activations of `type`, with MR_MMA or not. */
bool mr_kernel_exists(mr_kernel_id id, mr_type type, bool mma);

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* How much work: groups of lanes; one lane of MR_LAUNCH_WIDTH per item; per column of each row; per item of each image.
 * With nothing to do there is no launch. */
mr_grid mr_grid_groups(size_t groups, size_t lanes);
mr_grid mr_grid_flat(size_t count);
mr_grid mr_grid_rows(size_t width, size_t rows);
mr_grid mr_grid_images(size_t items, size_t images);

typedef struct mr_argument {
    enum { MR_ARGUMENT_TENSOR = 0, MR_ARGUMENT_U32, MR_ARGUMENT_U64, MR_ARGUMENT_F32 } kind;
    const void *at;    /* a tensor; NULL: not used */
    size_t size, unit; /* bytes of its elements; bytes that its start is counted in. 0: those of the kernel's type */
    size_t whole;
    double real;
} mr_argument;

/* Tensors with elements of the kernel's type, of floats or as wide, of any kind, of `type` but counted in 2 bytes. */
#define MR_REALS(x)            ((mr_argument){.at = (x)})
#define MR_FLOATS(x)           MR_TENSOR_OF(x, sizeof(float))
#define MR_TENSOR_OF(x, bytes) ((mr_argument){.at = (x), .size = (bytes), .unit = (bytes)})
#define MR_EITHER(x, type)     ((mr_argument){.at = (x), .size = mr_type_size(type), .unit = sizeof(uint16_t)})
/* Numbers; above UINT32_MAX, MR_U32 is refused. */
#define MR_U32(value)  ((mr_argument){.kind = MR_ARGUMENT_U32, .whole = (value)})
#define MR_U64(value)  ((mr_argument){.kind = MR_ARGUMENT_U64, .whole = (value)})
#define MR_REAL(value) ((mr_argument){.kind = MR_ARGUMENT_F32, .real = (double)(value)})
/* How many times MR_EIGHT, as the kernels count. */
static inline size_t mr_launch_eights(size_t elements)
{
    return elements / 8 + (elements % 8 > 0);
}
/* Whether all rows of `width` elements begin at multiples of 16 bytes, of tensors that begin at these: then eight are
 * one or two accesses. */
bool mr_launch_whole(size_t width, const void *const *tensors, size_t count);
#define MR_WHOLE(width, ...)                                                                                           \
    MR_U32(mr_launch_whole(width, (const void *const[]){__VA_ARGS__},                                                  \
                           sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *)))
/* MR_DROPOUT of the kernels. */
#define MR_KEPT(dropout)                                                                                               \
    MR_TENSOR_OF((dropout).rate > 0 ? (dropout).keys : NULL, sizeof(uint64_t)),                                        \
        MR_U32((dropout).rate > 0 ? (size_t)((double)(dropout).rate * (1 << 24) + 0.5) : 0),                           \
        MR_REAL(1 / (1 - (double)(dropout).rate)), MR_U32((dropout).site)

/* MR_LAUNCH(device, kernel, type, grid, arguments ...): in the order of the kernel's own. */
#define MR_LAUNCH(device, name, type, grid, ...) MR_LAUNCH_ID(device, MR_KERNEL_##name, type, grid, __VA_ARGS__)
#define MR_LAUNCH_ID(device, id, type, grid, ...)                                                                      \
    mr_launch_kernel(device, id, type, grid, (const mr_argument[]){__VA_ARGS__},                                       \
                     sizeof((const mr_argument[]){__VA_ARGS__}) / sizeof(mr_argument))
void mr_launch_kernel(mr_device *device, mr_kernel_id id, mr_type type, mr_grid grid, const mr_argument *arguments,
                      size_t count);

mr_status mr_launch_plan_attention(mr_device *device, const mr_attention *a, size_t *saved_bytes, mr_error *err);
void mr_launch_run(mr_device *device, const mr_op *op);

/* mr_launch_NAME(), for each operation. */
#define X(name, arguments, ...) void mr_launch_##name(mr_device *device, const arguments *x);
MR_OPERATIONS(X)
#undef X

#endif
