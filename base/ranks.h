/* ranks.h - this process among its peers under mpirun or srun; alone without them.
 * Invariant: MPI is loaded (millrace_mpi.so, dlopen) only if launcher variables (launch.h) say that there is more than
 * one rank: MPI_Init alone costs 0.3 s.  Without a launcher every call here is a cheap no-op for a world of one. */
#ifndef MR_RANKS_H
#define MR_RANKS_H

#include "base/buf.h"

typedef struct mr_ranks mr_ranks;

mr_status mr_ranks_begin(mr_ranks **out, mr_error *err);
void mr_ranks_end(mr_ranks *r); /* collective; of a part: not collective; NULL is fine */
unsigned mr_ranks_rank(const mr_ranks *r);
unsigned mr_ranks_world(const mr_ranks *r);
unsigned mr_ranks_beside(const mr_ranks *r); /* those on this host, itself among them; of a part: 1 */

/* Gather, share and split fail on all ranks if one of them lacks memory: none is left waiting for it.
 *
 * Collective.  `mine` of every rank, in rank order, joined into `all`; lens[world] if not NULL. */
mr_status mr_ranks_gather(mr_ranks *r, const mr_buf *mine, mr_buf *all, uint64_t *lens, mr_error *err);
/* Collective.  Rank 0's bytes to every rank (replaces the contents elsewhere). */
mr_status mr_ranks_share(mr_ranks *r, mr_buf *bytes, mr_error *err);
/* Collective: the status and the words of the lowest rank that failed; MR_OK if none did. */
mr_status mr_ranks_agree(mr_ranks *r, mr_status mine, mr_error *err);
#ifdef __clang_analyzer__ /* as in error.h: a failure of this rank is one of all */
#define mr_ranks_agree(r, mine, err)                                                                                   \
    ((mine) == MR_OK ? mr_ranks_agree(r, MR_OK, err) : ((void)mr_ranks_agree(r, mine, err), (mine)))
#endif
/* Collective: whether all ranks have these same `len` bytes, len equal on all.  *other: the first rank that has not
 * what rank 0 has; 0: all have.  `all`: theirs, one behind the other, where there is more than one rank; may be NULL.
 */
mr_status mr_ranks_compare(mr_ranks *r, const void *bytes, size_t len, unsigned *other, mr_buf *all, mr_error *err);
mr_status mr_ranks_barrier(mr_ranks *r, mr_error *err);

/* Collective.  A part of the ranks as ranks of their own, in the same order: those that gave the same color, any number
 * from 0 on, or those that share this one's memory.  MR_RANKS_NONE: in no part, *out is NULL. */
#define MR_RANKS_NONE      (-1)
#define MR_RANKS_SAME_HOST (-2)
mr_status mr_ranks_split(mr_ranks *r, int64_t color, mr_ranks **out, mr_error *err);

/* Collective: `count` values of all ranks become one, in place, equal on all ranks: MR_RANKS_SUM of floats (their order
 * is MPI's, the same on every run with the same placement of ranks on hosts), MR_RANKS_OR of uint64_t, bit by bit. */
typedef enum mr_ranks_op { MR_RANKS_SUM = 0, MR_RANKS_OR } mr_ranks_op;
mr_status mr_ranks_reduce(mr_ranks *r, mr_ranks_op op, void *values, uint64_t count, mr_error *err);
/* The same without waiting, begun by all ranks in the same order.  test: true when it is over, well or (*status) not;
 * MPI moves bytes only within these calls.  `values` is MPI's until then.  At most INT_MAX values. */
mr_status mr_ranks_reduce_begin(mr_ranks *r, mr_ranks_op op, void *values, uint64_t count, void **request,
                                mr_error *err);
bool mr_ranks_reduce_test(mr_ranks *r, void **request, mr_status *status, mr_error *err);

/* A rank is gone, and with it every collective: mr_ranks_end() of this rank now ends the processes of all ranks with
 * exit code 3 rather than wait for what cannot come.  One rank speaks, the others give it time to print and end all. */
void mr_ranks_break(mr_ranks *r, bool speaks);

#endif
