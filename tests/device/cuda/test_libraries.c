/* test_libraries.c - which of NVIDIA's libraries is loaded, by the driver's version and by place; the fake device's
 * file stands for each of them. Invariant tested: one of the driver's own CUDA is preferred, wherever it is. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda/libraries.h"
#include "tests/support/support.h"

/* Loads in a child, which has nothing loaded yet; where the file is that it loaded, "" if none, is for the caller to
 * free. */
static char *loaded(const char *dir, const char *name, int major)
{
    char *out = support_path("%s/loaded", dir);
    pid_t child = fork();
    if (child == 0) {
        char why[200] = "",
             *command = support_path("grep -om1 '%s.*so.*' /proc/%d/maps >'%s'; true", dir, getpid(), out);
        void *library =
            major ? mr_cuda_library(name, major, why, sizeof why) : mr_cuda_library_named(name, why, sizeof why);
        _exit((library || *why) && system(command) == 0 ? 0 : 3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    char *found = (char *)support_read(out, NULL);
    found[strcspn(found, "\n")] = '\0';
    free(out);
    return found;
}

static void put(const char *dir, const char *name)
{
    char *command = support_path("f='%s/%s'; mkdir -p \"${f%%/*}\" && cp -L '%s' \"$f\"", dir, name, FAKE_CUDA);
    assert_int_equal(system(command), 0);
    free(command);
}

static void expect(const char *dir, const char *name, int major, const char *place)
{
    char *found = loaded(dir, name, major), *wanted = support_path("%s/%s", dir, place);
    assert_string_equal(found, *place ? wanted : "");
    free(found);
    free(wanted);
}

#define SITE "venv/lib/python3.11/site-packages/nvidia/"

static void by_version_and_place(void **state)
{
    const char *dir = *state;
    char *venv = support_path("%s/venv", dir), *conda = support_path("%s/conda", dir),
         *cuda = support_path("%s/cuda", dir);
    setenv("VIRTUAL_ENV", venv, 1);
    setenv("CONDA_PREFIX", conda, 1);
    setenv("CUDA_PATH", cuda, 1);
    expect(dir, "libmrtest.so", 12, "");
    put(dir, SITE "cu13/lib/libmrtest.so.13");
    expect(dir, "libmrtest.so", 12, SITE "cu13/lib/libmrtest.so.13"); /* there is no other */
    put(dir, "conda/lib/libmrtest.so.12");
    expect(dir, "libmrtest.so", 12, "conda/lib/libmrtest.so.12");
    expect(dir, "libmrtest.so", 13, SITE "cu13/lib/libmrtest.so.13");
    put(dir, SITE "cuda_mrtest/lib/libmrtest.so.12");
    expect(dir, "libmrtest.so", 12, SITE "cuda_mrtest/lib/libmrtest.so.12");
    put(dir, "cuda/lib64/libmrtest.so.12");
    expect(dir, "libmrtest.so", 12, "cuda/lib64/libmrtest.so.12");
    expect(dir, "libmrtest.so", 14, SITE "cu13/lib/libmrtest.so.13"); /* of a driver that is newer than this program */
    put(dir, SITE "nccl/lib/libmrtest.so.2");
    expect(dir, "libmrtest.so.2", 0, SITE "nccl/lib/libmrtest.so.2");
    free(venv);
    free(conda);
    free(cuda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(by_version_and_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
