/* dialect.h - what kernels need from a compiler: one text for OpenCL C 1.2, CUDA C++ (nvcc or NVRTC) and plain C.
 * Invariant: a kernel behaves the same in all three if it keeps to the names below.
 *
 * A kernel is MR_KERNEL(name, lanes)(MR_SPOT arguments): launched in groups of `lanes`, in as many rows as it needs.
 * Plain C calls it with an mr_spot, once per item, or once per group if the kernel has barriers.  Such a kernel is made
 * of phases, and a private value that a later phase needs is an array:
 *
 *      MR_SHARED f32 part[64];                     a variable of the group
 *      MR_PRIVATE(f32, x, 64);                     one value per lane
 *      MR_FOR_LANES(lane, 64) { MR_OF(x, lane) = ...; part[lane] = ...; }
 *      MR_BARRIER();
 *      MR_FOR_LANES(lane, 64) { ... MR_OF(x, lane) ... part[63 - lane] ... }
 *
 * MR_ITEM(), MR_COLUMN() and MR_LANE() are for kernels without barriers; MR_GROUP_ID() for all.  In a launch of several
 * rows a kernel uses either MR_COLUMN() and MR_ROW(), of which there may be 2^31, or MR_ITEM() and MR_IMAGE(), of which
 * CUDA has 65,535.
 *
 * MR_GET_WORDS(words, x) reads four words from an address that is a multiple of 16, MR_PUT_WORDS(x, words) writes them.
 * CUDA alone has MR_SHARED_WORDS, a variable of the group at such an address, whose words they move, too.  mr_wide, 16
 * floats that are multiplied and added at once, is for kernels for processors, so CUDA has none. */
