/* faults.h - millrace run with calls that fail, kill, or are written down (faults/faults.h says how).
 * Invariant: a run gets its own empty TMPDIR, and the helper fails the test if anything is left in it; what OpenMPI
 * leaves when it is killed is in a folder of its own, neither there nor in /dev/shm. */
#ifndef MR_SUPPORT_FAULTS_H
#define MR_SUPPORT_FAULTS_H

#include "tests/support/support.h"

typedef struct faulty {
    const char *directory; /* to run in; DIRECTORY.tmp, .mpi and .report exist during a run */
    const char *fault;     /* MILLRACE_FAULT, NULL: none */
    const char *log;       /* MILLRACE_FAULT_LOG, NULL: none */
    bool libraries;        /* the calls of the libraries too: LD_PRELOAD, not for sanitized builds */
    unsigned ranks;        /* under mpirun, 0: alone */
    double delay;          /* SIGKILL (to every rank) after this many seconds, 0: none */
} faulty;

/* Runs millrace with these words (split at blanks). */
support_result faulty_run(const faulty *f, const char *words);

/* How many calls of a class the last run counted, on the rank with the most; faulty_fired(): whether the fault
 * occurred. */
unsigned long faulty_calls(const char *class);
bool faulty_fired(void);
/* Whether the call that failed was made by this library. */
bool faulty_was_of(const char *library);

/* A hash of a file's bytes or of a folder's names and bytes; removes its report.json first, which may name the kind of
 * source.  0: absent. */
uint64_t faulty_hash(const char *path);

/* A shell's command in a directory; expects success. */
void support_shell(const char *directory, const char *command);

/* Whether a list of names has one that only an unfinished write may have: ".partial", ".tmp" ... */
const char *faulty_stray(const char *list);

/* True in builds that LD_PRELOAD does not go together with. */
bool faulty_sanitized(void);

#endif
