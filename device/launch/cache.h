/* cache.h - private to devices that launch kernels: what a driver made of the text, kept in the user's cache.
 * Invariant: a file is used only if its name is that of this device, driver, options and text, and its digest that of
 * its bytes; any other is made again and replaced.  A cache that cannot be written costs time, nothing else.
 *
 *      $XDG_CACHE_HOME/millrace/FOLDER/DIGEST      | digest, 8 bytes | the driver's binary | */
#ifndef MR_LAUNCH_CACHE_H
#define MR_LAUNCH_CACHE_H

#include "base/buf.h"

enum { MR_LAUNCH_BINARY_MAX = 256 << 20 };

typedef struct mr_launch_build {
    const char *folder;  /* "opencl" */
    const char *device;  /* and its driver */
    const char *options; /* of the compiler */
    size_t text_size;    /* bytes of mr_launch_text that are built */
} mr_launch_build;

/* False: there is none that fits.  *binary is in `file`, which the caller frees. */
bool mr_launch_cache_load(const mr_launch_build *b, mr_buf *file, const uint8_t **binary, size_t *size);
void mr_launch_cache_keep(const mr_launch_build *b, const void *binary, size_t size);

#endif
