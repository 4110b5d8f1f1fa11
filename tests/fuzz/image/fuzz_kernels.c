/* fuzz_kernels.c - the kernels of the trainer as plain C, on any shapes, numbers, labels, ids and masks.
 * Promises: no kernel reads or writes beside its tensors, whatever is in them, and the same launch gives the same bits
 * though its lanes run in another order, and whether a product's groups have many lanes or one. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/device/any_kernel.h"
#include "tests/support/device/plain.h"

static uint64_t run(const uint8_t *data, size_t size, unsigned threads)
{
    mr_error err;
    mr_device *d;
    uint64_t digest;
    FUZZ_MUST(support_open("plain", &(mr_device_options){.threads = threads}, &d, &err) == MR_OK);
    FUZZ_MUST(any_kernel_run(d, data, size, SIZE_MAX, &digest, &err) == MR_OK);
    mr_device_close(d);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_MUST(run(data, size, 1) == run(data, size, 2));
    return 0;
}
