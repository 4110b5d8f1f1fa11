/* test_cuda_old.c - `--device cuda` where the driver is there, and other libraries of NVIDIA are missing or too old; on
 * the device without hardware (support/preload/cuda).  Skipped on real hardware.
 * Invariant tested: one sentence says what to install, with exit status 3; only cuBLASLt can be done without.
 * Covers cuda/api.c, cuda/program.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/training/model.h"
#include "tests/support/training/train.h"

static char *fake; /* the folder of the fake libraries */

/* DIR/NAME is the library at `target`, in the fake one's folder; DIR alone is looked in. */
static void place(const char *dir, const char *name, const char *target)
{
    TRAIN_PATH(path, dir, name);
    char *from = support_path("%s/%s", fake, target);
    assert_int_equal(symlink(from, path), 0);
    free(from);
}

static void expect(const char *dir, int status, const char *text)
{
    support_result r =
        train_run(dir, 0, "--steps", "1", "--eval-every", "0", "--precision", "bf16", "--device", "cuda", (char *)NULL);
    support_assert_status(&r, status);
    if (!strstr(status ? r.err : r.out, text))
        fail_msg("'%s' instead of '%s'", status ? r.err : r.out, text);
    assert_int_equal(support_occurrences(r.err, "\n"), status ? 1 : 0);
    support_result_free(&r);
}

static void look_in(const char *dir)
{
    setenv("LD_LIBRARY_PATH", dir, 1);
    setenv("CUDA_PATH", dir, 1);
}

/* Empty files stand in for the compiler, as one of a toolkit may be found elsewhere. */
static void without_the_compiler(void **state)
{
    const char *dir = *state;
    TRAIN_PATH(newer, dir, "libnvrtc.so.13");
    TRAIN_PATH(older, dir, "libnvrtc.so.12");
    train_make_dataset(dir, 30);
    place(dir, "libcuda.so.1", "libcuda.so.1");
    support_write(newer, "", 0);
    support_write(older, "", 0);
    look_in(dir);
    expect(dir, 3, "millrace: cuda: the compiler NVRTC cannot be loaded (");
    expect(dir, 3,
           "libnvrtc.so.13: file too short); install it from CUDA 13, or the Python package nvidia-cuda-nvrtc "
           "into this virtual environment\n");
    support_result r = support_millrace("devices", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, " cuda: the compiler NVRTC cannot be loaded"));
    support_result_free(&r);
}

/* Libraries of these names without the functions that are needed. */
static void with_old_libraries(void **state)
{
    static const char other[] = "../no-device/libOpenCL.so.1";
    const char *dir = *state;
    train_make_dataset(dir, 30);
    place(dir, "libcuda.so.1", "libcuda.so.1");
    place(dir, "libnvrtc.so.13", other);
    look_in(dir);
    expect(dir, 3, "millrace: cuda: NVRTC lacks nvrtcVersion; CUDA 12 or 13 is needed\n");
    TRAIN_PATH(compiler, dir, "libnvrtc.so.13");
    assert_int_equal(unlink(compiler), 0);
    place(dir, "libnvrtc.so.13", "libnvrtc.so.13");
    place(dir, "libcublasLt.so.13", other);
    expect(dir, 0, "millrace's own kernels, which are slower than cuBLASLt (cuBLASLt lacks cublasLtCreate)");
    TRAIN_PATH(driver, dir, "libcuda.so.1");
    assert_int_equal(unlink(driver), 0);
    place(dir, "libcuda.so.1", other);
    expect(dir, 3, "millrace: cuda: libcuda.so.1 lacks cuInit; a driver for CUDA 12 or later is needed\n");
}

static void with_an_old_driver(void **state)
{
    train_make_dataset(*state, 30);
    setenv("LD_LIBRARY_PATH", fake, 1);
    setenv("MILLRACE_FAKE_DRIVER", "12020", 1);
    expect(*state, 3,
           "millrace: cuda: Fake GPU rejects the kernels (CUDA_ERROR_INVALID_IMAGE, code 200: device kernel image "
           "is invalid); install a newer driver\n");
    unsetenv("MILLRACE_FAKE_DRIVER");
}

int main(void)
{
    unsetenv("VIRTUAL_ENV"); /* whose wheels may have the libraries */
    unsetenv("CONDA_PREFIX");
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(without_the_compiler),
        IN_TMPDIR(with_old_libraries),
        IN_TMPDIR(with_an_old_driver),
    };
    setenv("MILLRACE_TEST_DEVICE", "cuda", 1);
    mr_device *d = support_device(1); /* where there is none, the test ends here */
    bool real = strncmp(d->iface->describe(d), "Fake GPU", 8) != 0;
    mr_device_close(d);
    unsetenv("MILLRACE_TEST_DEVICE");
    const char *path = getenv("LD_LIBRARY_PATH");
    if (real || !path) {
        support_cannot("libraries that are missing", "the device is real");
        return 77;
    }
    fake = support_path("%.*s", (int)strcspn(path, ":"), path);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(fake);
    return failed;
}
