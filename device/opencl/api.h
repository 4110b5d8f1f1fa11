/* api.h - private to this module: the part of OpenCL 1.2 that is used, and its library, loaded when a device is opened.
 * Invariant: nothing is linked and no header of OpenCL is needed to build; types and numbers are those of the OpenCL
 * 1.2 specification, section numbers in parentheses (https://registry.khronos.org/OpenCL/specs/opencl-1.2.pdf). */
#ifndef MR_OPENCL_API_H
#define MR_OPENCL_API_H

#include "base/buf.h"

typedef struct _cl_platform_id *mr_cl_platform;
typedef struct _cl_device_id *mr_cl_device;
typedef struct _cl_context *mr_cl_context;
typedef struct _cl_command_queue *mr_cl_queue;
typedef struct _cl_mem *mr_cl_memory;
typedef struct _cl_program *mr_cl_program;
typedef struct _cl_kernel *mr_cl_kernel;
typedef struct _cl_event *mr_cl_event;
typedef uint64_t mr_cl_bits; /* cl_bitfield */

enum { /* cl.h */
       MR_CL_DEVICE_TYPE_CPU = 1 << 1,
       MR_CL_DEVICE_TYPE_GPU = 1 << 2,
       MR_CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
       MR_CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
       MR_CL_DEVICE_TYPE = 0x1000,
       MR_CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
       MR_CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
       MR_CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
       MR_CL_DEVICE_ENDIAN_LITTLE = 0x1026,
       MR_CL_DEVICE_AVAILABLE = 0x1027,
       MR_CL_DEVICE_NAME = 0x102B,
       MR_CL_DRIVER_VERSION = 0x102D,
       MR_CL_DEVICE_VERSION = 0x102F,
       MR_CL_MEM_READ_WRITE = 1,
       MR_CL_PROGRAM_BINARY_SIZES = 0x1165,
       MR_CL_PROGRAM_BINARIES = 0x1166,
       MR_CL_PROGRAM_BUILD_LOG = 0x1183,
       MR_CL_OUT_OF_DEVICE_MEMORY = -4,
       MR_CL_OUT_OF_RESOURCES = -5,
       MR_CL_OUT_OF_HOST_MEMORY = -6,
       MR_CL_INVALID_BUFFER_SIZE = -61,
};
#define MR_CL_DEVICE_TYPE_ALL 0xFFFFFFFFU

/* X(returns, name, arguments): clNAME() of the specification. */
#define MR_CL_FUNCTIONS(X)                                                                                             \
    X(int32_t, GetPlatformIDs, (uint32_t, mr_cl_platform *, uint32_t *))                                               \
    X(int32_t, GetDeviceIDs, (mr_cl_platform, mr_cl_bits, uint32_t, mr_cl_device *, uint32_t *))                       \
    X(int32_t, GetDeviceInfo, (mr_cl_device, uint32_t, size_t, void *, size_t *))                                      \
    X(mr_cl_context, CreateContext,                                                                                    \
      (const intptr_t *, uint32_t, const mr_cl_device *, void (*)(const char *, const void *, size_t, void *), void *, \
       int32_t *))                                                                                                     \
    X(int32_t, ReleaseContext, (mr_cl_context))                                                                        \
    X(mr_cl_queue, CreateCommandQueue, (mr_cl_context, mr_cl_device, mr_cl_bits, int32_t *))                           \
    X(int32_t, ReleaseCommandQueue, (mr_cl_queue))                                                                     \
    X(mr_cl_memory, CreateBuffer, (mr_cl_context, mr_cl_bits, size_t, void *, int32_t *))                              \
    X(int32_t, ReleaseMemObject, (mr_cl_memory))                                                                       \
    X(int32_t, EnqueueWriteBuffer,                                                                                     \
      (mr_cl_queue, mr_cl_memory, uint32_t, size_t, size_t, const void *, uint32_t, const void *, mr_cl_event *))      \
    X(int32_t, EnqueueReadBuffer,                                                                                      \
      (mr_cl_queue, mr_cl_memory, uint32_t, size_t, size_t, void *, uint32_t, const void *, void *))                   \
    X(int32_t, EnqueueFillBuffer,                                                                                      \
      (mr_cl_queue, mr_cl_memory, const void *, size_t, size_t, size_t, uint32_t, const void *, void *))               \
    X(int32_t, EnqueueNDRangeKernel,                                                                                   \
      (mr_cl_queue, mr_cl_kernel, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const void *,    \
       void *))                                                                                                        \
    X(int32_t, WaitForEvents, (uint32_t, const mr_cl_event *))                                                         \
    X(int32_t, ReleaseEvent, (mr_cl_event))                                                                            \
    X(int32_t, Finish, (mr_cl_queue))                                                                                  \
    X(mr_cl_program, CreateProgramWithSource, (mr_cl_context, uint32_t, const char **, const size_t *, int32_t *))     \
    X(mr_cl_program, CreateProgramWithBinary,                                                                          \
      (mr_cl_context, uint32_t, const mr_cl_device *, const size_t *, const uint8_t **, int32_t *, int32_t *))         \
    X(int32_t, BuildProgram, (mr_cl_program, uint32_t, const mr_cl_device *, const char *, void (*)(void), void *))    \
    X(int32_t, GetProgramInfo, (mr_cl_program, uint32_t, size_t, void *, size_t *))                                    \
    X(int32_t, GetProgramBuildInfo, (mr_cl_program, mr_cl_device, uint32_t, size_t, void *, size_t *))                 \
    X(int32_t, ReleaseProgram, (mr_cl_program))                                                                        \
    X(mr_cl_kernel, CreateKernel, (mr_cl_program, const char *, int32_t *))                                            \
    X(int32_t, ReleaseKernel, (mr_cl_kernel))                                                                          \
    X(int32_t, SetKernelArg, (mr_cl_kernel, uint32_t, size_t, const void *))

typedef struct mr_cl_api {
    void *library;
#define X(returns, name, arguments) returns(*name) arguments;
    MR_CL_FUNCTIONS(X)
#undef X
} mr_cl_api;

/* MR_SYSTEM: there is no library, or a part of it is missing; the message tells how to install it. */
mr_status mr_cl_api_open(mr_cl_api *api, mr_error *err);
const char *mr_cl_error_text(int32_t code); /* "out of memory of the device" */

#endif
