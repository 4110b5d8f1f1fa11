/* program.h - an outside program that turns one file into a tar stream.
 * Invariant: the program's output and its words are foreign bytes; whatever it does, it is waited for, and it can
 * neither hang this process by its complaints nor pass for done when it was not.
 *
 *      FILE --stdin--> program --stdout, a pipe--> libarchive (list_archive)
 *                         `----stderr, a pipe----> a thread that keeps the last words                              */
#ifndef MR_SOURCE_PROGRAM_H
#define MR_SOURCE_PROGRAM_H

#include "base/error.h"

typedef struct mr_program mr_program;

/* Starts argv[0] (looked for in PATH) with argv, which ends with NULL; `input` becomes its standard input and stays the
 * caller's.  MR_SYSTEM: it cannot be started. */
mr_status mr_program_start(const char *const *argv, int input, mr_program **out, mr_error *err);

/* The pipe with what it writes; the program's, not to be closed. */
int mr_program_output(const mr_program *p);

/* Waits for the program's end and frees `p` in any case.  `so_far` is how reading its output went, with the words in
 * `err`; the result is the worse of that and the program's own end, in its own words: exit 1 is MR_BAD_DATA, 2
 * MR_MISUSE, anything else and a signal MR_SYSTEM.  A program that goes on for more than 1 MiB behind what was read is
 * ended.  `name` is for messages. */
mr_status mr_program_end(mr_program *p, mr_status so_far, const char *name, mr_error *err);

#endif
