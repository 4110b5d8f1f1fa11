/* exchange.h - the gradients of all ranks become one sum, the same to the bit on every rank.
 * Invariant: the sum is taken in rank order within a host, and MPI adds up those of the hosts, so the same number of
 * ranks, placed on hosts in the same way, gives the same bits on every run; nothing has a name in the file system, so
 * nothing is left behind however a run ends.
 *
 *      inside a host: one window of shared memory (memfd, opened by the others through /proc/PID/fd/N)
 *      | rank 0's gradients | rank 1's gradients | ... | sum |      rank r adds up the r-th part of every buffer
 *      across hosts: the first rank of each host sums its `sum` with the others' by MPI
 *
 * flat: everything after the backward pass.  buckets: pieces of about bucket_bytes while the backward pass still runs.
 * On one host the ranks sum them in mr_exchange_ready(); where there are several, a thread of each rank does, and calls
 * MPI, which makes no progress by itself (mover.c).  So from an update's first mr_exchange_ready() to its
 * mr_exchange_finish() the caller uses no call of ranks.h that communicates. */
#ifndef MR_EXCHANGE_H
#define MR_EXCHANGE_H

#include "base/ranks/ranks.h"

typedef enum mr_exchange_kind { MR_EXCHANGE_FLAT = 0, MR_EXCHANGE_BUCKETS } mr_exchange_kind;

typedef struct mr_exchange_options {
    mr_exchange_kind kind;
    uint64_t count;        /* float32 elements in the gradient buffer */
    uint64_t bucket_bytes; /* 0: a 64th of all, from 1 to 25 MiB; rounded up to 64 bytes, at most 1 GiB */
    bool halves;           /* between hosts in bf16, summed in float32 (halves.h) */
    unsigned ranks_a_host; /* 0: the system's hosts; for tests: treat this many ranks at a time as a host */
} mr_exchange_options;

typedef struct mr_exchange mr_exchange;

/* Collective.  With one rank it is only a buffer.  Where the ranks of a host cannot open each other's memory (as in
 * containers that hide their processes) each is a host of its own. */
mr_status mr_exchange_open(mr_ranks *ranks, const mr_exchange_options *options, mr_exchange **out, mr_error *err);
void mr_exchange_free(mr_exchange *x); /* NULL is fine; not collective */

/* This rank's gradients, count elements, zero at first, 64-byte aligned; they live as long as the exchange.  The owner
 * zeroes them before each update. */
float *mr_exchange_gradients(mr_exchange *x);

/* One update, on all ranks alike (a begin may also stand alone, to sum numbers):
 *      mr_exchange_begin(x, mine, &worst, err)   before the last micro-step's backward pass: each rank's status
 *      mr_exchange_ready(x, from)                in it: elements from `from` on are complete (never increasing)
 *      mr_exchange_finish(x, &sum, err)          after it
 * begin: `mine` is this rank's status with err->text filled if it is a failure.  The result is the worst of all
 * ranks', and err says which rank failed and why; the update is then over for all.  A rank that cannot continue must
 * report it at its next begin, where the others wait for it.
 * numbers: `numbers_count` <= MR_EXCHANGE_NUMBERS doubles per rank (loss, weights), summed in rank order in `sums`. */
enum { MR_EXCHANGE_NUMBERS = 12 };
mr_status mr_exchange_begin(mr_exchange *x, mr_status mine, const double *numbers, unsigned numbers_count, double *sums,
                            mr_error *err);
/* What a rank gave to the last begin that succeeded; lent until the next one. */
const double *mr_exchange_numbers(const mr_exchange *x, unsigned rank);
void mr_exchange_ready(mr_exchange *x, uint64_t from);
/* *sum: count elements, valid until the next begin that does not stand alone, or until this rank next writes its
 * gradients: where no other rank shares the memory, they are the same.  MR_SYSTEM: a peer is gone.
 * The same bits for both kinds, on every run with the same placement of ranks: within a host the sum is
 * ((rank 0 + rank 1) + rank 2) + ... */
mr_status mr_exchange_finish(mr_exchange *x, const float **sum, mr_error *err);

/* Instead of ready and finish, where the ranks sum by other means, as their devices do, and the exchange has no
 * gradients (count 0): waits until done(ctx), which does not block.  MR_AGAIN: it never may, as a rank of this host has
 * failed, which the next begin reports.  MR_SYSTEM: a peer is gone. */
mr_status mr_exchange_watch(mr_exchange *x, bool (*done)(void *ctx), void *ctx, mr_error *err);

/* After a failure: whether this rank reports it to the user (rank 0, or if that is gone the first that noticed);
 * before one, whether it is rank 0.  When a peer is gone, mr_ranks_end() ends all ranks instead of waiting for it:
 * every rank is to call it at once, after printing. */
bool mr_exchange_speaks(const mr_exchange *x);

/* Seconds that this rank spent waiting in or working on the exchange since it was opened. */
double mr_exchange_seconds(const mr_exchange *x);

#endif
