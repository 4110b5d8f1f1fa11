/* rank_use.h - what each rank of a run spent its time on: which one holds up the others, and why.
 * Invariant: all ranks get the same list, in their order. */
#ifndef MR_RANK_USE_H
#define MR_RANK_USE_H

#include "base/ranks/ranks.h"
#include "loader/batch/loader.h"
#include "device/images/images.h"

typedef struct mr_rank_use {
    double seconds;           /* wall time of the updates */
    double wait, exchange;    /* the parts of it spent waiting for data, and for the gradients of other ranks */
    double read, decode;      /* parts of `wait`, divided as the loader's work was; both 0: not known */
    mr_loader_spent work;     /* the loader's, so far */
    mr_images_counts decoded; /* zeros: the loader decodes */
} mr_rank_use;

typedef struct mr_rank_uses { /* a zeroed one is empty */
    mr_rank_use *each;        /* [world] */
    unsigned world;
    const mr_ranks *ranks; /* names them; lent */
} mr_rank_uses;

/* An update: its time, how much of it was spent waiting, and the loader's work so far. */
void mr_rank_use_add(mr_rank_use *u, double seconds, double wait, double exchange, const mr_loader_spent *work);
/* Collective. */
mr_status mr_rank_uses_gather(mr_ranks *ranks, const mr_rank_use *mine, mr_rank_uses *out, mr_error *err);
void mr_rank_uses_release(mr_rank_uses *u);

/* What each rank did from `before` to `now`, of the same ranks, as " compute=91-94% wait=1-3% exchange=4-7%": the least
 * and the most of them; nothing if there was no time.  `before` may be empty: from the start. */
void mr_rank_uses_ranges(const mr_rank_uses *now, const mr_rank_uses *before, mr_buf *out);
/* The same as members of a JSON object, an array of shares in the order of the ranks each; rank_read and rank_decode
 * are parts of rank_wait. */
void mr_rank_uses_members(const mr_rank_uses *now, const mr_rank_uses *before, mr_buf *out);

mr_images_counts mr_rank_uses_decoded(const mr_rank_uses *u); /* by all ranks */
/* The rank that waited least for the others, which wait for it; the first if several are equal. */
unsigned mr_rank_uses_slowest(const mr_rank_uses *u);
/* A line for users, if there are several ranks: "Slowest: rank 1 on node7, because of reading (compute 20.0 %, ...",
 * where it spends more of its time than the others most of all; or that they are even. */
void mr_rank_uses_line(const mr_rank_uses *u, mr_buf *out);
/* [{"rank": 0, "name": "rank 0", "share_compute": 0.8, "share_wait": 0.1, "share_exchange": 0.1, "share_read": 0.02,
 * "share_decode": 0.08}, ...] */
void mr_rank_uses_json(const mr_rank_uses *u, mr_buf *out);

#endif
