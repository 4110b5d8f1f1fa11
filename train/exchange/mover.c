/* mover.c - a thread that sums pieces and sends them to other hosts while its rank computes.
 * Invariant: from the first piece of an update that is ready to the last one that is done only this thread sums pieces
 * and calls MPI; at all other times it does neither.  `asked` and `moved` hand that over.
 *
 *      rank     begin | backward pass: marks pieces, asked = update | finish: waits ...   | moved == update
 *      mover    sleeps                                              | sums, sends, naps   | moved = update, sleeps
 *
 * MPI moves bytes only while it is called, so the thread calls it again and again, and naps in between: it shares the
 * processor with the backward pass.  It does so only while bytes are on their way: what all hosts have sent arrives,
 * and then it sleeps, so that a rank that hangs still looks idle to the watch. */
#include "base/system/pool.h"
#include "train/exchange/parts.h"

enum {
    TRIES = 4,        /* checks before a nap */
    NAP_NS = 300000,  /* while this rank computes */
    SHORT_NS = 20000, /* while it waits, so that the processor is free */
    REST_NS = 0,      /* with nothing on its way: until the bell rings, without using the processor at all */
};

/* Nothing of this update is left for this rank to do, or can be done. */
static bool is_done(const mr_exchange *x)
{
    return x->failure != MR_OK || (x->leaders ? x->reduced : x->summed) == x->pieces;
}

/* All pieces of an update.  The bell is read before what it announces: one that rings after that ends the sleep. */
static void move(mr_exchange *x)
{
    for (unsigned tries = 0;; tries++) {
        uint32_t bell = mr_window_bell(&x->w);
        if (is_done(x) || atomic_load(&x->mover.ends))
            return;
        if (mr_exchange_drive(x))
            tries = 0;
        if (tries < TRIES || is_done(x))
            continue;
        long nap = atomic_load(&x->mover.awaited) ? SHORT_NS : NAP_NS;
        mr_window_sleep(&x->w, bell, mr_exchange_moves(x) ? nap : REST_NS);
    }
}

static void *run(void *arg)
{
    mr_exchange *x = arg;
    for (;;) {
        uint32_t bell = mr_window_bell(&x->w);
        if (atomic_load(&x->mover.ends))
            return NULL;
        uint64_t asked = atomic_load(&x->mover.asked);
        if (asked == atomic_load(&x->mover.moved)) {
            mr_window_sleep(&x->w, bell, REST_NS);
            continue;
        }
        move(x);
        atomic_store(&x->mover.moved, asked);
        mr_window_ring(&x->w);
    }
}

mr_status mr_exchange_mover_start(mr_exchange *x, mr_error *err)
{
    x->w.threaded = true;
    x->mover.started = mr_thread_start(&x->mover.thread, run, x) == 0;
    return x->mover.started ? MR_OK : mr_fail(err, MR_SYSTEM, "exchanging gradients: no thread " MR_NO_THREAD);
}

void mr_exchange_mover_end(mr_exchange *x)
{
    if (!x->mover.started)
        return;
    atomic_store(&x->mover.ends, true);
    mr_window_ring(&x->w);
    pthread_join(x->mover.thread, NULL);
    x->mover.started = false;
}

bool mr_exchange_mover_rests(const mr_exchange *x)
{
    return atomic_load(&x->mover.asked) == atomic_load(&x->mover.moved);
}
