/* pieces.c - summing gradients piece by piece: within a host in shared memory, between hosts by MPI.
 * Invariant: an element is always summed by the same rank of the host in the same order, whatever is ready first.
 *
 *      piece      | ... |    1    |    0    |     the last elements are ready first
 *      rank                0 1 2     0 1 2        each sums a part of every piece: none waits for one rank's share */
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "train/exchange/parts.h"

enum { BLOCK = 4096 }; /* floats, 16 KiB: the running sum stays in the first cache */

typedef float line __attribute__((vector_size(MR_EXCHANGE_UNIT * sizeof(float)), may_alias));

static void add(float *restrict out, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i += MR_EXCHANGE_UNIT)
        *(line *)(out + i) = *(const line *)(a + i) + *(const line *)(b + i);
}

/* The sum bypasses the caches: all read it later, and a cached store would first read what it overwrites. */
static void add_out(float *restrict out, const float *a, const float *b, size_t n)
{
#ifdef __SSE2__
    for (size_t i = 0; i < n; i += 4)
        _mm_stream_ps(out + i, _mm_add_ps(_mm_load_ps(a + i), _mm_load_ps(b + i)));
#else
    add(out, a, b, n);
#endif
}

/* sum[from .. to) = ((rank 0 + rank 1) + rank 2) + ... */
static void sum_ranks(const mr_window *w, uint64_t from, uint64_t to)
{
    _Alignas(64) float running[BLOCK];
    float *sum = mr_window_sum(w);
    for (uint64_t at = from; at < to; at += BLOCK) {
        size_t n = to - at < BLOCK ? to - at : BLOCK;
        const float *left = mr_window_gradients(w, 0) + at;
        for (unsigned r = 1; r + 1 < w->locals; r++) {
            add(running, left, mr_window_gradients(w, r) + at, n);
            left = running;
        }
        add_out(sum + at, left, mr_window_gradients(w, w->locals - 1) + at, n);
    }
#ifdef __SSE2__
    _mm_sfence(); /* these stores are not ordered by the counter that follows */
#endif
}

/* Piece n, counted from the end. */
static uint64_t piece_from(const mr_exchange *x, uint64_t n)
{
    return (x->pieces - 1 - n) * x->piece;
}

static uint64_t piece_to(const mr_exchange *x, uint64_t n)
{
    return n == 0 ? x->padded : piece_from(x, n - 1);
}

static uint64_t base(const mr_exchange *x)
{
    return x->update * (x->pieces + 1);
}

/* The part of a count of pieces over all updates that belongs to this update. */
static uint64_t since_begin(const mr_exchange *x, uint64_t count)
{
    return count > base(x) ? count - base(x) : 0;
}

/* How many pieces of this update the slowest rank of the host has completed. */
static uint64_t slowest_ready(const mr_exchange *x)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < x->w.locals; i++) {
        uint64_t n = atomic_load(&x->w.lines[i].ready);
        least = n < least ? n : least;
    }
    return since_begin(x, least);
}

static uint64_t slowest_summed(const mr_exchange *x)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < x->w.locals; i++) {
        uint64_t n = atomic_load(&x->w.lines[i].summed);
        least = n < least ? n : least;
    }
    return since_begin(x, least);
}

static void sum_my_part(mr_exchange *x, uint64_t n)
{
    uint64_t from = piece_from(x, n), units = (piece_to(x, n) - from) / MR_EXCHANGE_UNIT;
    uint64_t share = units / x->w.locals, more = units % x->w.locals, r = x->w.local;
    uint64_t first = share * r + (r < more ? r : more), count = share + (r < more);
    if (x->w.locals > 1)
        sum_ranks(&x->w, from + first * MR_EXCHANGE_UNIT, from + (first + count) * MR_EXCHANGE_UNIT);
}

static void fail_once(mr_exchange *x, mr_status status, const mr_error *err)
{
    if (x->failure != MR_OK || status == MR_OK)
        return;
    x->failure = status;
    x->why = *err;
}

