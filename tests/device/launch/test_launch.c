/* test_launch.c - operations on drawn shapes, with any numbers, labels, ids and masks, on the device
 * MILLRACE_TEST_DEVICE, or on the kernels as plain C.
 * Invariant tested: no kernel reads or writes beside its tensors, which canaries, a sanitizer or oclgrind see, and a
 * launch gives the same bits when it is repeated.
 * Covers launch/call.c, dense.c, rows.c, tokens.c, attention.c. */
#include <stdlib.h>

#include "tests/support/device/any_kernel.h"
#include "tests/support/training/model.h"
#include "tests/support/support.h"

enum { INPUT = 96 };

static void any_operation_stays_in_its_tensors(void **state)
{
    (void)state;
    const char *few = getenv("MILLRACE_TEST_KERNELS"); /* what checks every access is slow */
    unsigned rounds = few ? (unsigned)strtoul(few, NULL, 10) : 60;
    mr_random r = support_random();
    mr_device *d = support_device(1);
    for (unsigned i = 0; i < rounds; i++) {
        float numbers[INPUT / sizeof(float)];
        uint64_t first, again;
        mr_error err;
        for (size_t k = 0; k < MR_COUNT(numbers); k++)
            numbers[k] = (float)mr_random_real(&r, -2, 2);
        if (i % 2)
            mr_random_bytes(&r, numbers, sizeof numbers);
        for (unsigned turn = 0; turn < 2; turn++)
            if (any_kernel_run(d, (const uint8_t *)numbers, sizeof numbers, few ? 9 : SIZE_MAX, turn ? &again : &first,
                               &err) != MR_OK)
                fail_msg("operation %u: %s", i, err.text);
        if (first != again)
            fail_msg("operation %u: other bits when it is repeated", i);
    }
    mr_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_operation_stays_in_its_tensors)};
    const char *device = getenv("MILLRACE_TEST_DEVICE");
    if (!device || !*device)
        setenv("MILLRACE_TEST_DEVICE", "plain", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
