/* window.h - the memory that the ranks of one host share, and waiting in it.
 * Invariant: every counter has one writer and only grows; whoever makes one grow rings the bell, whoever waits sleeps
 * on it.  A rank holds a lock on byte r of the memory for as long as it lives, so that the system itself says who is
 * gone, however it went.
 *
 *      | head | a line a rank | entries, 2 x world | texts, 2 x (locals + 1) | gradients 0 | gradients 1 | ... | sum |
 *                               begin k uses half k % 2 of both: nobody is more than one begin ahead of another
 */
#ifndef MR_EXCHANGE_WINDOW_H
#define MR_EXCHANGE_WINDOW_H

#include <stdatomic.h>

#include "exchange/exchange.h"

/* How a rank fares: its status, and whether it is gone, and its numbers. */
enum { MR_WINDOW_LEFT = 1, MR_WINDOW_KILLED };
typedef struct mr_window_entry {
    int32_t status;
    uint32_t gone; /* 0, or how */
    double numbers[MR_EXCHANGE_NUMBERS];
} mr_window_entry;

typedef struct mr_window_text {
    char text[sizeof(((mr_error *)0)->text)];
} mr_window_text;

typedef struct mr_window_head {
    uint64_t token;
    _Alignas(64) _Atomic uint32_t bell;
    _Atomic uint32_t gone; /* 1 + the rank of this host that ended the run by being gone; stays */
    /* The first rank of the host writes: the begin that all hosts agreed on; pieces that all hosts have summed. */
    _Alignas(64) _Atomic uint64_t agreed;
    _Atomic uint64_t reduced;
} mr_window_head;

typedef struct mr_window_line {          /* one a rank, which alone writes it */
    _Alignas(64) _Atomic uint64_t begun; /* begins entered */
    _Atomic uint64_t ready;              /* pieces whose gradients are complete */
    _Atomic uint64_t summed;             /* pieces in which it has summed its part */
    _Atomic uint32_t left;               /* closed its exchange: it is on its way to the end, not killed */
} mr_window_line;

typedef struct mr_window {
    void *memory, *room; /* what is used; the reserved addresses that it lies in */
    uint64_t bytes;
    int file; /* -1: nobody else's */
    unsigned local, locals, world;
    mr_window_head *head;
    mr_window_line *lines;    /* [locals] */
    mr_window_entry *entries; /* [2, world] */
    mr_window_text *texts;    /* [2, locals + 1]: the last one is the agreed words */
    float *gradients;         /* rank r's at gradients + r * stride; the sum behind the last one's */
    uint64_t stride;          /* elements */
} mr_window;

/* Collective over `host`: the first rank makes the memory, zeros, and the others open it.  false, on every rank, if one
 * of them could not: then the caller does without.  `count`: elements a rank. */
bool mr_window_share(mr_ranks *host, unsigned world, uint64_t count, mr_window *w);
/* Memory of one rank's own. */
mr_status mr_window_alone(unsigned world, uint64_t count, mr_window *w, mr_error *err);
/* Gives the memory back unless `keep`; for the others this rank has left. */
void mr_window_close(mr_window *w, bool keep);

float *mr_window_gradients(const mr_window *w, unsigned local);
float *mr_window_sum(const mr_window *w); /* one rank: its gradients */

void mr_window_ring(mr_window *w);
uint32_t mr_window_bell(const mr_window *w);
/* Sleeps until somebody has rung since `bell` was read, or for `ns` nanoseconds. */
void mr_window_sleep(mr_window *w, uint32_t bell, long ns);
/* Looks whether the others of this host are still there, the `only` one or, if that is negative, all: -1, or who is
 * not.  Once one is agreed on, it is that one. */
int mr_window_gone(const mr_window *w, int only);
bool mr_window_left(const mr_window *w, int local);
/* This run ends because rank `local` of this host is gone: true if this rank is the first to say so; whom all of this
 * host name is now mr_window_gone(). */
bool mr_window_claim(mr_window *w, int local);

#endif
