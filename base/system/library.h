/* library.h - shared libraries that are loaded at run time, so that neither the build nor most runs need them.
 * Invariant: a library that was loaded here keeps its code until the process ends: such libraries start threads and
 * keep memory per thread, which outlive dlclose(). */
#ifndef MR_LIBRARY_H
#define MR_LIBRARY_H

#include <stdbool.h>

/* By name, as the dynamic linker finds it, or by path; for dlclose().  NULL: it cannot be loaded, and *why, unless
 * `why` is NULL, is the linker's reason, valid until its next call. */
void *mr_library_load(const char *name, const char **why);

/* Copies the address of a function into the pointer at `function`, which may have any type of function.  ISO C has no
 * conversion for that.  false: the library lacks it, and the pointer is NULL. */
bool mr_library_find(void *library, const char *name, void *function);

#endif
