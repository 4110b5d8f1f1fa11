/* libraries.c - see libraries.h.
 * Source of the places: NVIDIA's wheels of CUDA 12 (nvidia/cuda_nvrtc/lib, nvidia/cublas/lib), 13 (nvidia/cu13/lib). */
#include "device/cuda/libraries.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/system/library.h"

static void *load_from(const char *folder, const char *below, const char *name)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s%s%s", folder, below, name);
    return len > 0 && (size_t)len < sizeof path ? mr_library_load(path, NULL) : NULL;
}

/* The first that can be loaded of the files that match "FOLDER/nvidia/.../lib/NAME". */
static void *load_from_wheels(const char *folder, const char *below, const char *name)
{
    char pattern[PATH_MAX];
    glob_t found;
    void *library = NULL;
    int len = snprintf(pattern, sizeof pattern, "%s%s/nvidia/*/lib/%s", folder, below, name);
    if (len <= 0 || (size_t)len >= sizeof pattern || glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = 0; i < found.gl_pathc && !library; i++)
        library = mr_library_load(found.gl_pathv[i], NULL);
    globfree(&found);
    return library;
}

/* In a wheel the program is site-packages/millrace/bin/millrace. */
static void *load_beside_program(const char *name)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    for (int i = 0; i < 3 && len > 0; i++)
        while (len > 0 && path[--len] != '/')
            ;
    if (len <= 0)
        return NULL;
    path[len] = '\0';
    return load_from_wheels(path, "", name);
}

void *mr_cuda_library_named(const char *name, char *why, size_t size)
{
    const char *reason, *toolkit = mr_env("CUDA_PATH"), *venv = mr_env("VIRTUAL_ENV"), *conda = mr_env("CONDA_PREFIX");
    void *library = mr_library_load(name, &reason);
    if (!library)
        snprintf(why, size, "%s", reason);
    if (!library)
        library = load_from(toolkit ? toolkit : "/usr/local/cuda", "/lib64/", name);
    if (!library)
        library = load_beside_program(name);
    if (!library && venv)
        library = load_from_wheels(venv, "/lib/python3*/site-packages", name);
    if (!library && conda)
        library = load_from(conda, "/lib/", name);
    if (!library && conda)
        library = load_from_wheels(conda, "/lib/python3*/site-packages", name);
    return library;
}

void *mr_cuda_library(const char *name, int driver_major, char *why, size_t size)
{
    char numbered[64], other[200];
    void *library = NULL;
    int own = driver_major < MR_CUDA_NEWEST ? driver_major : MR_CUDA_NEWEST;
    for (int major = own; major >= MR_CUDA_OLDEST && !library; major--) {
        snprintf(numbered, sizeof numbered, "%s.%d", name, major);
        library = mr_cuda_library_named(numbered, major == own ? why : other, major == own ? size : sizeof other);
    }
    for (int major = own + 1; major <= MR_CUDA_NEWEST && !library; major++) {
        snprintf(numbered, sizeof numbered, "%s.%d", name, major);
        library = mr_cuda_library_named(numbered, other, sizeof other);
    }
    return library;
}
