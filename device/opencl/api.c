/* api.c - loading libOpenCL.
 * Invariant: the library stays loaded once a device was opened: drivers start threads that outlive their last call. */
#include "device/opencl/api.h"

#include "base/system/library.h"

mr_status mr_cl_api_open(mr_cl_api *api, mr_error *err)
{
    const char *why, *missing = NULL;
    *api = (mr_cl_api){.library = mr_library_load("libOpenCL.so.1", &why)};
    if (!api->library)
        return mr_fail(
            err, MR_SYSTEM,
            "opencl: the OpenCL library cannot be loaded (%s); install it: apt-get install ocl-icd-libopencl1", why);
#define X(returns, name, arguments)                                                                                    \
    if (!mr_library_find(api->library, "cl" #name, &api->name))                                                        \
        missing = "cl" #name;
    MR_CL_FUNCTIONS(X)
#undef X
    if (missing)
        return mr_fail(err, MR_SYSTEM, "opencl: libOpenCL.so.1 lacks %s; version 1.2 or later is needed", missing);
    return MR_OK;
}

const char *mr_cl_error_text(int32_t code)
{
    static const struct {
        int32_t code;
        const char *text;
    } texts[] = {
        {-2, "the device is no longer available"},
        {-3, "the driver has no compiler"},
        {MR_CL_OUT_OF_DEVICE_MEMORY, "the device is out of memory"},
        {MR_CL_OUT_OF_RESOURCES, "the device is out of resources, or was lost"},
        {MR_CL_OUT_OF_HOST_MEMORY, "the host is out of memory"},
        {-11, "the kernels do not compile"},
        {-14, "an earlier operation failed"},
        {-36, "the device's queue was lost"},
        {-54, "the device's groups are too small"},
        {-1001, "no OpenCL driver is installed"},
    };
    for (size_t i = 0; i < MR_COUNT(texts); i++)
        if (texts[i].code == code)
            return texts[i].text;
    return "the driver reports a failure";
}
