/* trainer_profile.c - `train --profile`: the time of the updates of rank 0, by family of operations.
 * Invariant: the families, the waits and the rest add up to the time of the updates. */
#include <stdio.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "train/run/trainer.h"

void mr_trainer_profile_count(mr_trainer *t, bool on)
{
    if (t->profile)
        mr_profile_count(t->profile, on);
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

void mr_trainer_profile_limits(mr_trainer *t)
{
    t->limit_flops = mr_limit_flops(t->device, t->config.compute);
    t->limit_bytes = mr_limit_bytes(t->device);
}

static double rate_of(const mr_family_facts *f, const mr_family_sums *s)
{
    double done = f->computes ? s->flops : s->bytes;
    return s->seconds > 0 ? done / s->seconds : 0;
}

/* Seconds of the updates that no family and no wait accounts for. */
static double rest_of(const mr_trainer *t, const mr_rank_use *use)
{
    double rest = use->seconds - use->wait - use->exchange;
    for (int i = 0; i < MR_FAMILY_COUNT; i++)
        rest -= mr_profile_sums(t->profile, (mr_family)i)->seconds;
    return rest > 0 ? rest : 0;
}

/* ---- for users --------------------------------------------------------------------------------------------------- */

static void add_time(mr_table *table, const char *what, const char *calls, double seconds, double all, const char *rate,
                     const char *share_of_limit)
{
    char time[32], share[16];
    snprintf(share, sizeof share, "%.1f %%", all > 0 ? 100 * seconds / all : 0);
    mr_table_row(table, what, calls, mr_text_seconds(seconds, time), share, rate, share_of_limit);
}

static void add_family(mr_table *table, const mr_family_facts *f, const mr_family_sums *s, double all, double limit)
{
    char calls[40], rate[40] = "", share[16] = "";
    double found = rate_of(f, s);
    if (found > 0)
        snprintf(rate, sizeof rate, f->computes ? "%.1f GFLOP/s" : "%.1f GB/s", found / 1e9);
    if (found > 0 && limit > 0)
        snprintf(share, sizeof share, "%.0f %%", 100 * found / limit);
    add_time(table, f->what, mr_text_count(s->calls, calls), s->seconds, all, rate, share);
}

mr_status mr_trainer_profile_print(const mr_trainer *t, const mr_rank_uses *uses, mr_error *err)
{
    const mr_rank_use *use = &uses->each[0];
    mr_table *table = mr_table_new(6);
    mr_table_row(table, "", ">calls", ">time", ">share", ">rate", ">of the limit");
    for (int i = 0; i < MR_FAMILY_COUNT; i++) {
        const mr_family_sums *s = mr_profile_sums(t->profile, (mr_family)i);
        if (s->calls)
            add_family(table, &mr_families[i], s, use->seconds,
                       mr_families[i].computes ? t->limit_flops.rate : t->limit_bytes.rate);
    }
    add_time(table, "waiting for data", "", use->wait, use->seconds, "", "");
    add_time(table, "exchange", "", use->exchange, use->seconds, "", "");
    add_time(table, "the rest", "", rest_of(t, use), use->seconds, "", "");
    printf("\n");
    MR_TRY(mr_table_print(table, stdout, err));
    printf(
        "\nLimits: %.1f GFLOP/s in %s (a product of %zu x %zu), %.1f GB/s (a sum of arrays of %zu MiB). Of rank 0.\n",
        t->limit_flops.rate / 1e9, mr_type_word(t->config.compute), t->limit_flops.size, t->limit_flops.size,
        t->limit_bytes.rate / 1e9, t->limit_bytes.size >> 20);
    return MR_OK;
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

mr_status mr_trainer_profile_json(const mr_trainer *t, const mr_rank_uses *uses, mr_buf *out, mr_error *err)
{
    const mr_rank_use *use = &uses->each[0];
    mr_buf_printf(out,
                  "{\"precision\": \"%s\", \"seconds\": %.6f, \"wait_seconds\": %.6f, \"exchange_seconds\": %.6f, "
                  "\"rest_seconds\": %.6f, \"limit_flops_per_second\": %.6g, \"limit_bytes_per_second\": %.6g, "
                  "\"families\": [",
                  mr_type_word(t->config.compute), use->seconds, use->wait, use->exchange, rest_of(t, use),
                  t->limit_flops.rate, t->limit_bytes.rate);
    const char *before = "";
    for (int i = 0; i < MR_FAMILY_COUNT; i++) {
        const mr_family_sums *s = mr_profile_sums(t->profile, (mr_family)i);
        if (!s->calls)
            continue;
        mr_buf_printf(out, "%s{\"family\": \"%s\", \"calls\": %llu, \"seconds\": %.6f, \"%s\": %.6g}", before,
                      mr_families[i].word, (unsigned long long)s->calls, s->seconds,
                      mr_families[i].computes ? "flops" : "bytes", mr_families[i].computes ? s->flops : s->bytes);
        before = ", ";
    }
    mr_buf_add_text(out, "]}");
    return mr_buf_status(out, err, "profiling");
}
