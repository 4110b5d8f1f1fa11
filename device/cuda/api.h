/* api.h - private to this module: the parts in use of NVIDIA's driver, of its compiler NVRTC, and of its libraries
 * of matrix products and of sums over devices, loaded when they are needed.
 * Invariant: nothing is linked and no header of CUDA is needed to build; names, types and numbers are those of
 *
 *      the driver    https://docs.nvidia.com/cuda/cuda-driver-api/
 *      NVRTC         https://docs.nvidia.com/cuda/nvrtc/
 *      cuBLASLt      https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api
 *      NCCL          https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html
 *
 * tests/device/cuda/test_cuda_libraries.c compares them with the headers of an installed toolkit. */
#ifndef MR_CUDA_API_H
#define MR_CUDA_API_H

#include "base/buf.h"

typedef struct CUctx_st *mr_cu_context;
typedef struct CUstream_st *mr_cu_stream;
typedef struct CUevent_st *mr_cu_event;
typedef struct CUmod_st *mr_cu_module;
typedef struct CUfunc_st *mr_cu_function;
typedef struct CUgraph_st *mr_cu_graph;
typedef struct CUgraphExec_st *mr_cu_graph_exec;
typedef uint64_t mr_cu_memory; /* CUdeviceptr */

enum { /* CUresult, CUdevice_attribute, CUstream_flags, CUevent_flags, CUstreamCaptureMode */
       MR_CU_OUT_OF_MEMORY = 2,
       MR_CU_NO_DEVICE = 100,
       MR_CU_NOT_READY = 600,
       MR_CU_MULTIPROCESSORS = 16,
       MR_CU_MAJOR = 75, /* the first number of the compute capability */
       MR_CU_MINOR = 76,
       MR_CU_NON_BLOCKING = 1,
       MR_CU_TIMING = 0,
       MR_CU_NO_TIMING = 2,
       MR_CU_THREAD_LOCAL = 1,
       MR_CU_ROWS_MAX = 65535, /* gridDim.y */
};

/* X(member, symbol, arguments): a function that returns a CUresult. */
#define MR_CU_FUNCTIONS(X)                                                                                             \
    X(init, "cuInit", (unsigned))                                                                                      \
    X(version, "cuDriverGetVersion", (int *))                                                                          \
    X(error_name, "cuGetErrorName", (int, const char **))                                                              \
    X(error_text, "cuGetErrorString", (int, const char **))                                                            \
    X(device_count, "cuDeviceGetCount", (int *))                                                                       \
    X(device_get, "cuDeviceGet", (int *, int))                                                                         \
    X(device_name, "cuDeviceGetName", (char *, int, int))                                                              \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t *, int))                                                           \
    X(device_attribute, "cuDeviceGetAttribute", (int *, int, int))                                                     \
    X(device_uuid, "cuDeviceGetUuid_v2", (uint8_t *, int))                                                             \
    X(context_retain, "cuDevicePrimaryCtxRetain", (mr_cu_context *, int))                                              \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int))                                                          \
    X(context_use, "cuCtxSetCurrent", (mr_cu_context))                                                                 \
    X(stream_create, "cuStreamCreate", (mr_cu_stream *, unsigned))                                                     \
    X(stream_destroy, "cuStreamDestroy_v2", (mr_cu_stream))                                                            \
    X(stream_wait, "cuStreamSynchronize", (mr_cu_stream))                                                              \
    X(event_create, "cuEventCreate", (mr_cu_event *, unsigned))                                                        \
    X(event_destroy, "cuEventDestroy_v2", (mr_cu_event))                                                               \
    X(event_record, "cuEventRecord", (mr_cu_event, mr_cu_stream))                                                      \
    X(event_wait, "cuEventSynchronize", (mr_cu_event))                                                                 \
    X(event_query, "cuEventQuery", (mr_cu_event))                                                                      \
    X(event_elapsed, "cuEventElapsedTime", (float *, mr_cu_event, mr_cu_event))                                        \
    X(stream_wait_event, "cuStreamWaitEvent", (mr_cu_stream, mr_cu_event, unsigned))                                   \
    X(capture_begin, "cuStreamBeginCapture_v2", (mr_cu_stream, int))                                                   \
    X(capture_end, "cuStreamEndCapture", (mr_cu_stream, mr_cu_graph *))                                                \
    X(graph_open, "cuGraphInstantiateWithFlags", (mr_cu_graph_exec *, mr_cu_graph, unsigned long long))                \
    X(graph_launch, "cuGraphLaunch", (mr_cu_graph_exec, mr_cu_stream))                                                 \
    X(graph_close, "cuGraphExecDestroy", (mr_cu_graph_exec))                                                           \
    X(graph_free, "cuGraphDestroy", (mr_cu_graph))                                                                     \
    X(alloc, "cuMemAlloc_v2", (mr_cu_memory *, size_t))                                                                \
    X(free, "cuMemFree_v2", (mr_cu_memory))                                                                            \
    X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                                       \
    X(host_free, "cuMemFreeHost", (void *))                                                                            \
    X(upload, "cuMemcpyHtoDAsync_v2", (mr_cu_memory, const void *, size_t, mr_cu_stream))                              \
    X(download, "cuMemcpyDtoHAsync_v2", (void *, mr_cu_memory, size_t, mr_cu_stream))                                  \
    X(copy, "cuMemcpyDtoDAsync_v2", (mr_cu_memory, mr_cu_memory, size_t, mr_cu_stream))                                \
    X(fill, "cuMemsetD8Async", (mr_cu_memory, unsigned char, size_t, mr_cu_stream))                                    \
    X(module_load, "cuModuleLoadData", (mr_cu_module *, const void *))                                                 \
    X(module_unload, "cuModuleUnload", (mr_cu_module))                                                                 \
    X(module_function, "cuModuleGetFunction", (mr_cu_function *, mr_cu_module, const char *))                          \
    X(launch, "cuLaunchKernel",                                                                                        \
      (mr_cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, mr_cu_stream, void **,    \
       void **))

