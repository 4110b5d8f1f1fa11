/* library.c - dlopen() and dlsym() for optional libraries.
 * Invariant: their symbols are private to this process's calls of them, and resolved when the library is loaded. */
#include "base/system/library.h"

#include <dlfcn.h>
#include <string.h>

void *mr_library_load(const char *name, const char **why)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library && why) {
        *why = dlerror();
        *why = *why ? *why : "no reason given";
    }
    return library;
}

bool mr_library_find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}
