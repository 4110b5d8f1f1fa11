/* test_cuda_libraries.c - NVIDIA's own libraries on a machine without a GPU: all functions are found in them, and the
 * program says in one sentence that no device can be used.  The driver is the toolkit's stub, which has every function
 * and fails at the first.  Skipped where no toolkit is installed.
 * Invariant tested: numbers and sizes that cuda/api.h copies are those of the toolkit's headers.
 * Covers cuda/api.c, cuda/cuda.c. */
#include <string.h>

#if __has_include(<cublasLt.h>) && __has_include(<cuda.h>)
#include <cublasLt.h>
#include <cuda.h>
#define HAS_HEADERS
#endif
#if __has_include(<cuda_runtime.h>) && __has_include(<nccl.h>)
#include <nccl.h>
#define HAS_NCCL
#endif

#include "device/cuda/cuda.h"
#include "tests/support/training/train.h"

#ifdef HAS_HEADERS
#define SAME(mine, theirs) _Static_assert((long long)(mine) == (long long)(theirs), #theirs)
SAME(MR_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(MR_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(MR_CU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(MR_CU_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(MR_CU_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(MR_CU_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(MR_CU_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(MR_CU_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(MR_LT_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(MR_LT_F32, CUDA_R_32F);
SAME(MR_LT_BF16, CUDA_R_16BF);
SAME(MR_LT_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(MR_LT_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(MR_LT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(MR_LT_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(MR_LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(MR_LT_OP_T, CUBLAS_OP_T);
SAME(MR_LT_MOST_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(MR_LT_REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(MR_LT_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(MR_LT_ALIGNMENT_A + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(MR_LT_IN_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(sizeof(mr_lt_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(mr_lt_choice), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(mr_lt_choice, workspace), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(mr_lt_choice, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
SAME(sizeof(mr_cu_memory), sizeof(CUdeviceptr));
SAME(sizeof(cublasComputeType_t), sizeof(int));
SAME(sizeof(cudaDataType_t), sizeof(int));
SAME(sizeof(CUresult), sizeof(int));
SAME(MR_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(MR_SUMS_ID, sizeof(mr_nccl_id));
#endif
#ifdef HAS_NCCL
SAME(MR_NCCL_F32, ncclFloat32);
SAME(MR_NCCL_SUM, ncclSum);
SAME(sizeof(mr_nccl_id), sizeof(ncclUniqueId));
SAME(sizeof(ncclResult_t), sizeof(int));
SAME(sizeof(ncclDataType_t), sizeof(int));
#endif

static void all_functions_are_there(void **state)
{
    mr_cuda_api api;
    mr_error err;
    mr_lt_handle handle = NULL;
    (void)state;
    if (mr_cuda_api_open(&api, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_int_not_equal(api.cu.init(0), 0);
    if (!api.lt.create) {
        support_cannot("cuBLASLt", api.lacks_lt);
        return;
    }
    assert_true(api.lt.version() >= 120000);
    assert_int_not_equal(api.lt.create(&handle), 0); /* without a device */
}

static void nccl_has_all_functions(void **state)
{
    mr_cuda_api api = {.lacks_lt = ""};
    mr_error err;
    int version = 0;
    mr_nccl_id id;
    (void)state;
    if (mr_cuda_nccl_open(&api, &err) != MR_OK) {
        support_cannot("NCCL", err.text);
        return;
    }
    assert_int_equal(api.nccl.version(&version), 0);
    assert_true(version >= MR_NCCL_OLDEST);
    assert_int_equal(api.nccl.invite(&id), 0); /* needs no device */
    assert_non_null(api.nccl.error_text(1));
    print_message("NCCL %d\n", version);
}

static void a_run_ends_with_one_sentence(void **state)
{
    const char *dir = *state;
    train_make_dataset(dir, 30);
    support_result r = train_run(dir, 0, "--steps", "1", "--device", "cuda", (char *)NULL);
    support_assert_status(&r, 3);
    assert_non_null(strstr(r.err, "millrace: cuda: no CUDA device can be used ("));
    assert_int_equal(support_occurrences(r.err, "\n"), 1);
    support_result_free(&r);
    r = support_millrace("devices", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, " cuda: no CUDA device can be used ("));
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_functions_are_there),
        cmocka_unit_test(nccl_has_all_functions),
        IN_TMPDIR(a_run_ends_with_one_sentence),
    };
    mr_cuda_api api;
    mr_error err;
    if (mr_cuda_api_open(&api, &err) != MR_OK) {
        support_cannot("CUDA's libraries", err.text);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
