/* ranks.h - this process among its peers under mpirun; alone without it.
 * Invariant: MPI is loaded (millrace_mpi.so, dlopen) only if launcher variables say that there is more than one rank:
 * MPI_Init alone costs 0.3 s.  Without a launcher every call here is a cheap no-op for a world of one. */
#ifndef MR_RANKS_H
#define MR_RANKS_H

#include "buf.h"

typedef struct mr_ranks mr_ranks;

mr_status mr_ranks_begin(mr_ranks **out, mr_error *err);
void mr_ranks_end(mr_ranks *r);                         /* collective unless a failure was agreed; NULL is fine */
unsigned mr_ranks_rank(const mr_ranks *r);
unsigned mr_ranks_world(const mr_ranks *r);

/* Collective.  `mine` of every rank, in rank order, joined into `all`; lens[world] if not NULL. */
mr_status mr_ranks_gather(mr_ranks *r, const mr_buf *mine, mr_buf *all, uint64_t *lens, mr_error *err);
/* Collective.  Rank 0's bytes to every rank (replaces the contents elsewhere). */
mr_status mr_ranks_share(mr_ranks *r, mr_buf *bytes, mr_error *err);
/* Collective: the worst status of all ranks, and the words of the lowest rank that failed. */
mr_status mr_ranks_agree(mr_ranks *r, mr_status mine, mr_error *err);
mr_status mr_ranks_barrier(mr_ranks *r, mr_error *err);

#endif
