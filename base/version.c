/* version.c - the version of this library.
 * Invariant: it is the project's, as CMakeLists.txt states it. */
#include "millrace.h"

const char *mr_version(void)
{
    return MILLRACE_VERSION;
}
