/* parts.h - what exchange.c, open.c, pieces.c and mover.c share.
 * Invariant: pieces go from the end of the gradients to their start, the way the backward pass fills them; counts of
 * pieces in the window go on from update to update (update * (pieces + 1) + n), so that none is reset. */
#ifndef MR_EXCHANGE_PARTS_H
#define MR_EXCHANGE_PARTS_H

#include <pthread.h>

#include "train/exchange/halves.h"
#include "train/exchange/window.h"

enum { MR_EXCHANGE_UNIT = 16, MR_EXCHANGE_FLYING = 8 }; /* floats a cache line; pieces between hosts at once */

typedef struct mr_exchange_mover {
    pthread_t thread;
    bool started;
    _Atomic uint64_t asked, moved; /* updates: the last whose pieces it is to move, and that it has done with */
    atomic_bool awaited, ends;     /* its rank only waits for it; is closed */
} mr_exchange_mover;

struct mr_exchange {
    mr_ranks *ranks, *host, *leaders; /* leaders: NULL on other ranks, and where there is one host */
    mr_exchange_kind kind;
    mr_window w;
    unsigned *world_rank;           /* [w.locals] */
    bool hosts;                     /* more than one */
    uint64_t padded, piece, pieces; /* elements in whole units, elements a piece, their number */

    uint64_t update;                  /* begins so far */
    uint64_t ready;                   /* pieces of this update, here */
    uint64_t summed;                  /* this and what follows up to `halves`: the mover's while it does not rest */
    uint64_t begun, spread, reduced;  /* leaders only; spread: the same as begun if there are no halves */
    void *flying[MR_EXCHANGE_FLYING]; /* requests of pieces reduced .. begun - 1 */
    mr_halves *halves;                /* leaders only; NULL: float32 between hosts */
    mr_window_entry *merged;          /* [world], leaders only: what is sent between hosts at begin, and the error */
    _Alignas(8) mr_window_text text;
    void *agreeing; /* the request for what is merged */

    bool (*elsewhere)(void *ctx); /* during mr_exchange_watch(): whether others have summed */
    void *ctx;

    mr_exchange_mover mover;
    mr_status failure; /* failure of work that has no error to fill in; returned by finish; the mover's, as above */
    mr_error why;
    bool speaks;
    double seconds;
};

/* Does what can be done without waiting: true if anything was done. */
bool mr_exchange_drive(mr_exchange *x);
/* How many pieces of this update, from the end of the gradients on, are summed on all ranks and hosts. */
uint64_t mr_exchange_arrived(const mr_exchange *x);
/* This rank's gradients from element `from` on are complete. */
void mr_exchange_mark(mr_exchange *x, uint64_t from);
/* Between hosts, bytes are pending that only mr_exchange_drive() moves. */
bool mr_exchange_moves(const mr_exchange *x);

/* ---- mover.c: where there is none, it rests always -------------------------------------------------------------- */

mr_status mr_exchange_mover_start(mr_exchange *x, mr_error *err);
void mr_exchange_mover_end(mr_exchange *x);
/* Pieces of this update are ready, or will be. */
static inline void mr_exchange_mover_ask(mr_exchange *x)
{
    if (x->mover.started)
        atomic_store(&x->mover.asked, x->update);
}
/* For the rank's own thread: it may drive pieces, and read what belongs to the mover otherwise. */
bool mr_exchange_mover_rests(const mr_exchange *x);

#endif
