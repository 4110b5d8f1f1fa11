/* program.h - runs another program, which reads one file or pipe, and may write to another.
 * Invariant: the program's output and messages are untrusted; it is always waited for, cannot block this process by
 * filling stderr, and its failure is never mistaken for success.
 *
 *      FILE --stdin--> program --stdout, a pipe--> the caller
 *                         `----stderr, a pipe----> a thread that keeps the last message                           */
#ifndef MR_PROGRAM_H
#define MR_PROGRAM_H

#include "base/error.h"

typedef struct mr_program mr_program;

/* Starts argv[0] (found by PATH) with argv, which ends with NULL; `input` becomes its standard input and remains the
 * caller's.  MR_SYSTEM: it cannot be started. */
mr_status mr_program_start(const char *const *argv, int input, mr_program **out, mr_error *err);

/* Limits the program's address space; `sentence`, lent until its end, is what is said if that is not enough. */
void mr_program_limit(mr_program *p, uint64_t bytes, const char *sentence);

/* The pipe that it writes to; not to be closed by the caller. */
int mr_program_output(const mr_program *p);

/* Waits for the program to end and frees `p` in any case.  `so_far` is the outcome of reading its output, with its
 * sentence in `err`; the result is the worse of that and the program's own, with its own message: exit 1 is
 * MR_BAD_DATA, 2 MR_MISUSE, anything else and a signal MR_SYSTEM; exit 4, or running out of memory in another way, is
 * MR_BAD_DATA with the sentence of a limit.  A program that writes more than 1 MiB after what was
 * read is killed.  `name` is for messages. */
mr_status mr_program_end(mr_program *p, mr_status so_far, const char *name, mr_error *err);

#endif
