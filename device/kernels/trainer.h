/* trainer.h - what the trainer's kernels need of a compiler: OpenCL C 1.2, or CUDA C++ (nvcc or NVRTC).
 * Invariant: a kernel of `lanes` is always launched in groups of so many lanes. */
#if defined(__OPENCL_VERSION__)
#define MR_KERNEL(name, lanes) __kernel __attribute__((reqd_work_group_size(lanes, 1, 1))) void name
#define MR_GLOBAL    __global
#define MR_SHARED    __local /* a variable of the group, in a kernel */
#define MR_NEAR      __local /* what a pointer to it points to */
#define MR_FN        static
#define MR_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define MR_ITEM()     ((u32)get_global_id(0))
#define MR_LANE()     ((u32)get_local_id(0))
#define MR_GROUP_ID() ((u32)get_group_id(0))
#define MR_ROW()      ((u32)get_global_id(1))
#define MR_INFINITY   INFINITY
typedef uchar u8;
typedef uint u32;
typedef int i32;
typedef ulong u64;
typedef float f32;
#else
#define MR_KERNEL(name, lanes) extern "C" __global__ __launch_bounds__(lanes) void name
#define MR_GLOBAL
#define MR_SHARED __shared__
#define MR_NEAR
#define MR_FN        static __device__ __forceinline__
#define MR_BARRIER() __syncthreads()
#define MR_ITEM()     (blockIdx.x * blockDim.x + threadIdx.x)
#define MR_LANE()     (threadIdx.x)
#define MR_GROUP_ID() (blockIdx.x)
#define MR_ROW()      (blockIdx.y)
#define MR_INFINITY   __int_as_float(0x7f800000)
typedef unsigned char u8;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef float f32;
#endif
