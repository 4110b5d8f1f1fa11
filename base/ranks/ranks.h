/* ranks.h - the ranks of a run under mpirun or srun; a single rank without them.
 * Invariant: MPI is loaded (millrace_mpi.so, by dlopen) only if a launcher's variables (launch.h) announce more than
 * one rank, as MPI_Init alone takes 0.3 s.  Without a launcher the world is 1, and every call here is a cheap no-op. */
#ifndef MR_RANKS_H
#define MR_RANKS_H

#include "base/buf.h"

typedef struct mr_ranks mr_ranks;

mr_status mr_ranks_begin(mr_ranks **out, mr_error *err);
void mr_ranks_end(mr_ranks *r); /* collective, except for a part; NULL is fine */
unsigned mr_ranks_rank(const mr_ranks *r);
unsigned mr_ranks_world(const mr_ranks *r);
unsigned mr_ranks_local_rank(const mr_ranks *r); /* number among the ranks on this host, from 0; in a part: 0 */
unsigned mr_ranks_local_size(const mr_ranks *r); /* ranks on this host, including this one; in a part: 1 */

/* Whether calls here may come from any thread, one at a time; otherwise only from the one that began.  Alone, and of a
 * part: false. */
bool mr_ranks_threads(const mr_ranks *r);

/* "rank 3", and where the ranks are on several hosts "rank 3 on node7": for messages.  Of a part, its own number. */
typedef struct mr_ranks_name {
    char text[96];
} mr_ranks_name;
mr_ranks_name mr_ranks_name_of(const mr_ranks *r, unsigned rank);

/* Collective.  From here on a thread of each rank watches for a stall (stall.h) of `seconds`; 0: never.  On a stall,
 * `tell` is called on that thread, on one rank per side of a broken network, and the process ends with exit code 3.
 * MR_AGAIN: the ranks cannot be watched, err says why; the run can go on. */
typedef void (*mr_ranks_tell)(const mr_error *err);
enum { MR_STALL_SECONDS = 60 };
mr_status mr_ranks_watch(mr_ranks *r, uint64_t seconds, mr_ranks_tell tell, mr_error *err);
/* Around waiting for other ranks by other means than the calls below. */
void mr_ranks_waits(mr_ranks *r, bool begins);
/* What a thread that only watches (owner.h) has used of the processor so far: it does not count as work. */
void mr_ranks_aside(mr_ranks *r, uint64_t ns);
/* From any thread: says why, and ends the processes of all ranks with exit code 3.  Does not return. */
void mr_ranks_quit(mr_ranks *r, const mr_error *why);

/* Gather, share and split fail on all ranks if one is out of memory, so that no rank waits for it.
 *
 * Collective.  Appends `mine` of every rank, in rank order, to `all`, and sets lens[world] unless NULL. */
mr_status mr_ranks_gather(mr_ranks *r, const mr_buf *mine, mr_buf *all, uint64_t *lens, mr_error *err);
/* Collective.  Broadcasts rank 0's bytes, replacing those of the other ranks. */
mr_status mr_ranks_share(mr_ranks *r, mr_buf *bytes, mr_error *err);
/* Collective.  Status and message of the lowest rank that failed; `mine` if none did.  On several hosts the message
 * begins with the rank's name, unless all ranks failed with the same one. */
mr_status mr_ranks_agree(mr_ranks *r, mr_status mine, mr_error *err);
#ifdef __clang_analyzer__ /* as in error.h: if this rank fails, all do */
#define mr_ranks_agree(r, mine, err)                                                                                   \
    ((mine) == MR_OK ? mr_ranks_agree(r, MR_OK, err) : ((void)mr_ranks_agree(r, mine, err), (mine)))
#endif
/* Collective.  Compares `len` bytes of all ranks; len is equal on all.  *other: the first rank that differs from rank
 * 0; 0: none does.  `all`, unless NULL: the bytes of all ranks in order, if there is more than one rank. */
mr_status mr_ranks_compare(mr_ranks *r, const void *bytes, size_t len, unsigned *other, mr_buf *all, mr_error *err);
mr_status mr_ranks_barrier(mr_ranks *r, mr_error *err);

/* Collective.  Splits the ranks into parts, each in the same order: the ranks with the same color, 0 or more, or those
 * on the same host.  MR_RANKS_NONE: this rank is in no part, *out is NULL. */
#define MR_RANKS_NONE      (-1)
#define MR_RANKS_SAME_HOST (-2)
mr_status mr_ranks_split(mr_ranks *r, int64_t color, mr_ranks **out, mr_error *err);

/* Collective.  Reduces `count` values over all ranks, in place, equal on all: MR_RANKS_SUM of floats (in MPI's order,
 * the same for every run with the same placement of ranks on hosts), MR_RANKS_OR of uint64_t, bitwise. */
typedef enum mr_ranks_op { MR_RANKS_SUM = 0, MR_RANKS_OR } mr_ranks_op;
mr_status mr_ranks_reduce(mr_ranks *r, mr_ranks_op op, void *values, uint64_t count, mr_error *err);
/* The same without waiting, started by all ranks in the same order, for at most INT_MAX values.  `values` belongs to
 * MPI until mr_ranks_reduce_test() returns true; *status: whether it failed.  MPI makes progress only within these
 * calls. */
mr_status mr_ranks_reduce_begin(mr_ranks *r, mr_ranks_op op, void *values, uint64_t count, void **request,
                                mr_error *err);
/* Begun like a reduction, over values that are cut into as many even slices as there are ranks: scatter sends slice i
 * of `mine` to rank i, and fills `all` with this rank's slice of each rank, in order; spread sends this rank's slice of
 * `values` to all, in place. */
mr_status mr_ranks_scatter_begin(mr_ranks *r, const uint16_t *mine, uint64_t count, uint16_t *all, void **request,
                                 mr_error *err);
mr_status mr_ranks_spread_begin(mr_ranks *r, uint16_t *values, uint64_t count, void **request, mr_error *err);
/* The first element of a rank's slice; of rank `world`, the end. */
static inline uint64_t mr_ranks_slice(uint64_t count, unsigned rank, unsigned world)
{
    return count / world * rank + (rank < count % world ? rank : count % world);
}
bool mr_ranks_reduce_test(mr_ranks *r, void **request, mr_status *status, mr_error *err);

/* A rank has died, so no collective can complete: mr_ranks_end() on this rank now ends the processes of all ranks with
 * exit code 3 instead of waiting.  One rank reports why; the others give it time to print and to end the run.
 * Where a stall has been found, which is then the reason, this does not return: the process ends. */
void mr_ranks_break(mr_ranks *r, bool reports);

#endif
