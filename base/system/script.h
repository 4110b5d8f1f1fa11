/* script.h - the Python scripts that come with millrace: where they are, and how they are run.
 * Invariant: a script is found from the program's own place, in a build tree as well as installed. */
#ifndef MR_SCRIPT_H
#define MR_SCRIPT_H

#include "base/error.h"

#define MR_SCRIPT_PYTHON "MILLRACE_PYTHON" /* environment: the Python that runs them; python3 without it */

typedef struct mr_script { /* a zeroed one is empty */
    const char *argv[2];   /* what runs it; its own arguments follow */
    size_t argc;
    char *owned;
} mr_script;

/* `name`: "parquet_rows.py"; `variable`: of the environment; names a program to run in its place.  MR_SYSTEM: neither
 * is there; the message calls it `what` ("the Parquet reader"). */
mr_status mr_script_find(const char *name, const char *variable, const char *what, mr_script *out, mr_error *err);
void mr_script_free(mr_script *s);

#endif
