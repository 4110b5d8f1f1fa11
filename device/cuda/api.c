/* api.c - loading NVIDIA's libraries.
 * Invariant: a library stays loaded once a device was opened: drivers start threads that outlive their last call. */
#include "device/cuda/api.h"

#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/system/library.h"
#include "device/cuda/libraries.h"

typedef struct function {
    const char *symbol;
    void *member; /* a member of mr_cuda_api: a pointer to a function */
} function;

/* The name of the first function that the library lacks; NULL: none. */
static const char *bind(void *library, const function *functions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!mr_library_find(library, functions[i].symbol, functions[i].member))
            return functions[i].symbol;
    return NULL;
}

static mr_status open_driver(mr_cuda_api *api, mr_error *err)
{
#define X(member, symbol, arguments) {symbol, &api->cu.member},
    const function functions[] = {MR_CU_FUNCTIONS(X)};
#undef X
    char why[200];
    void *library = mr_cuda_library_named("libcuda.so.1", why, sizeof why);
    if (!library)
        return mr_fail(err, MR_SYSTEM,
                       "cuda: the driver of NVIDIA GPUs cannot be loaded (%s); install it, or choose another --device",
                       why);
    const char *missing = bind(library, functions, MR_COUNT(functions));
    return missing ? mr_fail(err, MR_SYSTEM, "cuda: libcuda.so.1 lacks %s; a driver for CUDA 12 or later is needed",
                             missing)
                   : MR_OK;
}

/* The major version of CUDA that the driver is for, if its libraries are here; without a driver, the newest. */
static int driver_major(const mr_cuda_api *api)
{
    int version = 0;
    if (!api->cu.version || api->cu.version(&version) != 0 || version / 1000 > MR_CUDA_NEWEST)
        return MR_CUDA_NEWEST;
    return version / 1000 < MR_CUDA_OLDEST ? MR_CUDA_OLDEST : version / 1000;
}

mr_status mr_cuda_compiler_open(mr_cuda_api *api, mr_error *err)
{
#define X(member, symbol, arguments) {symbol, &api->nvrtc.member},
    const function functions[] = {MR_NVRTC_FUNCTIONS(X)};
#undef X
    char why[200];
    int major = driver_major(api);
    void *library = mr_cuda_library("libnvrtc.so", major, why, sizeof why);
    if (!library)
        return mr_fail(err, MR_SYSTEM,
                       "cuda: the compiler NVRTC cannot be loaded (%s); install it from CUDA %d, or the Python package "
                       "nvidia-cuda-nvrtc%s into this virtual environment",
                       why, major, major == MR_CUDA_OLDEST ? "-cu12" : "");
    const char *missing = bind(library, functions, MR_COUNT(functions));
    return missing ? mr_fail(err, MR_SYSTEM, "cuda: NVRTC lacks %s; CUDA 12 or 13 is needed", missing) : MR_OK;
}

static void open_products(mr_cuda_api *api)
{
#define X(member, symbol, arguments) {symbol, &api->lt.member},
    const function functions[] = {MR_LT_FUNCTIONS(X){"cublasLtGetVersion", &api->lt.version}};
#undef X
    void *library = mr_cuda_library("libcublasLt.so", driver_major(api), api->lacks_lt, sizeof api->lacks_lt);
    const char *missing = library ? bind(library, functions, MR_COUNT(functions)) : NULL;
    if (missing)
        snprintf(api->lacks_lt, sizeof api->lacks_lt, "cuBLASLt lacks %s", missing);
    if (!library || missing)
        memset(&api->lt, 0, sizeof api->lt);
}

mr_status mr_cuda_nccl_open(mr_cuda_api *api, mr_error *err)
{
#define X(member, symbol, arguments) {symbol, &api->nccl.member},
    const function functions[] = {MR_NCCL_FUNCTIONS(X){"ncclGetErrorString", &api->nccl.error_text},
                                  {"ncclGetLastError", &api->nccl.last_error}};
#undef X
    char why[120] = "";
    int version = 0;
    void *library = mr_cuda_library_named("libnccl.so.2", why, sizeof why);
    const char *missing = library ? bind(library, functions, MR_COUNT(functions)) : NULL;
    mr_status status = MR_OK;
    if (!library)
        status = mr_fail(err, MR_SYSTEM, "NCCL cannot be loaded (%s)", why);
    else if (missing)
        status = mr_fail(err, MR_SYSTEM, "NCCL lacks %s", missing);
    else if (api->nccl.version(&version) != 0 || version < MR_NCCL_OLDEST)
        status = mr_fail(err, MR_SYSTEM, "NCCL is older than 2.18");
    if (status != MR_OK)
        memset(&api->nccl, 0, sizeof api->nccl);
    return status;
}

mr_status mr_cuda_api_open(mr_cuda_api *api, mr_error *err)
{
    *api = (mr_cuda_api){.lacks_lt = ""};
    MR_TRY(open_driver(api, err));
    MR_TRY(mr_cuda_compiler_open(api, err));
    open_products(api);
    return MR_OK;
}