/* X(member, symbol, arguments): a function that returns an nvrtcResult. */
typedef struct _nvrtcProgram *mr_nvrtc_program;
#define MR_NVRTC_FUNCTIONS(X)                                                                                          \
    X(version, "nvrtcVersion", (int *, int *))                                                                         \
    X(archs_count, "nvrtcGetNumSupportedArchs", (int *))                                                               \
    X(archs, "nvrtcGetSupportedArchs", (int *))                                                                        \
    X(create, "nvrtcCreateProgram",                                                                                    \
      (mr_nvrtc_program *, const char *, const char *, int, const char *const *, const char *const *))                 \
    X(destroy, "nvrtcDestroyProgram", (mr_nvrtc_program *))                                                            \
    X(compile, "nvrtcCompileProgram", (mr_nvrtc_program, int, const char *const *))                                    \
    X(log_size, "nvrtcGetProgramLogSize", (mr_nvrtc_program, size_t *))                                                \
    X(log, "nvrtcGetProgramLog", (mr_nvrtc_program, char *))                                                           \
    X(cubin_size, "nvrtcGetCUBINSize", (mr_nvrtc_program, size_t *))                                                   \
    X(cubin, "nvrtcGetCUBIN", (mr_nvrtc_program, char *))                                                              \
    X(ptx_size, "nvrtcGetPTXSize", (mr_nvrtc_program, size_t *))                                                       \
    X(ptx, "nvrtcGetPTX", (mr_nvrtc_program, char *))

/* ---- products --------------------------------------------------------------------------------------------------- */

typedef struct cublasLtContext *mr_lt_handle;
typedef struct cublasLtMatmulDescOpaque *mr_lt_product; /* cublasLtMatmulDesc_t */
typedef struct cublasLtMatrixLayoutOpaque *mr_lt_layout;
typedef struct cublasLtMatmulPreferenceOpaque *mr_lt_preference;

typedef struct mr_lt_algorithm { /* cublasLtMatmulAlgo_t */
    uint64_t data[8];
} mr_lt_algorithm;

typedef struct mr_lt_choice { /* cublasLtMatmulHeuristicResult_t */
    mr_lt_algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} mr_lt_choice;

enum { /* cublasComputeType_t, cudaDataType_t, cublasLtMatmulDescAttributes_t, cublasLtMatmulPreferenceAttributes_t */
       MR_LT_COMPUTE_F32 = 68,
       MR_LT_F32 = 0,
       MR_LT_BF16 = 14,
       MR_LT_TRANSPOSE_A = 3,
       MR_LT_TRANSPOSE_B = 4,
       MR_LT_EPILOGUE = 7,
       MR_LT_BIAS_POINTER = 8,
       MR_LT_EPILOGUE_BIAS = 4,
       MR_LT_OP_T = 1,
       MR_LT_MOST_WORKSPACE = 1,
       MR_LT_REDUCTIONS = 3,
       MR_LT_ALIGNMENT_A = 5, /* then of b, c, d */
       MR_LT_IN_COMPUTE_TYPE = 2,
};

