/* libraries.h - private to this module: where NVIDIA's libraries are, and which of them the driver can use.
 * Invariant: a library of a CUDA that is newer than the driver is used only if there is no other. */
#ifndef MR_CUDA_LIBRARIES_H
#define MR_CUDA_LIBRARIES_H

#include <stddef.h>

enum { MR_CUDA_NEWEST = 13, MR_CUDA_OLDEST = 12 };

/* Loads NAME.MAJOR ("libnvrtc.so") of the driver's own CUDA (its major version), of older ones, then of newer ones;
 * each where the linker finds it, in the toolkit ($CUDA_PATH, otherwise /usr/local/cuda), or in the folders of Python's
 * wheels: beside the package that this program is in, in $VIRTUAL_ENV, in $CONDA_PREFIX.  NULL: *why says why not. */
void *mr_cuda_library(const char *name, int driver_major, char *why, size_t size);
/* The same for a library with one version ("libnccl.so.2"). */
void *mr_cuda_library_named(const char *name, char *why, size_t size);

#endif
