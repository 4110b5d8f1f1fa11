/* rank_use.c - what the ranks spent their time on, over the run and between two lines of its log.
 * Invariant: shares are of each rank's own time; compute, wait and exchange add up to 1. */
#include "train/journal/rank_use.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

static const double even_share = 0.05; /* a smaller difference is chance */

enum { COMPUTE, WAIT, EXCHANGE, READ, DECODE, KINDS }; /* the last two are of WAIT */

static const char *const kinds[KINDS] = {"compute", "wait", "exchange", "read", "decode"};

typedef struct shares {
    double of[KINDS];
} shares;

static shares shares_of(const mr_rank_use *u)
{
    if (!(u->seconds > 0))
        return (shares){{0}};
    shares s = {{[WAIT] = u->wait / u->seconds,
                 [EXCHANGE] = u->exchange / u->seconds,
                 [READ] = u->read / u->seconds,
                 [DECODE] = u->decode / u->seconds}};
    double waits = s.of[WAIT] + s.of[EXCHANGE];
    s.of[COMPUTE] = waits < 1 ? 1 - waits : 0;
    return s;
}

void mr_rank_use_add(mr_rank_use *u, double seconds, double wait, double exchange, const mr_loader_spent *work)
{
    double reading = work->reading - u->work.reading, decoding = work->decoding - u->work.decoding;
    u->seconds += seconds;
    u->wait += wait;
    u->exchange += exchange;
    u->work = *work;
    if (reading + decoding > 0) {
        u->read += wait * reading / (reading + decoding);
        u->decode += wait * decoding / (reading + decoding);
    }
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

/* ---- between two lines ------------------------------------------------------------------------------------------- */

static double share_between(const mr_rank_uses *now, const mr_rank_uses *before, unsigned rank, size_t kind)
{
    mr_rank_use use = now->each[rank];
    if (before->world) {
        use.seconds -= before->each[rank].seconds;
        use.wait -= before->each[rank].wait;
        use.exchange -= before->each[rank].exchange;
        use.read -= before->each[rank].read;
        use.decode -= before->each[rank].decode;
    }
    return shares_of(&use).of[kind];
}

static bool no_time(const mr_rank_uses *now, const mr_rank_uses *before)
{
    return !now->world || !(now->each[0].seconds > (before->world ? before->each[0].seconds : 0));
}

void mr_rank_uses_ranges(const mr_rank_uses *now, const mr_rank_uses *before, mr_buf *out)
{
    for (size_t kind = 0; kind <= EXCHANGE && !no_time(now, before); kind++) {
        double least = 1, most = 0;
        for (unsigned i = 0; i < now->world; i++) {
            double share = share_between(now, before, i, kind);
            least = share < least ? share : least;
            most = share > most ? share : most;
        }
        int low = (int)(100 * least + 0.5), high = (int)(100 * most + 0.5);
        mr_buf_printf(out, " %s=%d", kinds[kind], low);
        if (high > low)
            mr_buf_printf(out, "-%d", high);
        mr_buf_add_text(out, "%");
    }
}

void mr_rank_uses_members(const mr_rank_uses *now, const mr_rank_uses *before, mr_buf *out)
{
    for (size_t kind = 0; kind < KINDS && !no_time(now, before); kind++) {
        mr_buf_printf(out, ", \"rank_%s\": [", kinds[kind]);
        for (unsigned i = 0; i < now->world; i++)
            mr_buf_printf(out, "%s%.3f", i ? ", " : "", share_between(now, before, i, kind));
        mr_buf_add_text(out, "]");
    }
}

/* ---- the whole run ----------------------------------------------------------------------------------------------- */

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
        if (shares_of(&u->each[i]).of[EXCHANGE] < shares_of(&u->each[slowest]).of[EXCHANGE])
            slowest = i;
    return slowest;
}

static shares mean_of_others(const mr_rank_uses *u, unsigned rank)
{
    shares mean = {{0}};
    for (unsigned i = 0; i < u->world; i++)
        for (size_t kind = 0; kind < KINDS && i != rank; kind++)
            mean.of[kind] += shares_of(&u->each[i]).of[kind] / (u->world - 1);
    return mean;
}

static const char *word_of(size_t kind)
{
    return kind == READ ? "reading" : kind == DECODE ? "decoding" : kind == WAIT ? "waiting for data" : "compute";
}

void mr_rank_uses_line(const mr_rank_uses *u, mr_buf *out)
{
    if (u->world < 2)
        return;
    unsigned slowest = mr_rank_uses_slowest(u);
    shares s = shares_of(&u->each[slowest]), others = mean_of_others(u, slowest);
    if (others.of[EXCHANGE] - s.of[EXCHANGE] < even_share) {
        mr_buf_printf(out, "Ranks: even; each waits about %.1f %% of the time for the others\n", 100 * s.of[EXCHANGE]);
        return;
    }
    static const size_t all[] = {COMPUTE, WAIT}, divided[] = {COMPUTE, READ, DECODE};
    bool known = s.of[READ] + s.of[DECODE] > 0;
    const size_t *listed = known ? divided : all, count = known ? MR_COUNT(divided) : MR_COUNT(all);
    size_t cause = COMPUTE;
    for (size_t i = 0; i < count; i++)
        if (s.of[listed[i]] - others.of[listed[i]] > s.of[cause] - others.of[cause])
            cause = listed[i];
    mr_buf_printf(out, "Slowest: %s, because of %s (", mr_ranks_name_of(u->ranks, slowest).text, word_of(cause));
    for (size_t i = 0; i < count; i++)
        mr_buf_printf(out, "%s %.1f %%, ", word_of(listed[i]), 100 * s.of[listed[i]]);
    mr_buf_printf(out, "for other ranks %.1f %%); the others spend %.1f %% of the time waiting for ranks\n",
                  100 * s.of[EXCHANGE], 100 * others.of[EXCHANGE]);
}

void mr_rank_uses_json(const mr_rank_uses *u, mr_buf *out)
{
    mr_buf_add_text(out, "[");
    for (unsigned i = 0; i < u->world; i++) {
        shares s = shares_of(&u->each[i]);
        const mr_ranks_name name = mr_ranks_name_of(u->ranks, i);
        mr_buf_printf(out, "%s{\"rank\": %u, \"name\": ", i ? ", " : "", i);
        mr_json_add_shown(out, name.text, strlen(name.text));
        for (size_t kind = 0; kind < KINDS; kind++)
            mr_buf_printf(out, ", \"share_%s\": %.6f", kinds[kind], s.of[kind]);
        mr_buf_add_text(out, "}");
    }
    mr_buf_add_text(out, "]");
}
