/* ranks_iface.h - what millrace_mpi.so offers: one C entry with an ABI number.
 * Invariant: ranks.c accepts MR_RANKS_ABI and nothing else. */
#ifndef MR_RANKS_IFACE_H
#define MR_RANKS_IFACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/ranks/ranks.h"

#define MR_RANKS_ABI 4

/* A group is an opaque set of ranks.  Calls return 0, or another number on failure; those with a group are collective
 * in it, except forget().  One call at a time, except abort(). */
typedef struct mr_ranks_iface {
    int abi;
    /* The group of all ranks; *threads: calls may come from any thread, otherwise from this one alone. */
    int (*start)(void **group, unsigned *rank, unsigned *world, bool *threads);
    int (*stop)(void); /* collective over all ranks */
    /* color: see mr_ranks_split(); a rank that is in no group gets NULL. */
    int (*split)(void *group, int64_t color, void **out, unsigned *rank, unsigned *world);
    void (*forget)(void *group); /* this rank's handle; MPI keeps the rest until stop() */
    int (*barrier)(void *group);
    int (*share)(void *group, void *bytes, uint64_t len); /* from the group's first rank */
    int (*gather)(void *group, const void *mine, uint64_t len, void *all, const uint64_t *lens); /* to all, in order */
    int (*reduce)(void *group, mr_ranks_op op, void *values, uint64_t count); /* count <= INT_MAX, in place */
    int (*reduce_begin)(void *group, mr_ranks_op op, void *values, uint64_t count, void **request);
    int (*scatter_begin)(void *group, const uint16_t *mine, uint64_t count, uint16_t *all, void **request);
    int (*spread_begin)(void *group, uint16_t *values, uint64_t count, void **request);
    int (*reduce_test)(void **request, int *done); /* for all three; once done, the request is freed */
    void (*abort)(int code);
} mr_ranks_iface;

const mr_ranks_iface *millrace_ranks_iface(void);

#endif