/* A piece that the ranks of this host have summed is sent to the other hosts. */
static void begin_piece(mr_exchange *x, uint64_t n)
{
    mr_error err;
    unsigned slot = (unsigned)(n % MR_EXCHANGE_FLYING);
    uint64_t from = piece_from(x, n), count = piece_to(x, n) - from;
    float *sum = mr_window_sum(&x->w) + from;
    mr_status status = x->halves ? mr_halves_scatter(x->halves, slot, sum, count, &x->flying[slot], &err)
                                 : mr_ranks_reduce_begin(x->leaders, MR_RANKS_SUM, sum, count, &x->flying[slot], &err);
    fail_once(x, status, &err);
}

/* What was begun of piece n is done, or has failed. */
static bool is_done(mr_exchange *x, uint64_t n)
{
    mr_error err;
    mr_status status;
    bool done = mr_ranks_reduce_test(x->leaders, &x->flying[n % MR_EXCHANGE_FLYING], &status, &err);
    if (done)
        fail_once(x, status, &err);
    return done && x->failure == MR_OK;
}

static void spread_piece(mr_exchange *x, uint64_t n)
{
    mr_error err;
    unsigned slot = (unsigned)(n % MR_EXCHANGE_FLYING);
    uint64_t count = piece_to(x, n) - piece_from(x, n);
    fail_once(x, mr_halves_spread(x->halves, slot, count, &x->flying[slot], &err), &err);
}

static void take_piece(mr_exchange *x, uint64_t n)
{
    uint64_t from = piece_from(x, n), count = piece_to(x, n) - from;
    if (x->halves)
        mr_halves_take(x->halves, (unsigned)(n % MR_EXCHANGE_FLYING), mr_window_sum(&x->w) + from, count);
}

/* The first rank of a host: pieces that its ranks have summed go to the other hosts, a few at a time. */
static bool drive_hosts(mr_exchange *x)
{
    const uint64_t here = slowest_summed(x), before[] = {x->begun, x->spread, x->reduced};
    while (x->failure == MR_OK && x->begun < here && x->begun - x->reduced < MR_EXCHANGE_FLYING)
        begin_piece(x, x->begun++);
    while (x->halves && x->failure == MR_OK && x->spread < x->begun && is_done(x, x->spread))
        spread_piece(x, x->spread++);
    if (!x->halves)
        x->spread = x->begun;
    while (x->failure == MR_OK && x->reduced < x->spread && is_done(x, x->reduced))
        take_piece(x, x->reduced++);
    if (x->reduced > before[2]) {
        atomic_store(&x->w.head->reduced, base(x) + x->reduced);
        mr_window_ring(&x->w);
    }
    return x->begun > before[0] || (x->halves && x->spread > before[1]) || x->reduced > before[2];
}

bool mr_exchange_drive(mr_exchange *x)
{
    bool moved = false;
    uint64_t ready = x->summed < x->pieces ? slowest_ready(x) : 0;
    while (x->summed < ready) {
        sum_my_part(x, x->summed);
        atomic_store(&x->w.lines[x->w.local].summed, base(x) + ++x->summed);
        moved = true;
        /* Between hosts each piece counts, within one only the last: no rank is woken for less. */
        if (x->hosts || x->summed == x->pieces)
            mr_window_ring(&x->w);
        if (x->leaders)
            drive_hosts(x);
    }
    return (x->leaders && drive_hosts(x)) || moved;
}

uint64_t mr_exchange_arrived(const mr_exchange *x)
{
    return x->hosts ? since_begin(x, atomic_load(&x->w.head->reduced)) : slowest_summed(x);
}

void mr_exchange_mark(mr_exchange *x, uint64_t from)
{
    uint64_t ready = x->ready;
    while (ready < x->pieces && piece_from(x, ready) >= from)
        ready++;
    if (ready == x->ready)
        return;
    x->ready = ready;
    mr_exchange_mover_ask(x);
    atomic_store(&x->w.lines[x->w.local].ready, base(x) + ready);
    mr_window_ring(&x->w);
}

bool mr_exchange_moves(const mr_exchange *x)
{
    return x->agreeing || x->reduced < x->begun;
}
