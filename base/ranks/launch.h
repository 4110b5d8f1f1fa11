/* launch.h - which launcher started this process, and how many with it; read from the environment alone.
 * Invariant: one table (launch.c) knows the launchers.  Nothing here starts MPI. */
#ifndef MR_LAUNCH_H
#define MR_LAUNCH_H

#include "base/error.h"

typedef struct mr_launch {
    const char *by;       /* "mpirun", "srun" ...; NULL: no launcher, or one that started this process alone */
    const char *variable; /* the variable with the number of processes */
    uint64_t tasks;       /* processes it started; 0: unknown until MPI starts */
    bool apart;           /* millrace cannot join them into one run */
    bool unserved;        /* there are PMIx variables, but none with a server's address */
} mr_launch;

mr_launch mr_launch_look(void);

/* MR_MISUSE: several processes were started that cannot join, so each would do all the work of `command`, the word
 * after "millrace". */
mr_status mr_launch_check(const char *command, mr_error *err);

/* MR_MISUSE: the launcher started several processes, but MPI finds a `world` of 1. */
mr_status mr_launch_joined(const mr_launch *l, unsigned world, mr_error *err);

#endif
