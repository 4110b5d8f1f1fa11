/* test_cuda_missing.c - `--device cuda` where no driver is installed.  Skipped where one is.
 * Invariant tested: exit status 3 and one sentence that says what is missing; other devices are not affected.
 * Covers cuda/api.c. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/train.h"

static void what_is_missing_is_named(void **state)
{
    const char *dir = *state;
    train_make_dataset(dir, 30);
    support_result r = train_run(dir, 0, "--steps", "1", "--device", "cuda", (char *)NULL);
    support_assert_status(&r, 3);
    assert_non_null(strstr(r.err, "millrace: cuda: the driver of NVIDIA GPUs cannot be loaded (libcuda.so.1: "));
    assert_non_null(strstr(r.err, "install it, or choose another --device\n"));
    assert_int_equal(support_occurrences(r.err, "\n"), 1);
    support_result_free(&r);
    r = train_run(dir, 0, "--steps", "1", "--device", "cpu", (char *)NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
}

int main(void)
{
    unsetenv("VIRTUAL_ENV"); /* whose wheels may have the libraries */
    unsetenv("CONDA_PREFIX");
    const struct CMUnitTest tests[] = {IN_TMPDIR(what_is_missing_is_named)};
    if (dlopen("libcuda.so.1", RTLD_NOW)) {
        print_message("skipped: a driver is installed\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