/* X(member, symbol, arguments): a function that returns a cublasStatus_t. */
#define MR_LT_FUNCTIONS(X)                                                                                             \
    X(create, "cublasLtCreate", (mr_lt_handle *))                                                                      \
    X(destroy, "cublasLtDestroy", (mr_lt_handle))                                                                      \
    X(product_create, "cublasLtMatmulDescCreate", (mr_lt_product *, int, int))                                         \
    X(product_set, "cublasLtMatmulDescSetAttribute", (mr_lt_product, int, const void *, size_t))                       \
    X(product_destroy, "cublasLtMatmulDescDestroy", (mr_lt_product))                                                   \
    X(layout_create, "cublasLtMatrixLayoutCreate", (mr_lt_layout *, int, uint64_t, uint64_t, int64_t))                 \
    X(layout_destroy, "cublasLtMatrixLayoutDestroy", (mr_lt_layout))                                                   \
    X(preference_create, "cublasLtMatmulPreferenceCreate", (mr_lt_preference *))                                       \
    X(preference_set, "cublasLtMatmulPreferenceSetAttribute", (mr_lt_preference, int, const void *, size_t))           \
    X(preference_destroy, "cublasLtMatmulPreferenceDestroy", (mr_lt_preference))                                       \
    X(choose, "cublasLtMatmulAlgoGetHeuristic",                                                                        \
      (mr_lt_handle, mr_lt_product, mr_lt_layout, mr_lt_layout, mr_lt_layout, mr_lt_layout, mr_lt_preference, int,     \
       mr_lt_choice *, int *))                                                                                         \
    X(multiply, "cublasLtMatmul",                                                                                      \
      (mr_lt_handle, mr_lt_product, const void *, const void *, mr_lt_layout, const void *, mr_lt_layout,              \
       const void *, const void *, mr_lt_layout, void *, mr_lt_layout, const mr_lt_algorithm *, void *, size_t,        \
       mr_cu_stream))

/* ---- sums over devices ------------------------------------------------------------------------------------------ */

typedef struct ncclComm *mr_nccl_comm;
typedef struct mr_nccl_id { /* ncclUniqueId */
    uint8_t bytes[128];
} mr_nccl_id;

enum { /* ncclDataType_t, ncclRedOp_t */
       MR_NCCL_F32 = 7,
       MR_NCCL_SUM = 0,
       MR_NCCL_OLDEST = 21800, /* 2.18 */
};

/* X(member, symbol, arguments): a function that returns an ncclResult_t. */
#define MR_NCCL_FUNCTIONS(X)                                                                                           \
    X(version, "ncclGetVersion", (int *))                                                                              \
    X(invite, "ncclGetUniqueId", (mr_nccl_id *))                                                                       \
    X(meet, "ncclCommInitRank", (mr_nccl_comm *, int, mr_nccl_id, int))                                                \
    X(sum, "ncclAllReduce", (const void *, void *, size_t, int, int, mr_nccl_comm, mr_cu_stream))                      \
    X(failure, "ncclCommGetAsyncError", (mr_nccl_comm, int *))                                                         \
    X(abort, "ncclCommAbort", (mr_nccl_comm))                                                                          \
    X(close, "ncclCommDestroy", (mr_nccl_comm))

typedef struct mr_cuda_api {
#define X(member, symbol, arguments) int(*member) arguments;
    struct {
        MR_CU_FUNCTIONS(X)
    } cu;
    struct {
        MR_NVRTC_FUNCTIONS(X)
    } nvrtc;
    struct {
        MR_LT_FUNCTIONS(X)
        size_t (*version)(void); /* cublasLtGetVersion: 130100 */
    } lt;                        /* all NULL: there is none */
    struct {
        MR_NCCL_FUNCTIONS(X)
        const char *(*error_text)(int);
        const char *(*last_error)(mr_nccl_comm);
    } nccl; /* all NULL: not asked for, or there is none */
#undef X
    char lacks_lt[200]; /* why */
} mr_cuda_api;

/* MR_SYSTEM: there is no driver or no compiler, or a function is missing; the message tells what to install.  Products
 * can do without cuBLASLt. */
mr_status mr_cuda_api_open(mr_cuda_api *api, mr_error *err);
mr_status mr_cuda_compiler_open(mr_cuda_api *api, mr_error *err); /* api->nvrtc alone */
/* api->nccl.  MR_SYSTEM: it cannot be used, why. */
mr_status mr_cuda_nccl_open(mr_cuda_api *api, mr_error *err);

#endif
