/* window.h - the memory that the ranks of one host share, and waiting in it.
 * Invariant: every counter has one writer and only grows; its writer rings the bell, waiting ranks sleep on it.  A rank
 * holds a lock on byte r of the memory until it closes it or ends, so that the kernel reports who is gone, however it
 * ended.  MPI does not: without a launcher that ends the run, a collective waits for a dead rank forever.
 *
 * The memory is a memfd rather than MPI's shared window, which is a file in /dev/shm: containers limit that to 64 MB.
 *
 *      | head | a line per rank | entries, 2 x world | texts, 2 x (locals + 1) | gradients 0 | gradients 1 | ... | sum
 * | begin k uses half k % 2 of both: no rank is more than one begin ahead of another */
#ifndef MR_EXCHANGE_WINDOW_H
#define MR_EXCHANGE_WINDOW_H

#include <stdatomic.h>

#include "train/exchange/exchange.h"

/* What a rank brings to a begin, or how it has ended. */
enum { MR_WINDOW_LEFT = 1, MR_WINDOW_KILLED };
typedef struct mr_window_entry {
    int32_t status;
    uint32_t gone; /* 0, MR_WINDOW_LEFT or MR_WINDOW_KILLED */
    double numbers[MR_EXCHANGE_NUMBERS];
} mr_window_entry;

typedef struct mr_window_text {
    char text[sizeof(((mr_error *)0)->text)];
} mr_window_text;

typedef struct mr_window_head {
    uint64_t token;
    _Alignas(64) _Atomic uint32_t bell;
    _Atomic uint32_t gone; /* 1 + the rank of this host that exited first; never reset */
    /* The first rank of the host writes: the begin that all hosts agreed on; pieces that all hosts have summed. */
    _Alignas(64) _Atomic uint64_t agreed;
    _Atomic uint64_t reduced;
} mr_window_head;

typedef struct mr_window_line {          /* one per rank, its only writer */
    _Alignas(64) _Atomic uint64_t begun; /* begins entered */
    _Atomic uint64_t ready;              /* pieces whose gradients are complete */
    _Atomic uint64_t summed;             /* pieces in which it has summed its part */
    _Atomic uint32_t left;               /* it closed its exchange and waits in mr_ranks_end(): not killed */
} mr_window_line;

typedef struct mr_window {
    void *memory, *reserved; /* what is used; the reserved addresses around it */
    uint64_t bytes;
    int file;      /* -1: not shared */
    bool threaded; /* a thread of this rank sleeps on the bell, too */
    unsigned local, locals, world;
    mr_window_head *head;
    mr_window_line *lines;    /* [locals] */
    mr_window_entry *entries; /* [2, world] */
    mr_window_text *texts;    /* [2, locals + 1]: the last one is the agreed error */
    float *gradients;         /* rank r's at gradients + r * stride; the sum after the last one's */
    uint64_t stride;          /* elements */
} mr_window;

/* Collective over `host`: the first rank makes the memory, zeros, and the others open it.  false, on every rank, if one
 * of them could not: then the caller does without it.  `count`: elements per rank. */
bool mr_window_share(mr_ranks *host, unsigned world, uint64_t count, mr_window *w);
/* Private memory of one rank. */
mr_status mr_window_alone(unsigned world, uint64_t count, mr_window *w, mr_error *err);
/* Unmaps the memory unless `keep`; for the others this rank is gone. */
void mr_window_close(mr_window *w, bool keep);

float *mr_window_gradients(const mr_window *w, unsigned local);
float *mr_window_sum(const mr_window *w); /* one rank: its gradients */

void mr_window_ring(mr_window *w);
uint32_t mr_window_bell(const mr_window *w);
/* Sleeps until the bell has been rung since `bell` was read, or for `ns` nanoseconds (below a second; 0: no limit). */
void mr_window_sleep(mr_window *w, uint32_t bell, long ns);
/* The rank of this host that is gone (`only`: checks just that one, unless negative), -1: none.  Once one is claimed,
 * it is that one. */
int mr_window_gone(const mr_window *w, int only);
bool mr_window_left(const mr_window *w, int local);
/* This run ends because rank `local` of this host is gone: true if this rank is the first to claim so; the rank that
 * all of this host report is now mr_window_gone(). */
bool mr_window_claim(mr_window *w, int local);

#endif
