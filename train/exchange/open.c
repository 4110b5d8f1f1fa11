/* open.c - which ranks share memory, and how gradients are divided into pieces.
 * Invariant: all ranks agree on the outcome of every step, so that none waits for one that has failed. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "train/exchange/parts.h"

/* Which rank of all ranks each of this host is. */
static mr_status learn_ranks(mr_exchange *x, mr_error *err)
{
    uint32_t mine = mr_ranks_rank(x->ranks);
    MR_AUTO(mr_buf_free) mr_buf one = {0};
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    mr_buf_add(&one, &mine, sizeof mine);
    MR_TRY(mr_ranks_agree(x->host, mr_buf_status(&one, err, "connecting to the other ranks"), err));
    MR_TRY(mr_ranks_gather(x->host, &one, &all, NULL, err));
    memcpy(x->world_rank, all.data, x->w.locals * sizeof mine);
    return MR_OK;
}

/* The window of each host or, if one of them cannot have it, private memory of each rank. */
static mr_status open_window(mr_exchange *x, unsigned ranks_a_host, mr_error *err)
{
    unsigned world = mr_ranks_world(x->ranks), rank = mr_ranks_rank(x->ranks);
    int64_t host = ranks_a_host ? (int64_t)(rank / ranks_a_host) : MR_RANKS_SAME_HOST;
    uint64_t apart = 0;
    mr_status status = mr_ranks_split(x->ranks, host, &x->host, err);
    if (status == MR_OK && mr_ranks_world(x->host) > 1)
        apart = !mr_window_share(x->host, world, x->padded, &x->w);
    if (status == MR_OK)
        status = mr_ranks_reduce(x->ranks, MR_RANKS_OR, &apart, 1, err);
    if (status == MR_OK && apart) {
        mr_window_close(&x->w, false);
        mr_ranks_end(x->host);
        x->host = NULL;
        status = mr_ranks_split(x->ranks, rank, &x->host, err);
    }
    return status == MR_OK && !x->w.memory ? mr_window_alone(world, x->padded, &x->w, err) : status;
}

static mr_status meet(mr_exchange *x, const mr_exchange_options *o, mr_error *err)
{
    unsigned world = mr_ranks_world(x->ranks);
    mr_status status = MR_OK;
    MR_TRY(mr_ranks_agree(x->ranks, open_window(x, o->ranks_a_host, err), err));
    x->world_rank = mr_alloc(x->w.locals, sizeof *x->world_rank);
    x->merged = mr_alloc(world, sizeof *x->merged);
    if (!x->world_rank || !x->merged)
        status = mr_fail_memory(err, "connecting to the other ranks");
    MR_TRY(mr_ranks_agree(x->ranks, status, err));
    MR_TRY(mr_ranks_agree(x->ranks, learn_ranks(x, err), err));
    x->hosts = x->w.locals < world;
    if (x->hosts)
        status = mr_ranks_split(x->ranks, x->w.local == 0 ? 0 : MR_RANKS_NONE, &x->leaders, err);
    MR_TRY(mr_ranks_agree(x->ranks, status, err));
    if (x->leaders && o->halves)
        status = mr_halves_open(x->leaders, x->piece, MR_EXCHANGE_FLYING, &x->halves, err);
    MR_TRY(mr_ranks_agree(x->ranks, status, err));
    if (x->hosts && x->kind == MR_EXCHANGE_BUCKETS && mr_ranks_threads(x->ranks))
        status = mr_exchange_mover_start(x, err);
    return mr_ranks_agree(x->ranks, status, err);
}

/* Elements.  By itself a piece is a 64th of the gradients: the last one is a small part of what is sent, and few are
 * begun.  Below 1 MiB what a piece costs by itself shows, and more than 25 MiB gain nothing. */
static uint64_t choose_piece(const mr_exchange_options *o, uint64_t padded)
{
    const uint64_t unit = MR_EXCHANGE_UNIT, least = ((uint64_t)1 << 20) / sizeof(float), most = 25 * least;
    uint64_t piece = o->bucket_bytes / sizeof(float), limit = o->bucket_bytes ? 1024 * least : most;
    if (!o->bucket_bytes)
        piece = padded / 64 > least ? padded / 64 : least;
    piece = piece > limit ? limit : (piece + unit - 1) / unit * unit;
    return piece ? piece : unit;
}

mr_status mr_exchange_open(mr_ranks *ranks, const mr_exchange_options *o, mr_exchange **out, mr_error *err)
{
    const uint64_t unit = MR_EXCHANGE_UNIT;
    mr_exchange *x = mr_alloc(1, sizeof *x);
    mr_status status = x ? MR_OK : mr_fail_memory(err, "opening the exchange");
    if (status == MR_OK && o->count > UINT64_MAX / sizeof(float) - unit)
        status =
            mr_fail(err, MR_MISUSE, "an exchange of %llu gradients cannot fit in memory", (unsigned long long)o->count);
    status = mr_ranks_agree(ranks, status, err);
    if (status != MR_OK) {
        free(x);
        return status;
    }
    *x = (mr_exchange){.ranks = ranks, .kind = o->kind, .w.file = -1, .speaks = mr_ranks_rank(ranks) == 0};
    x->padded = o->count ? (o->count + unit - 1) / unit * unit : unit;
    x->piece = choose_piece(o, x->padded);
    x->pieces = (x->padded + x->piece - 1) / x->piece;
    status = meet(x, o, err);
    if (status != MR_OK) {
        mr_exchange_free(x);
        return status;
    }
    *out = x;
    return MR_OK;
}

void mr_exchange_free(mr_exchange *x)
{
    if (!x)
        return;
    mr_exchange_mover_end(x);
    /* MPI may still write to memory of pending sums: it stays until the process ends, which is soon. */
    bool moves = mr_exchange_moves(x);
    mr_window_close(&x->w, moves);
    if (moves)
        return;
    mr_halves_free(x->halves);
    mr_ranks_end(x->host);
    mr_ranks_end(x->leaders);
    free(x->world_rank);
    free(x->merged);
    free(x);
}
