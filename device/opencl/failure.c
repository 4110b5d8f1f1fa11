/* failure.c - the first failure of a device, kept until someone waits for it.
 * Invariant: a later one does not replace it. */
#include <stdio.h>

#include "device/opencl/opencl.h"

void mr_cl_note(mr_opencl *d, const char *what, int32_t code)
{
    if (code && !d->wrong[0])
        snprintf(d->wrong, sizeof d->wrong, "%s: %s: %s (code %d)", d->name, what, mr_cl_error_text(code), (int)code);
}
