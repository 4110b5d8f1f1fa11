/* rank_use.c - gathered once, at the end of a run.
 * Invariant: shares are of each rank's own time, and add up to 1. */
#include "journal/rank_use.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

static const double even_share = 0.05; /* a smaller difference is chance */

typedef struct shares {
    double compute, wait, exchange;
} shares;

static shares shares_of(const mr_rank_use *u)
{
    if (!(u->seconds > 0))
        return (shares){0};
    shares s = {.wait = u->wait / u->seconds, .exchange = u->exchange / u->seconds};
    s.compute = s.wait + s.exchange < 1 ? 1 - s.wait - s.exchange : 0;
    return s;
}

mr_status mr_rank_uses_gather(mr_ranks *ranks, const mr_rank_use *mine, mr_rank_uses *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf packed = {0}, all = {0};
    mr_buf_add(&packed, mine, sizeof *mine);
    MR_TRY(mr_ranks_agree(ranks, mr_buf_status(&packed, err, "training"), err));
    MR_TRY(mr_ranks_gather(ranks, &packed, &all, NULL, err));
    out->world = mr_ranks_world(ranks);
    out->ranks = ranks;
    out->each = mr_alloc(out->world, sizeof *out->each);
    if (out->each)
        memcpy(out->each, all.data, out->world * sizeof *out->each);
    return mr_ranks_agree(ranks, out->each ? MR_OK : mr_fail_memory(err, "training"), err);
}

void mr_rank_uses_release(mr_rank_uses *u)
{
    free(u->each);
    *u = (mr_rank_uses){0};
}

mr_images_counts mr_rank_uses_decoded(const mr_rank_uses *u)
{
    mr_images_counts sum = {.device = 0};
    for (unsigned i = 0; i < u->world; i++) {
        sum.device += u->each[i].decoded.device;
        sum.host += u->each[i].decoded.host;
        sum.flagged += u->each[i].decoded.flagged;
    }
    return sum;
}

unsigned mr_rank_uses_slowest(const mr_rank_uses *u)
{
    unsigned slowest = 0;
    for (unsigned i = 1; i < u->world; i++)
        if (shares_of(&u->each[i]).exchange < shares_of(&u->each[slowest]).exchange)
            slowest = i;
    return slowest;
}

void mr_rank_uses_line(const mr_rank_uses *u, mr_buf *out)
{
    double others = 0;
    if (u->world < 2)
        return;
    unsigned slowest = mr_rank_uses_slowest(u);
    shares s = shares_of(&u->each[slowest]);
    for (unsigned i = 0; i < u->world; i++)
        others += i == slowest ? 0 : shares_of(&u->each[i]).exchange / (u->world - 1);
    if (others - s.exchange < even_share) {
        mr_buf_printf(out, "Ranks: even; each waits about %.1f %% of the time for the others\n", 100 * s.exchange);
        return;
    }
    mr_buf_printf(out,
                  "Slowest: %s (compute %.1f %%, waiting for data %.1f %%, for other ranks %.1f %%); the others spend "
                  "%.1f %% of the time waiting for ranks\n",
                  mr_ranks_name_of(u->ranks, slowest).text, 100 * s.compute, 100 * s.wait, 100 * s.exchange,
                  100 * others);
}

void mr_rank_uses_json(const mr_rank_uses *u, mr_buf *out)
{
    mr_buf_add_text(out, "[");
    for (unsigned i = 0; i < u->world; i++) {
        shares s = shares_of(&u->each[i]);
        const mr_ranks_name name = mr_ranks_name_of(u->ranks, i);
        mr_buf_printf(out, "%s{\"rank\": %u, \"name\": ", i ? ", " : "", i);
        mr_json_add_shown(out, name.text, strlen(name.text));
        mr_buf_printf(out, ", \"share_compute\": %.6f, \"share_wait\": %.6f, \"share_exchange\": %.6f}", s.compute,
                      s.wait, s.exchange);
    }
    mr_buf_add_text(out, "]");
}
