/* memory.h - memory of this process, and what is left for it.
 * Invariant: a number that the system does not report is 0. */
#ifndef MR_MEMORY_H
#define MR_MEMORY_H

#include <stdint.h>

typedef struct mr_memory_use {
    uint64_t now, max;  /* resident bytes of this process */
    uint64_t available; /* bytes that this host, or the process's control group, could still give out */
} mr_memory_use;

mr_memory_use mr_memory_in_use(void);

#endif