#ifndef MR_DIALECT_H
#define MR_DIALECT_H

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define MR_KERNEL(name, lanes) __kernel __attribute__((reqd_work_group_size(lanes, 1, 1))) void name
#define MR_SPOT
#define MR_GLOBAL         __global
#define MR_CONSTANT       __constant
#define MR_SHARED         __local /* a variable of the group, in a kernel */
#define MR_NEAR           __local /* what a pointer to it points to */
#define MR_FN             static
#define MR_BARRIER()      barrier(CLK_LOCAL_MEM_FENCE)
#define MR_ITEM()         ((u32)get_global_id(0))
#define MR_LANE()         ((u32)get_local_id(0))
#define MR_GROUP_ID()     ((u32)get_group_id(0))
#define MR_COLUMN()       MR_ITEM()
#define MR_ROW()          ((u32)get_global_id(1))
#define MR_IMAGE()        MR_ROW()
#define MR_SWAP32(x)      (as_uint(as_uchar4(x).wzyx))
#define MR_INFINITY       INFINITY
#define MR_BITS(x)        as_uint(x) /* the bits of a float */
#define MR_OF_BITS(x)     as_float(x)
#define MR_MAD(x, y, sum) ((x) * (y) + (sum)) /* rounded once or twice */
typedef uchar u8;
typedef ushort u16;
typedef short i16;
typedef uint u32;
typedef int i32;
typedef ulong u64;
typedef float f32;
typedef float16 mr_wide;
#define MR_GET_WIDE(wide, from) ((wide) = vload16(0, from))
#define MR_PUT_WIDE(wide, to)   vstore16(wide, 0, to)
#define MR_GET_WORDS(words, x)  vstore4(vload4(0, (MR_GLOBAL const u32 *)(x)), 0, words)
#define MR_PUT_WORDS(x, words)  vstore4(vload4(0, words), 0, (MR_GLOBAL u32 *)(x))
#elif defined(__CUDACC__)
#define MR_KERNEL(name, lanes) extern "C" __global__ __launch_bounds__(lanes, 1) void name
#define MR_SPOT
#define MR_GLOBAL
#define MR_CONSTANT     __constant__
#define MR_SHARED       __shared__
#define MR_SHARED_WORDS __shared__ __align__(16)
#define MR_NEAR
#define MR_FN                  static __device__ __forceinline__
#define MR_BARRIER()           __syncthreads()
#define MR_ITEM()              (blockIdx.x * blockDim.x + threadIdx.x)
#define MR_LANE()              (threadIdx.x)
#define MR_GROUP_ID()          (blockIdx.x)
#define MR_COLUMN()            (blockIdx.y * blockDim.x + threadIdx.x)
#define MR_ROW()               (blockIdx.x)
#define MR_IMAGE()             (blockIdx.y)
#define MR_SWAP32(x)           __byte_perm(x, 0, 0x0123)
#define MR_INFINITY            __int_as_float(0x7f800000)
#define MR_BITS(x)             __float_as_uint(x)
#define MR_OF_BITS(x)          __uint_as_float(x)
#define MR_MAD(x, y, sum)      __fmaf_rn(x, y, sum)
#define MR_UNROLL              _Pragma("unroll")
typedef unsigned char u8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef float f32;
#define MR_GET_WORDS(words, x) mr_get_words(words, (const uint4 *)(x))
static __device__ __forceinline__ void mr_get_words(u32 *words, const uint4 *x)
{
    uint4 all = *x;
    words[0] = all.x;
    words[1] = all.y;
    words[2] = all.z;
    words[3] = all.w;
}
#define MR_PUT_WORDS(x, words) mr_put_words((uint4 *)(x), words)
static __device__ __forceinline__ void mr_put_words(uint4 *x, const u32 *words)
{
    uint4 all = {words[0], words[1], words[2], words[3]};
    *x = all;
}
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#define MR_KERNEL(name, lanes) static void name
#define MR_SPOT                const mr_spot mr_here,
#define MR_GLOBAL
#define MR_CONSTANT static const
#define MR_SHARED
#define MR_NEAR
#define MR_FN                         static inline
#define MR_BARRIER()                  ((void)0)
#define MR_ITEM()                     (mr_here.item)
#define MR_GROUP_ID()                 (mr_here.item)
#define MR_COLUMN()                   MR_ITEM()
#define MR_ROW()                      (mr_here.row)
#define MR_IMAGE()                    MR_ROW()
#define MR_SWAP32(x)                  __builtin_bswap32(x)
#define MR_INFINITY                   INFINITY
#define MR_BITS(x)                    mr_float_bits(x)
#define MR_OF_BITS(x)                 mr_bits_float(x)
#define MR_MAD(x, y, sum)             ((x) * (y) + (sum))
typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t i16;
typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef float f32;
typedef f32 mr_wide __attribute__((vector_size(64)));
#define MR_GET_WORDS(words, x)        memcpy(words, x, 16)
#define MR_PUT_WORDS(x, words)        memcpy(x, words, 16)
#define MR_GET_WIDE(wide, from)       memcpy(&(wide), from, sizeof(mr_wide))
#define MR_PUT_WIDE(wide, to)         memcpy(to, &(wide), sizeof(mr_wide))
static inline u32 mr_float_bits(f32 x)
{
    u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline f32 mr_bits_float(u32 bits)
{
    f32 x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
typedef struct mr_spot { /* item: the item, or the group of a kernel with barriers */
    u32 item, row;
} mr_spot;
#define MR_FOR_LANES(lane, lanes)     for (u32 lane = 0; lane < (lanes); lane++)
#define MR_PRIVATE(type, name, lanes) type name[lanes]
#define MR_OF(name, lane)             name[lane]
#endif

/* A tensor is two arguments, memory and the number of its first element in it: OpenCL 1.2 cannot add to a buffer on the
 * host.  MR_START(x) applies it. */
#define MR_TENSOR(type, name) MR_GLOBAL type *name, u64 name##_at
#define MR_START(name)        name += name##_at

#ifndef MR_UNROLL /* before a loop over a private array, which CUDA keeps in registers only if it is unrolled */
#define MR_UNROLL
#endif

#ifndef MR_FOR_LANES /* on a device a phase is run by all lanes at once */
#define MR_FOR_LANES(lane, lanes)     for (u32 lane = MR_LANE(), mr_once = 1; mr_once; mr_once = 0)
#define MR_PRIVATE(type, name, lanes) type name[1]
#define MR_OF(name, lane)             name[0]
#endif

#endif
