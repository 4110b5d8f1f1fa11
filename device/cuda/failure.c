/* failure.c - the first failure of a device, kept until someone waits for it.
 * Invariant: after it nothing is queued. */
#include <stdio.h>

#include "device/cuda/cuda.h"

void mr_cuda_error_text(const mr_cuda *d, int code, char *text, size_t size)
{
    const char *name = NULL, *what = NULL;
    d->api.cu.error_name(code, &name);
    d->api.cu.error_text(code, &what);
    if (name && what)
        snprintf(text, size, "%s, code %d: %s", name, code, what);
    else /* the toolkit's stub of the driver is such a library */
        snprintf(text, size, "code %d, and the library has no description of it", code);
}

bool mr_cuda_note(mr_cuda *d, const char *what, int code)
{
    char why[160];
    if (code && !d->wrong[0]) {
        mr_cuda_error_text(d, code, why, sizeof why);
        snprintf(d->wrong, sizeof d->wrong, "%.40s: %s: %s", d->name, what, why);
    }
    return code == 0;
}

void mr_cuda_fail(mr_cuda *d, const mr_error *err)
{
    if (!d->wrong[0])
        snprintf(d->wrong, sizeof d->wrong, "%.*s", (int)sizeof d->wrong - 1, err->text);
}

bool mr_cuda_use(mr_cuda *d)
{
    return !d->wrong[0] && mr_cuda_note(d, "context", d->api.cu.context_use(d->context));
}
